"""Rows of the index and the words that replace some of theirs -> token ids, the other words keeping their ids.

Letters: N rows, T words and C chunks of all rows, V terms.
"""

from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint16_t, uint64_t
from libc.string cimport memcmp

import numpy as np

from una_fast._kernels.cache_lines import on_own_lines

from una_fast._kernels.ids.frame cimport Frame

ctypedef fused small_id:
    uint16_t
    int32_t

GLUED, HARD, EXACT, OPENS, CASE = 1, 2, 4, 8, 16  # bits of a word's flags, see `Joins`

cdef enum:
    IS_GLUED = 1
    IS_HARD = 2
    IS_EXACT = 4
    IS_OPEN = 8
    CASE_SHIFT = 4
    LATER = 0
    FIRST = 1
    INSIDE = 2
    MANY = 65535  # sub-words of a word: so many or more


def count_words(const int32_t[::1] chunks, const int64_t[::1] chunk_bounds, const uint8_t[::1] utf8,
                const int64_t[::1] offsets, const int32_t[::1] words, const int64_t[::1] word_bounds,
                const uint8_t[::1] term_utf8, const int64_t[::1] term_offsets, const int32_t[::1] quotes,
                const uint8_t[::1] refused, uint16_t[::1] counts, uint8_t[::1] whole):
    """Set counts[i], uint16 (C,), to the number of words of chunk i, and whole[row], uint8 (N,), to 1 where all fit.

    They fit where the chunks of the row, one after the other, are the words of the row one after the other. chunks:
    int32 (C,), chunk_bounds: int64 (N + 1,); utf8, offsets: the strings of the chunks, in lower case if the words are;
    words: int32 (T,), word_bounds: int64 (N + 1,); term_utf8, term_offsets: the strings of the terms; quotes: int32,
    the terms that stand for '"'; refused: uint8, whether a chunk makes its row unfit.
    """
    cdef int64_t row, i, w, at, stop, n, n_rows = chunk_bounds.shape[0] - 1
    cdef bint fits
    with nogil:
        for row in range(n_rows):
            w, fits = word_bounds[row], True
            for i in range(chunk_bounds[row], chunk_bounds[row + 1]):
                at, stop = offsets[chunks[i]], offsets[chunks[i] + 1]
                counts[i] = 0
                fits = fits and not refused[chunks[i]]
                while fits and at < stop:
                    fits = w < word_bounds[row + 1] and counts[i] < MANY
                    if not fits:
                        break
                    n = term_offsets[words[w] + 1] - term_offsets[words[w]]
                    if n <= stop - at and memcmp(&utf8[at], &term_utf8[term_offsets[words[w]]], n) == 0:
                        at += n
                    elif utf8[at] == c'"' and is_one_of(words[w], quotes):
                        at += 1
                    else:
                        fits = False
                    counts[i] += 1
                    w += 1
            whole[row] = fits and w == word_bounds[row + 1]


cdef inline bint is_one_of(int32_t word, const int32_t[::1] few) noexcept nogil:
    cdef int64_t k
    for k in range(few.shape[0]):
        if few[k] == word:
            return True
    return False


def find_chunks(const int32_t[::1] chunks, const int64_t[::1] chunk_bounds, const int64_t[::1] word_bounds,
                const uint16_t[::1] counts, const uint8_t[::1] whole, int64_t first_offset, int64_t[::1] places,
                uint16_t[::1] lengths):
    """Set places[e], int64, to the place of the first word of entry e where it stands first, lengths[e] to its words.

    Entry c is chunk c after a space, entry ``first_offset + c`` as the first of a row. places: filled with -1 before.
    """
    cdef int64_t row, i, w, entry
    with nogil:
        for row in range(chunk_bounds.shape[0] - 1):
            w = word_bounds[row]
            for i in range(chunk_bounds[row], chunk_bounds[row + 1] if whole[row] else chunk_bounds[row]):
                entry = chunks[i] + (first_offset if i == chunk_bounds[row] else 0)
                if places[entry] < 0:
                    places[entry], lengths[entry] = w, counts[i]
                w += counts[i]


def spread(const int32_t[::1] chunks, const int64_t[::1] chunk_bounds, const int32_t[::1] words,
           const int64_t[::1] word_bounds, const uint16_t[::1] counts, const uint8_t[::1] whole, int64_t first_offset,
           const int64_t[::1] places, const uint16_t[::1] lengths, const int64_t[::1] entry_bounds,
           const uint16_t[::1] entry_sizes, const uint8_t[::1] entry_flags, const int32_t[::1] chunk_sizes,
           const int64_t[::1] row_bounds, uint16_t[::1] sizes, uint8_t[::1] flags):
    """Fill sizes, uint16 (T,), and flags, uint8 (T,), of each word from those of the entries.

    Word j of entry e has ``entry_sizes[entry_bounds[e] + j]``. chunk_sizes: int32, the sub-words of each entry;
    row_bounds: int64 (N + 1,), of the sub-words of each row. Where an entry has other words than where it stood first,
    and in a row whose chunks are not its words, no word can be replaced, and the first has the sub-words of all.
    """
    cdef int64_t row, i, j, w, entry, at
    cdef bint same
    with nogil:
        for row in range(chunk_bounds.shape[0] - 1):
            w = word_bounds[row]
            if not whole[row]:
                close(sizes, flags, w, word_bounds[row + 1] - w, row_bounds[row + 1] - row_bounds[row])
                continue
            for i in range(chunk_bounds[row], chunk_bounds[row + 1]):
                entry = chunks[i] + (first_offset if i == chunk_bounds[row] else 0)
                at, same = entry_bounds[entry], counts[i] == lengths[entry]
                for j in range(counts[i] if same else 0):
                    same = same and words[w + j] == words[places[entry] + j]
                for j in range(counts[i] if same else 0):
                    sizes[w + j], flags[w + j] = entry_sizes[at + j], entry_flags[at + j]
                if not same:
                    close(sizes, flags, w, counts[i], chunk_sizes[entry])
                w += counts[i]
            if word_bounds[row] < w and counts[chunk_bounds[row]] == 0:
                flags[word_bounds[row]] |= IS_HARD  # white space stands before the first word


cdef void close(uint16_t[::1] sizes, uint8_t[::1] flags, int64_t start, int64_t n, int64_t size) noexcept nogil:
    """Let the first of n words have all `size` sub-words, and none be replaced."""
    cdef int64_t j
    for j in range(n):
        sizes[start + j], flags[start + j] = 0, IS_HARD | IS_GLUED
    if n:
        sizes[start], flags[start] = <uint16_t>min(size, MANY), IS_HARD


cdef class Joins:
    """What the kernel knows of the words of an index under one tokenizer.

    sizes: uint16 (T,), the sub-words of each word where nothing is replaced; flags: uint8 (T,), bits: GLUED, no space
    stands before it; HARD, it cannot be replaced here; EXACT, it is its term in one of the cases; OPENS, a mark before
    it is a word of its own; and from CASE on the number of its case. forms: `Ragged` int32, row
    ``(context * n_cases + case) * V + term``: the sub-words of a term after a space, as the first word of a text, and
    after another character; none where the tokenizer has to be asked. contexts, cases: the row of each of them, where
    some are equal. before, after: uint64 (V,), bit m: mark m after the term, or the term after mark m, begins a new
    sub-word, whatever is around them. marks: int8 (V, 2), the marks with which a term begins and ends, -1: none.
    looks: uint8 (V,), bit 0: the term begins, bit 1: it ends with punctuation. between_marks: two marks are two words.
    """

    cdef const uint16_t[::1] sizes
    cdef const uint8_t[::1] flags, looks
    cdef const int32_t[::1] values
    cdef const int64_t[::1] bounds
    cdef const uint64_t[::1] before, after
    cdef const int8_t[:, ::1] marks
    cdef int64_t contexts[3]
    cdef int64_t cases[4]
    cdef int64_t n_cases
    cdef bint between_marks

    def __init__(self, sizes, flags, forms, before, after, marks, looks, contexts, cases, bint between_marks):
        self.sizes, self.flags, self.values, self.bounds = sizes, flags, forms.values, forms.indptr
        self.before, self.after, self.marks, self.looks = before, after, marks, looks
        self.contexts, self.cases, self.between_marks = contexts, cases, between_marks
        self.n_cases = max(cases) + 1

    cdef inline bint parted(self, int32_t word, int32_t following, bint opens) noexcept nogil:
        """Whether a word that follows another without a space begins a new sub-word."""
        cdef int8_t end = self.marks[word, 1], begin = self.marks[following, 0]
        if end >= 0 and begin >= 0:
            return self.between_marks
        if begin >= 0:
            return self.before[word] >> begin & 1
        return end >= 0 and opens and self.after[following] >> end & 1


cdef int64_t write_row(Joins joins, int64_t at, const int32_t* old, const int32_t* new, int64_t n, const small_id* ids,
                       int64_t n_ids, int32_t* line, int64_t room) noexcept nogil:
    """Write the sub-words of a row of n words, at most `room`; returns their number, -1 to ask the tokenizer.

    at: the place of its first word; ids: those of the row as it is.
    """
    cdef int64_t k, j, row, count, context, end = 0, read = 0
    cdef uint8_t flags
    cdef bint changed, spelled, last_changed = False
    for k in range(n):
        flags, changed, context = joins.flags[at + k], old[k] != new[k], LATER
        if end >= room and not flags & IS_GLUED:
            break  # up to a space, a word behind the last column may change what stands in it
        spelled = changed
        if changed and flags & IS_HARD:
            return -1
        if flags & IS_GLUED:
            context = INSIDE
            if changed or last_changed:
                if not (joins.looks[new[k - 1]] & 2 or joins.looks[new[k]] & 1):  # a space is put between
                    context, spelled = LATER, True
                    if not (changed or flags & IS_EXACT):
                        return -1
                elif not joins.parted(new[k - 1], new[k], flags & IS_OPEN):
                    return -1
        elif k == 0:
            context = FIRST
        count = joins.sizes[at + k]
        if count == MANY or read + count > n_ids:
            return -1
        if spelled:
            row = (joins.contexts[context] * joins.n_cases + joins.cases[flags >> CASE_SHIFT]) * joins.looks.shape[0]
            row += new[k]
            if joins.bounds[row] == joins.bounds[row + 1]:
                return -1
            for j in range(joins.bounds[row], joins.bounds[row + 1]):
                if end < room:
                    line[end] = joins.values[j]
                    end += 1
        else:
            for j in range(read, read + min(count, room - end)):
                line[end] = ids[j]
                end += 1
        read += count
        last_changed = changed
    return end


def write_kept(Joins joins, const int32_t[::1] words, const int64_t[::1] word_bounds, const small_id[::1] ids,
               const int64_t[::1] id_bounds, const int64_t[::1] rows, const int32_t[::1] drawn,
               const int64_t[::1] drawn_bounds, Frame frame, int64_t[:, ::1] input_ids, int64_t[:, ::1] attention_mask):
    """Fill line i of both outputs, int64 (B, L), with the negative of rows[i] whose words are ``drawn``; see `Joins`.

    Returns int64, ascending: the lines that are left for the tokenizer. words, word_bounds, ids, id_bounds: the terms
    and the sub-words of each row of the index; drawn: int32, drawn_bounds: int64 (B + 1,).
    """
    cdef int64_t i, n, row, at, width = input_ids.shape[1]
    cdef int64_t room = width - frame.prefix.shape[0] - frame.suffix.shape[0]
    cdef int32_t[::1] line = on_own_lines(width, np.int32)
    left_array = np.zeros(rows.shape[0], dtype=np.uint8)
    cdef uint8_t[::1] left = left_array
    cdef const small_id* own
    with nogil:
        for i in range(rows.shape[0]):
            row, n = rows[i], 0
            at = word_bounds[row]
            if at < word_bounds[row + 1]:
                own = &ids[0] + id_bounds[row]
                n = write_row(joins, at, &words[at], &drawn[drawn_bounds[i]], word_bounds[row + 1] - at, own,
                              id_bounds[row + 1] - id_bounds[row], &line[0], room)
            left[i] = n < 0
            frame.write(&line[0], max(n, 0), &input_ids[i, 0], &attention_mask[i, 0], width)
    return np.flatnonzero(left_array)
