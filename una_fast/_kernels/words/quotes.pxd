"""The rules STARTING_QUOTES and ENDING_QUOTES of nltk.tokenize.destructive."""

from una_fast._kernels.words.rewriter cimport Rewriter

cdef int starting_quotes(Rewriter text, unsigned int present) except -1 nogil
cdef int ending_quotes(Rewriter text, unsigned int present) except -1 nogil
