"""Chunks -> sub-word ids of sentences -> sentences cut and padded into the tensors of a batch.

Every function handles some of the rows, without the GIL, so that threads can share the rows. It fills arrays that the
caller has allocated. The ids of sentences are uint16 if all of them fit, else int32: uint16 halves the bytes to read,
and reading them takes most of the time.
"""

from libc.stdint cimport int32_t, int64_t, uint16_t

from una_fast._kernels.ids.frame cimport Frame

ctypedef fused small_id:
    uint16_t
    int32_t


def sentence_lengths(
    const int32_t[::1] chunks,
    const int64_t[::1] bounds,
    const int32_t[::1] lengths,
    Py_ssize_t first_offset,
    int64_t[::1] out,
    Py_ssize_t start,
    Py_ssize_t stop,
):
    """Set out[row], for the rows start .. stop - 1, to the number of sub-words: the sum over the chunks of the row.

    chunks: int32 (T,), bounds: int64 (N + 1,): row i has the chunks ``chunks[bounds[i]:bounds[i + 1]]``; out: int64
    (N,). lengths: int32, the number of sub-words of chunk c after a space, at index c, and of chunk c as the first of a
    sentence, at index ``first_offset + c``. A negative length marks a chunk that cannot be encoded alone; a row with
    such a chunk gets the length -1.
    """
    cdef Py_ssize_t row, i, entry
    cdef int64_t total
    with nogil:
        for row in range(start, stop):
            total = 0
            for i in range(bounds[row], bounds[row + 1]):
                entry = chunks[i] + (first_offset if i == bounds[row] else 0)
                if lengths[entry] < 0:
                    total = -1
                    break
                total += lengths[entry]
            out[row] = total


def join_chunks(
    const int32_t[::1] chunks,
    const int64_t[::1] bounds,
    const int32_t[::1] chunk_values,
    const int64_t[::1] chunk_bounds,
    Py_ssize_t first_offset,
    small_id[::1] out,
    const int64_t[::1] out_bounds,
    Py_ssize_t start,
    Py_ssize_t stop,
):
    """Write the sub-words of each of the rows start .. stop - 1 to ``out[out_bounds[row]:out_bounds[row + 1]]``.

    chunks, bounds, first_offset: as in `sentence_lengths`; chunk_values: int32, chunk_bounds: int64: the sub-words of
    the chunk at index e are ``chunk_values[chunk_bounds[e]:chunk_bounds[e + 1]]``, with the same indices as `lengths`
    there; out: uint16 or int32; out_bounds: int64 (N + 1,).

    The writing of a row stops at ``out_bounds[row + 1]``. So a row that has the length -1 in `sentence_lengths`, and
    whose chunks may have more sub-words than `out` has room for, cannot overwrite the next row.
    """
    cdef Py_ssize_t row, i, entry
    cdef int64_t at, room, j
    with nogil:
        for row in range(start, stop):
            at = out_bounds[row]
            room = out_bounds[row + 1]
            for i in range(bounds[row], bounds[row + 1]):
                entry = chunks[i] + (first_offset if i == bounds[row] else 0)
                for j in range(chunk_bounds[entry], chunk_bounds[entry + 1]):
                    if at == room:
                        break
                    out[at] = <small_id>chunk_values[j]
                    at += 1


def pad_rows(
    const small_id[::1] values,
    const int64_t[::1] bounds,
    const int64_t[::1] rows,
    Frame frame,
    int64_t[:, ::1] input_ids,
    int64_t[:, ::1] attention_mask,
):
    """Fill line i of both outputs, int64 (B, L), with the sentence rows[i], and with the tokens and padding of `frame`.

    The sentence is cut to the columns that the special tokens leave. values: uint16 or int32 (T,), bounds: int64
    (N + 1,): the sub-words of sentence r are ``values[bounds[r]:bounds[r + 1]]``; rows: int64 (B,). The caller has
    checked that every one of `rows` is in 0 .. N - 1, and that L is at least the length of prefix and suffix together.
    """
    cdef Py_ssize_t line, i, n, n_rows = rows.shape[0], width = input_ids.shape[1]
    cdef Py_ssize_t room = width - frame.prefix.shape[0] - frame.suffix.shape[0]
    cdef int64_t start, begin
    with nogil:
        for line in range(n_rows):
            start = bounds[rows[line]]
            n = min(room, <Py_ssize_t>(bounds[rows[line] + 1] - start))
            begin = frame.begin(n, width)
            for i in range(n):
                input_ids[line, begin + i] = values[start + i]
            frame.write_around(&input_ids[line, 0], &attention_mask[line, 0], width, begin, begin + n)
