"""How far a window reaches: a number of ranks, or a share of the vocabulary."""

from __future__ import annotations

import math
import re
from numbers import Real
from typing import TypeGuard

from una_fast.errors import InputError

PAPER_RADIUS = 4000  # of 451,691 terms, 0.9%
TERMS_PER_RANK = 100  # the default radius is one rank per so many terms, at most PAPER_RADIUS


def resolve_radius(radius: float | str | None, n_terms: int) -> int:
    """Return `radius` as a number of ranks from 1 to `n_terms` (V).

    None is 1% of V, at most 4,000 (the paper has 4,000 of 451,691 terms). "1%", or another percentage above 0 and up to
    100, is that share of V, rounded down, and at least 1.

    Raises:
        InputError: any other `radius`.
    """
    if radius is None:
        return min(PAPER_RADIUS, max(1, n_terms // TERMS_PER_RANK))
    share = re.fullmatch(r"\s*(\d+|\d*\.\d+)\s*%\s*", radius, re.ASCII) if isinstance(radius, str) else None
    if share and 0 < float(share[1]) <= 100:
        return max(1, math.floor(n_terms * float(share[1]) / 100))
    if is_number(radius) and radius >= 1 and radius % 1 == 0:  # not for infinity and NaN
        return int(min(radius, n_terms))  # ranks must fit an int64
    raise InputError(
        f"radius={radius!r}: must be an integer of at least 1 (the paper takes 4000 ranks), a share of the vocabulary "
        'above 0% and up to 100%, such as "1%", or None'
    )


def is_number(value: object) -> TypeGuard[float]:
    """Return whether `value` is one real number, not True or False."""
    return isinstance(value, Real) and not isinstance(value, bool)
