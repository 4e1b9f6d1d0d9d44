"""Natural logarithms that are correctly rounded: the same bits on every processor.

Those of numpy and of C libraries differ in the last bit between instruction sets (1,429 of 400,000 values between
AVX-512 and AVX2), and the order of terms hangs on them.

A value is first computed to 2**-64 of itself (`fast_log`). Where that does not decide how it rounds, once in about
2,000 values, integers of any length do (`exact_log`). Only +, -, * of doubles are used, in a fixed order: IEEE 754
says what each gives, if the compiler neither fuses nor reorders them (setup.py).
"""

import functools

from libc.math cimport INFINITY, NAN, fabs, frexp, ldexp
from libc.stdint cimport uint64_t
from libc.string cimport memcpy

FIRST_BITS = 160  # length of the integers that `exact_log` tries first

cdef enum:
    CELLS = 256  # of the tables, for each unit of the reduced argument
    KEPT_BITS = 11
    KEPT = 1 << KEPT_BITS  # logarithms that `fill` keeps: 32 KB

ctypedef double (*Logarithm)(double) except? -1 nogil

cdef double SPLITTER = 134217729.0  # 2**27 + 1, Veltkamp's
cdef double SQRT_HALF = 0.7071067811865476
cdef double ERROR = 5.421010862427522e-20  # 2**-64
cdef double TINY = 1e-90  # below it the square of an argument could lose bits to underflow

cdef double[CELLS * 2] FACTOR, LOG_HIGH, LOG_LOW
cdef double LN2_HIGH, LN2_LOW
cdef double[9] SERIES  # 1/3, -1/4, 1/5 .. 1/11


def exact_log(numerator: int, denominator: int) -> float:
    """The double nearest to ln(numerator / denominator), both positive, by integers alone; 10 us.

    A logarithm of a rational number other than 1 is irrational, so some length of the integers always decides.
    """
    bits = FIRST_BITS
    if numerator == denominator:
        return 0.0
    shift = numerator.bit_length() - denominator.bit_length()
    n, d = numerator << max(-shift, 0), denominator << max(shift, 0)  # n / d lies between 1/2 and 2
    while True:
        value = 2 * (shift * _atanh(1, 3, bits) + _atanh(n - d, n + d, bits))
        error = 8 * bits * (abs(shift) + 1)  # a term of _atanh is wrong by less than 3 units, and there are < bits
        low, high = (value - error) / (1 << bits), (value + error) / (1 << bits)  # Python rounds these correctly
        if low == high:
            return low
        bits *= 2


@functools.lru_cache(maxsize=4096)
def _atanh(n: int, d: int, bits: int) -> int:
    """atanh(n / d), |n / d| <= 1/3, in units of 2**-bits: ln(x) = 2 atanh((x - 1) / (x + 1))."""
    power = (abs(n) << bits) // d
    square = power * power >> bits
    total, odd = power, 1
    while power:
        power, odd = power * square >> bits, odd + 2
        total += power // odd
    return total if n > 0 else -total


cdef double fast_log(double y, double rest, double *doubt) noexcept nogil:
    """ln(y + rest), |rest| <= ulp(y) / 2, with relative error 2**-64; `doubt` is 0 if that decides the rounding.

    y = 2**k m, m in [sqrt(1/2), sqrt(2)); a factor c of at most 10 bits makes z = c m - 1 small, |z| < 2**-7.8, and
    ln y = k ln 2 - ln c + z - z**2 / 2 + z**3 (1/3 - z/4 + .. + z**8/11). Large parts are summed exactly; `low` gathers
    what is left. Near 1, where c = 1 and k = 0, z is exact, |z| <= 2**-9, and `low` is below z**3: rounding it costs
    less than 2**-67 of the result. Elsewhere the result is 2**-9 at least, and `low` below 2**-25 + 2**-52 of the
    result: its ten or so roundings cost less than 2**-74.5, which is 2**-65.5 of the result.
    """
    cdef int k, i
    cdef double m = frexp(y, &k), c, top, z, z_rest, square, square_rest, cubic, high, low, part
    if m < SQRT_HALF:
        m, k = 2 * m, k - 1
    rest = ldexp(rest, -k)
    cdef int cell = <int>(m * CELLS + 0.5)
    c = FACTOR[cell]
    top = split(m)
    z = two_sum(c * top - 1, c * (m - top), &z_rest)  # both products are exact, and so is the difference
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
    """ln(y) of a positive double, correctly rounded."""
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
    """ln(1 + x) of a double of at least 0, correctly rounded."""
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
    """The upper 26 bits of `a`; what is left has 26 (Veltkamp)."""
    cdef double t = SPLITTER * a
    return t - (t - a)


cdef double two_sum(double a, double b, double *rest) noexcept nogil:
    """a + b rounded, and in `rest` exactly what the rounding left out (Knuth)."""
    cdef double s = a + b, t = s - a
    rest[0] = (a - (s - t)) + (b - t)
    return s


def fill_log(const double[::1] values, double[::1] out):
    """out = ln(values), correctly rounded. values: positive, (n,); out may be the same array. 5 to 100 ns a value."""
    with nogil:
        fill(log_rounded, values, out)


def fill_log1p(const double[::1] values, double[::1] out):
    """out = ln(1 + values), correctly rounded. values: at least 0, (n,); out may be the same array."""
    with nogil:
        fill(log1p_rounded, values, out)


cdef int fill(Logarithm logarithm, const double[::1] values, double[::1] out) except -1 nogil:
    """Fill `out`. A corpus has a few thousand distinct ratios, so the results of the latest ones are kept."""
    cdef double[KEPT] known, result
    cdef double value
    cdef uint64_t slot
    cdef Py_ssize_t i
    for i in range(KEPT):
        known[i] = NAN  # equal to nothing
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
    """The constants of `fast_log`, each as a double and what that leaves out; 2 ms."""
    global LN2_HIGH, LN2_LOW
    cdef int cell
    unit = 1 << FIRST_BITS
    ln2 = 2 * _atanh(1, 3, FIRST_BITS)
    LN2_HIGH = (ln2 >> FIRST_BITS - 40) / 2**40  # 40 bits: k LN2_HIGH is exact
    LN2_LOW = (ln2 - (ln2 >> FIRST_BITS - 40 << FIRST_BITS - 40)) / unit
    for cell in range(int(SQRT_HALF * CELLS), int(2 * SQRT_HALF * CELLS) + 2):
        numerator = (2 * CELLS * CELLS + cell // 2) // cell  # of c, whose denominator is 512
        FACTOR[cell] = numerator / (2.0 * CELLS)
        value = -2 * _atanh(numerator - 2 * CELLS, numerator + 2 * CELLS, FIRST_BITS)
        LOG_HIGH[cell] = value / unit
        LOG_LOW[cell] = (value - int((<object>LOG_HIGH[cell]) * unit)) / unit
    for cell in range(9):
        SERIES[cell] = (-1) ** cell / (cell + 3.0)


_fill_tables()
