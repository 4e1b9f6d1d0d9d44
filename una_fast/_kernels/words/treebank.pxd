"""NLTK's word tokenizer, callable without the GIL."""

from una_fast._kernels.words.rewriter cimport Rewriter

cdef enum:
    # A text of n characters never becomes longer than GROWTH * n + EXTRA: the rules add at most 5 characters for each
    # quote and fewer for any other character. The rules that match once in a text (its ends, the final periods, the
    # last comma) add at most 16 characters together.
    GROWTH = 6
    EXTRA = 16

cdef int apply_treebank(Rewriter text) except -1 nogil
cdef bint is_closing(Rewriter text, Py_ssize_t i) except? -1 nogil
