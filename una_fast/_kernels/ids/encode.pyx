"""Sub-word ids of sentences -> sentences cut and padded into the tensors of a batch.

The ids of sentences are uint16 if all of them fit, else int32: uint16 halves the bytes to read, and reading them takes
most of the time.
"""

from libc.stdint cimport int32_t, int64_t, uint16_t

from una_fast._kernels.ids.frame cimport Frame

ctypedef fused small_id:
    uint16_t
    int32_t


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
