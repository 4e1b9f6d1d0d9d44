"""Logarithms are correctly rounded: compared with 60 decimal digits, on ratios that include the hardest ones found."""

import math
from decimal import Context, Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support import reference
from una_fast._kernels import logarithm

POSITIVE = st.floats(min_value=5e-324, allow_infinity=False)
RATIO = st.tuples(st.integers(1, 2**40), st.integers(1, 2**40)).map(lambda pair: min(pair) / max(pair))


def log(x: float) -> float:
    return filled([x])[0]


def log1p(x: float) -> float:
    return filled([x], plus=1)[0]


def filled(values, plus: int = 0) -> list[float]:
    out = np.empty(len(values))
    logarithm.fill_log(np.array(values, dtype=np.float64), out, plus)
    return out.tolist()


@given(POSITIVE | RATIO)
def test_log_is_correctly_rounded(x: float) -> None:
    assert log(x) == reference.ln(x)


@given(POSITIVE | RATIO)
def test_log1p_is_correctly_rounded(x: float) -> None:
    assert log1p(x) == reference.ln1p(x)


def test_ratios_of_a_corpus() -> None:
    """Every n_t / n of short documents, and 4,000 N_t / N; here numpy's logarithms differ between processors."""
    ratios = [count / length for length in range(1, 150) for count in range(1, min(length, 8) + 1)]
    assert filled(ratios, plus=1) == [reference.ln1p(ratio) for ratio in ratios]
    shares = [n / 999_983 for n in range(1, 4_000)]
    assert filled(shares) == [reference.ln(share) for share in shares]


# of 3,000,000 ratios, those whose logarithm is nearest to the middle of two doubles: the distance is below 2**-19 of
# half a unit in the last place
HARD = [41965 / 2753536, 946622 / 6692389, 188483 / 6815137, 823319 / 8743492, 369792 / 3127903]


@pytest.mark.parametrize("ratio", HARD)
def test_hard_ratios(ratio: float) -> None:
    context = Context(prec=60)
    exact = context.ln(Decimal(ratio))
    nearest = reference.ln(ratio)
    half = Decimal(math.ulp(nearest)) / 2
    assert abs(abs(exact - Decimal(nearest)) - half) < half / 2**18, "the ratio is not a hard one"
    assert log(ratio) == nearest


def test_the_exact_path_agrees() -> None:
    for numerator, denominator in ((1, 3), (2, 3), (10**9 + 7, 3), (1, 2**40), (2**60 + 1, 2**60), (7, 7)):
        exact = Context(prec=60).ln(Context(prec=60).divide(numerator, denominator))
        assert logarithm.exact_log(numerator, denominator) == float(exact)


def test_the_ends() -> None:
    assert math.copysign(1, log(1.0)) == 1
    assert log(1.0) == log1p(0.0) == 0.0
    assert log1p(5e-324) == 5e-324
    for kernel, wrong in ((log, 0.0), (log, -1.0), (log, math.inf), (log, math.nan), (log1p, -0.5), (log1p, math.nan)):
        with pytest.raises(ValueError, match="a number"):
            kernel(wrong)
