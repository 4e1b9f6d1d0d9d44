"""How far a window reaches: ranks, a share of the vocabulary, or a distance in score."""

from __future__ import annotations

import math
import re
import warnings
from numbers import Real
from typing import TYPE_CHECKING

from una_fast.errors import InputError, InputWarning

if TYPE_CHECKING:
    import numpy as np

PAPER_RADIUS = 4000  # of 451,691 terms, 0.9 %
TERMS_PER_RANK = 100  # the default radius is one rank for so many terms, PAPER_RADIUS at most
WIDE = 10  # a window of more than one term in WIDE reaches words of unlike importance

WHAT_TO_GIVE = 'give a number of ranks (the paper takes 4000), a share of the vocabulary such as "1%", or None'


def resolve_radius(radius: int | float | str | None, n_terms: int, window: str = "rank") -> int | float:
    """`radius` as a number: an int of ranks from 1 to `n_terms` (V), or with window="score" a distance, a float.

    None is the paper's share: 1 % of V, and 4,000 from V = 400,000 on (the paper has 4,000 of 451,691 terms). "1%", or
    another percentage above 0 and up to 100, is that share of V, rounded down, and at least 1.

    Raises:
        InputError: any other `radius`.

    """
    if window == "score":
        if not is_number(radius) or not 0 < radius < math.inf:  # type: ignore[operator]
            raise InputError(f"radius={radius!r}: a distance in score must be finite and above 0, such as 0.5")
        return float(radius)  # type: ignore[arg-type]
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


def score_windows(scores: np.ndarray, distance: float) -> tuple[np.ndarray, np.ndarray]:
    """The window of each term: the terms whose score differs by at most `distance`, and its two next ranks.

    Without the next ranks, the one above and the one below, a term far from all others would have no candidate.

    Args:
        scores: float64 (V,), never increasing.
        distance: in the unit of tf-idf.

    Returns:
        start, stop: int32 (V,); the candidates of term i are the ids ``start[i] .. stop[i] - 1``, i among them.

    """
    import numpy as np  # here, because --help of training checks no window, and should not wait for it

    from una_fast._kernels import csr
    from una_fast.arrays import ID

    start, stop = np.empty((2, len(scores)), dtype=ID)
    csr.score_windows(scores, distance, start, stop)
    ids = np.arange(len(scores), dtype=ID)
    return np.minimum(start, np.maximum(ids - 1, 0)), np.maximum(stop, np.minimum(ids + 2, len(scores)))


def warn_if_wide(radius: object, widest: int, n_terms: int) -> None:
    """Warn if a window holds more than a tenth of the vocabulary. widest: the number of terms of the widest window."""
    if widest * WIDE > n_terms:
        warnings.warn(
            f"radius={radius!r}: a window holds up to {widest:,} of the {n_terms:,} terms, so replacements need not be "
            'of like importance: give radius="1%", or give no radius',
            InputWarning,
            stacklevel=4,
        )
