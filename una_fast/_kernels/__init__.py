"""The compiled inner loops, one module per stage. In this package, a kernel is a function or class of these modules.

Kernels accept C-contiguous arrays of the dtypes in `una_fast.arrays`, including memory-mapped and read-only arrays.
Kernels take no locks and change no global state. Kernels that run at every training step fill arrays that the caller
allocates. Other kernels return new arrays if the caller cannot know the size in advance. Text is passed as UTF-8 in
arrays; only `treebank` accepts a string, one sentence at a time. Kernels do not check the user's input, because the
caller does. Building with UNA_FAST_CHECKS=1 adds bounds checks.

    csr          computes the document frequency and highest tf of each term; renumbers terms
    logarithm    computes natural logarithms, correctly rounded, so they are the same on every processor
    strings      numbers distinct strings in order of first appearance; hashes strings
    entries      splits documents into words, and tokenises repeated chunks only once
    treebank     applies the rules of NLTK's word tokenizer
    random       generates random bits as a function of seed, epoch, sample index, row, position and draw number
    probability  stores the settings of an augmenter; computes replacement probabilities (equations 3 and 4)
    emit         writes rows of words, or sentences of the index, as token ids, with special tokens and padding
    rows         augments rows of words, in blocks that fit the cache
    negatives    draws a negative with UNA
    custom       augments rows with a user-defined function
    spell        writes words as text, joined with spaces
    rewrite      writes sentences with replaced words as text and as token ids, with the original case and spacing
"""
