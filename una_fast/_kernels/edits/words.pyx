"""Splits a text into words, and finds those that are in a lexicon.

A word consists of letters of any script with their accents, and has at most one apostrophe inside. A number with its
separators is also a word.
"""

from cpython.mem cimport PyMem_Free, PyMem_Realloc
from cpython.unicode cimport Py_UNICODE_TOLOWER, PyUnicode_DATA, PyUnicode_KIND, PyUnicode_READ

import numpy as np

cdef enum:
    LETTER
    MARK
    SPACE
    DIGIT
    QUESTION = 64     # of a gap: it contains a question mark
    ENDS_SENTENCE = 128  # of a gap
    APOSTROPHE = 0x2019
    DOTTED_I = 0x130  # its lower case has two characters
    CAPITAL_SIGMA = 0x3A3  # its lower case depends on its place in the word

# the first and the last character of each range
MARKS = "!/:@[`{~\u00a1\u00bf\u2010\u205e\u0964\u0964\u3000\u303f\uff00\uff0f\uff1a\uff20"
cdef Py_UCS4[20] RANGES
cdef int N_RANGES = len(MARKS)
cdef uint8_t[128] CLASSES
cdef Py_UCS4[128] LOWER


cdef int class_of(Py_UCS4 c) noexcept:
    cdef int k
    if c.isspace():
        return SPACE
    if c.isdecimal():
        return DIGIT
    for k in range(0, N_RANGES, 2):
        if RANGES[k] <= c <= RANGES[k + 1]:
            return MARK
    return LETTER


cdef inline int kind_of(Py_UCS4 c) noexcept:
    return CLASSES[c] if c < 128 else class_of(c)


cdef inline bint is_quote(Py_UCS4 c) noexcept:
    return c == c"'" or c == c'"' or c == c')' or c == 0x201d or c == APOSTROPHE


cdef inline Py_UCS4 lower(Py_UCS4 c) noexcept:
    if c < 128:
        return LOWER[c]
    return <Py_UCS4>c"'" if c == APOSTROPHE else Py_UNICODE_TOLOWER(c)


cdef inline uint64_t mixed(uint64_t key, Py_UCS4 c) noexcept:
    return (key ^ <uint64_t>c) * 0x100000001b3ULL  # FNV-1a


def _fill_tables():
    cdef int c
    for c in range(N_RANGES):
        RANGES[c] = ord(MARKS[c])
    for c in range(128):
        CLASSES[c], LOWER[c] = class_of(c), ord(chr(c).lower())


_fill_tables()


cdef class Lexicon:
    """The distinct words in lower case that rules ask for, with ids 0, 1, ... by first appearance."""

    def __init__(self, words):
        cdef uint64_t key, mask, place
        cdef Py_UCS4 c
        self.ids = {}
        for word in words:
            self.ids.setdefault(word, len(self.ids))
        self.offsets = np.cumsum([0, *map(len, self.ids)])
        self.letters = np.array([ord(c) for word in self.ids for c in word], dtype=np.int32)
        self.slots = np.zeros((4 << len(self.ids).bit_length(), 2), dtype=np.uint64)  # at most a quarter is used
        mask = self.slots.shape[0] - 1
        for word, id in self.ids.items():
            key = 0
            for c in word:
                key = mixed(key, c)
            place = key & mask
            while self.slots[place, 1]:
                place = (place + 1) & mask
            self.slots[place, 0], self.slots[place, 1] = key, id + 1

    cdef int32_t find(self, Words words, Py_ssize_t start, Py_ssize_t stop, uint64_t key) noexcept:
        """Return the id of the word ``text[start:stop]`` in lower case, or -1. key: of its letters in lower case."""
        cdef uint64_t mask = self.slots.shape[0] - 1, place = key & mask
        cdef Py_ssize_t k
        cdef int32_t id
        cdef int64_t first
        while self.slots[place, 1]:
            if self.slots[place, 0] == key:
                id = <int32_t>(self.slots[place, 1] - 1)
                first = self.offsets[id]
                if self.offsets[id + 1] - first == stop - start:
                    for k in range(stop - start):
                        if <Py_UCS4>self.letters[first + k] != lower(words.at(start + k)):
                            break
                    else:
                        return id
            place = (place + 1) & mask
        return -1


cdef class Words:
    """The words of one text after another. Threads may not share an object."""

    def __init__(self, Lexicon lexicon):
        self.lexicon = lexicon
        self.seen = np.zeros(max(len(lexicon.ids), 1), dtype=np.int64)

    def __dealloc__(self):
        PyMem_Free(self.words)

    cdef inline Py_UCS4 at(self, Py_ssize_t p) noexcept:
        """Return the character at index p, or a zero byte, which is a LETTER, if p is not in the text."""
        return PyUnicode_READ(self.width, self.data, p) if 0 <= p < self.n_characters else 0

    cdef inline bint is_digit(self, Py_ssize_t p) noexcept:
        return kind_of(self.at(p)) == DIGIT

    cdef inline bint is_space(self, Py_ssize_t p) noexcept:
        return kind_of(self.at(p)) == SPACE

    cdef str written(self, Py_ssize_t i):
        return self.text[self.words[i].start : self.words[i].stop]

    cdef str lowered(self, Py_ssize_t i):
        return self.written(i).lower().replace("\u2019", "'")

    cdef inline bint occurs(self, int32_t id) noexcept:
        """Return whether the word with this id is in the text."""
        return self.seen[id] == self.stamp

    cdef bint is_lower(self, Py_ssize_t start, Py_ssize_t stop) noexcept:
        """Return ``text[start:stop].islower()``."""
        cdef bint is_cased = False
        cdef Py_UCS4 c
        for p in range(start, stop):
            c = self.at(p)
            if c.isupper() or c.istitle():
                return False
            is_cased |= c.islower()
        return is_cased

    cdef bint is_title(self, Py_ssize_t start, Py_ssize_t stop) noexcept:
        """Return ``text[start:stop].istitle()``."""
        cdef bint is_cased = False, last_is_cased = False
        cdef Py_UCS4 c
        for p in range(start, stop):
            c = self.at(p)
            if c.isupper() or c.istitle():
                if last_is_cased:
                    return False
                is_cased = last_is_cased = True
            elif c.islower():
                if not last_is_cased:
                    return False
            else:
                last_is_cased = False
        return is_cased

    cdef bint has_title_case(self) noexcept:
        """Return whether every word of the text is capitalised."""
        if self.title < 0:
            self.title = self.is_title(0, self.n_characters)
        return self.title

    cdef int read(self, str text, set cuts) except -1:
        """Split `text` into words. cuts: places inside words that divide a word there, or None."""
        cdef Py_ssize_t p = 0, start, gap = 0
        cdef uint64_t key
        cdef uint8_t flags
        cdef Py_UCS4 c
        cdef bint is_odd, has_apostrophe
        self.text, self.width, self.data = text, PyUnicode_KIND(text), PyUnicode_DATA(text)
        self.n_characters, self.n, self.n_numbers, self.next_first = len(text), 0, 0, 0
        self.stamp, self.title = self.stamp + 1, -1
        while p < self.n_characters:
            c = self.at(p)
            kind = kind_of(c)
            if kind == MARK or kind == SPACE:
                p += 1
                continue
            flags = FOLLOWS if p - gap == 1 and self.at(gap) == c' ' else self.read_gap(gap, p)
            if flags & ENDS_SENTENCE and self.n:
                self.end_sentence(flags & QUESTION)
            start, key, is_odd, has_apostrophe = p, 0, False, False
            if kind == DIGIT:
                while True:
                    key = mixed(key, lower(self.at(p)))
                    p += 1
                    c = self.at(p)
                    if not (kind_of(c) == DIGIT or ((c == c'.' or c == c',') and self.is_digit(p + 1))):
                        break
                self.add(start, p, key, flags | IS_NUMBER)
                self.n_numbers += 1
            else:
                while p < self.n_characters:
                    c = self.at(p)
                    if kind_of(c) != LETTER:
                        if has_apostrophe or not (c == c"'" or c == APOSTROPHE):
                            break
                        if p + 1 >= self.n_characters or kind_of(self.at(p + 1)) != LETTER:
                            break
                        has_apostrophe = True
                    is_odd |= c == DOTTED_I or c == CAPITAL_SIGMA
                    key = mixed(key, lower(c))
                    p += 1
                if cuts is not None:
                    self.divide(start, p, flags, cuts)
                elif is_odd:
                    self.add_odd(start, p, flags)
                else:
                    self.add(start, p, key, flags)
            gap = p
        self.end_sentence(self.n and self.read_gap(gap, p) & QUESTION)
        return 0

    cdef uint8_t read_gap(self, Py_ssize_t start, Py_ssize_t stop) noexcept:
        """Return what the text between two words is: FOLLOWS, IS_JOINED, QUESTION and ENDS_SENTENCE."""
        cdef uint8_t flags = FOLLOWS
        cdef Py_ssize_t p
        cdef Py_UCS4 c
        for p in range(start, stop):
            c = self.at(p)
            if kind_of(c) != SPACE:
                flags &= ~FOLLOWS
            if c == c'?' or c == 0xff1f:
                flags |= QUESTION
        if stop > start:
            c = self.at(stop - 1)
            if c == c'-' or c == c'\\' or c == c'/':
                flags |= IS_JOINED
        p = start
        while p < stop and is_quote(self.at(p)):
            p += 1
        c = self.at(p) if p < stop else 0
        if c == 0x3002 or c == 0xff01 or c == 0xff1f:
            flags |= ENDS_SENTENCE
        elif c == c'.' or c == c'!' or c == c'?' or c == c':' or c == c';':
            p += 1
            while p < stop and is_quote(self.at(p)):
                p += 1
            if p < stop and self.is_space(p):
                flags |= ENDS_SENTENCE
        return flags

    cdef void end_sentence(self, bint is_question) noexcept:
        """Make the next word the first of a sentence."""
        cdef Py_ssize_t i
        if is_question:
            for i in range(self.words[self.n - 1].first, self.n):
                self.words[i].flags |= IN_QUESTION
        self.next_first = self.n

    cdef int add(self, Py_ssize_t start, Py_ssize_t stop, uint64_t key, uint8_t flags) except -1:
        return self.put(start, stop, self.lexicon.find(self, start, stop, key), flags)

    cdef int add_odd(self, Py_ssize_t start, Py_ssize_t stop, uint8_t flags) except -1:
        word = self.text[start:stop].lower().replace("\u2019", "'")
        return self.put(start, stop, self.lexicon.ids.get(word, -1), flags)

    cdef int put(self, Py_ssize_t start, Py_ssize_t stop, int32_t id, uint8_t flags) except -1:
        cdef Word* word
        if self.n == self.room:
            self.grow()
        word = &self.words[self.n]
        word.start, word.stop, word.first, word.id = start, stop, self.next_first, id
        word.flags = flags & (IS_NUMBER | IS_JOINED | (FOLLOWS if self.n else 0))
        if id >= 0:
            self.seen[id] = self.stamp
        self.n += 1
        return 0

    cdef int grow(self) except -1:
        room = 2 * self.room + 64
        words = <Word*>PyMem_Realloc(self.words, room * sizeof(Word))
        if words == NULL:
            raise MemoryError
        self.words, self.room = words, room
        return 0

    cdef int divide(self, Py_ssize_t start, Py_ssize_t stop, uint8_t flags, set cuts) except -1:
        """Add the parts of a word that is divided at the places `cuts`."""
        for p in range(start + 1, stop + 1):
            if p == stop or p in cuts:
                self.add_odd(start, p, flags)
                start, flags = p, FOLLOWS
        return 0
