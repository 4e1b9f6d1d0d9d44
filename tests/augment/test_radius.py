"""Windows: their ends, the values that a radius may have, its number of ranks, and the warning about a wide window."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest

import una_fast
from una_fast.augment.radius import resolve_radius
from una_fast.errors import InputWarning


def test_a_radius_beyond_the_vocabulary_is_the_whole_of_it(index):
    expected = una_fast.Augmenter(index, radius=index.n_terms).negatives(range(7))
    for radius in (4000, 2**63, 1e300, 10**400):
        una = una_fast.Augmenter(index, radius=radius)
        assert una.window(0) == una.window(index.n_terms - 1) == (0, index.n_terms)
        assert una.negatives(range(7)) == expected


@pytest.mark.parametrize(
    ("radius", "n_terms", "expected"),
    [
        (None, 451_691, 4000),
        (None, 400_000, 4000),
        (None, 23_515, 235),
        (None, 599, 5),
        (None, 40, 1),
        ("1%", 451_691, 4516),
        ("1%", 599, 5),
        (" 0.5 %", 1000, 5),
        (".1%", 99, 1),
        ("100%", 599, 599),
        (4000, 451_691, 4000),
        (4000, 599, 599),
        (np.int64(7), 599, 7),
        (7.0, 599, 7),
    ],
)
def test_a_radius_is_a_number_of_ranks_or_a_share_of_the_vocabulary(radius, n_terms, expected):
    assert resolve_radius(radius, n_terms) == expected
    assert isinstance(resolve_radius(radius, n_terms), int)


def test_the_radius_that_a_setting_came_to_is_read_from_the_augmenter(index):
    v = index.n_terms
    for given, expected in ((None, 1), (3, 3), (4000, v), ("50%", v // 2)):
        una = una_fast.Augmenter(index, radius=given)
        assert una.radius == expected and f"radius={expected}," in repr(una)
        for term in (0, v // 2, v - 1):  # a window is clipped, not shifted
            assert una.window(term) == (max(0, term - expected), min(v, term + expected + 1))
        assert pickle.loads(pickle.dumps(una)).radius == expected


def test_a_given_radius_that_reaches_words_of_unlike_importance_is_warned_of(index):
    with pytest.warns(InputWarning, match=f"radius=4000: a window holds up to {index.n_terms} of the"):
        una_fast.Augmenter(index, radius=4000)
    with pytest.warns(InputWarning, match="radius='20%'"):
        una_fast.Augmenter(index, radius="20%")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        una_fast.Augmenter(index)
        una_fast.Augmenter(index, radius=4000, replace="random")
