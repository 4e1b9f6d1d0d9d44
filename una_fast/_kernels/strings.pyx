"""Splitting text into lines and chunks, and numbering distinct strings by first appearance."""

import numpy as np

from libc.string cimport memchr, memcmp, memcpy

ctypedef unsigned long long uint64
ctypedef long long int64


cdef inline uint64 load(const unsigned char* at, Py_ssize_t n) noexcept nogil:
    """A number that differs for different strings of one length n <= 8; reads nothing outside them."""
    cdef unsigned int low = 0, high = 0
    cdef uint64 whole = 0
    if n == 8:
        memcpy(&whole, at, 8)
        return whole
    if n >= 4:
        memcpy(&low, at, 4)
        memcpy(&high, at + n - 4, 4)
    elif n > 0:
        low = at[0] | at[n >> 1] << 8 | at[n - 1] << 16
    return low | <uint64>high << 32


cdef inline unsigned int hash_bytes(const unsigned char* at, Py_ssize_t n) noexcept nogil:
    """The upper half of a multiply-and-shift hash; its value orders nothing, so results do not depend on it."""
    cdef uint64 h = <uint64>n * 0x9e3779b97f4a7c15ULL
    while n > 8:
        h = (h ^ load(at, 8)) * 0xff51afd7ed558ccdULL
        h ^= h >> 32
        at += 8
        n -= 8
    h = (h ^ load(at, n)) * 0xff51afd7ed558ccdULL
    h = (h ^ h >> 32) * 0xc4ceb9fe1a85ec53ULL
    return h >> 32


cdef class StringSet:
    """Distinct strings, numbered 0, 1, ... by first appearance.

    A slot of the hash table (open addressing, at most half full) is 0 or (32 bits of hash, number + 1): a lookup
    costs one cache miss, and one more where it hits.
    """

    cdef unsigned char[::1] utf8
    cdef int64[::1] offsets
    cdef uint64[::1] slots
    cdef Py_ssize_t count

    def __cinit__(self):
        self.utf8 = np.empty(1 << 16, dtype=np.uint8)
        self.offsets = np.zeros((1 << 13) + 1, dtype=np.int64)
        self.slots = np.zeros(1 << 14, dtype=np.uint64)

    def __len__(self):
        return self.count

    def add(self, const unsigned char[::1] data, const int64[::1] starts, const int64[::1] stops):
        """int32 (n,): the number of each string ``data[starts[i]:stops[i]]``."""
        numbers = np.empty(starts.shape[0], dtype=np.int32)
        cdef int[::1] out = numbers
        cdef Py_ssize_t done = 0
        while True:
            with nogil:
                done = self.add_from(data, starts, stops, out, done)
            if done == starts.shape[0]:
                return numbers
            self.grow(stops[done] - starts[done])

    def strings(self):
        """(utf8, offsets): string i is ``utf8[offsets[i]:offsets[i + 1]]``; copies of just the size."""
        offsets = np.array(self.offsets[: self.count + 1])
        return np.array(self.utf8[: offsets[self.count]]), offsets

    cdef Py_ssize_t add_from(self, const unsigned char[::1] data, const int64[::1] starts, const int64[::1] stops,
                             int[::1] out, Py_ssize_t first) except -1 nogil:
        """Number the strings from `first` on; returns the first for which there is no room, or how many there are."""
        cdef Py_ssize_t i, n
        cdef const unsigned char* string
        for i in range(first, starts.shape[0]):
            n = stops[i] - starts[i]
            string = &data[starts[i]] if n else NULL
            out[i] = self.number(string, n)
            if out[i] < 0:
                return i
        return starts.shape[0]

    cdef int number(self, const unsigned char* string, Py_ssize_t n) except? -2 nogil:
        """The number of a string, added if it is new; -1 if there is no room."""
        cdef unsigned int code = hash_bytes(string, n)
        cdef uint64 mask = self.slots.shape[0] - 1, place = code & mask, slot
        cdef int64 start
        cdef int found
        while True:
            slot = self.slots[place]
            if slot == 0:
                break
            if slot >> 32 == code:
                found = <int>(slot & 0xffffffffU) - 1
                start = self.offsets[found]
                if self.offsets[found + 1] - start == n and (n == 0 or memcmp(&self.utf8[start], string, n) == 0):
                    return found
            place = (place + 1) & mask
        start = self.offsets[self.count]
        if self.count + 1 == self.offsets.shape[0] or start + n > self.utf8.shape[0]:
            return -1
        if n:
            memcpy(&self.utf8[start], string, n)
        self.slots[place] = <uint64>code << 32 | <uint64>(self.count + 1)
        self.count += 1
        self.offsets[self.count] = start + n
        return <int>self.count - 1

    cdef int grow(self, Py_ssize_t n) except -1:
        """Double what is full, so that one more string of n bytes fits."""
        cdef Py_ssize_t used = self.offsets[self.count]
        if used + n > self.utf8.shape[0]:
            utf8 = np.empty(2 * max(used, n), dtype=np.uint8)
            utf8[:used] = self.utf8[:used]
            self.utf8 = utf8
        if self.count + 1 == self.offsets.shape[0]:
            offsets = np.empty(2 * self.count + 1, dtype=np.int64)
            offsets[: self.count + 1] = self.offsets
            self.offsets = offsets
            self.rehash(np.zeros(4 * self.count, dtype=np.uint64))
        return 0

    cdef int rehash(self, uint64[::1] slots) except -1:
        cdef uint64 mask = slots.shape[0] - 1, place, slot
        cdef Py_ssize_t i
        for i in range(self.slots.shape[0]):
            slot = self.slots[i]
            if slot:
                place = slot >> 32 & mask
                while slots[place]:
                    place = (place + 1) & mask
                slots[place] = slot
        self.slots = slots
        return 0


def split_lines(const unsigned char[::1] data):
    """(starts, stops) int64 of the lines of `data`: they end at a newline or where `data` ends, less one trailing \\r."""
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
    """Cut the documents ``data[starts[i]:stops[i]]`` at single spaces.

    Returns (chunk starts, chunk stops, indptr), int64: document i has the chunks indptr[i] to indptr[i + 1].
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
    """The offset of the first byte that is not UTF-8 as Python's strict decoder reads it, or -1."""
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
            second = data[i + 1]  # rules out overlong forms, surrogates, and what lies above U+10FFFF
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
