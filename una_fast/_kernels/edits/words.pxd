from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

cdef enum:
    # the flags of a word
    IS_NUMBER = 1
    FOLLOWS = 2       # at most white space separates it from the word before
    IS_JOINED = 4     # right after a hyphen or a slash
    IN_QUESTION = 8   # its sentence ends in a question mark
    LEADS = 16        # an auxiliary that leads a question, see `EditFinder`

cdef struct Word:
    Py_ssize_t start, stop, first  # first: the number of the first word of its sentence
    int32_t id  # in the lexicon, or -1
    uint8_t flags

cdef class Lexicon:
    cdef readonly dict ids
    cdef int64_t[::1] offsets
    cdef uint64_t[:, ::1] slots
    cdef int32_t[::1] letters
    cdef int32_t find(self, Words words, Py_ssize_t start, Py_ssize_t stop, uint64_t key) noexcept

cdef class Words:
    cdef readonly str text
    cdef int width
    cdef const void* data
    cdef Py_ssize_t n_characters, n, n_numbers, next_first, room
    cdef Word* words
    cdef Lexicon lexicon
    cdef int64_t[::1] seen
    cdef int64_t stamp
    cdef int title  # whether every word is capitalised, or -1 if that is not known yet
    cdef Py_UCS4 at(self, Py_ssize_t p) noexcept
    cdef bint is_digit(self, Py_ssize_t p) noexcept
    cdef bint is_space(self, Py_ssize_t p) noexcept
    cdef bint is_lower(self, Py_ssize_t start, Py_ssize_t stop) noexcept
    cdef bint is_title(self, Py_ssize_t start, Py_ssize_t stop) noexcept
    cdef bint has_title_case(self) noexcept
    cdef bint occurs(self, int32_t id) noexcept
    cdef str written(self, Py_ssize_t i)
    cdef str lowered(self, Py_ssize_t i)
    cdef int read(self, str text, set cuts) except -1
    cdef uint8_t read_gap(self, Py_ssize_t start, Py_ssize_t stop) noexcept
    cdef void end_sentence(self, bint is_question) noexcept
    cdef int add(self, Py_ssize_t start, Py_ssize_t stop, uint64_t key, uint8_t flags) except -1
    cdef int add_odd(self, Py_ssize_t start, Py_ssize_t stop, uint8_t flags) except -1
    cdef int put(self, Py_ssize_t start, Py_ssize_t stop, int32_t id, uint8_t flags) except -1
    cdef int grow(self) except -1
    cdef int divide(self, Py_ssize_t start, Py_ssize_t stop, uint8_t flags, set cuts) except -1
