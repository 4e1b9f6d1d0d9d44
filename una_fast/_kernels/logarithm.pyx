"""Natural logarithms that are correctly rounded, so that they have the same bits on every processor.

The logarithms of numpy and of C libraries differ in the last bit between instruction sets (1,429 of 400,000 values
between AVX-512 and AVX2), and the order of the terms depends on that bit.

A logarithm is first computed in long double. For about one value in a hundred, the error leaves two doubles that could
be the nearest; then `exact_log` decides. Where a long double is only a double (Visual C, Apple's processors),
`exact_log` computes every value.
"""

from decimal import Context

from libc.math cimport INFINITY, NAN
from libc.stdint cimport uint64_t
from libc.string cimport memcpy

cdef extern from *:
    """
    #include <float.h>
    #include <math.h>
    /* an upper bound of the relative error of logl and log1pl: a few units in the last place of a long double */
    #define UNA_LOG_ERROR (LDBL_MANT_DIG >= 64 ? 1e-18L : 0.5L)
    """
    const long double UNA_LOG_ERROR
    long double logl(long double x) nogil
    long double log1pl(long double x) nogil

cdef enum:
    KEPT_BITS = 11
    KEPT = 1 << KEPT_BITS  # entries of the cache of `fill_log`, 32 KB


def exact_log(numerator: int, denominator: int) -> float:
    """Return the double nearest to ln(numerator / denominator), for positive integers. It takes 15 us.

    The precision is doubled until the result rounds to a single double. This always ends: the logarithm of a rational
    number other than 1 is irrational, so it is never halfway between two doubles.
    """
    digits = 20
    while numerator != denominator:
        digits *= 2
        context = Context(prec=digits)
        value = context.ln(context.divide(numerator, denominator))
        # The quotient, its logarithm, and the sum below are each wrong by at most half a unit of their last digit.
        error = context.scaleb(context.add(1, context.abs(value)), 1 - digits)
        low, high = float(context.subtract(value, error)), float(context.add(value, error))
        if low == high:
            return low
    return 0.0


cdef double rounded(double x, int plus) except? -1 nogil:
    """Return ln(x + plus), correctly rounded, for a finite x + plus above 0, where `plus` is 0 or 1."""
    cdef double value
    cdef long double found
    if x == 1 - plus:
        return 0.0
    if not 0 < x < INFINITY:
        with gil:
            raise ValueError(f"{x}: the logarithm needs a number {'of at least' if plus else 'above'} 0")
    found = log1pl(x) if plus else logl(x)
    value = <double>(found * (1 - UNA_LOG_ERROR))
    if value != <double>(found * (1 + UNA_LOG_ERROR)):  # two doubles could be the nearest
        with gil:
            n, d = (<object>x).as_integer_ratio()
            value = exact_log(n + plus * d, d)
    return value


def fill_log(const double[::1] values, double[::1] out, int plus=0):
    """Fill `out`, which may be `values`, with the correctly rounded ln(values + plus), in 5 to 100 ns per value.

    A corpus has only a few thousand distinct ratios, so the latest result for each hash of a value is cached.
    """
    cdef double[KEPT] known, result
    cdef double value
    cdef uint64_t slot
    cdef Py_ssize_t i
    with nogil:
        for i in range(KEPT):
            known[i] = NAN  # an empty slot: NaN equals no value
        for i in range(values.shape[0]):
            value = values[i]
            memcpy(&slot, &value, sizeof(value))
            slot = (slot * <uint64_t>0x9E3779B97F4A7C15ULL) >> (64 - KEPT_BITS)
            if known[slot] != value:
                result[slot] = rounded(value, plus)
                known[slot] = value
            out[i] = result[slot]
