"""Bytes -> lines, as the offsets where each starts and ends; the first byte that is not UTF-8; chunks joined again."""

import numpy as np

from libc.string cimport memchr, memcpy

ctypedef long long int64


def split_lines(const unsigned char[::1] data):
    """Returns (starts, stops), int64: line i is ``data[starts[i]:stops[i]]``. data: uint8.

    A line ends at a newline or at the end of `data`; one \\r before that end does not belong to the line.
    """
    cdef Py_ssize_t n = data.shape[0], capacity = 1, i = 0, line = 0, stop
    cdef const unsigned char* found
    for i in range(n):
        capacity += data[i] == c'\n'
    starts_array = np.empty(capacity, dtype=np.int64)
    stops_array = np.empty(capacity, dtype=np.int64)
    cdef int64[::1] starts = starts_array, stops = stops_array
    i = 0
    with nogil:
        while i < n:
            found = <const unsigned char*>memchr(&data[i], c'\n', n - i)
            stop = n if found is NULL else i + (found - &data[i])
            starts[line] = i
            stops[line] = stop - (stop > i and data[stop - 1] == c'\r')
            line += 1
            i = stop + 1
    return starts_array[:line], stops_array[:line]


def first_invalid_utf8(const unsigned char[::1] data):
    """The offset at which Python's strict UTF-8 decoder would find the first error in `data`; -1 if it is valid."""
    cdef Py_ssize_t n = data.shape[0], i = 0, k, n_more
    cdef unsigned int byte, second
    cdef unsigned long long eight
    with nogil:
        while i < n:
            if i + 8 <= n:
                memcpy(&eight, &data[i], 8)
                if eight & 0x8080808080808080ULL == 0:
                    i += 8
                    continue
            byte = data[i]
            if byte < 0x80:
                i += 1
                continue
            n_more = 1 if 0xc2 <= byte < 0xe0 else 2 if 0xe0 <= byte < 0xf0 else 3 if 0xf0 <= byte < 0xf5 else 0
            if n_more == 0 or i + n_more >= n:
                break
            second = data[i + 1]  # its limits rule out overlong forms, surrogates and code points above U+10FFFF
            if second < (0xa0 if byte == 0xe0 else 0x90 if byte == 0xf0 else 0x80):
                break
            if second > (0x9f if byte == 0xed else 0x8f if byte == 0xf4 else 0xbf):
                break
            for k in range(2, n_more + 1):
                if data[i + k] & 0xc0 != 0x80:
                    break
            else:
                i += n_more + 1
                continue
            break
    return i if i < n else -1


def join_chunks(const unsigned char[::1] data, const int64[:, ::1] spans):
    """Returns the chunks ``data[spans[i, 0]:spans[i, 1]]`` one after the other, each followed by a space, as uint8."""
    cdef Py_ssize_t n = spans.shape[0], i, filled = 0, length
    joined = np.empty(np.diff(spans).sum() + n, dtype=np.uint8)
    cdef unsigned char[::1] out = joined
    with nogil:
        for i in range(n):
            length = spans[i, 1] - spans[i, 0]
            if length:
                memcpy(&out[filled], &data[spans[i, 0]], length)
            out[filled + length] = c' '
            filled += length + 1
    return joined
