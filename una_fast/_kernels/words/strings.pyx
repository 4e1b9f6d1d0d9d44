"""Assigns ids to distinct strings, by first appearance, and hashes strings."""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

from una_fast.arrays import cache_aligned_zeros

from una_fast._kernels.prefetch cimport una_prefetch

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    static inline uint64_t una_load(const unsigned char *at) {
        uint64_t word;
        memcpy(&word, at, 8);
    #if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        word = __builtin_bswap64(word);
    #endif
        return word;
    }
    """
    uint64_t una_load(const unsigned char* at) noexcept nogil

cdef enum:
    GROUP = 128  # strings that are looked up together, so that their cache misses overlap; 32 takes 1.3 times as long
    FIRST_ROOM = 1 << 8  # how many strings a new set has room for

cdef struct String:
    const unsigned char* start
    Py_ssize_t n
    uint64_t key


cdef inline uint64_t first_bytes(const unsigned char* at, Py_ssize_t n, const unsigned char* end) noexcept nogil:
    """Return the n <= 8 bytes at `at` as a little-endian number, without reading the memory from `end` on."""
    cdef unsigned char padded[8]
    cdef Py_ssize_t i
    if n == 0:
        return 0
    if end - at >= 8:
        return una_load(at) & (~<uint64_t>0 >> (64 - 8 * n))
    for i in range(8):
        padded[i] = at[i] if i < n else 0
    return una_load(padded)


cdef inline uint64_t mixed(uint64_t h) noexcept nogil:
    h *= 0xff51afd7ed558ccdULL
    return h ^ h >> 32


cdef inline uint64_t key_of(const unsigned char* at, Py_ssize_t n, const unsigned char* end) noexcept nogil:
    """Return a 64-bit key of a string of n bytes: the bytes themselves if n is at most 8, else a hash of them."""
    cdef uint64_t h = 0
    if n <= 8:
        return first_bytes(at, n, end)
    while n >= 8:
        h = mixed(h ^ una_load(at))
        at += 8
        n -= 8
    return mixed(h ^ first_bytes(at, n, end))


cdef inline uint64_t stored_length(Py_ssize_t n) noexcept nogil:
    """Return n, but at most 2**32 - 1, because `StringSet.slots` stores a length in 32 bits."""
    return <uint64_t>min(n, <Py_ssize_t>0xffffffff)


cdef inline uint32_t code_of(uint64_t key, uint64_t length) noexcept nogil:
    """Return a 32-bit hash of a string from its `key_of` and its `stored_length`."""
    return <uint32_t>((mixed(key ^ length * 0x9e3779b97f4a7c15ULL) * 0xc4ceb9fe1a85ec53ULL) >> 32)


cdef class StringSet:
    """Distinct strings, with ids 0, 1, ... by first appearance.

    The hash table uses open addressing and is at most half full. The key of a string of up to 8 bytes is the string
    itself, so finding most words takes one cache miss.

    room: how many strings fit before the arrays grow, at least FIRST_ROOM.
    """

    cdef unsigned char[::1] utf8
    cdef int64_t[::1] offsets
    cdef uint64_t[:, ::1] slots  # (key, length << 32 | id + 1); zeros if empty
    cdef Py_ssize_t count

    def __cinit__(self, Py_ssize_t room=FIRST_ROOM):
        room = max(FIRST_ROOM, 1 << (room - 1).bit_length())
        self.utf8 = np.empty(8 * room, dtype=np.uint8)
        self.offsets = np.zeros(room + 1, dtype=np.int64)
        self.slots = cache_aligned_zeros(4 * room, np.uint64).reshape(-1, 2)

    def __len__(self):
        return self.count

    def add(self, const unsigned char[::1] data, const int64_t[::1] starts, const int64_t[::1] stops):
        """Return the id of each string ``data[starts[i]:stops[i]]``, and add those that are not in the set."""
        return self.ids_of(data, starts, stops, True)

    def find(self, const unsigned char[::1] data, const int64_t[::1] starts, const int64_t[::1] stops):
        """Return the id of each string ``data[starts[i]:stops[i]]``, or -1 if it is not in the set."""
        return self.ids_of(data, starts, stops, False)

    cdef ids_of(self, const unsigned char[::1] data, const int64_t[::1] starts, const int64_t[::1] stops, bint adds):
        cdef Py_ssize_t n = starts.shape[0], i = 0
        cdef const unsigned char* text = &data[0] if data.shape[0] else NULL
        ids = np.empty(n, dtype=np.int32)
        cdef int32_t[::1] out = ids
        with nogil:
            while i < n:
                self.look_up_group(text, text + data.shape[0], &starts[i], &stops[i], min(GROUP, n - i), &out[i], adds)
                i += GROUP
        return ids

    def strings(self):
        """Return copies of `utf8` and `offsets`: string i is ``utf8[offsets[i]:offsets[i + 1]]``."""
        offsets = np.array(self.offsets[: self.count + 1])
        return np.array(self.utf8[: offsets[self.count]]), offsets

    cdef int look_up_group(self, const unsigned char* text, const unsigned char* end, const int64_t* starts,
                           const int64_t* stops, Py_ssize_t n, int32_t* out, bint adds) except -1 nogil:
        """Set ``out[i]`` to the id of the string ``text[starts[i]:stops[i]]``, for n <= GROUP strings.

        end: where the memory of `text` ends.
        """
        cdef String group[GROUP]
        cdef uint32_t codes[GROUP]
        cdef int64_t found[GROUP]
        cdef uint64_t mask = self.slots.shape[0] - 1
        cdef Py_ssize_t i, k, n_found = 0
        for i in range(n):
            group[i].start, group[i].n = text + starts[i], stops[i] - starts[i]
            group[i].key = key_of(group[i].start, group[i].n, end)
            codes[i] = code_of(group[i].key, stored_length(group[i].n))
            una_prefetch(&self.slots[codes[i] & mask, 0])
        for i in range(n):  # prefetch the strings with which those longer than 8 bytes will be compared
            if group[i].n > 8 and self.slots[codes[i] & mask, 0] == group[i].key and self.slots[codes[i] & mask, 1]:
                found[n_found] = <int64_t>(self.slots[codes[i] & mask, 1] & 0xffffffffU) - 1
                una_prefetch(&self.offsets[found[n_found]])
                n_found += 1
        for k in range(n_found):
            una_prefetch(&self.utf8[self.offsets[found[k]]])
        for i in range(n):
            out[i] = self.id_of(group[i], codes[i], adds)
        return 0

    cdef int32_t id_of(self, String string, uint32_t code, bint adds) except -2 nogil:
        """Return the id of a string. A new string is added if `adds` is true; if not, its id is -1."""
        cdef uint64_t* slots = &self.slots[0, 0]
        cdef uint64_t mask = self.slots.shape[0] - 1, at = code & mask
        cdef uint64_t length = stored_length(string.n) << 32
        cdef int64_t start
        cdef int32_t found
        while slots[2 * at + 1]:
            if slots[2 * at] == string.key and (slots[2 * at + 1] ^ length) >> 32 == 0:
                found = <int32_t>(slots[2 * at + 1] & 0xffffffffU) - 1
                if string.n <= 8:
                    return found
                start = self.offsets[found]
                if (self.offsets[found + 1] - start == string.n
                        and memcmp(&self.utf8[start], string.start, string.n) == 0):
                    return found
            at = (at + 1) & mask
        if not adds:
            return -1
        start = self.offsets[self.count]
        if self.count + 1 == self.offsets.shape[0] or start + string.n > self.utf8.shape[0]:
            with gil:
                self.grow(string.n)
            return self.id_of(string, code, adds)
        if string.n:
            memcpy(&self.utf8[start], string.start, string.n)
        slots[2 * at], slots[2 * at + 1] = string.key, length | <uint64_t>(self.count + 1)
        self.count += 1
        self.offsets[self.count] = start + string.n
        return <int32_t>self.count - 1

    cdef int grow(self, Py_ssize_t n) except -1:
        """Replace each full array with a longer one, so that one more string of n bytes fits."""
        cdef Py_ssize_t used = self.offsets[self.count]
        if used + n > self.utf8.shape[0]:
            self.utf8 = _longer(self.utf8, used, 2 * max(used, n))
        if self.count + 1 == self.offsets.shape[0]:
            longer = _longer(self.offsets, self.count + 1, 2 * self.count + 1)
            self.rehash(cache_aligned_zeros(8 * self.count, np.uint64).reshape(-1, 2))
            self.offsets = longer  # last: if `rehash` raised, `id_of` would overfill the old table
        return 0

    cdef int rehash(self, uint64_t[:, ::1] slots) except -1:
        cdef uint64_t mask = slots.shape[0] - 1, at
        cdef Py_ssize_t i
        for i in range(self.slots.shape[0]):
            if self.slots[i, 1]:
                at = code_of(self.slots[i, 0], self.slots[i, 1] >> 32) & mask
                while slots[at, 1]:
                    at = (at + 1) & mask
                slots[at, 0], slots[at, 1] = self.slots[i, 0], self.slots[i, 1]
        self.slots = slots
        return 0


def _longer(array, Py_ssize_t used, Py_ssize_t n):
    """Copy the first `used` values of `array` to a new array of length n."""
    longer = np.empty(n, dtype=np.asarray(array).dtype)
    longer[:used] = array[:used]
    return longer


def hash_strings(const unsigned char[::1] utf8, const int64_t[::1] offsets):
    """Return a hash of each string ``utf8[offsets[i]:offsets[i + 1]]``: uint32 (n,), the same on every machine."""
    cdef Py_ssize_t i, n = offsets.shape[0] - 1, length
    hashes = np.empty(n, dtype=np.uint32)
    cdef uint32_t[::1] out = hashes
    cdef const unsigned char* start = &utf8[0] if utf8.shape[0] else NULL
    cdef const unsigned char* end = start + utf8.shape[0]
    with nogil:
        for i in range(n):
            length = offsets[i + 1] - offsets[i]
            out[i] = code_of(key_of(start + offsets[i], length, end), stored_length(length))
    return hashes
