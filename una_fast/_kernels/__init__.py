"""The compiled inner loops, one module per stage. A kernel is a function or class of these modules.

Kernels accept C-contiguous arrays of the dtypes in `una_fast.arrays`, including memory-mapped and read-only arrays.
Kernels take no locks and change no global state. Kernels that run at every training step fill arrays that the caller
allocates. Other kernels return new arrays if the caller cannot know the size in advance. Text is passed as UTF-8 in
arrays; only `treebank` and `edits` accept a string, one sentence at a time. Kernels do not check the user's input,
because the caller does. Building with UNA_FAST_CHECKS=1 adds bounds checks.

    csr, logarithm  count the words of sentences; compute the logarithms of tf and idf
    words/          split sentences into words, and number distinct words
    edits/          find the edits of near-misses in texts; the only package whose loops hold the GIL
    draws/          draw augmented rows of words
    ids/            write rows of words as token ids, or as text
"""
