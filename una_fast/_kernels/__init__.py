"""The compiled inner loops, one module per stage.

Every kernel accepts C-contiguous arrays of the dtypes in `una_fast.arrays`, including memory-mapped and read-only ones.
It takes no lock and changes no global state. Kernels that run at every training step (`draws/`, `ids/emit`,
`ids/rewrite.fill_rows`) fill arrays that the caller allocates. The others return new arrays if the caller cannot know
their size. Text is UTF-8 in arrays; only `words/treebank` accepts a string, one sentence at a time. The caller checks
the user's input. UNA_FAST_CHECKS=1 at build time adds bounds checks.

    csr          scans over rows of terms: document frequency, highest tf, new labels
    logarithm    natural logarithms, correctly rounded, so the same on every processor
    strings      numbers distinct strings in order of first appearance; hashes strings
    entries      chunks -> entries, which are tokenised once; their words -> words of documents
    treebank     the rules of NLTK's word tokenizer, on characters
    random       the generator of all draws: a function of seed, epoch, sample index, row, position, number
    probability  the settings of an augmenter; rows of terms -> replacement probabilities (equations 3 and 4)
    emit         terms, or original sentences -> token ids, with special tokens and padding
    rows         rows of words -> augmented rows, in blocks that fit the cache
    negatives    draws a row of UNA
    custom       draws a row with a user's function
    spell        terms -> text
    rewrite      sentences with replaced words -> text and token ids, with their original case and spacing
"""
