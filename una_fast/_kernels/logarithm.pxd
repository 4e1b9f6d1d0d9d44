cdef double log1p_rounded(double x) except? -1 nogil
