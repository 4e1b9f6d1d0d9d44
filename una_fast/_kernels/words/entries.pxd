"""The place of an entry in its document, as bits."""

cdef enum:
    FIRST = 1  # the entry starts the document
    LAST = 2   # the entry ends the document
