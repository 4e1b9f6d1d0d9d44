"""NLTK's word tokenizer, callable without the GIL."""

from una_fast._kernels.rewriter cimport Rewriter

cdef enum:
    # The rules put at most 5 characters beside a quote, fewer beside any other, and 16 once a text.
    GROWTH = 6
    EXTRA = 16

cdef int apply_treebank(Rewriter text) except -1 nogil
cdef int is_closing(unsigned int c) except -1 nogil
