"""Rows of the index, some of whose words were replaced -> text and token ids, written like the sentences.

A row is chunks with spaces between, and so are its ids. A chunk in which nothing was replaced keeps the ids that it has
in the sentence; a chunk that is one new word has the ids of its *form*, which are known for every term in every case;
any other chunk is a *unit*, a string that the caller has encoded once.
"""

from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t
from libc.string cimport memcmp, memcpy

import numpy as np

from una_fast._kernels.cache_lines import on_own_lines

from una_fast._kernels.ids.frame cimport Frame

ctypedef fused small_id:
    uint16_t
    int32_t

cdef enum:
    # bits of a character's kind
    IS_APART = 1    # punctuation, or of a script without spaces: a word may stand beside it without a space
    IS_CASED = 2    # its lower and upper case differ
    IS_LOWER = 4
    IS_UPPER = 8
    IS_TITLE = 16
    IS_CUT = 32     # it is a word of its own for the tokenizer, whatever stands beside it
    END_OF_CHARACTERS = 0x20000
    NO_SIZE = 65535

cdef enum:
    # kinds of pieces, and what their number is; others are the place of sub-words of the sentence, and how many stay
    FORM = -1    # the row of a form
    UNIT = -2    # the number of a unit

APART, CASED, LOWER, UPPER, TITLE, CUT = IS_APART, IS_CASED, IS_LOWER, IS_UPPER, IS_TITLE, IS_CUT
N_CHARACTERS = END_OF_CHARACTERS  # the characters beyond them have no kind
UNKNOWN = NO_SIZE  # of a chunk that cannot be encoded alone

cdef enum Case:  # in the order of `una_fast.augment.surface.CASES`
    AS_IT_IS
    LOWER_CASE
    TITLE_CASE
    UPPER_CASE


cdef class Forms:
    """The sub-words of terms and chunks under one tokenizer.

    values: int32, bounds: int64: row ``blocks[case] + term`` holds the sub-words of a term after a space, row
    ``blocks[4 + case] + term`` as the first word of a text; none if only a whole text can tell them. sizes: uint16, the
    sub-words of each chunk after a space and, from `first_offset` on, as the first of a text. context_free: whether
    every string has the same ids in both places.
    """

    cdef const int32_t[::1] values
    cdef const int64_t[::1] bounds, blocks
    cdef const uint16_t[::1] sizes
    cdef int64_t first_offset
    cdef bint context_free

    def __init__(self, values, bounds, blocks, sizes, int64_t first_offset, bint context_free):
        self.values, self.bounds, self.blocks, self.sizes = values, bounds, blocks, sizes
        self.first_offset, self.context_free = first_offset, context_free

    cdef inline int64_t size(self, int64_t row) noexcept nogil:
        return self.bounds[row + 1] - self.bounds[row]


cdef class Written:
    """Rows that a `RowWriter` wrote: their texts, or the pieces of their ids.

    text: uint8, a newline and the text of each row, of which chunks are left out if there are pieces; starts, stops:
    int64 (B,), where the texts are, stop -1: a row that the kernel cannot write; pieces: int32 (P, 2), kind and number;
    row i has the pieces ``ends[i] .. ends[i + 1] - 1``; unit_starts, unit_stops: int64, where each unit is in `text`,
    together with the character before it where its ids depend on that.
    """

    cdef uint8_t[::1] text
    cdef int64_t[::1] starts, stops, ends, unit_starts, unit_stops
    cdef int32_t[:, ::1] pieces
    cdef int64_t end, n_pieces, n_units
    cdef int64_t room, known  # the sub-words that a row needs, -1: no pieces; those that are known of this row so far
    cdef int64_t unit, form  # where the open unit starts, -1: none is open; the row of its form, -1: it has none

    def __init__(self, int64_t n_rows, int64_t n_pieces, int64_t room):
        self.text = np.empty(256 + 160 * n_rows, dtype=np.uint8)
        self.starts, self.stops, self.ends = (np.zeros(n_rows + 1, dtype=np.int64) for _ in range(3))
        self.unit_starts, self.unit_stops = (np.empty(n_pieces, dtype=np.int64) for _ in range(2))
        self.pieces, self.room, self.unit = np.empty((n_pieces, 2), dtype=np.int32), room, -1

    def texts(self):
        """list[str | None], None for a row that the kernel cannot write."""
        cdef int64_t i
        cdef const char* utf8 = <const char*>&self.text[0]
        return [None if self.stops[i] < 0 else
                PyUnicode_DecodeUTF8(utf8 + self.starts[i], self.stops[i] - self.starts[i], NULL)
                for i in range(self.starts.shape[0] - 1)]

    def units(self):
        """(text, starts, stops) of the units, see above."""
        n = self.n_units
        return np.asarray(self.text)[: self.end], np.asarray(self.unit_starts)[:n], np.asarray(self.unit_stops)[:n]

    cdef inline int put(self, const uint8_t* characters, int64_t n) except -1 nogil:
        if self.end + n > self.text.shape[0]:
            self.grow(n)
        memcpy(&self.text[self.end], characters, n)
        self.end += n
        return 0

    cdef int grow(self, int64_t n) except -1 with gil:  # apart, because a function with Python objects is slower
        text = np.empty(2 * (self.end + n), dtype=np.uint8)
        text[: self.end] = self.text[: self.end]
        self.text = text
        return 0

    cdef inline uint32_t last(self) noexcept nogil:
        """The last character that was written."""
        cdef int64_t place = self.end - 1
        while self.text[place] & 0xC0 == 0x80:
            place -= 1
        return character(&self.text[place])

    cdef inline void keep(self, int64_t place, int64_t size) noexcept nogil:
        """Add `size` sub-words of the sentence, from `place` on, to the row's pieces."""
        cdef int64_t p = self.n_pieces - 1
        if self.known > 0 and self.pieces[p, 0] >= 0 and self.pieces[p, 0] + self.pieces[p, 1] == place:
            self.pieces[p, 1] += <int32_t>size
            self.known += size
        else:
            self.add(<int32_t>place, size, size)

    cdef inline void add(self, int32_t kind, int64_t number, int64_t size) noexcept nogil:
        self.pieces[self.n_pieces, 0], self.pieces[self.n_pieces, 1] = kind, <int32_t>number
        self.n_pieces += 1
        self.known += size

    cdef inline void open_unit(self, Forms forms, int64_t case, int64_t term) noexcept nogil:
        """Begin a unit. case, term: of the new word that it begins with; -1: it begins with something else."""
        cdef int64_t block = forms.blocks[4 * (self.text[self.end - 1] == c'\n') + case] if term >= 0 else -1
        self.unit, self.form = self.end, block + term if block >= 0 else -1

    cdef inline void close_unit(self, Forms forms) noexcept nogil:
        if self.form >= 0 and forms.size(self.form) > 0:
            self.add(FORM, self.form, forms.size(self.form))
        else:
            self.unit_starts[self.n_units] = self.unit - (not forms.context_free)
            self.unit_stops[self.n_units] = self.end
            self.add(UNIT, self.n_units, 0)
            self.n_units += 1
        self.unit = -1


cdef class RowWriter:
    """Writes rows of an index, words of which were replaced, with case and spacing. Threads may share one object.

    index: the corpus; lowered: uint8, the strings of its chunks, in lower case if the words are; refused: uint8 (C,),
    chunks whose words this class cannot tell; quotes: int32 (2,), the terms that stand for '"', or -1; strings: V terms
    as they are spelled where they are drawn, in each of the four cases: 4 V strings; kinds: uint8 (N_CHARACTERS,), of
    each character; forms: of a tokenizer; None: no ids.
    """

    cdef const int32_t[::1] chunks, words, quotes
    cdef const int64_t[::1] chunk_bounds, word_bounds, offsets, term_offsets, string_offsets
    cdef const uint8_t[::1] utf8, lowered, refused, term_utf8, string_utf8, kinds
    cdef int64_t n_terms
    cdef Forms forms

    def __init__(self, index, lowered, refused, quotes, strings, kinds, Forms forms=None):
        self.chunks, self.chunk_bounds = index.sentences.values, index.sentences.indptr
        self.words, self.word_bounds = index.word_ids.values, index.word_ids.indptr
        self.utf8, self.offsets, self.lowered, self.refused = index.chunks.utf8, index.chunks.offsets, lowered, refused
        self.term_utf8, self.term_offsets, self.quotes = index.terms.utf8, index.terms.offsets, quotes
        self.string_utf8, self.string_offsets, self.n_terms = strings.utf8, strings.offsets, len(strings) // 4
        self.kinds, self.forms = kinds, forms

    def write(self, const int64_t[::1] rows, const int32_t[::1] drawn, const int64_t[::1] drawn_bounds,
              int64_t room=-1):
        """`Written`, the negatives of rows, int64 (B,), whose words are ``drawn[drawn_bounds[i]:drawn_bounds[i + 1]]``.

        room: the sub-words of a row that are needed. -1: the texts are written.
        """
        cdef int64_t i, n_pieces = 0, n_rows = rows.shape[0]
        cdef bint fits
        cdef int32_t none = 0
        cdef const int32_t* new = &drawn[0] if drawn.shape[0] else &none
        if room >= 0:
            n_pieces = drawn.shape[0]
            for i in range(n_rows):
                n_pieces += self.chunk_bounds[rows[i] + 1] - self.chunk_bounds[rows[i]]
        cdef Written out = Written(n_rows, n_pieces, room)
        with nogil:
            for i in range(n_rows):
                out.put(b"\n", 1)
                out.starts[i], out.known = out.end, 0
                fits = self.write_row(out, rows[i], new + drawn_bounds[i] - self.word_bounds[rows[i]])
                out.stops[i], out.ends[i + 1] = out.end if fits else -1, out.n_pieces
        return out

    cdef bint write_row(self, Written out, int64_t row, const int32_t* new) except? -1 nogil:
        """Write a row, in which new[w] takes the place of word w of the index; False if its words cannot be told.

        It is False for a row whatever room there is, so that text and ids of a row come from the same code.
        """
        cdef int64_t w = self.word_bounds[row], stop = self.word_bounds[row + 1], first = self.chunk_bounds[row], j, k
        cdef int64_t n, size, place = 0  # of the chunk's sub-words among those of the sentence
        cdef int32_t chunk
        cdef bint changed, keeps_ids = out.room >= 0
        for j in range(first, self.chunk_bounds[row + 1] if w < stop else first):
            chunk, changed = self.chunks[j], False
            n = self.count(chunk, w, stop)
            if n < 0:
                return False
            for k in range(w, w + n):
                changed |= new[k] != self.words[k]
            w += n
            if keeps_ids:
                size = self.forms.sizes[chunk + (self.forms.first_offset if j == first else 0)]
                if size == NO_SIZE:
                    return False
                if out.known >= out.room:
                    continue
                if not changed:
                    out.keep(place, size)
                place += size
            if j > first:
                out.put(b" ", 1)
            if changed:
                self.write_chunk(out, chunk, w - n, n, new)
            elif not keeps_ids:
                out.put(&self.utf8[self.offsets[chunk]], self.offsets[chunk + 1] - self.offsets[chunk])
        return w == stop

    cdef int write_chunk(self, Written out, int32_t chunk, int64_t w, int64_t n_words,
                         const int32_t* new) except -1 nogil:
        """Write the n words of a chunk, from word w on, and their pieces."""
        cdef int64_t at = self.offsets[chunk], end = self.offsets[chunk + 1], k, n, n_kept, string = 0, case = 0
        cdef bint changed, last_changed = False, keeps_ids = out.room >= 0
        cdef uint8_t last, first
        for k in range(w, w + n_words):
            n, changed = self.matched(at, end, self.words[k]), new[k] != self.words[k]
            n_kept = n
            if changed:
                n_kept, case = opening(&self.utf8[at], n), self.case_of(&self.utf8[at], n)
                string = case * self.n_terms + new[k]
            if k > w:
                last = self.kind(out.last())
                first = self.kind(character(&self.utf8[at] if n_kept else
                                            &self.string_utf8[self.string_offsets[string]]))
                if (changed or last_changed) and not (last | first) & IS_APART:  # they would look like one word
                    if keeps_ids:
                        out.close_unit(self.forms)
                    out.put(b" ", 1)
                elif keeps_ids and (last | first) & IS_CUT:
                    out.close_unit(self.forms)
            if keeps_ids and out.unit < 0:
                out.open_unit(self.forms, case, new[k] if n_kept == 0 else -1)
            else:
                out.form = -1
            out.put(&self.utf8[at], n_kept)
            if changed:
                out.put(&self.string_utf8[self.string_offsets[string]],
                        self.string_offsets[string + 1] - self.string_offsets[string])
            at += n
            last_changed = changed
        if keeps_ids:
            out.close_unit(self.forms)
        return 0

    cdef inline int64_t count(self, int32_t chunk, int64_t w, int64_t stop) noexcept nogil:
        """How many words, from word w on, are the chunk; -1 if they cannot be told. stop: the end of the row."""
        cdef int64_t at = self.offsets[chunk], end = self.offsets[chunk + 1], start = w, n
        while at < end:
            n = self.matched(at, end, self.words[w]) if w < stop else 0
            if n == 0 or self.refused[chunk]:
                return -1
            at += n
            w += 1
        return w - start

    cdef inline int64_t matched(self, int64_t at, int64_t end, int32_t word) noexcept nogil:
        """The bytes of a chunk's string, from `at` on, that are the word; 0 if it is not there."""
        cdef int64_t n = self.term_offsets[word + 1] - self.term_offsets[word]
        if n <= end - at and memcmp(&self.lowered[at], &self.term_utf8[self.term_offsets[word]], n) == 0:
            return n
        return self.lowered[at] == c'"' and (word == self.quotes[0] or word == self.quotes[1])

    cdef inline uint8_t kind(self, uint32_t c) noexcept nogil:
        return self.kinds[c] if c < END_OF_CHARACTERS else 0

    cdef Case case_of(self, const uint8_t* word, int64_t n) noexcept nogil:
        """As `una_fast.augment.surface.case_of`."""
        cdef const uint8_t* end = word + n
        cdef uint8_t kind, seen = 0
        cdef bint first_is_upper = False, others_are_lower = True
        while word < end:
            kind = self.kind(character(word))
            if kind & IS_CASED:
                if not seen & IS_CASED:
                    first_is_upper = kind & IS_UPPER
                elif not kind & IS_LOWER:
                    others_are_lower = False
            seen |= kind
            word += length(word)
        if not seen & IS_CASED:
            return AS_IT_IS
        if seen & IS_LOWER and not seen & (IS_UPPER | IS_TITLE):
            return LOWER_CASE
        if first_is_upper and others_are_lower:
            return TITLE_CASE
        return UPPER_CASE if seen & IS_UPPER and not seen & (IS_LOWER | IS_TITLE) else AS_IT_IS


cdef inline uint32_t character(const uint8_t* at) noexcept nogil:
    """The character that starts at `at`, in valid UTF-8."""
    cdef int64_t n = length(at), k
    cdef uint32_t c = at[0] if n == 1 else at[0] & (0x7F >> n)
    for k in range(1, n):
        c = c << 6 | (at[k] & 0x3F)
    return c


cdef inline int64_t length(const uint8_t* at) noexcept nogil:
    """The bytes of the character that starts at `at`."""
    return 1 + (at[0] >= 0xC0) + (at[0] >= 0xE0) + (at[0] >= 0xF0)


cdef inline int64_t opening(const uint8_t* word, int64_t n) noexcept nogil:
    """The bytes of the marks "\u00bf" and "\u00a1" before a word; 0 if it is nothing else."""
    cdef int64_t k = 0
    while k + 1 < n and word[k] == 0xC2 and (word[k + 1] == 0xBF or word[k + 1] == 0xA1):
        k += 2
    return k if k < n else 0


def fill_rows(Written written, Forms forms, const int32_t[::1] numbers, const int32_t[::1] unit_ids,
              const int64_t[::1] unit_bounds, const small_id[::1] ids, const int64_t[::1] id_bounds,
              const int64_t[::1] rows, Frame frame, int64_t[:, ::1] input_ids, int64_t[:, ::1] attention_mask):
    """Fill line i of both outputs, int64 (B, L), with the negative of rows[i] that `written` holds.

    Returns int64, ascending: the lines that are left, whose ids cannot be made of pieces. numbers: int32, of each unit:
    unit u has the sub-words ``unit_ids[unit_bounds[k]:unit_bounds[k + 1]]`` with k = numbers[u]; none: only a whole
    text can tell them; ids, id_bounds: the sub-words of the sentences of the index.
    """
    cdef int64_t i, p, k, n, end, number, width = input_ids.shape[1], room = width - frame.n_special
    cdef int32_t[::1] line = on_own_lines(width, np.int32)
    left_array = np.zeros(rows.shape[0], dtype=np.uint8)
    cdef uint8_t[::1] left = left_array
    with nogil:
        for i in range(rows.shape[0]):
            end, left[i] = 0, written.stops[i] < 0
            for p in range(written.ends[i], written.ends[i + 1]):
                if left[i] or end >= room:
                    break
                number = written.pieces[p, 1]
                if written.pieces[p, 0] >= 0:
                    k, n = id_bounds[rows[i]] + written.pieces[p, 0], number
                    left[i] = k + n > id_bounds[rows[i] + 1]
                    n = 0 if left[i] else min(n, room - end)
                    for k in range(k, k + n):
                        line[end] = ids[k]
                        end += 1
                    continue
                if written.pieces[p, 0] == FORM:
                    k, n = forms.bounds[number], forms.size(number)
                    n = min(n, room - end)
                    memcpy(&line[end], &forms.values[k], n * sizeof(int32_t))
                else:
                    k = unit_bounds[numbers[number]]
                    n = unit_bounds[numbers[number] + 1] - k
                    left[i] = n == 0
                    n = min(n, room - end)
                    if n > 0:
                        memcpy(&line[end], &unit_ids[k], n * sizeof(int32_t))
                end += n
            frame.write(&line[0], 0 if left[i] else end, &input_ids[i, 0], &attention_mask[i, 0], width)
    return np.flatnonzero(left_array)
