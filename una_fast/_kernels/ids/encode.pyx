"""Sub-word ids: chunks put together to sentences, and sentences cut and padded into a tensor's memory.

Every function works on a slice of rows without the GIL, so that threads may share the rows, and fills what it is
given. Ids come in as uint16 where the vocabulary allows it: half the bytes, and bytes are the cost.
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
    """Number of sub-words of rows `start` to `stop`: ``out[row] = sum(lengths[chunk] for chunk of row)``.

    `lengths` holds one entry a chunk, at the chunk's id where a space is before it and at ``first_offset + id`` where
    it is the first of a sentence. A negative entry (such a chunk cannot be encoded alone) makes the row's length -1.
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
    """Write the sub-words of rows `start` to `stop` to ``out[out_bounds[row]:out_bounds[row + 1]]``.

    `chunk_bounds` is indexed as `lengths` is in `sentence_lengths`. A row stops where its room ends, so that a row
    whose length was not the sum of its chunks (-1 above) cannot write into the next one.
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
    """Fill one line of both outputs a row: the sentence, cut to the room that is left, in its frame.

    Every one of `rows` is in range, and the outputs are at least as wide as the frame's prefix and suffix together.
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
