"""The place of an entry in its document, as bits."""

cdef enum:
    FIRST = 1  # it starts the document
    LAST = 2   # it ends the document
