"""Natural logarithms that are correctly rounded, so that they have the same bits on every processor.

The logarithms of numpy and of C libraries differ in the last bit between instruction sets (1,429 of 400,000 values
between AVX-512 and AVX2), and the order of the terms depends on that bit.

`fast_log` first computes a logarithm with a relative error of 2**-64. For one value in about 2,000, this error leaves
two doubles that could be the nearest; `exact_log` then decides with integers of any length. `fast_log` uses only +, -
and * of doubles, in a fixed order. IEEE 754 defines the result of each of these operations, provided that the compiler
neither fuses nor reorders them; the compiler flags in setup.py see to that.
"""

import functools

from libc.math cimport INFINITY, NAN, fabs, frexp, ldexp
from libc.stdint cimport uint64_t
from libc.string cimport memcpy

FIRST_BITS = 160  # bits after the binary point with which `exact_log` starts

cdef enum:
    CELLS = 256  # of FACTOR, LOG_HIGH and LOG_LOW for each unit of the reduced argument, m in `fast_log`
    KEPT_BITS = 11
    KEPT = 1 << KEPT_BITS  # arguments that `fill` keeps with their logarithms, in 32 KB

ctypedef double (*Logarithm)(double) except? -1 nogil

cdef double SPLITTER = 134217729.0  # 2**27 + 1, the constant of Veltkamp's splitting
cdef double SQRT_HALF = 0.7071067811865476
cdef double ERROR = 5.421010862427522e-20  # 2**-64, the relative error of `fast_log`
cdef double TINY = 1e-90  # the square of a smaller argument could lose bits to underflow

cdef double[CELLS * 2] FACTOR, LOG_HIGH, LOG_LOW
cdef double LN2_HIGH, LN2_LOW
cdef double[9] SERIES  # 1/3, -1/4, 1/5 .. 1/11


def exact_log(numerator: int, denominator: int) -> float:
    """The double nearest to ln(numerator / denominator), both positive integers, computed with integers in 10 us.

    The logarithm of a rational number other than 1 is irrational, so it never lies halfway between two doubles, and the
    loop ends: with enough bits, both ends of the error interval round to the same double.
    """
    bits = FIRST_BITS
    if numerator == denominator:
        return 0.0
    shift = numerator.bit_length() - denominator.bit_length()
    n, d = numerator << max(-shift, 0), denominator << max(shift, 0)  # n / d lies between 1/2 and 2
    while True:
        value = 2 * (shift * _atanh(1, 3, bits) + _atanh(n - d, n + d, bits))
        # _atanh adds fewer than `bits` terms, each of which is wrong by less than 3 units.
        error = 8 * bits * (abs(shift) + 1)
        low, high = (value - error) / (1 << bits), (value + error) / (1 << bits)  # `/` of integers rounds correctly
        if low == high:
            return low
        bits *= 2


@functools.lru_cache(maxsize=4096)
def _atanh(n: int, d: int, bits: int) -> int:
    """atanh(n / d), for |n / d| <= 1/3, as an integer in units of 2**-bits, by the power series.

    It gives logarithms by ln(x) = 2 atanh((x - 1) / (x + 1)).
    """
    power = (abs(n) << bits) // d
    square = power * power >> bits
    total, odd = power, 1
    while power:
        power, odd = power * square >> bits, odd + 2
        total += power // odd
    return total if n > 0 else -total


cdef double fast_log(double y, double rest, double *doubt) noexcept nogil:
    """ln(y + rest), where |rest| <= ulp(y) / 2, with a relative error of 2**-64.

    `doubt` is set to 0 if this error cannot change the rounding: the result is then the double nearest to ln(y + rest).

    Method: y = 2**k m with m in [sqrt(1/2), sqrt(2)). The table FACTOR gives a factor c of at most 10 bits that makes
    z = c m - 1 small, |z| < 2**-7.8. Then ln y = k ln 2 - ln c + z - z**2 / 2 + z**3 (1/3 - z/4 + .. + z**8/11). The
    large summands are added exactly; `low` is the sum of the small summands and of what each exact addition leaves.

    Error: near y = 1, c = 1 and k = 0, so z is exact, |z| <= 2**-9, and `low` is below z**3: rounding `low` costs less
    than 2**-67 of the result. For other y the result is at least 2**-9, and `low` is below 2**-25 + 2**-52 of the
    result: the ten or so roundings of `low` cost less than 2**-74.5, which is 2**-65.5 of the result.
    """
    cdef int k, i
    cdef double m = frexp(y, &k), c, top, z, z_rest, square, square_rest, cubic, high, low, part
    if m < SQRT_HALF:
        m, k = 2 * m, k - 1
    rest = ldexp(rest, -k)
    cdef int cell = <int>(m * CELLS + 0.5)
    c = FACTOR[cell]
    top = split(m)
    z = two_sum(c * top - 1, c * (m - top), &z_rest)  # both products and the difference are exact
    z = two_sum(z, z_rest + c * rest, &z_rest)
    top = split(z)
    square = z * z
    square_rest = ((top * top - square) + 2 * top * (z - top)) + (z - top) * (z - top)
    cubic = SERIES[8]
    for i in range(7, -1, -1):
        cubic = cubic * z + SERIES[i]
    high = two_sum(k * LN2_HIGH, LOG_HIGH[cell], &low)
    high = two_sum(high, z, &part)
    low += part
    high = two_sum(high, -0.5 * square, &part)
    low += part
    low += k * LN2_LOW + LOG_LOW[cell] + (z_rest - (0.5 * square_rest + z * z_rest)) + square * z * cubic
    high = two_sum(high, low, &low)
    part = ERROR * fabs(high)
    doubt[0] = (high + (low + part)) - (high + (low - part))
    return high


cdef double log_rounded(double y) except? -1 nogil:
    """ln(y) of a positive, finite double, correctly rounded. Raises ValueError for any other value."""
    cdef double doubt, value
    if y == 1:
        return 0.0
    if not 0 < y < INFINITY:
        with gil:
            raise ValueError(f"{y}: the logarithm takes a number above 0")
    value = fast_log(y, 0.0, &doubt)
    if doubt != 0:
        with gil:
            n, d = (<object>y).as_integer_ratio()
            value = exact_log(n, d)
    return value


cdef double log1p_rounded(double x) except? -1 nogil:
    """ln(1 + x) of a finite double of at least 0, correctly rounded. Raises ValueError for any other value."""
    cdef double doubt = 1.0, value = 0.0, rest, y
    if x == 0:
        return 0.0
    if not 0 <= x < INFINITY:
        with gil:
            raise ValueError(f"{x}: the logarithm takes a number of at least 0")
    if x > TINY:
        y = two_sum(1.0, x, &rest)
        value = fast_log(y, rest, &doubt)
    if doubt != 0:
        with gil:
            n, d = (<object>x).as_integer_ratio()
            value = exact_log(n + d, d)
    return value


cdef double split(double a) noexcept nogil:
    """The upper 26 bits of `a`; the rest, `a` minus these, has 26 bits too (Veltkamp's splitting)."""
    cdef double t = SPLITTER * a
    return t - (t - a)


cdef double two_sum(double a, double b, double *rest) noexcept nogil:
    """The sum a + b, rounded; `rest` is set to the exact sum minus the rounded one (Knuth's two-sum)."""
    cdef double s = a + b, t = s - a
    rest[0] = (a - (s - t)) + (b - t)
    return s


def fill_log(const double[::1] values, double[::1] out):
    """Fill `out` with ln(values), correctly rounded. It takes 5 to 100 ns a value.

    values: float64 (n,), positive and finite; out: float64 (n,), which may be the same array.

    Raises:
        ValueError: a value that is not positive and finite.
    """
    with nogil:
        fill(log_rounded, values, out)


def fill_log1p(const double[::1] values, double[::1] out):
    """Fill `out` with ln(1 + values), correctly rounded.

    values: float64 (n,), finite and at least 0; out: float64 (n,), which may be the same array.

    Raises:
        ValueError: a value that is negative or not finite.
    """
    with nogil:
        fill(log1p_rounded, values, out)


cdef int fill(Logarithm logarithm, const double[::1] values, double[::1] out) except -1 nogil:
    """Fill `out` with the logarithm of each of `values`.

    A corpus has only a few thousand distinct ratios, so the latest arguments are kept with their logarithms in a table
    that has one slot for each hash of KEPT_BITS bits.
    """
    cdef double[KEPT] known, result
    cdef double value
    cdef uint64_t slot
    cdef Py_ssize_t i
    for i in range(KEPT):
        known[i] = NAN  # NaN equals no value, so this slot is empty
    for i in range(values.shape[0]):
        value = values[i]
        memcpy(&slot, &value, sizeof(value))
        slot = (slot * <uint64_t>0x9E3779B97F4A7C15ULL) >> (64 - KEPT_BITS)
        if known[slot] != value:
            result[slot] = logarithm(value)
            known[slot] = value
        out[i] = result[slot]
    return 0


def _fill_tables():
    """Set the constants of `fast_log`, which takes 2 ms. Each logarithm is the sum of two doubles, _HIGH and _LOW."""
    global LN2_HIGH, LN2_LOW
    cdef int cell
    unit = 1 << FIRST_BITS
    ln2 = 2 * _atanh(1, 3, FIRST_BITS)
    LN2_HIGH = (ln2 >> FIRST_BITS - 40) / 2**40  # 40 bits, so that k * LN2_HIGH is exact
    LN2_LOW = (ln2 - (ln2 >> FIRST_BITS - 40 << FIRST_BITS - 40)) / unit
    for cell in range(int(SQRT_HALF * CELLS), int(2 * SQRT_HALF * CELLS) + 2):
        numerator = (2 * CELLS * CELLS + cell // 2) // cell  # of the factor c, whose denominator is 512
        FACTOR[cell] = numerator / (2.0 * CELLS)
        value = -2 * _atanh(numerator - 2 * CELLS, numerator + 2 * CELLS, FIRST_BITS)
        LOG_HIGH[cell] = value / unit
        LOG_LOW[cell] = (value - int((<object>LOG_HIGH[cell]) * unit)) / unit
    for cell in range(9):
        SERIES[cell] = (-1) ** cell / (cell + 3.0)


_fill_tables()
