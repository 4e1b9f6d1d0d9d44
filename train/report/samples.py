"""Some sentences of a run's corpus with the negatives that the run made from them."""

from __future__ import annotations

import os
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

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Each word and the word at its place in the negative."""
        return list(zip(self.words, self.negative, strict=True))

    @property
    def n_replaced(self) -> int:
        """How many words differ."""
        return sum(before != after for before, after in self.pairs)


def sample_negatives(run: RunRecord, n: int) -> list[Sample]:
    """`n` rows spread evenly over the run's index, with their negatives of epoch 0.

    [] if the run made no negatives by UNA. Raises InputError if its index is gone.
    """
    settings = run.settings
    if settings.get("augment") != "una" or n < 1:
        return []
    # imported late: a report without samples needs no compiled kernels
    from una_fast import Augmenter, load_index

    index = load_index(index_folder(run))
    augmenter = Augmenter(index, **{**arguments_of(Augmenter, settings), "surface": "paper"})  # a word for each word
    rows = np.unique(np.linspace(0, index.n_documents - 1, num=4 * n).astype(np.int64))
    samples = []
    for row, negative in zip(rows.tolist(), augmenter.negatives(rows), strict=True):
        words, replaced = index.words(row), negative.split(" ")
        if len(words) == len(replaced) and len(words) in SHOWN_WORDS:
            samples.append(Sample(row, words, replaced))
    return samples[:: max(1, len(samples) // n)][:n]


def index_folder(run: RunRecord) -> Path:
    """The folder of the run's index, whatever the current folder.

    run.json may name index and output relative to the folder in which the run was started, so the way from one to the
    other is what leads from the run's folder to its index.
    """
    index, output = Path(run.settings["index"]), Path(run.settings.get("output") or ".")
    if index.is_absolute():
        return index
    return Path(os.path.normpath(run.folder / os.path.relpath(index, output)))


def samples_or_reason(run: RunRecord, n: int) -> list[Sample] | str:
    """The samples, or why there are none: run.json may hold anything, and the index may be gone or another one."""
    if ":" in str(run.settings.get("augment")):
        return "The negatives of a class of your own are not shown."  # a report runs no code that a file names
    if "negatives_from" in run.summary:
        return "The negatives come from the words of another index than that of the run's sentences, and are not shown."
    try:
        return sample_negatives(run, n) or "This run made no negatives."
    except InputError as error:
        return str(error)
    except (TypeError, ValueError, KeyError, OverflowError, OSError) as error:
        return f"The negatives cannot be made again from the settings in run.json ({error})."
