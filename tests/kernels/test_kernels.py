"""Compare every kernel with its plain reference on random corpora, and logarithms with 60 decimal digits."""

import math
from decimal import Context, Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support import checks, reference
from support.checks import ragged, ranked, sampling_config, score
from una_fast._kernels import logarithm
from una_fast._kernels.draws.probability import replacement_probabilities

ROWS = st.lists(st.lists(st.integers(0, 30), max_size=12), min_size=1, max_size=30)
SENTENCES = ROWS.filter(lambda rows: len({term for row in rows for term in row}) > 1)
CHOICES = {
    "beta": [0.0, 0.3, 0.5, 1.0], "variant": ["paper", "released"], "select": ["tfidf", "random"],
    "replace": ["tfidf", "random"], "every": [None, 2, 5],
}  # fmt: skip
SETTINGS = st.fixed_dictionaries({name: st.sampled_from(values) for name, values in CHOICES.items()})
RADII = st.sampled_from([1, 3, 50])
PIECES = st.lists(st.lists(st.integers(1, 99), max_size=10), min_size=5, max_size=5)
NUMBERS = st.lists(st.integers(0, 4), max_size=9)
NUMBERS_OF_ROWS = st.lists(NUMBERS, max_size=6)
ID_TYPES = st.sampled_from([np.uint16, np.int32])
TEXT = st.lists(st.lists(st.one_of(st.integers(0, 30), st.sampled_from("abc")), max_size=8))
CHECKS = {  # the number of examples for each check, and the strategies of its arguments
    checks.check_scores: (100, SENTENCES),
    checks.check_relabel: (100, st.lists(st.integers(0, 20), max_size=50), st.permutations(range(21))),
    checks.check_probabilities: (200, SENTENCES, SETTINGS),
    checks.check_negatives: (300, SENTENCES, SETTINGS, RADII, st.integers(0, 2**64 - 1), st.integers(0, 3)),
    checks.check_unseen: (200, SENTENCES, TEXT, SETTINGS, RADII),
    checks.check_token_writes: (100, PIECES, st.none() | PIECES, NUMBERS_OF_ROWS, st.integers(3, 20), st.booleans()),
    checks.check_padded_rows: (100, PIECES, NUMBERS, st.integers(3, 20), ID_TYPES, st.booleans()),
}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_a_kernel_equals_its_reference(check):
    n_examples, *arguments = CHECKS[check]
    settings(max_examples=n_examples)(given(*arguments)(check))()


def test_probabilities_of_a_long_document_with_few_terms():
    row = np.random.default_rng(0).integers(0, 50, 20_000).tolist()
    rows = ranked([row, list(range(50)), [3]])
    scores = score(rows)
    first, _, p = replacement_probabilities(sampling_config(scores, 3), ragged(rows))
    assert first[:20_000].tolist() == [rows[0].index(t) for t in rows[0]]
    assert p[:20_000].tolist() == reference.probabilities(rows[0], dict(enumerate(scores.idf)), 0.0, 0.5)


POSITIVE = st.floats(min_value=5e-324, allow_infinity=False)
RATIO = st.tuples(st.integers(1, 2**40), st.integers(1, 2**40)).map(lambda pair: min(pair) / max(pair))


def logs(values, plus: int = 0) -> list[float]:
    out = np.empty(len(values))
    logarithm.fill_log(np.array(values, dtype=np.float64), out, plus)
    return out.tolist()


@given(POSITIVE | RATIO)
def test_logarithms_are_correctly_rounded(x):
    assert logs([x]) == [reference.ln(x)]
    assert logs([x], plus=1) == [reference.ln1p(x)]


def test_logarithms_of_the_ratios_of_a_corpus_are_exact():
    """Test every n_t / n of short documents and 4,000 N_t / N: numpy's logarithms differ between processors."""
    ratios = [count / length for length in range(1, 150) for count in range(1, min(length, 8) + 1)]
    assert logs(ratios, plus=1) == [reference.ln1p(ratio) for ratio in ratios]
    shares = [n / 999_983 for n in range(1, 4_000)]
    assert logs(shares) == [reference.ln(share) for share in shares]


# Those of 3,000,000 ratios whose logarithms are hardest to round: they differ from the middle of two doubles by at most
# 2**-19 times half a unit in the last place.
HARD = [41965 / 2753536, 946622 / 6692389, 188483 / 6815137, 823319 / 8743492, 369792 / 3127903]


@pytest.mark.parametrize("ratio", HARD)
def test_hard_ratios_are_rounded_correctly(ratio):
    exact, nearest = Context(prec=60).ln(Decimal(ratio)), reference.ln(ratio)
    half = Decimal(math.ulp(nearest)) / 2
    assert abs(abs(exact - Decimal(nearest)) - half) < half / 2**18, "the ratio is not hard"
    assert logs([ratio]) == [nearest]


def test_the_exact_path_is_correctly_rounded():
    for numerator, denominator in ((1, 3), (2, 3), (10**9 + 7, 3), (1, 2**40), (2**60 + 1, 2**60), (7, 7)):
        context = Context(prec=60)
        exact = context.ln(context.divide(numerator, denominator))
        assert logarithm.exact_log(numerator, denominator) == float(exact)


def test_logarithms_at_the_ends_of_their_range():
    assert str(logs([1.0])) == "[0.0]"  # not -0.0
    assert logs([0.0, 5e-324], plus=1) == [0.0, 5e-324]
    for wrong, plus in ((0.0, 0), (-1.0, 0), (math.inf, 0), (math.nan, 0), (-0.5, 1), (math.nan, 1)):
        with pytest.raises(ValueError, match="a number"):
            logs([wrong], plus)
