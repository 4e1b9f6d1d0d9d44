"""Distinct strings, numbered by first appearance."""

import numpy as np

from libc.string cimport memcmp, memcpy

ctypedef unsigned long long uint64
ctypedef long long int64


cdef inline uint64 load(const unsigned char* at, Py_ssize_t n) noexcept nogil:
    """A number made of the n <= 8 bytes at `at`: it differs for different strings of the same length.

    No byte outside the string is read.
    """
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
    """The upper 32 bits of a multiply-and-shift hash of n bytes.

    Nothing is put in order by its value, so results do not depend on it.
    """
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

    The hash table has open addressing and is at most half full. A slot is 0 if it is empty; else it holds 32 bits of
    hash and the number of the string plus 1. So a lookup costs one cache miss, and one more if it finds the string.
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
        """int32 (n,): the number of each string ``data[starts[i]:stops[i]]``; new strings are added to the set.

        data: uint8; starts, stops: int64 (n,).
        """
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
        """(utf8 uint8, offsets int64): string i is ``utf8[offsets[i]:offsets[i + 1]]``; copies without spare room."""
        offsets = np.array(self.offsets[: self.count + 1])
        return np.array(self.utf8[: offsets[self.count]]), offsets

    cdef Py_ssize_t add_from(self, const unsigned char[::1] data, const int64[::1] starts, const int64[::1] stops,
                             int[::1] out, Py_ssize_t first) except -1 nogil:
        """Number the strings from index `first` on.

        Returns the index of the first string for which there is no room, or the number of strings if all have room.
        """
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
        """The number of a string of n bytes, which is added if it is new; -1 if there is no room for it."""
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
        """Double each array that is full, so that one more string of n bytes fits."""
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


def hash_strings(const unsigned char[::1] utf8, const int64[::1] offsets):
    """uint32 (n,): a hash of each string ``utf8[offsets[i]:offsets[i + 1]]``.

    Machines of the same byte order give the same hashes. utf8: uint8; offsets: int64 (n + 1,).
    """
    cdef Py_ssize_t i, n = offsets.shape[0] - 1
    hashes = np.empty(n, dtype=np.uint32)
    cdef unsigned int[::1] out = hashes
    cdef const unsigned char* start = &utf8[0] if utf8.shape[0] else NULL
    with nogil:
        for i in range(n):
            out[i] = hash_bytes(start + offsets[i], offsets[i + 1] - offsets[i])
    return hashes


def take_strings(const unsigned char[::1] utf8, const int64[::1] offsets, const int64[::1] order,
                 const int64[::1] bounds, unsigned char[::1] out):
    """Copy the string order[i] to ``out[bounds[i]:bounds[i + 1]]``, for each i.

    String j is ``utf8[offsets[j]:offsets[j + 1]]``; order: int64 (m,); bounds: int64 (m + 1,).
    """
    cdef Py_ssize_t i
    cdef int64 start, n
    with nogil:
        for i in range(order.shape[0]):
            start, n = offsets[order[i]], bounds[i + 1] - bounds[i]
            if n:
                memcpy(&out[bounds[i]], &utf8[start], n)
