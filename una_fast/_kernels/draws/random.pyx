"""Fills arrays with the random bits of random.pxd, for Python code."""

from libc.stdint cimport int64_t, uint64_t


def fill_bits(uint64_t seed, uint64_t epoch, uint64_t sample_index, const uint64_t[::1] rows, int64_t number,
              uint64_t[:, ::1] out):
    """Set ``out[i, k]`` to 64 random bits, the draw with this `number` at position k of row ``rows[i]``."""
    cdef uint64_t stream = stream_key(seed, epoch, sample_index), key
    cdef Py_ssize_t i, k
    for i in range(rows.shape[0]):
        key = row_key(stream, rows[i])
        for k in range(out.shape[1]):
            out[i, k] = draw64(key, k, number)
