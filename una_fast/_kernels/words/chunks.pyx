"""Bytes -> lines -> chunks, as the offsets where each starts and ends; only `join_chunks` copies the text itself."""

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


def split_chunks(const unsigned char[::1] data, const int64[::1] starts, const int64[::1] stops):
    """Cut the documents ``data[starts[i]:stops[i]]`` at every space; two spaces in a row enclose an empty chunk.

    Returns (chunk starts, chunk stops, indptr), int64: document i has the chunks indptr[i] to indptr[i + 1] - 1.
    """
    cdef Py_ssize_t n = starts.shape[0], i, at, chunk = 0
    indptr_array = np.zeros(n + 1, dtype=np.int64)
    cdef int64[::1] indptr = indptr_array
    with nogil:
        for i in range(n):
            chunk += 1
            for at in range(starts[i], stops[i]):
                chunk += data[at] == c' '
            indptr[i + 1] = chunk
    bounds = np.empty((2, chunk), dtype=np.int64)
    cdef int64[:, ::1] chunks = bounds
    with nogil:
        chunk = 0
        for i in range(n):
            chunks[0, chunk] = starts[i]
            for at in range(starts[i], stops[i]):
                if data[at] == c' ':
                    chunks[1, chunk] = at
                    chunk += 1
                    chunks[0, chunk] = at + 1
            chunks[1, chunk] = stops[i]
            chunk += 1
    return bounds[0], bounds[1], indptr_array


def first_invalid_utf8(const unsigned char[::1] data):
    """The offset at which Python's strict UTF-8 decoder would find the first error in `data`; -1 if it is valid."""
    cdef Py_ssize_t n = data.shape[0], i = 0, k, n_more
    cdef unsigned int byte, second
    with nogil:
        while i < n:
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
