"""The compiled inner loops, one module per stage.

Every kernel accepts C-contiguous arrays of the dtypes in `una_fast.arrays`, including memory-mapped and read-only ones.
It takes no lock and changes no global state. Kernels that run at every training step (`draws/`, `ids/emit`,
`ids/rewrite.fill_rows`) fill arrays that the caller allocates. Other kernels return new arrays if the caller cannot
know the size in advance. Text is passed as UTF-8 in arrays; only `words/treebank` accepts a string, one sentence at a
time. The caller checks the user's input. Building with UNA_FAST_CHECKS=1 adds bounds checks.

    csr          computes the document frequency and highest tf of each term; renumbers terms
    logarithm    computes natural logarithms, correctly rounded, so they are the same on every processor
    strings      numbers distinct strings in order of first appearance; hashes strings
    entries      divides documents into short runs of chunks, and tokenises each distinct run only once
    treebank     applies the rules of NLTK's word tokenizer
    random       generates random bits from the seed, epoch, sample index, row, position and number of a draw
    probability  stores the settings of an augmenter; computes replacement probabilities (equations 3 and 4)
    emit         writes terms or original sentences as token ids, with special tokens and padding
    rows         augments rows of words, in blocks that fit the cache
    negatives    draws a negative with UNA
    custom       augments rows with a user's function
    spell        writes terms as text
    rewrite      writes sentences with replaced words as text and as token ids, with the original case and spacing
"""
