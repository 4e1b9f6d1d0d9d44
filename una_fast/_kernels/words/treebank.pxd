"""NLTK's word tokenizer, callable without the GIL."""

from una_fast._kernels.words.rewriter cimport Rewriter

cdef enum:
    # A text of n characters never grows beyond GROWTH * n + EXTRA: the rules put at most 5 characters beside a quote
    # and fewer beside any other; those that match once in a text (its ends, final periods, last comma) put 16.
    GROWTH = 6
    EXTRA = 16

cdef int apply_treebank(Rewriter text) except -1 nogil
