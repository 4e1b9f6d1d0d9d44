"""The special tokens and the padding around the sub-words of a text in a row of a batch."""

from libc.stdint cimport int64_t


cdef class Frame:
    """The special tokens before and after a text, and the padding on one side of them.

    prefix, suffix: int64, the special tokens before and after the text; pad_id: the token id that fills the rest of the
    row; pads_left: whether the padding stands before the text instead of after it.
    """

    def __init__(self, const int64_t[::1] prefix, const int64_t[::1] suffix, int64_t pad_id, bint pads_left=False):
        self.prefix, self.suffix, self.pad_id, self.pads_left = prefix, suffix, pad_id, pads_left

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
