"""The special tokens and the padding around the sub-words of a text in a row of a batch; rows of original sentences."""

from libc.stdint cimport int32_t, int64_t, uint16_t
from libc.string cimport memmove

ctypedef fused small_id:  # uint16 if all ids of sentences fit: it halves the bytes to read, which take most of the time
    uint16_t
    int32_t


cdef class Frame:
    """The special tokens before and after a text, and the padding on one side of them.

    prefix, suffix: int64, the special tokens before and after the text; pad_id: the token id that fills the rest of the
    row; pads_left: whether the padding stands before the text instead of after it. n_special: of both sides.
    """

    def __init__(self, const int64_t[::1] prefix, const int64_t[::1] suffix, int64_t pad_id, bint pads_left=False):
        self.prefix, self.suffix, self.pad_id, self.pads_left = prefix, suffix, pad_id, pads_left
        self.n_special = prefix.shape[0] + suffix.shape[0]

    cdef void write(self, const int32_t* inner, int64_t n, int64_t* ids, int64_t* mask, int64_t width) noexcept nogil:
        """Write a row of `width` columns: `n` sub-words, the tokens and the padding around them, and the mask.

        inner: int32, the sub-words; `width` numbers are read, those after the first n may be anything: a loop over all
        columns has no end that differs from row to row, which would be a mispredicted branch.
        """
        cdef int64_t n_prefix = self.prefix.shape[0]
        cdef int32_t pad_id = <int32_t>self.pad_id, keep, count = <int32_t>n, column
        for column in range(<int32_t>(width - n_prefix)):
            keep = -<int32_t>(column < count)
            ids[n_prefix + column] = (inner[column] & keep) | (pad_id & ~keep)
        self.close(n, ids, mask, width)

    cdef void close(self, int64_t n, int64_t* ids, int64_t* mask, int64_t width) noexcept nogil:
        """Write the special tokens around `n` sub-words, which padding follows already, and the mask."""
        cdef int64_t n_prefix = self.prefix.shape[0], k, n_padding = width - n - self.n_special
        cdef int32_t count = <int32_t>(n + self.n_special), column
        for k in range(n_prefix):
            ids[k] = self.prefix[k]
        for k in range(self.suffix.shape[0]):
            ids[n_prefix + n + k] = self.suffix[k]
        for column in range(<int32_t>width):
            mask[column] = column < count
        if self.pads_left:
            memmove(ids + n_padding, ids, count * sizeof(int64_t))
            for k in range(width):
                ids[k] = ids[k] if k >= n_padding else self.pad_id
                mask[k] = k >= n_padding


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
    cdef int64_t i, k, start, n, n_prefix = frame.prefix.shape[0], width = input_ids.shape[1]
    with nogil:
        for i in range(rows.shape[0]):
            start = bounds[rows[i]]
            n = min(width - frame.n_special, bounds[rows[i] + 1] - start)
            for k in range(n):
                input_ids[i, n_prefix + k] = values[start + k]
            for k in range(n_prefix + n, width):
                input_ids[i, k] = frame.pad_id
            frame.close(n, &input_ids[i, 0], &attention_mask[i, 0], width)
