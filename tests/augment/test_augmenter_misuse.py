"""Every setting out of range and every wrong argument of an augmenter is refused with one sentence."""

from __future__ import annotations

import math

import numpy as np
import pytest

import una_fast
from una_fast import InputError


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"beta": -0.1}, r"beta=-0.1: give a number in \[0, 1\]"),
        ({"beta": math.nan}, "beta=nan"),
        ({"radius": 0}, "radius=0: a number of ranks must be an integer of at least 1"),
        ({"radius": True}, "radius=True: a number of ranks"),
        ({"radius": "4000"}, "radius='4000': a share must be a percentage .*: give a number of ranks"),
        ({"radius": "0%"}, "radius='0%': a share must be a percentage above 0 and up to 100"),
        ({"radius": np.array([1, 2])}, "radius=array"),
        ({"beta": "0.5"}, r"beta='0.5': give a number in \[0, 1\]"),
        ({"beta": True}, "beta=True: give a number"),
        ({"beta": np.array([0.5, 0.6])}, "beta=array"),
        ({"seed": "x"}, "seed='x': give an integer"),
        ({"variant": ["paper"]}, r"variant=\['paper'\]: must be"),
        ({"radius": math.inf}, "radius=inf: a number of ranks"),
        ({"select": "all"}, "select='all': must be 'tfidf' or 'random'"),
        ({"variant": "x"}, "variant='x': must be 'paper' or 'released'"),
    ],
)
def test_settings_out_of_range_are_refused(index, setting, message):
    with pytest.raises(InputError, match=message):
        una_fast.Augmenter(index, **setting)


def test_a_vocabulary_of_one_term_is_refused():
    with pytest.raises(InputError, match="1 of the 1 term of the index may be replaced"):
        una_fast.Augmenter(una_fast.build_index(["word", "word word"]))


def test_misuse_is_answered_with_a_sentence(index):
    una = una_fast.Augmenter(index)
    with pytest.raises(InputError, match="got str, and a list of str is needed"):
        una.augment("a sentence")
    with pytest.raises(InputError, match=r"sentences\[1\] is float, not str"):
        una.augment(["a", 1.5])
    with pytest.raises(InputError, match=r"sentences\[0\] holds a lone surrogate, '\\ud800' at character 2"):
        una.explain("a \ud800")
    with pytest.raises(InputError, match=r"index: got 'folder', and an Index is needed: una_fast\.load_index"):
        una_fast.Augmenter("folder")
    with pytest.raises(InputError, match="needs a tokenizer"):
        una.negative_ids([0])
    with pytest.raises(InputError, match="'zebra' is not a term"):
        una.window("zebra")
    with pytest.raises(InputError, match="rows: 21 \\(at position 1\\)"):
        una.negatives([0, 21])
    with pytest.raises(InputError, match="rows: 9223372036854775808 \\(at position 0\\)"):
        una.negatives(np.array([2**63], dtype=np.uint64))
    with pytest.raises(InputError, match="rows: a list or array of integers is needed"):
        una.negatives([[1], [1, 2]])
    for epoch in (-1, 2**64):
        with pytest.raises(InputError, match=f"epoch={epoch}"):
            una.negatives([0], epoch=epoch)
    with pytest.raises(IndexError, match="row 21 of an index of 21 documents"):
        index.words(21)
