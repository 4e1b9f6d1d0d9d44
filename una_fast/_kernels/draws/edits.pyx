"""Draws an edit for each sentence: first its kind by weight, then one of its edits, then one of the options there."""

from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint64_t

import numpy as np

from una_fast._kernels.draws.random cimport below, unit

cdef enum:
    NONE = -1  # no edit fits

NO_KIND = NONE


def draw_edits(const int64_t[::1] rows, const uint64_t[:, ::1] bits, const uint8_t[:, ::1] is_possible,
               const double[::1] weights, const int64_t[::1] listed, int64_t n_listed, const int64_t[::1] bounds,
               const int32_t[::1] option_lists, const int64_t[::1] list_bounds):
    """Draw an edit for each row. Return its kind (int8, NO_KIND if none fits), its edit and its option (both int64).

    The edit is an index into `option_lists`. Edit and option are -1 for kinds without edits, which other kernels draw.

    bits: uint64 (n_rows, 3), random.
    is_possible: uint8 (n_rows, n_kinds), whether a kind without edits fits the row.
    weights: of each kind. A kind of weight 0 is only drawn if no other kind fits.
    listed: for each kind, its place among the `n_listed` kinds with edits, or -1.
    bounds: the edits of kind k of row r begin at ``bounds[n_listed * r + k]`` and end at the next bound.
    option_lists: the options of edit e are ``list_bounds[l]`` to ``list_bounds[l + 1] - 1`` for l = option_lists[e].
    """
    cdef int64_t n = rows.shape[0], n_kinds = weights.shape[0], i, k, first, last, drawn, place, number
    cdef double total, point, end
    kinds, edits, options = np.full(n, NONE, np.int8), np.full(n, NONE, np.int64), np.full(n, NONE, np.int64)
    cdef int8_t[::1] kind = kinds
    cdef int64_t[::1] edit = edits, option = options
    cdef int64_t[::1] counts = np.zeros(max(n_kinds, 64), np.int64)  # at least 512 bytes, see `fill_rows`
    with nogil:
        for i in range(n):
            total, last, drawn = 0.0, NONE, NONE
            first = n_listed * rows[i]
            for k in range(n_kinds):
                if listed[k] >= 0:
                    counts[k] = bounds[first + listed[k] + 1] - bounds[first + listed[k]]
                else:
                    counts[k] = is_possible[i, k]
                if counts[k] > 0:
                    total += weights[k]
                    last = k
            point, end = unit(bits[i, 0]) * total, 0.0
            for k in range(n_kinds):
                if counts[k] > 0 and weights[k] > 0.0:
                    end += weights[k]
                    drawn = k
                    if point < end:
                        break
            kind[i] = <int8_t>(drawn if drawn >= 0 else last)
            if kind[i] >= 0 and listed[kind[i]] >= 0:
                k = kind[i]
                edit[i] = bounds[first + listed[k]] + below(bits[i, 1], counts[k])
                place = list_bounds[option_lists[edit[i]]]
                number = list_bounds[option_lists[edit[i]] + 1] - place
                option[i] = place + below(bits[i, 2], number)
    return kinds, edits, options
