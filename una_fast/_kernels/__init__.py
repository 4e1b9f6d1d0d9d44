"""Compiled inner loops, one module per stage.

Every kernel accepts C-contiguous arrays of the dtypes in `una_fast.arrays` (including memory-mapped and read-only
ones), takes no lock and changes no global state. Kernels that run in every training step (`draws/`, `ids/emit`,
`ids/written.fill_rows`) fill arrays that the caller allocated. Other kernels return new arrays if the caller cannot
know their size. Text is UTF-8 in arrays; only `words/treebank` accepts a string, one sentence at a time. The caller
checks the user's input. UNA_FAST_CHECKS=1 at build time adds bounds checks to the kernels.

    csr          scans over rows of terms: document frequency, highest tf, new labels
    logarithm    natural logarithms, correctly rounded, so the same on every processor
    strings      numbers distinct strings by first appearance; hashes of strings
    entries      chunks -> entries, which are tokenised once; their words -> words of documents
    treebank     the rules of NLTK's word tokenizer, on characters
    random       the generator of all draws: a function of seed, epoch, row, position, number
    probability  the settings of one augmenter; rows of terms -> replacement probabilities, equations 3 and 4
    emit         terms -> token ids, with special tokens and padding; rows of original sentences
    rows         rows of words -> augmented rows, in blocks that stay in cache
    negatives    the draws of UNA for a row
    custom       the draws of a row by a user's function
    spell        terms -> text
    written      rows with replaced words -> text and token ids, written like the sentences
"""
