"""Rows of the index, some of whose words were replaced -> text and token ids, written like the sentences.

A row is written chunk by chunk, and its ids are *pieces*: a chunk in which nothing was replaced keeps the ids that it
has in the sentence; a new word that the tokenizer parts from its neighbours has the ids of its *form*, which are known
for every term; anything else is a *unit*, a string that the caller has encoded once, by what stands before it.
"""

from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

import numpy as np

from una_fast._kernels.cache_lines import on_own_lines

from una_fast._kernels.ids.frame cimport Frame

ctypedef fused small_id:
    uint16_t
    int32_t

cdef enum:
    IS_MARK = 1
    IS_CASED = 2
    IS_LOWER = 4
    IS_UPPER = 8
    IS_TITLE = 16
    END_OF_CHARACTERS = 0x20000
    NO_SIZE = 65535

cdef enum:
    # kinds of pieces, and what their number is; others are the place of sub-words of the sentence, and how many stay
    FORM = -1    # the row of a form
    UNIT = -2    # the number of a unit
    # contexts of a form
    LATER = 0    # after a space
    FIRST = 1    # at the start of the text
    INSIDE = 2   # after another character

MARK, CASED, LOWER, UPPER, TITLE = IS_MARK, IS_CASED, IS_LOWER, IS_UPPER, IS_TITLE  # bits of `Characters.kinds`
N_CHARACTERS = END_OF_CHARACTERS  # the characters beyond them have no case and are no marks
UNKNOWN = NO_SIZE  # of a chunk that cannot be encoded alone

cdef enum Case:
    AS_IT_IS
    LOWER_CASE
    TITLE_CASE
    UPPER_CASE


cdef class Characters:
    """What the writer knows of each character, arrays (N_CHARACTERS,).

    kinds: uint8, the bits MARK (punctuation), CASED (its lower and upper case differ), LOWER, UPPER, TITLE (its own
    case); marks: int8, its number among the marks of `una_fast.tokens.joins`, or -1; before, after: uint64, bit m: the
    tokenizer begins a new sub-word between this character and mark m behind it, or between mark m and this character,
    whatever is around them. between_marks: it does so between two marks; after_space_only: and after a mark only where
    that mark stands behind a space.
    """

    cdef const uint8_t[::1] kinds
    cdef const int8_t[::1] marks
    cdef const uint64_t[::1] before, after
    cdef bint between_marks, after_space_only

    def __init__(self, kinds, marks, before, after, bint between_marks, bint after_space_only):
        self.kinds, self.marks, self.before, self.after = kinds, marks, before, after
        self.between_marks, self.after_space_only = between_marks, after_space_only

    cdef inline uint8_t kind(self, uint32_t c) noexcept nogil:
        return self.kinds[c] if c < END_OF_CHARACTERS else 0

    cdef inline bint parted(self, uint32_t last, uint32_t first, bint after_mark) noexcept nogil:
        """Whether a new sub-word begins between two characters; after_mark: also between a mark and a letter."""
        if last >= END_OF_CHARACTERS or first >= END_OF_CHARACTERS:
            return False
        if self.marks[last] >= 0 and self.marks[first] >= 0:
            return self.between_marks
        if self.marks[first] >= 0:
            return self.before[last] >> self.marks[first] & 1
        return self.marks[last] >= 0 and after_mark and self.after[first] >> self.marks[last] & 1

    cdef Case case_of(self, const uint8_t* word, int64_t n) noexcept nogil:
        """As `una_fast.augment.surface.case_of`."""
        cdef const uint8_t* end = word + n
        cdef uint8_t kind, found = 0
        cdef bint first_is_upper = False, others_are_lower = True
        while word < end:
            kind = self.kind(character(word))
            if kind & IS_CASED:
                if not found & IS_CASED:
                    first_is_upper = kind & IS_UPPER
                elif not kind & IS_LOWER:
                    others_are_lower = False
            found |= kind
            word += length(word)
        if not found & IS_CASED:
            return AS_IT_IS
        if found & IS_LOWER and not found & (IS_UPPER | IS_TITLE):
            return LOWER_CASE
        if first_is_upper and others_are_lower:
            return TITLE_CASE
        return UPPER_CASE if found & IS_UPPER and not found & (IS_LOWER | IS_TITLE) else AS_IT_IS


cdef class Forms:
    """The sub-words of terms and chunks under one tokenizer.

    bounds: int64, values: int32: row ``(context * n_cases + case) * V + term`` holds the sub-words of a term after a
    space, as the first word of a text, and after another character; none where it has to be a unit. contexts, cases:
    the place of each of them, where some are equal. sizes: uint16, the sub-words of each chunk after a space and, from
    `first_offset` on, as the first of a text. whole: uint8 (V,), terms that are never parted from their neighbours.
    """

    cdef const int32_t[::1] values
    cdef const int64_t[::1] bounds
    cdef const uint16_t[::1] sizes
    cdef const uint8_t[::1] whole
    cdef int64_t contexts[3]
    cdef int64_t cases[4]
    cdef int64_t n_cases, n_terms, first_offset

    def __init__(self, forms, sizes, whole, contexts, cases, int64_t first_offset):
        self.values, self.bounds, self.sizes, self.whole = forms.values, forms.indptr, sizes, whole
        self.contexts, self.cases, self.first_offset = contexts, cases, first_offset
        self.n_cases, self.n_terms = max(cases) + 1, whole.shape[0]

    cdef inline int64_t row(self, int64_t context, int64_t case, int64_t term) noexcept nogil:
        return (self.contexts[context] * self.n_cases + self.cases[case]) * self.n_terms + term

    cdef inline int64_t size(self, int64_t row) noexcept nogil:
        return self.bounds[row + 1] - self.bounds[row]


cdef class Written:
    """Rows that a `RowWriter` wrote: their texts, and the pieces of their ids.

    text: uint8, a newline and the text of each row; starts, stops: int64 (B,), where the texts are, stop -1: a row that
    the kernel cannot write; a text lacks what the pieces know, if there are any; pieces: int32 (P, 2), kind and number;
    row i has the pieces ``ends[i] .. ends[i + 1] - 1``; unit_starts, unit_stops: int64, where each unit is in `text`,
    together with the one character before it.
    """

    cdef uint8_t[::1] text
    cdef int64_t[::1] starts, stops, ends, unit_starts, unit_stops
    cdef int32_t[:, ::1] pieces
    cdef int64_t end, n_pieces, n_units
    cdef int64_t room, known  # the sub-words that a row needs, -1: no pieces; those that are known of this row so far
    cdef int64_t unit, form  # where the open unit starts, -1: none is open; its form, -1: it has none

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

    cdef inline int64_t before(self, int64_t place) noexcept nogil:
        """Where the character before `place` starts."""
        place -= 1
        while self.text[place] & 0xC0 == 0x80:
            place -= 1
        return place

    cdef inline uint32_t last(self) noexcept nogil:
        return character(&self.text[self.before(self.end)])

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

    cdef void close_unit(self, Forms forms) noexcept nogil:
        if self.form >= 0 and self.unit >= 0:
            self.add(FORM, self.form, forms.size(self.form))
        elif self.unit >= 0:
            self.unit_starts[self.n_units], self.unit_stops[self.n_units] = self.before(self.unit), self.end
            self.add(UNIT, self.n_units, 0)
            self.n_units += 1
        self.unit = -1


cdef class ChunkWords:
    """Which words of a row each of its chunks is.

    index: the corpus; lowered: uint8, the strings of its chunks, in lower case if the words are; refused: uint8 (C,),
    chunks whose words this class cannot tell; quotes: int32 (2,), the terms that stand for '"', or -1.
    """

    cdef const int32_t[::1] chunks, words, quotes
    cdef const int64_t[::1] chunk_bounds, word_bounds, offsets, term_offsets
    cdef const uint8_t[::1] utf8, lowered, refused, term_utf8

    def __init__(self, index, lowered, refused, quotes):
        self.chunks, self.chunk_bounds = index.sentences.values, index.sentences.indptr
        self.words, self.word_bounds = index.word_ids.values, index.word_ids.indptr
        self.utf8, self.offsets, self.lowered, self.refused = index.chunks.utf8, index.chunks.offsets, lowered, refused
        self.term_utf8, self.term_offsets, self.quotes = index.terms.utf8, index.terms.offsets, quotes

    def find(self, const int64_t[::1] rows, const uint8_t[::1] wanted):
        """The chunks of `rows`, int64 (B,), that are `wanted`, uint8 (C,).

        Returns (starts int64 (E,), the place of the first word of each among all words of the index; counts int64 (E,),
        of its words; chunks int64 (E,); readable uint8 (B,), 0 for a row whose chunks cannot be told).
        """
        cdef int64_t i, j, w, n, end = 0, begin
        for i in range(rows.shape[0]):
            for j in range(self.chunk_bounds[rows[i]], self.chunk_bounds[rows[i] + 1]):
                end += wanted[self.chunks[j]]
        found, readable_array = np.empty((3, end), dtype=np.int64), np.ones(rows.shape[0], dtype=np.uint8)
        cdef int64_t[:, ::1] out = found
        cdef uint8_t[::1] readable = readable_array
        end = 0
        with nogil:
            for i in range(rows.shape[0]):
                w, begin = self.word_bounds[rows[i]], end
                for j in range(self.chunk_bounds[rows[i]], self.chunk_bounds[rows[i] + 1]):
                    n = self.count(self.chunks[j], w, self.word_bounds[rows[i] + 1])
                    if n < 0:
                        readable[i], end = 0, begin
                        break
                    if wanted[self.chunks[j]]:
                        out[0, end], out[1, end], out[2, end] = w, n, self.chunks[j]
                        end += 1
                    w += n
                else:
                    if w < self.word_bounds[rows[i] + 1]:
                        readable[i], end = 0, begin
        return (*found[:, :end], readable_array)

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


cdef class RowWriter(ChunkWords):
    """Writes rows of an index, words of which were replaced, with case and spacing. Threads may share one object.

    index, lowered, refused, quotes: as `ChunkWords`; strings: each term as it is spelled where it is drawn; cased:
    int32 (V,), for a term beyond ASCII the first of its four strings in `cased_strings`, one for each case, -1 for
    others; forms: of a tokenizer; None: no ids.
    """

    cdef const int32_t[::1] cased
    cdef const int64_t[::1] string_offsets, cased_offsets
    cdef const uint8_t[::1] string_utf8, cased_utf8
    cdef Characters characters
    cdef Forms forms

    def __init__(self, index, lowered, refused, quotes, strings, cased, cased_strings, Characters characters,
                 Forms forms=None):
        ChunkWords.__init__(self, index, lowered, refused, quotes)
        self.string_utf8, self.string_offsets = strings.utf8, strings.offsets
        self.cased, self.cased_utf8, self.cased_offsets = cased, cased_strings.utf8, cased_strings.offsets
        self.characters, self.forms = characters, forms

    def write(self, const int64_t[::1] rows, const int32_t[::1] drawn, const int64_t[::1] drawn_bounds,
              int64_t room=-1):
        """`Written`, the negatives of rows, int64 (B,), whose words are ``drawn[drawn_bounds[i]:drawn_bounds[i + 1]]``.

        room: the sub-words of a row that are needed. -1: the texts alone are written.
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
        """Write a row, in which new[w] takes the place of word w of the index; False if this class cannot."""
        cdef int64_t w = self.word_bounds[row], stop = self.word_bounds[row + 1], first = self.chunk_bounds[row], j, k
        cdef int64_t n, size = 0, place = 0  # of the chunk's sub-words among those of the sentence
        cdef int32_t chunk
        cdef bint changed
        for j in range(first, self.chunk_bounds[row + 1] if w < stop else first):
            if 0 <= out.room <= out.known:
                return True
            chunk, changed = self.chunks[j], False
            n = self.count(chunk, w, stop)
            for k in range(w, w + n):
                changed |= new[k] != self.words[k]
                if self.string_length(new[k]) == 0:
                    return False
            if n < 0:
                return False
            if j > first:
                out.put(b" ", 1)
            if out.room >= 0:
                size = self.forms.sizes[chunk + (self.forms.first_offset if j == first else 0)]
                if size == NO_SIZE:
                    return False
                if not changed:
                    out.keep(place, size)
                place += size
            if changed:
                self.write_chunk(out, chunk, w, n, new)
            elif n > 0 and out.room < 0:
                out.put(&self.utf8[self.offsets[chunk]], self.offsets[chunk + 1] - self.offsets[chunk])
            w += n
        return w == stop

    cdef inline int64_t string_length(self, int32_t term) noexcept nogil:
        return self.string_offsets[term + 1] - self.string_offsets[term]

    cdef int write_chunk(self, Written out, int32_t chunk, int64_t w, int64_t n_words,
                         const int32_t* new) except -1 nogil:
        """Write the n words of a chunk, from word w on, and their pieces."""
        cdef int64_t at = self.offsets[chunk], end = self.offsets[chunk + 1], first_word = w, stop = w + n_words
        cdef int64_t n, marks, place = 0  # of a word among those that no space parts
        cdef uint32_t first
        cdef bint changed, last_changed = False, spaced
        cdef Case case
        if out.room >= 0 and n_words == 1 and opening(&self.utf8[at], end - at) == 0:
            self.open_unit(out, 0, new[w], self.characters.case_of(&self.utf8[at], end - at), True)
            if out.form >= 0:  # the text is not needed
                out.close_unit(self.forms)
                return 0
            out.unit = -1
        for w in range(first_word, stop):
            n, changed, marks, case = self.matched(at, end, self.words[w]), new[w] != self.words[w], 0, AS_IT_IS
            if changed:
                marks = opening(&self.utf8[at], n)
                case = self.characters.case_of(&self.utf8[at], n)
            first = character(&self.string_utf8[self.string_offsets[new[w]]] if changed and marks == 0
                              else &self.utf8[at])
            # without a space these two would look like one word
            spaced = w > first_word and (changed or last_changed) and not (
                self.characters.kind(out.last()) | self.characters.kind(first)) & IS_MARK
            if spaced:
                out.close_unit(self.forms)
                out.put(b" ", 1)
            place = 0 if spaced or w == first_word else place + 1
            if out.room >= 0 and (place == 0 or self.parted(out, new[w - 1], new[w], first, place)):
                self.open_unit(out, place, new[w], case, changed and marks == 0)
            elif out.room >= 0:
                out.form = -1
            if changed:
                out.put(&self.utf8[at], marks)
                self.put_term(out, new[w], case)
            else:
                out.put(&self.utf8[at], n)
            at += n
            last_changed = changed
        if out.room >= 0:
            out.close_unit(self.forms)
        return 0

    cdef bint parted(self, Written out, int32_t last, int32_t word, uint32_t first, int64_t place) noexcept nogil:
        """Whether a word that stands behind another without a space begins a new sub-word. first: its character."""
        cdef bint after_mark = not self.characters.after_space_only or (
            place == 1 and out.text[out.unit - 1] == c' ')
        if self.forms.whole[last] or self.forms.whole[word]:
            return False
        return self.characters.parted(out.last(), first, after_mark)

    cdef void open_unit(self, Written out, int64_t place, int32_t word, Case case, bint is_form) noexcept nogil:
        """Begin a unit with a word; is_form: it is spelled as it is drawn, so it is a form if nothing is added."""
        cdef int64_t context = INSIDE if place > 0 else FIRST if out.text[out.end - 1] == c'\n' else LATER
        out.close_unit(self.forms)
        out.unit, out.form = out.end, -1
        if is_form:
            out.form = self.forms.row(context, case, word)
            if self.forms.size(out.form) == 0:
                out.form = -1

    cdef int put_term(self, Written out, int32_t term, Case case) except -1 nogil:
        """Write a term in a case."""
        cdef int64_t start = out.end, string = self.cased[term], k
        cdef uint8_t c
        if string >= 0:
            string += case
            return out.put(&self.cased_utf8[self.cased_offsets[string]],
                           self.cased_offsets[string + 1] - self.cased_offsets[string])
        out.put(&self.string_utf8[self.string_offsets[term]], self.string_length(term))
        for k in range(start, out.end if case != AS_IT_IS else start):
            c = out.text[k]
            if c'a' <= c <= c'z' and (case == UPPER_CASE or (case == TITLE_CASE and k == start)):
                out.text[k] = c - 32
            elif c'A' <= c <= c'Z' and (case == LOWER_CASE or (case == TITLE_CASE and k > start)):
                out.text[k] = c + 32
        return 0


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
    unit u has the sub-words ``unit_ids[unit_bounds[k]:unit_bounds[k + 1]]`` with k = numbers[u], or a single -1 if its
    text has to be encoded as a whole; ids, id_bounds: the sub-words of the sentences of the index.
    """
    cdef int64_t i, p, k, n, place, end, number, width = input_ids.shape[1]
    cdef int64_t room = width - frame.n_special
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
                    n, place = min(number, room - end), id_bounds[rows[i]] + written.pieces[p, 0]
                    left[i] = place + number > id_bounds[rows[i] + 1]
                    for k in range(0 if left[i] else n):
                        line[end + k] = ids[place + k]
                elif written.pieces[p, 0] == FORM:
                    n = min(forms.size(number), room - end)
                    for k in range(n):
                        line[end + k] = forms.values[forms.bounds[number] + k]
                else:
                    number = numbers[number]
                    n = min(unit_bounds[number + 1] - unit_bounds[number], room - end)
                    for k in range(n):
                        line[end + k] = unit_ids[unit_bounds[number] + k]
                    left[i] = n > 0 and line[end] < 0
                end += n
            frame.write(&line[0], 0 if left[i] else end, &input_ids[i, 0], &attention_mask[i, 0], width)
    return np.flatnonzero(left_array)
