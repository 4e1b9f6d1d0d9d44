"""The special tokens and the padding around the sub-words of a text in a row of a batch; rows of original sentences."""

from libc.stdint cimport int32_t, int64_t, uint16_t

ctypedef fused small_id:  # uint16 if all ids of sentences fit: it halves the bytes to read, which take most of the time
    uint16_t
    int32_t


cdef class Frame:
    """The special tokens before and after a text, and the padding on one side of them.

    prefix, suffix: int64, the special tokens before and after the text; pad_id: the token id that fills the rest of the
    row; pads_left: whether the padding stands before the text instead of after it.
    """

    def __init__(self, const int64_t[::1] prefix, const int64_t[::1] suffix, int64_t pad_id, bint pads_left=False):
        self.prefix, self.suffix, self.pad_id, self.pads_left = prefix, suffix, pad_id, pads_left

    cdef void write(self, const int32_t* inner, int64_t n, int64_t* ids, int64_t* mask, int64_t width) noexcept nogil:
        """Write a row of `width` columns: `n` sub-words, the tokens and the padding around them, and the mask.

        inner: int32, the sub-words; `width` numbers are read, those after the first n may be anything: a loop over all
        columns has no end that differs from row to row, which would be a mispredicted branch.
        """
        cdef int64_t n_prefix = self.prefix.shape[0], n_suffix = self.suffix.shape[0], k, begin, room
        cdef int32_t pad_id = <int32_t>self.pad_id, keep, count = <int32_t>n, column
        if self.pads_left:
            begin = self.begin(n, width)
            for k in range(n):
                ids[begin + k] = inner[k]
            self.write_around(ids, mask, width, begin, begin + n)
            return
        room = width - n_prefix
        for k in range(n_prefix):
            ids[k] = self.prefix[k]
        for column in range(<int32_t>room):
            keep = -<int32_t>(column < count)
            ids[n_prefix + column] = (inner[column] & keep) | (pad_id & ~keep)
        for k in range(n_suffix):
            ids[n_prefix + n + k] = self.suffix[k]
        count += <int32_t>(n_prefix + n_suffix)
        for column in range(<int32_t>width):
            mask[column] = column < count

    cdef int64_t begin(self, int64_t n_inner, int64_t width) noexcept nogil:
        """The column of the first of `n_inner` sub-words in a row of `width` columns."""
        cdef int64_t n_prefix = self.prefix.shape[0]
        return width - self.suffix.shape[0] - n_inner if self.pads_left else n_prefix

    cdef void write_around(self, int64_t* ids, int64_t* mask, int64_t width, int64_t begin, int64_t end) noexcept nogil:
        """Write the special tokens, the padding and the whole mask of a row of `width` columns.

        The sub-words of the row are in the columns ``begin .. end - 1``, which are left as they are.
        """
        cdef int64_t n_prefix = self.prefix.shape[0], n_suffix = self.suffix.shape[0], pad_id = self.pad_id, k
        cdef int64_t first = begin - n_prefix, stop = end + n_suffix
        for k in range(first):
            ids[k] = pad_id
            mask[k] = 0
        for k in range(n_prefix):
            ids[first + k] = self.prefix[k]
        for k in range(n_suffix):
            ids[end + k] = self.suffix[k]
        for k in range(first, stop):
            mask[k] = 1
        for k in range(stop, width):
            ids[k] = pad_id
            mask[k] = 0


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
