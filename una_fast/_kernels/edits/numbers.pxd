from libc.stdint cimport int64_t

from una_fast._kernels.edits.words cimport Words

cdef enum:
    LONGEST = 15  # digits; longer numbers are not changed
    ANY = -2      # in place of the highest useful number, which can be -1: there is none

cdef struct Limits:
    int64_t least, most  # ANY: no highest
    bint keeps           # whether the number must stay

cdef Py_ssize_t digits_at(Words words, Py_ssize_t p, Py_ssize_t most) noexcept
cdef int64_t value_of(Words words, Py_ssize_t p, Py_ssize_t n) noexcept
cdef bint is_ordinal(Words words, Py_ssize_t p) noexcept
cdef bint is_decade(Words words, Py_ssize_t p) noexcept
cdef bint is_hour(Words words, Py_ssize_t p) noexcept
cdef bint is_percent(Words words, Py_ssize_t p) noexcept
cdef bint has_minutes(Words words, Py_ssize_t p) noexcept
cdef bint is_always(Words words, Py_ssize_t p) noexcept
cdef Py_ssize_t date_end(Words words, Py_ssize_t p) noexcept
cdef bint is_address(Words words, Py_ssize_t p, Py_ssize_t stop) noexcept
cdef Limits range_limits(Words words, Py_ssize_t begin, Py_ssize_t end, int64_t n, int64_t least, int64_t most) noexcept
cdef tuple near_numbers(str number, int64_t least, int64_t most)
