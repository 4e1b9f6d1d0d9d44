"""The rules PUNCTUATION, PARENS_BRACKETS and DOUBLE_DASHES of nltk.tokenize.destructive."""

from una_fast._kernels.words.rewriter cimport Rewriter

cdef int punctuation(Rewriter text, unsigned int present) except -1 nogil
cdef bint is_closing(Rewriter text, Py_ssize_t i) except? -1 nogil
