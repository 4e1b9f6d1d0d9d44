"""Character classes, callable without the GIL."""

cdef int regex_word(Py_UCS4 c) except -1 nogil
cdef int regex_digit(Py_UCS4 c) except -1 nogil
cdef int regex_space(Py_UCS4 c) except -1 nogil
cdef int python_word(Py_UCS4 c) except -1 nogil
cdef int python_space(Py_UCS4 c) except -1 nogil
