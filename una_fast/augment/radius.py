"""How far a window reaches: a number of ranks, or a share of the vocabulary."""

from __future__ import annotations

import math
import re
from numbers import Real

from una_fast.errors import InputError

PAPER_RADIUS = 4000  # of 451,691 terms, 0.9 %
TERMS_PER_RANK = 100  # the default radius is one rank for so many terms, PAPER_RADIUS at most

WHAT_TO_GIVE = 'give a number of ranks (the paper takes 4000), a share of the vocabulary such as "1%", or None'


def resolve_radius(radius: float | str | None, n_terms: int) -> int:
    """`radius` as a number of ranks from 1 to `n_terms` (V).

    None is the paper's share: 1 % of V, and 4,000 from V = 400,000 on (the paper has 4,000 of 451,691 terms). "1%", or
    another percentage above 0 and up to 100, is that share of V, rounded down, and at least 1.

    Raises:
        InputError: any other `radius`.
    """
    if radius is None:
        return min(PAPER_RADIUS, max(1, n_terms // TERMS_PER_RANK))
    if isinstance(radius, str):
        share = re.fullmatch(r"\s*(\d+|\d*\.\d+)\s*%\s*", radius, re.ASCII)
        percent = float(share[1]) if share else math.nan
        if not 0 < percent <= 100:
            raise InputError(f"radius={radius!r}: a share must be a percentage above 0 and up to 100: {WHAT_TO_GIVE}")
        return max(1, math.floor(n_terms * percent / 100))
    if not is_number(radius) or not (radius >= 1 and radius % 1 == 0):  # infinity and NaN fail too
        raise InputError(f"radius={radius!r}: a number of ranks must be an integer of at least 1: {WHAT_TO_GIVE}")
    return int(min(radius, n_terms))  # ranks must fit an int64


def is_number(value: object) -> bool:
    """Whether `value` is one real number; True and False are none."""
    return isinstance(value, Real) and not isinstance(value, bool)
