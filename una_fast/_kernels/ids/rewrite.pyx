"""Writes sentences with replaced words as text and as token ids, with the original case and spacing.

The token ids of a sentence are those of its chunks, one after the other. A chunk without a replaced word keeps its
token ids. A chunk that is one new word, and normalises to the same string as its term, has the token ids of the term.
Any other chunk is a *fragment*: the caller encodes each distinct fragment once.
"""

from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t
from libc.string cimport memcmp, memcpy

import numpy as np

from una_fast._kernels.ids.emit cimport Frame
from una_fast._kernels.utf8 cimport character, length

ctypedef fused small_id:
    uint16_t
    int32_t

cdef enum:
    # the properties of a character: the code point of its lower case in the low bits, then flags
    LOWER_CASE = 0x1FFFFF
    IS_APART = 1 << 21    # punctuation, or a letter of a script without spaces: it needs no space next to a word
    IS_CASED = 1 << 22    # its lower and upper case differ
    IS_LOWER = 1 << 23
    IS_UPPER = 1 << 24
    IS_TITLE = 1 << 25
    DOTTED_I = 0x130      # the only character whose lower case is two: "i" and DOT, which can be in separate words
    DOT = 0x307
    CAPITAL_SIGMA = 0x3A3  # its lower case is FINAL_SIGMA at the end of a word
    FINAL_SIGMA = 0x3C2
    NO_SIZE = 65535

cdef enum:
    # A piece is (kind, number). A kind of 0 or more is an index into the sentence's sub-words: copy `number` of them.
    TERM = -1         # number: a row of `Subwords.terms`
    FRAGMENT = -2     # number: the index of the fragment

APART, CASED, LOWER, UPPER, TITLE = IS_APART, IS_CASED, IS_LOWER, IS_UPPER, IS_TITLE
UNKNOWN = NO_SIZE  # the size of a chunk that cannot be encoded separately

cdef enum Case:  # in the order of `KeptSurface.forms`
    AS_IT_IS
    TITLE_CASE
    UPPER_CASE


cdef class Subwords:
    """The sub-words of an index's terms and chunks under one tokenizer.

    terms, sizes: from `bind` in tokens/subwords.py. cuts, alike: the results of `SubwordEncoder`'s methods `cuts` and
    `alike`.
    """

    cdef const int32_t[::1] values
    cdef const int64_t[::1] bounds
    cdef const uint16_t[::1] sizes
    cdef const uint8_t[::1] cuts, alike
    cdef int64_t first_term, first_chunk  # where the items for the start of a text begin; 0 if context_free
    cdef bint context_free  # whether sub-words are the same after a space and at the start of a text

    def __init__(self, terms, sizes, cuts, alike):
        self.values, self.bounds, self.sizes, self.cuts, self.alike = terms.values, terms.indptr, sizes, cuts, alike
        self.first_term = len(terms) - len(alike) // 3
        self.context_free = self.first_term == 0
        self.first_chunk = 0 if self.context_free else len(sizes) // 2


cdef class WrittenRows:
    """What `RowWriter.write` returns: the texts of rows, or the pieces from which `fill_rows` makes token ids."""

    cdef uint8_t[::1] text  # for each row a newline and its text, or only the changed chunks if there are pieces
    cdef int64_t[::1] starts, stops  # where the row is in `text`; the stop is -1 if it cannot be written
    cdef int32_t[:, ::1] pieces  # (kind, number), see TERM
    cdef int64_t[::1] ends  # row i has the pieces ends[i] .. ends[i + 1] - 1
    # Where each fragment is in `text`, with the character before it if its token ids depend on that character
    cdef int64_t[::1] fragment_starts, fragment_stops
    cdef uint8_t[::1] line  # the original text of the row that is being written
    cdef int64_t[::1] word_starts, word_stops  # where its words are in `line`
    cdef int64_t end, n_pieces, n_fragments, size
    cdef int64_t room  # maximum sub-words per row, or -1 if texts are written
    cdef int64_t known  # how many sub-words the pieces of this row have so far, without fragments
    cdef int64_t fragment  # where the open fragment starts in `text`, or -1 if none is open
    cdef int64_t term  # the term that the open fragment consists of so far, or -1

    def __init__(self, int64_t n_rows, int64_t n_pieces, int64_t room, int64_t longest, int64_t most_words):
        self.text = np.empty(256 + 160 * n_rows, dtype=np.uint8)
        self.starts, self.stops, self.ends = (np.zeros(n_rows + 1, dtype=np.int64) for _ in range(3))
        self.fragment_starts, self.fragment_stops = (np.empty(n_pieces, dtype=np.int64) for _ in range(2))
        self.pieces, self.room, self.fragment = np.empty((n_pieces, 2), dtype=np.int32), room, -1
        self.line = np.empty(longest + 1, dtype=np.uint8)
        self.word_starts, self.word_stops = (np.empty(most_words + 1, dtype=np.int64) for _ in range(2))

    def texts(self):
        """Return the text of each row, or None if it cannot be written: list[str | None]."""
        cdef int64_t i
        cdef const char* utf8 = <const char*>&self.text[0]
        return [None if self.stops[i] < 0 else
                PyUnicode_DecodeUTF8(utf8 + self.starts[i], self.stops[i] - self.starts[i], NULL)
                for i in range(self.starts.shape[0] - 1)]

    def fragments(self):
        """Return (text, starts, stops): fragment i is ``text[starts[i]:stops[i]]``."""
        starts, stops = np.asarray(self.fragment_starts), np.asarray(self.fragment_stops)
        return np.asarray(self.text)[: self.end], starts[: self.n_fragments], stops[: self.n_fragments]

    cdef inline int put(self, const uint8_t* characters, int64_t n) except -1 nogil:
        if self.end + n > self.text.shape[0]:
            self.grow(n)
        memcpy(&self.text[self.end], characters, n)
        self.end += n
        return 0

    cdef int grow(self, int64_t n) except -1 with gil:  # not in `put`, which Python objects would slow down
        text = np.empty(2 * (self.end + n), dtype=np.uint8)
        text[: self.end] = self.text[: self.end]
        self.text = text
        return 0

    cdef int lengthen_line(self, int64_t n) except -1 with gil:
        """Make room for a line of n bytes."""
        self.line = np.empty(2 * n + 1, dtype=np.uint8)
        return 0

    cdef inline uint32_t last(self) noexcept nogil:
        """Return the last character in `text`."""
        cdef int64_t place = self.end - 1
        while self.text[place] & 0xC0 == 0x80:
            place -= 1
        return character(&self.text[place])

    cdef inline void keep(self, int64_t place, int64_t size) noexcept nogil:
        """Keep `size` sub-words of the sentence, from index `place` on. Extend the last piece if it ends at `place`."""
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

    cdef inline void extend_fragment(self, int64_t term) noexcept nogil:
        """Prepare for a call of `put`, whose text is added to the open fragment. Open a fragment if none is open.

        term: the id of that text, or -1 if the text is not a term.
        """
        self.term = term if self.fragment < 0 else -1
        if self.fragment < 0:
            self.fragment = self.end

    cdef inline void close_fragment(self, Subwords subwords) noexcept nogil:
        cdef int64_t row = self.term, n = 0
        if self.fragment < 0:
            return
        if row >= 0:
            row += subwords.first_term if self.text[self.fragment - 1] == c'\n' else 0
            n = subwords.bounds[row + 1] - subwords.bounds[row]
        if n > 0:
            self.add(TERM, row, n)
        else:
            self.fragment_starts[self.n_fragments] = self.fragment - (not subwords.context_free)
            self.fragment_stops[self.n_fragments] = self.end
            self.add(FRAGMENT, self.n_fragments, 0)
            self.n_fragments += 1
        self.fragment = -1


cdef class RowWriter:
    """Writes sentences with replaced words in the original case and spacing. Threads may share one object.

    chunks, sentences: row i is ``" ".join(chunks[k] for k in sentences[i])``.
    words: the ids of the words of each row. The id n_terms + k is word k of `unseen`.
    forms: 3 n_terms strings, from `KeptSurface.forms`.
    characters: uint32, the properties of each code point.
    lowered: whether `words` are in lower case. The sentences have their original case.
    subwords: required to write token ids, None to write texts.
    """

    cdef const int32_t[::1] chunks, words
    cdef const int64_t[::1] chunk_bounds, word_bounds, offsets, term_offsets, unseen_offsets, form_offsets
    cdef const uint8_t[::1] utf8, term_utf8, unseen_utf8, form_utf8
    cdef const uint32_t[::1] characters
    cdef int64_t n_terms
    cdef bint lowered
    cdef Subwords subwords

    def __init__(self, chunks, sentences, words, unseen, terms, forms, characters, bint lowered,
                 Subwords subwords=None):
        self.chunks, self.chunk_bounds = sentences.values, sentences.indptr
        self.words, self.word_bounds = words.values, words.indptr
        self.utf8, self.offsets = chunks.utf8, chunks.offsets
        self.term_utf8, self.term_offsets = terms.utf8, terms.offsets
        self.unseen_utf8, self.unseen_offsets = unseen.utf8, unseen.offsets
        self.form_utf8, self.form_offsets, self.n_terms = forms.utf8, forms.offsets, len(forms) // 3
        self.characters, self.lowered, self.subwords = characters, lowered, subwords

    def write(self, const int64_t[::1] rows, const int32_t[::1] drawn, const int64_t[::1] drawn_bounds,
              int64_t room=-1):
        """Write row rows[i] with the words ``drawn[drawn_bounds[i]:drawn_bounds[i + 1]]``. Return `WrittenRows`.

        room: the maximum number of sub-words per row, or -1 to write texts.
        """
        cdef int64_t i, j, size, longest = 0, most_words = 0, n_pieces = drawn.shape[0], n_rows = rows.shape[0]
        cdef bint fits
        cdef int32_t none = 0
        cdef const int32_t* new = &drawn[0] if drawn.shape[0] else &none
        for i in range(n_rows):
            size = self.chunk_bounds[rows[i] + 1] - self.chunk_bounds[rows[i]]
            n_pieces += size
            for j in range(self.chunk_bounds[rows[i]], self.chunk_bounds[rows[i] + 1]):
                size += self.offsets[self.chunks[j] + 1] - self.offsets[self.chunks[j]]
            longest = max(longest, size)
            most_words = max(most_words, self.word_bounds[rows[i] + 1] - self.word_bounds[rows[i]])
        cdef WrittenRows out = WrittenRows(n_rows, n_pieces if room >= 0 else 0, room, longest, most_words)
        with nogil:
            for i in range(n_rows):
                out.put(b"\n", 1)
                out.starts[i], out.known = out.end, 0
                fits = self.write_row(out, rows[i], new + drawn_bounds[i])
                out.stops[i], out.ends[i + 1] = out.end if fits else -1, out.n_pieces
        return out

    def edit(self, const int64_t[::1] rows, const int32_t[::1] starts, const int32_t[::1] stops,
             const int64_t[::1] options, const uint8_t[::1] option_utf8, const int64_t[::1] option_bounds,
             int64_t room=-1):
        """Write row rows[i] with the bytes starts[i] .. stops[i] replaced by an option. Return `WrittenRows`.

        The option is ``option_utf8[option_bounds[k]:option_bounds[k + 1]]`` for k = options[i].
        room: the maximum number of sub-words per row, or -1 to write texts.
        """
        cdef int64_t i, j, size, longest = 0, n_pieces = 0, n_rows = rows.shape[0]
        cdef bint fits
        cdef uint8_t none = 0
        cdef const uint8_t* option = &option_utf8[0] if option_utf8.shape[0] else &none  # all options may be empty
        for i in range(n_rows):
            size = self.chunk_bounds[rows[i] + 1] - self.chunk_bounds[rows[i]]
            n_pieces += 2 + size + option_bounds[options[i] + 1] - option_bounds[options[i]]
            if room >= 0:  # `edit_row` copies only a part of the row
                continue
            for j in range(self.chunk_bounds[rows[i]], self.chunk_bounds[rows[i] + 1]):
                size += self.offsets[self.chunks[j] + 1] - self.offsets[self.chunks[j]]
            longest = max(longest, size)
        cdef WrittenRows out = WrittenRows(n_rows, n_pieces if room >= 0 else 0, room, longest, 0)
        with nogil:
            for i in range(n_rows):
                out.put(b"\n", 1)
                out.starts[i], out.known = out.end, 0
                fits = self.edit_row(out, rows[i], starts[i], stops[i], option + option_bounds[options[i]],
                                     option_bounds[options[i] + 1] - option_bounds[options[i]])
                out.stops[i], out.ends[i + 1], out.fragment = out.end if fits else -1, out.n_pieces, -1
        return out

    cdef bint edit_row(self, WrittenRows out, int64_t row, int64_t start, int64_t stop, const uint8_t* option,
                       int64_t n) except -1 nogil:
        """Write a row with `option` instead of its bytes ``start .. stop - 1``.

        For token ids, the chunks that the edit touches are written as fragments, one per new chunk. Returns False if
        the number of sub-words of another chunk is UNKNOWN, or if a new chunk is empty.
        """
        cdef int64_t j, first = self.chunk_bounds[row], last = self.chunk_bounds[row + 1]
        cdef int64_t begin = 0, end, at = 0, size, place = 0, touched = -1
        if out.room < 0:
            self.copy(out, first, last)
            out.put(&out.line[0], start)
            out.put(option, n)
            out.put(&out.line[stop], out.size - stop)
            return True
        for j in range(first, last):
            if out.known >= out.room:
                break
            size = self.subwords.sizes[self.chunks[j] + (self.subwords.first_chunk if j == first else 0)]
            if size == NO_SIZE:
                return False
            end = at + self.offsets[self.chunks[j] + 1] - self.offsets[self.chunks[j]]
            if end < start or at > stop:
                out.keep(place, size)
            else:
                if touched < 0:
                    touched, begin = j, at
                if end >= stop or j + 1 == last:
                    if end - begin >= out.line.shape[0]:
                        out.lengthen_line(end - begin)
                    self.copy(out, touched, j + 1)
                    if begin > 0:
                        out.put(b" ", 1)
                    if not (self.put_chunks(out, &out.line[0], start - begin) and self.put_chunks(out, option, n)
                            and self.put_chunks(out, &out.line[stop - begin], end - stop)) or out.fragment < 0:
                        return False
                    out.close_fragment(self.subwords)
            place += size
            at = end + 1
        return True

    cdef bint put_chunks(self, WrittenRows out, const uint8_t* text, int64_t n) except -1 nogil:
        """Add text to the open fragment, and open a new one after each space. Return False if a fragment is empty."""
        cdef int64_t k = 0, stop
        while k < n:
            if text[k] == c' ':
                if out.fragment < 0:
                    return False
                out.close_fragment(self.subwords)
                out.put(b" ", 1)
                k += 1
                continue
            stop = k
            while stop < n and text[stop] != c' ':
                stop += 1
            out.extend_fragment(-1)
            out.put(text + k, stop - k)
            k = stop
        return True

    cdef bint write_row(self, WrittenRows out, int64_t row, const int32_t* new) except -1 nogil:
        """Write a row in which new[w] replaces word w.

        Returns False if the text does not contain the words in their order or, for token ids, if the number of
        sub-words of a chunk is UNKNOWN.
        """
        cdef int64_t n_words = self.word_bounds[row + 1] - self.word_bounds[row], w = 0, first_word
        cdef int64_t first = self.chunk_bounds[row], stop = self.chunk_bounds[row + 1], j = first
        cdef int64_t begin, end = -1, reach, size, place = 0  # place: of the chunk's first sub-word in the sentence
        cdef const int32_t* old
        cdef uint16_t of_chunk
        cdef bint changed
        if n_words == 0:
            return True
        old = &self.words[self.word_bounds[row]]
        self.copy(out, first, stop)
        if not self.locate(out, old, n_words):
            return False
        if out.room < 0:
            self.write_words(out, 0, out.size, old, new, 0, n_words)
            return True
        while j < stop and out.known < out.room:
            begin, first_word, size, changed = end + 1, w, 0, False
            reach = begin
            while j < stop and reach > end:  # several chunks, if a word spans them
                of_chunk = self.subwords.sizes[self.chunks[j] + (self.subwords.first_chunk if j == first else 0)]
                if of_chunk == NO_SIZE:
                    return False
                size += of_chunk
                end += 1 + self.offsets[self.chunks[j] + 1] - self.offsets[self.chunks[j]]
                j += 1
                while w < n_words and out.word_starts[w] <= end:
                    changed |= new[w] != old[w]
                    reach = max(reach, out.word_stops[w])
                    w += 1
            if not changed:
                out.keep(place, size)
            else:
                if begin > 0:
                    out.put(b" ", 1)
                self.write_words(out, begin, end, old, new, first_word, w)
                out.close_fragment(self.subwords)
            place += size
        return True

    cdef int copy(self, WrittenRows out, int64_t j, int64_t stop) except -1 nogil:
        """Set `out.line` to the chunks ``j .. stop - 1``, separated by spaces, and `out.size` to its size in bytes."""
        cdef int64_t n, at = 0
        for j in range(j, stop):
            n = self.offsets[self.chunks[j] + 1] - self.offsets[self.chunks[j]]
            memcpy(&out.line[at], &self.utf8[0] + self.offsets[self.chunks[j]], n)
            out.line[at + n] = c' '
            at += n + 1
        out.size = at - 1
        return 0

    cdef bint locate(self, WrittenRows out, const int32_t* words, int64_t n_words) noexcept nogil:
        """Find where each word starts and stops in `out.line`, in order. Return False if a word is not found."""
        cdef const uint8_t* word
        cdef int64_t k, n, end, at = 0
        cdef bint is_mark
        for k in range(n_words):
            word = self.spelling(words[k], &n)
            is_mark, end = n == 2 and word[0] == word[1] and (word[0] == c"'" or word[0] == c'`'), -1
            while end < 0:
                end = self.match(out, at, word, n)
                if end < 0 and is_mark and mark_size(&out.line[at], out.size - at) > 0:
                    end = at + mark_size(&out.line[at], out.size - at)
                if end < 0:
                    at += 1
                    if at >= out.size:
                        return False
            out.word_starts[k], out.word_stops[k] = at, end
            at = end
        return True

    cdef inline const uint8_t* spelling(self, int64_t id, int64_t* n) noexcept nogil:
        """Return the word with this id, and set `n` to its size in bytes."""
        if id < self.n_terms:
            n[0] = self.term_offsets[id + 1] - self.term_offsets[id]
            return &self.term_utf8[0] + self.term_offsets[id]
        id -= self.n_terms
        n[0] = self.unseen_offsets[id + 1] - self.unseen_offsets[id]
        return &self.unseen_utf8[0] + self.unseen_offsets[id]

    cdef inline int64_t match(self, WrittenRows out, int64_t at, const uint8_t* word, int64_t n) noexcept nogil:
        """If `word`, of n bytes, is at index `at` of `out.line`, return the index where it ends, else -1."""
        cdef int64_t k = 0
        cdef uint32_t c, written, last = 0
        if at + n <= out.size and memcmp(&out.line[at], word, n) == 0:
            return at + n
        if not self.lowered or (at < out.size and out.line[at] & 0xC0 == 0x80):
            return -1
        if at > 1 and out.line[at - 2] == 0xC4 and out.line[at - 1] == 0xB0:
            last = DOTTED_I
        while k < n:
            c = character(word + k)
            if c == DOT and last == DOTTED_I:
                last = 0
                k += 2
                continue
            if at >= out.size:
                return -1
            written = last = character(&out.line[at])
            if c != self.characters[written] & LOWER_CASE and not (c == FINAL_SIGMA and written == CAPITAL_SIGMA):
                return -1
            k += length(word + k)
            at += length(&out.line[at])
        return at

    cdef int write_words(self, WrittenRows out, int64_t at, int64_t end, const int32_t* old, const int32_t* new,
                         int64_t w, int64_t stop) except -1 nogil:
        """Copy ``out.line[at:end]``, the text of the words ``w .. stop - 1`` of the row, but with the words of `new`.

        old, new: the word ids of the whole row. If token ids are needed, the text is divided into fragments.
        """
        cdef int64_t k, n_kept, form = 0, size = 0
        cdef bint changed, is_glued, is_term, last_changed = False
        cdef uint32_t last, first
        cdef const uint8_t* following
        cdef const uint8_t* spelled = &self.form_utf8[0]  # an empty word can come before the first new word
        for k in range(w, stop):
            n_kept, changed = out.word_stops[k] - out.word_starts[k], new[k] != old[k]
            if changed and new[k] < self.n_terms:
                form = self.case_of(&out.line[out.word_starts[k]], n_kept) * self.n_terms + new[k]
                spelled = &self.form_utf8[self.form_offsets[form]]
                size = self.form_offsets[form + 1] - self.form_offsets[form]
            elif changed:  # a user's function may move an unseen word
                spelled = self.spelling(new[k], &size)
            if changed:
                n_kept = opening(&out.line[out.word_starts[k]], n_kept)
            if out.word_starts[k] > at:
                out.extend_fragment(-1)
                out.put(&out.line[at], out.word_starts[k] - at)
            elif k > w:
                following = spelled if n_kept == 0 else &out.line[at]
                last, first = out.last(), character(following)
                is_glued = (changed or last_changed) and not (self.characters[last] | self.characters[first]) & IS_APART
                if out.room >= 0 and (is_glued or self.cuts(last) or self.cuts(first)):
                    out.close_fragment(self.subwords)
                if is_glued:  # they would look like one word
                    out.put(b" ", 1)
            is_term = out.room >= 0 and changed and n_kept == 0 and self.subwords.alike[form]
            out.extend_fragment(new[k] if is_term else -1)
            out.put(&out.line[out.word_starts[k]], n_kept)
            if changed:
                out.put(spelled, size)
            at, last_changed = out.word_stops[k], changed
        if end > at:
            out.extend_fragment(-1)
            out.put(&out.line[at], end - at)
        return 0

    cdef inline bint cuts(self, uint32_t c) noexcept nogil:
        return c < 128 and self.subwords.cuts[c]

    cdef Case case_of(self, const uint8_t* word, int64_t n) noexcept nogil:
        """Return the case of a word of n bytes. It is UPPER_CASE only if the word has at least two letters."""
        cdef const uint8_t* end = word + n
        cdef uint32_t kind, seen = 0
        cdef int64_t n_cased = 0
        cdef bint first_is_upper = False
        while word < end:
            kind = self.characters[character(word)]
            if kind & IS_CASED:
                if n_cased == 0:
                    first_is_upper = kind & IS_UPPER
                n_cased += 1
            seen |= kind
            word += length(word)
        if n_cased > 1 and seen & IS_UPPER and not seen & (IS_LOWER | IS_TITLE):
            return UPPER_CASE
        return TITLE_CASE if first_is_upper else AS_IT_IS


cdef inline int64_t mark_size(const uint8_t* at, int64_t n) noexcept nogil:
    """Return the size of the quotation mark (", '' or ``) at the start of n bytes, or 0 if there is none."""
    if n > 0 and at[0] == c'"':
        return 1
    return 2 if n > 1 and at[0] == at[1] and (at[0] == c"'" or at[0] == c'`') else 0


cdef inline int64_t opening(const uint8_t* word, int64_t n) noexcept nogil:
    """Return the size of the marks "¿" and "¡" at the start of a word of n bytes, or 0 if the word has only marks."""
    cdef int64_t k = 0
    while k + 1 < n and word[k] == 0xC2 and (word[k + 1] == 0xBF or word[k + 1] == 0xA1):
        k += 2
    return k if k < n else 0


def fill_rows(WrittenRows written, Subwords subwords, const int32_t[::1] numbers, const int32_t[::1] fragment_ids,
              const int64_t[::1] fragment_bounds, const small_id[::1] ids, const int64_t[::1] id_bounds,
              const int64_t[::1] rows, Frame frame, int64_t[:, ::1] input_ids, int64_t[:, ::1] attention_mask):
    """Fill row i of `input_ids` and `attention_mask` with the token ids of row i of `written`.

    Returns bool (n_rows,): True for a row that only the tokenizer can encode.

    numbers: fragment i of `written` is a copy of the distinct fragment with the number ``numbers[i]``.
    fragment_ids, fragment_bounds: the sub-words of each distinct fragment; none if they depend on the whole text.
    ids, id_bounds: the sub-words of the sentences of the index.
    rows: row i of `written` is sentence rows[i] with replaced words.
    """
    cdef int64_t i, p, k, n, end, number, width = input_ids.shape[1], room = width - frame.n_special
    cdef const int32_t* source
    # At least 2 KB, which malloc takes from an arena of the thread, so that threads share no cache line.
    cdef int32_t[::1] line = np.empty(max(width, 512), dtype=np.int32)
    needs_tokenizer = np.empty(rows.shape[0], dtype=bool)
    cdef uint8_t[::1] flags = needs_tokenizer.view(np.uint8)
    with nogil:
        for i in range(rows.shape[0]):
            end, flags[i] = 0, written.stops[i] < 0
            for p in range(written.ends[i], written.ends[i + 1]):
                if flags[i] or end >= room:
                    break
                number = written.pieces[p, 1]
                if written.pieces[p, 0] >= 0:
                    k, n = id_bounds[rows[i]] + written.pieces[p, 0], number
                    flags[i] = k + n > id_bounds[rows[i] + 1]
                    n = 0 if flags[i] else min(n, room - end)
                    for k in range(k, k + n):
                        line[end] = ids[k]
                        end += 1
                    continue
                if written.pieces[p, 0] == TERM:
                    k = subwords.bounds[number]
                    n, source = subwords.bounds[number + 1] - k, &subwords.values[0] + k
                else:
                    k = fragment_bounds[numbers[number]]
                    n, source = fragment_bounds[numbers[number] + 1] - k, &fragment_ids[0] + k
                    flags[i] = n == 0
                n = min(n, room - end)
                memcpy(&line[end], source, n * sizeof(int32_t))
                end += n
            frame.write(&line[0], 0 if flags[i] else end, &input_ids[i, 0], &attention_mask[i, 0], width)
    return needs_tokenizer
