"""Reads numbers in digits, and finds numbers that are close to one, in the same script and notation."""

from libc.stdint cimport uint32_t
from cpython.unicode cimport Py_UNICODE_TODECIMAL, PyUnicode_FromKindAndData

ENDINGS = {1: "st", 2: "nd", 3: "rd"}  # of ordinals; all others end in "th"
cdef enum:
    NEAR_YEARS = 9  # for this and the next, see `near_numbers`
    SMALL = 20
    FEW = 5
    MANY = 50
    WINDOW = 24  # characters before a number that may contain the start of its range


cdef Py_ssize_t digits_at(Words words, Py_ssize_t p, Py_ssize_t most) noexcept:
    """Return how many digits are at index p, but at most `most`."""
    cdef Py_ssize_t n = 0
    while n < most and words.is_digit(p + n):
        n += 1
    return n


cdef int64_t value_of(Words words, Py_ssize_t p, Py_ssize_t n) noexcept:
    """Return the value of the n <= LONGEST digits at index p."""
    cdef int64_t value = 0
    cdef Py_ssize_t k
    for k in range(p, p + n):
        value = 10 * value + Py_UNICODE_TODECIMAL(words.at(k))
    return value


cdef int64_t power_of_ten(Py_ssize_t n) noexcept:
    cdef int64_t power = 1
    for _ in range(n):
        power *= 10
    return power


cdef bint ends_word(Words words, Py_ssize_t p) noexcept:
    """Return whether no letter, digit or underscore is at index p."""
    cdef Py_UCS4 c = words.at(p)
    return not (c.isalnum() or c == c'_')


cdef bint is_dash(Py_UCS4 c) noexcept:
    return c == c'-' or 0x2010 <= c <= 0x2013 or c == c'/'


cdef bint is_ordinal(Words words, Py_ssize_t p) noexcept:
    """Return whether "st", "nd", "rd" or "th", in any case, is at index p."""
    cdef Py_UCS4 first = words.at(p), second = words.at(p + 1)
    return (
        (first in u"tT" and second in u"hH") or (first in u"sS" and second in u"tT")
        or (first in u"nNrR" and second in u"dD")
    )


cdef bint is_decade(Words words, Py_ssize_t p) noexcept:
    """Return whether a decade is at index p: "20s", "1990s", "1990's"."""
    cdef Py_ssize_t n = digits_at(words, p, 5)
    if not (n == 2 or n == 4) or words.at(p + n - 1) != c'0':
        return False
    p += n
    p += words.at(p) == c"'" or words.at(p) == 0x2019
    return words.at(p) == c's' and ends_word(words, p + 1)


cdef bint is_hour(Words words, Py_ssize_t p) noexcept:
    """Return whether "am", "a.m" or the like, perhaps after a space, is at index p."""
    p += words.is_space(p)
    if not (words.at(p) in u"apAP"):
        return False
    p += 1
    p += words.at(p) == c'.'
    return words.at(p) in u"mM" and ends_word(words, p + 1)


cdef bint is_percent(Words words, Py_ssize_t p) noexcept:
    """Return whether "%", "percent" or "per cent", perhaps after a space, is at index p."""
    cdef Py_ssize_t k
    if words.at(p) == c'%':
        return True
    p += words.is_space(p)
    for k in range(7):
        p += k == 3 and words.is_space(p)
        if words.at(p) != <Py_UCS4>(<const char*>b"percent")[k]:
            return False
        p += 1
    return True


cdef bint has_minutes(Words words, Py_ssize_t p) noexcept:
    """Return whether minutes, such as ":30", are at index p."""
    return words.at(p) == c':' and digits_at(words, p + 1, 3) == 2


cdef bint is_always(Words words, Py_ssize_t p) noexcept:
    """Return whether "24/7" is at index p."""
    return words.at(p) == c'2' and words.at(p + 1) == c'4' and words.at(p + 2) == c'/' and words.at(p + 3) == c'7'


cdef Py_ssize_t date_end(Words words, Py_ssize_t p) noexcept:
    """Return where the date in digits that starts at index p ends, or p if none does.

    A date is 24/12, 24/12/2025, 2025/12/24, 2025-12-24 or 24.12.25, with one or two digits where they may be.
    """
    cdef Py_ssize_t first = digits_at(words, p, 5), second, third, at = p + first + 1
    cdef Py_UCS4 mark = words.at(at - 1)
    if not 0 < first < 5 or not (mark == c'/' or mark == c'-' or mark == c'.'):
        return p
    if mark == c'/' and first < 3 and not words.is_digit(p - 1):
        at += digits_at(words, at, 4)
        if at == p + first + 1:
            return p
        third = digits_at(words, at + 1, 4) if words.at(at) == c'/' else 0
        return at + 1 + third if third else at
    second = digits_at(words, at, 3)
    if not 0 < second < 3 or words.at(at + second) != mark:
        return p
    at += second + 1
    third = digits_at(words, at, 2 if mark == c'/' else 4)
    if (mark == c'/' and first != 4) or (mark == c'.' and first > 2) or third < (2 if mark == c'.' else 1):
        return p
    return at + third


cdef bint is_address(Words words, Py_ssize_t p, Py_ssize_t stop) noexcept:
    """Return whether a mark of e-mail or web addresses is in ``text[p:stop]``."""
    cdef Py_ssize_t k
    cdef Py_UCS4 c
    for k in range(p, stop):
        c = words.at(k)
        if c == c'@':
            return True
        if c == c':' and k + 2 < stop and words.at(k + 1) == c'/' and words.at(k + 2) == c'/':
            return True
        if k >= p + 3 and c == c'.' and words.at(k - 1) == words.at(k - 2) == words.at(k - 3) == c'w':
            return True
    return False


cdef Limits range_limits(Words words, Py_ssize_t begin, Py_ssize_t end, int64_t n, int64_t least,
                         int64_t most) noexcept:
    """Return limits that keep the order of a range, such as "10-12" or "from 10 to 12".

    The number keeps its value if the range has no room, as in the season "2015-16". n: the value of
    ``text[begin:end]``. least, most: limits that hold anyway.
    """
    cdef Py_ssize_t p, size
    cdef int64_t other, power
    p = range_stop(words, end, &size)
    if size:
        power, other = power_of_ten(size), value_of(words, p, size)
        if (n + 1) % power == other:
            return Limits(0, 0, True)
        if size < end - begin:
            other += n // power * power  # 2009 for "09" if the range starts with "2008"
        if n < other:
            most = other - 1
        else:
            least = max(least, other + 1)
    p = range_start(words, begin, &size)
    if size:
        power = power_of_ten(end - begin)
        other = value_of(words, p, size) % power
        if (other + 1) % power == n:
            return Limits(0, 0, True)
        if n > other:
            least = max(least, other + 1)
        else:
            most = other - 1
        if size > end - begin and most == ANY:  # as in "2008-09"
            most = power - 1
    return Limits(least, most, False)


cdef Py_ssize_t range_stop(Words words, Py_ssize_t p, Py_ssize_t* size) noexcept:
    """Return where the number starts to which a range leads whose mark is at index p. size: its digits, 0 if none."""
    cdef Py_ssize_t k
    cdef Py_UCS4 c
    size[0] = 0
    p += words.is_space(p)
    if is_dash(words.at(p)):
        p += 1
    elif words.at(p) == c't' and words.at(p + 1) == c'o' and words.is_space(p + 2):
        p += 3
    else:
        return p
    p += words.is_space(p)
    for k in reversed(range(1, digits_at(words, p, LONGEST) + 1)):
        c = words.at(p + k)  # a digit must not follow, not even after one of these marks
        if not (words.is_digit(p + k) or c in u".,:/") or not words.is_digit(p + k + 1):
            size[0] = k
            break
    return p


cdef Py_ssize_t range_start(Words words, Py_ssize_t begin, Py_ssize_t* size) noexcept:
    """Return where the number starts from which a range leads to index `begin`. size: its digits, 0 if none."""
    cdef Py_ssize_t p = begin - 1, stop, least = max(0, begin - WINDOW)
    size[0] = 0
    p -= p >= least and words.is_space(p)
    if p >= least and is_dash(words.at(p)):
        p -= 1
    elif p > least and words.at(p) == c'o' and words.at(p - 1) == c't' and (p - 1 == least or ends_word(words, p - 2)):
        p -= 2
    else:
        return begin
    p -= p >= least and words.is_space(p)
    stop = p + 1
    while p >= least and words.is_digit(p):
        p -= 1
    if stop - p - 1 <= LONGEST and (p < least or not (words.at(p) in u".,:/")):
        size[0] = stop - p - 1
    return p + 1


cdef tuple near_numbers(str number, int64_t least, int64_t most):
    """Return numbers close to `number`, in the same script and notation: "1,000" gives "1,100" and others.

    A year changes by at most NEAR_YEARS. Any other number changes by a multiple of a step. For numbers up to SMALL, the
    step is 1. For larger numbers, it is the largest power of ten that divides the number and is smaller than it, such
    as 100 for 1,000. The change is at most ``max(FEW, min(MANY, number / step / 2))`` steps up or down.

    number: decimal digits, with at most one "." or ",", or with one before every three digits.
    least: the lowest useful result, such as 1 for an hour; for "12.5", of the digits without the separator.
    most: the highest useful result, or ANY.
    """
    cdef int64_t n = 0, unit = 1, steps = NEAR_YEARS, value, lowest, highest, below
    cdef Py_ssize_t size = len(number), n_digits = 0, tail = 0, k
    cdef Py_UCS4 c
    for k in range(size):
        c, tail = number[k], tail + 1
        if not c.isdecimal():
            tail = 0
        else:
            n_digits += 1
            if n_digits > LONGEST:
                return ()
            n = 10 * n + Py_UNICODE_TODECIMAL(c)
    if n_digits == size:
        tail = 0
    if tail or not 1800 <= n < 2100:
        while n > SMALL and n % (10 * unit) == 0 and n > 10 * unit:
            unit *= 10
        steps = max(FEW, min(n // unit // 2, MANY))
    if tail == 3:
        least = min(n, power_of_ten(n_digits - 1))  # a value near "1,000" has at least as many digits
    highest = n + steps * unit if most == ANY else min(n + steps * unit, max(n, most))
    below = n - least
    below = below // unit if below >= 0 else -((unit - 1 - below) // unit)  # rounded down
    lowest = max(n - steps * unit, n - below * unit)
    starts_with_zero = n_digits > 1 and Py_UNICODE_TODECIMAL(number[0]) == 0
    values = [*range(lowest, n, unit), *range(max(n + unit, lowest), highest + 1, unit)]
    # "0.5" has a digit before its mark
    return tuple([written_like(value, number, n_digits if starts_with_zero else tail + 1) for value in values])


cdef str written_like(int64_t value, str number, Py_ssize_t width):
    """Write a value like `number`, with at least `width` digits: 1100 becomes "1,100" if `number` is "1,000"."""
    cdef uint32_t[2 * LONGEST + 8] out
    cdef Py_ssize_t k = 2 * LONGEST + 8, end = k, p = len(number) - 1
    cdef uint32_t zero = <uint32_t>number[0] - Py_UNICODE_TODECIMAL(number[0])
    while width > 0 or value > 0:
        k -= 1
        if p >= 0 and not number[p].isdecimal():
            out[k] = number[p]
        else:
            out[k] = <uint32_t>(zero + value % 10)
            value //= 10
            width -= 1
        p -= 1
    return PyUnicode_FromKindAndData(4, &out[k], end - k)


def ordinal(str number, str ending):
    """Turn "1" into "1st", or into "1ST" if `ending`, of another ordinal, is in upper case."""
    cdef Py_ssize_t size = len(number)
    last = number[max(0, size - 2) :]
    n = int(last if last.isdecimal() else number[size - 1])
    text = f"{number}{'th' if 10 < n < 14 else ENDINGS.get(n % 10, 'th')}"
    return text.upper() if ending.isupper() else text
