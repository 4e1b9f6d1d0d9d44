"""The plain reference of `near_numbers`: numbers close to another one, in the same script and notation."""

from __future__ import annotations

from functools import lru_cache

ENDINGS = {1: "st", 2: "nd", 3: "rd"}  # of ordinals; all others end in "th"
YEARS = range(1800, 2100)
NEAR_YEARS, SMALL, FEW, MANY = 9, 20, 5, 50  # see `near_numbers`
LONGEST = 15  # digits; longer numbers are not changed


@lru_cache(2**14)
def near_numbers(number: str, least: int = 1, most: int | None = None) -> tuple[str, ...]:
    """Return numbers close to `number`, in the same script and notation: "1,000" gives "1,100" and others.

    A year changes by at most NEAR_YEARS. Any other number changes by a multiple of a step. For numbers up to SMALL, the
    step is 1. For larger numbers, it is the largest power of ten that divides the number and is smaller than it, such
    as 100 for 1,000. The change is at most ``max(FEW, min(MANY, number / step / 2))`` steps up or down.

    Args:
        number: decimal digits, with at most one "." or ",", or with one before every three digits.
        least: the lowest useful result, such as 1 for an hour; for "12.5", of the digits without the separator.
        most: the highest useful result.
    """
    digits = "".join(filter(str.isdecimal, number))
    if len(digits) > LONGEST:
        return ()
    n, zero, is_plain, unit = int(digits), ord(digits[0]) - int(digits[0]), digits == number, 1
    steps = NEAR_YEARS
    if not (is_plain and n in YEARS):
        while n > SMALL and n % (10 * unit) == 0 and n > 10 * unit:
            unit *= 10
        steps = max(FEW, min(n // unit // 2, MANY))
    tail = 0 if is_plain else len(number) - max(number.rfind("."), number.rfind(",")) - 1
    if tail == 3:
        least = min(n, 10 ** (len(digits) - 1))  # a value near "1,000" has at least as many digits
    highest = n + steps * unit if most is None else min(n + steps * unit, max(n, most))
    lowest = max(n - steps * unit, n - (n - least) // unit * unit)
    values = [*range(lowest, n, unit), *range(max(n + unit, lowest), highest + 1, unit)]
    if is_plain and number.isascii() and digits[0] != "0":
        return tuple(map(str, values))
    width = len(digits) if len(digits) > 1 and digits[0] == chr(zero) else tail + 1  # "0.5" has a digit before its mark
    return tuple(_written_like(f"{value:0{width}}", number, zero) for value in values)


def _written_like(digits: str, number: str, zero: int) -> str:
    """Write the ASCII `digits` like `number`: "1100" becomes "1,100" if `number` is "1,000".

    zero: the code point of the digit 0 in the script of `number`.
    """
    out = [chr(zero + int(digit)) for digit in digits]
    for place, character in enumerate(reversed(number)):
        if not character.isdecimal():
            out.insert(len(out) - place, character)
    return "".join(out)


def ordinal(number: str, ending: str) -> str:
    """Turn "1" into "1st", or into "1ST" if `ending`, of another ordinal, is in upper case."""
    n = int(number[-2:]) if number[-2:].isdecimal() else int(number[-1])
    text = f"{number}{'th' if 10 < n < 14 else ENDINGS.get(n % 10, 'th')}"
    return text.upper() if ending.isupper() else text
