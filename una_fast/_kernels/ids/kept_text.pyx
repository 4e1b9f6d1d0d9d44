"""Rows of the index and the words that replace some of theirs -> text, written like the sentences.

Rows in which a word with a character beyond ASCII is replaced are left to the caller.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcmp, memcpy

import numpy as np

cdef enum Case:
    AS_IT_IS
    LOWER
    TITLE
    UPPER


def spell_kept(const int32_t[::1] chunks, const int64_t[::1] chunk_bounds, const uint8_t[::1] utf8,
               const uint8_t[::1] lowered, const int64_t[::1] offsets, const uint8_t[::1] refused,
               const int32_t[::1] words, const int64_t[::1] word_bounds, const uint8_t[::1] term_utf8,
               const int64_t[::1] term_offsets, const uint8_t[::1] drawn_utf8, const int64_t[::1] drawn_offsets,
               const int32_t[::1] cased, const uint8_t[::1] cased_utf8, const int64_t[::1] cased_offsets,
               const int32_t[::1] quotes, const int64_t[::1] rows, const int32_t[::1] drawn,
               const int64_t[::1] drawn_bounds):
    """Returns (text uint8, starts int64 (B,), stops int64 (B,)): line i is ``text[starts[i]:stops[i]]``; stop -1: left.

    chunks, chunk_bounds, utf8, offsets: the chunks of the rows and their strings; lowered: those in lower case, if the
    words are; refused: uint8, the chunks that are left; words, word_bounds: the terms of the rows; term_utf8,
    term_offsets: their strings; drawn_utf8, drawn_offsets: the same as they are spelled where they are drawn; cased:
    int32 (V,), for a term beyond ASCII the first of its four strings in cased_utf8, cased_offsets, -1 for others;
    quotes: the terms that stand for '"'; rows: int64 (B,); drawn, drawn_bounds: the terms of their negatives.
    """
    cdef int64_t i, j, k, n, row, w, string, at, stop, start, capacity = 0, end = 0, n_rows = rows.shape[0]
    cdef bint fits, changed, last_changed, glued
    for i in range(n_rows):  # the most bytes that the texts can take
        for j in range(chunk_bounds[rows[i]], chunk_bounds[rows[i] + 1]):
            capacity += offsets[chunks[j] + 1] - offsets[chunks[j]] + 1
        for k in range(drawn_bounds[i], drawn_bounds[i + 1]):
            capacity += 1 + longest(drawn_offsets, cased, cased_offsets, drawn[k])
    text = np.empty(capacity, dtype=np.uint8)
    starts, stops = np.zeros(n_rows, dtype=np.int64), np.zeros(n_rows, dtype=np.int64)
    cdef uint8_t[::1] out = text
    cdef int64_t[::1] starts_of = starts, stops_of = stops
    with nogil:
        for i in range(n_rows):
            row, k, start, fits = rows[i], drawn_bounds[i], end, True
            w, last_changed = word_bounds[row], False
            for j in range(chunk_bounds[row], chunk_bounds[row + 1]):
                if j > chunk_bounds[row]:
                    out[end] = c' '
                    end += 1
                at, stop, glued = offsets[chunks[j]], offsets[chunks[j] + 1], False
                fits = fits and not refused[chunks[j]]
                while fits and at < stop:
                    if w == word_bounds[row + 1]:
                        fits = False
                        break
                    n = term_offsets[words[w] + 1] - term_offsets[words[w]]
                    if not (n <= stop - at and memcmp(&lowered[at], &term_utf8[term_offsets[words[w]]], n) == 0):
                        n, fits = 1, lowered[at] == c'"' and (words[w] == quotes[0] or words[w] == quotes[1])
                    changed = words[w] != drawn[k]
                    if fits and changed:
                        fits = is_ascii(utf8, at, n) and length(drawn_offsets, drawn[k]) > 0
                    if not fits:
                        break
                    if glued and (changed or last_changed):
                        if out[end - 1] >= 0x80 or (cased[drawn[k]] >= 0 if changed else utf8[at] >= 0x80):
                            fits = False
                            break
                        if not is_mark(out[end - 1]) and not is_mark(
                            drawn_utf8[drawn_offsets[drawn[k]]] if changed else utf8[at]
                        ):
                            out[end] = c' '
                            end += 1
                    if changed and cased[drawn[k]] >= 0:
                        string = cased[drawn[k]] + case_of(&utf8[at], n)
                        memcpy(&out[end], &cased_utf8[cased_offsets[string]], length(cased_offsets, string))
                        end += length(cased_offsets, string)
                    elif changed:
                        end += write_cased(&drawn_utf8[drawn_offsets[drawn[k]]], length(drawn_offsets, drawn[k]),
                                           case_of(&utf8[at], n), &out[end])
                    else:
                        memcpy(&out[end], &utf8[at], n)
                        end += n
                    at, glued, last_changed = at + n, True, changed
                    w, k = w + 1, k + 1
            fits = fits and w == word_bounds[row + 1]
            if word_bounds[row] == word_bounds[row + 1]:
                end, fits = start, True
            starts_of[i], stops_of[i] = start, end if fits else -1
    return text, starts, stops


cdef inline int64_t length(const int64_t[::1] offsets, int64_t i) noexcept nogil:
    return offsets[i + 1] - offsets[i]


cdef inline int64_t longest(const int64_t[::1] offsets, const int32_t[::1] cased, const int64_t[::1] cased_offsets,
                            int32_t term) noexcept nogil:
    """At least as many bytes as the term has in any case."""
    if cased[term] < 0:
        return length(offsets, term)
    return cased_offsets[cased[term] + 4] - cased_offsets[cased[term]]


cdef inline bint is_ascii(const uint8_t[::1] text, int64_t start, int64_t n) noexcept nogil:
    cdef uint8_t found = 0
    cdef int64_t k
    for k in range(start, start + n):
        found |= text[k]
    return found < 0x80


cdef inline bint is_lower(uint8_t c) noexcept nogil:
    return c'a' <= c <= c'z'


cdef inline bint is_upper(uint8_t c) noexcept nogil:
    return c'A' <= c <= c'Z'


cdef inline bint is_mark(uint8_t c) noexcept nogil:
    """Whether an ASCII character is punctuation."""
    return c'!' <= c <= c'~' and not (is_lower(c) or is_upper(c) or c'0' <= c <= c'9')


cdef Case case_of(const uint8_t* word, int64_t n) noexcept nogil:
    """As `una_fast.augment.surface.case_of`, for ASCII."""
    cdef int64_t k, upper = 0, lower = 0
    cdef bint first_is_upper = False
    for k in range(n):
        if is_upper(word[k]):
            first_is_upper = first_is_upper or upper + lower == 0
            upper += 1
        elif is_lower(word[k]):
            lower += 1
    if upper + lower == 0:
        return AS_IT_IS
    if upper == 0:
        return LOWER
    if upper == 1 and first_is_upper:
        return TITLE
    return UPPER if lower == 0 else AS_IT_IS


cdef int64_t write_cased(const uint8_t* word, int64_t n, Case case, uint8_t* out) noexcept nogil:
    """Write a word in a case; returns its length."""
    cdef int64_t k
    for k in range(n):
        out[k] = word[k]
        if is_lower(word[k]) and (case == UPPER or (case == TITLE and k == 0)):
            out[k] = word[k] - 32
        elif is_upper(word[k]) and (case == LOWER or (case == TITLE and k > 0)):
            out[k] = word[k] + 32
    return n
