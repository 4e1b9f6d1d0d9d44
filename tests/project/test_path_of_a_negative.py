"""The way of a call through the source: which files and functions a reader passes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import una_fast
from support.tokenizer_families import bert_uncased, training_lines

ROOT = Path(una_fast.__file__).parents[1]


def calls_of(function: Callable[[], object]) -> list[tuple[str, str]]:
    """(file, function) of every call of a function of the project in Python, in order."""
    calls: list[tuple[str, str]] = []

    def note(frame, event, _) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(ROOT / "una_fast"):
            calls.append((path.relative_to(ROOT).as_posix(), frame.f_code.co_name))

    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize("surface", ["kept", "paper"])
def test_a_negative_passes_few_files_in_one_direction(surface):
    index = una_fast.build_index(training_lines()[:100])
    una = una_fast.Augmenter(index, tokenizer=bert_uncased(), surface=surface, n_jobs=1)
    una.negative_ids(range(100))  # encodes the strings that the tokenizer has not seen yet
    files = [file for file, _ in calls_of(lambda: una.negative_ids(np.arange(100)))]
    assert files[0] == "una_fast/augment/una.py"  # it has a definition of its own
    assert len({*files}) <= 6 and sum(a != b for a, b in pairwise(["", *files])) <= 8, files


def test_negatives_are_texts_by_another_name():
    class Loud(una_fast.Augmenter):
        def texts(self, rows, epoch=0, *, sample_index=0):
            return [text.upper() for text in super().texts(rows, epoch, sample_index=sample_index)]

        def token_ids(self, rows, *settings, **named):
            return {}

    una = Loud(una_fast.build_index(training_lines()[:100]))
    assert una.negatives([3], 1) == una.texts([3], 1) == [una_fast.Augmenter(una.index).texts([3], 1)[0].upper()]
    assert una.negative_ids([3]) == {}
