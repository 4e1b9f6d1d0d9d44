"""Some sentences of a run's corpus with the negatives that the run made from them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from train.config.run import arguments_of
from train.report.records import RunRecord
from una_fast.errors import InputError

SHOWN_WORDS = range(4, 31)  # words of a sample: fewer show little, and more are too long to read


@dataclass(frozen=True)
class Sample:
    """A sentence of the index, its words, and the words of its negative at the same places."""

    row: int
    words: list[str]
    negative: list[str]


def sample_negatives(run: RunRecord, n: int) -> list[Sample]:
    """`n` rows spread evenly over the run's index, with their negatives of epoch 0.

    [] if the run made no negatives. Raises InputError if its index is gone.
    """
    settings = run.settings
    if settings.get("augment") != "una" or n < 1:
        return []
    # imported late: a report without samples needs no compiled kernels
    from una_fast import Augmenter, load_index

    index = load_index(Path(settings["index"]))
    augmenter = Augmenter(index, **{**arguments_of(Augmenter, settings), "surface": "lower"})  # a word for each word
    rows = np.unique(np.linspace(0, index.n_documents - 1, num=4 * n).astype(np.int64))
    samples = []
    for row, negative in zip(rows.tolist(), augmenter.negatives(rows), strict=True):
        words, replaced = index.words(row), negative.split(" ")
        if len(words) == len(replaced) and len(words) in SHOWN_WORDS:
            samples.append(Sample(row, words, replaced))
    return samples[:: max(1, len(samples) // n)][:n]


def samples_or_reason(run: RunRecord, n: int) -> list[Sample] | str:
    """The samples, or why there are none: run.json may hold anything, and the index may be gone or another one."""
    try:
        return sample_negatives(run, n) or "This run made no negatives."
    except InputError as error:
        return str(error)
    except (TypeError, ValueError, KeyError, OverflowError, OSError) as error:
        return f"The negatives cannot be made again from the settings in run.json ({error})."
