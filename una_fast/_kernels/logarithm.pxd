cdef double rounded(double x, int plus) except? -1 nogil
