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


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda una: una.augment("a sentence"), "got str, and a list of str is needed"),
        (lambda una: una.augment(["a", 1.5]), r"sentences\[1\] is float, not str"),
        (lambda una: una.explain("a \ud800"), r"sentences\[0\] holds a lone surrogate, '\\ud800' at character 2"),
        (lambda una: una_fast.Augmenter("folder"), r"index: got 'folder', and an Index .*: una_fast\.load_index"),
        (
            lambda una: una_fast.Augmenter(una_fast.build_index(["word"])),
            "1 of the 1 term .* may be replaced",
        ),
        (lambda una: una.negative_ids([0]), "needs a tokenizer"),
        (lambda una: una.window("zebra"), "'zebra' is not a term"),
        (lambda una: una.negatives([0, 21]), r"rows: 21 \(at position 1\)"),
        (lambda una: una.negatives(np.array([2**63], dtype=np.uint64)), r"rows: 9223372036854775808 \(at position 0\)"),
        (lambda una: una.negatives([[1], [1, 2]]), "rows: a list or array of integers is needed"),
        (lambda una: una.negatives([0], epoch=-1), "epoch=-1"),
        (lambda una: una.negatives([0], epoch=2**64), f"epoch={2**64}"),
    ],
)
def test_misuse_is_answered_with_a_sentence(index, call, message):
    with pytest.raises(InputError, match=message):
        call(una_fast.Augmenter(index))
