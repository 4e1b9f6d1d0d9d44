"""Negatives as columns of a Hugging Face dataset, drawn when a batch is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from una_fast.errors import InputError
from una_fast.integrations.checks import check_saved, negative_names
from una_fast.integrations.epochs import DrawnByEpoch

ROWS_A_CALL = 1024  # rows that `select` holds as strings at a time


class Negatives(DrawnByEpoch):
    """A batched transform for ``dataset.with_transform``: a text column becomes anchor, positive and negatives.

    The columns stand in the order that sentence-transformers' losses expect: ``anchor``, ``positive`` (unless
    `positive` is None) and ``negative``, or ``negative_1`` to ``negative_n`` for `n` above 1. Other columns are left
    out. A negative depends on the seed, the epoch and the text alone, so it is the same in any batch, worker and rank::

        negatives = Negatives(una, column="text")
        dataset = negatives.select(dataset).with_transform(negatives)
        trainer = SentenceTransformerTrainer(..., train_dataset=dataset, callbacks=[negatives.callback()])

    ``dataset.map`` stores the negatives of one epoch, which then never change: use it only to write them to a file. The
    ``map`` of a streamed dataset (`IterableDataset`) draws them anew as each batch is read.

    Args:
        augmenter: an `Augmenter` or another text augmentation, of an index that was saved: worker processes open its
            folder instead of getting a copy.
        column: the column that holds the sentences.
        positive: "same" for the sentence itself (two dropout masks make two embeddings), the name of another column, or
            None for no positive.
        n: negatives a sentence.

    Raises:
        InputError: an index that is not saved, or `n` below 1.

    """

    def __init__(self, augmenter: Any, column: str = "text", positive: str | None = "same", n: int = 1):
        check_saved(augmenter)
        super().__init__()
        self.augmenter = augmenter
        self.column = column
        self.positive = positive
        self.names = negative_names(n)

    def __call__(self, batch: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
        """The columns of a batch of rows.

        Raises:
            InputError: a column that is not there, or that holds something other than text.
        """
        anchors = _texts(batch, self.column)
        views = {"anchor": anchors}
        if self.positive is not None:
            views["positive"] = anchors if self.positive == "same" else _texts(batch, self.positive)
        for number, name in enumerate(self.names):
            views[name] = self.augmenter.augment(anchors, self.epoch.value, draw_set=number)
        return views

    def select(self, dataset: Any) -> Any:
        """The rows of a `Dataset` or `IterableDataset` whose sentence holds a word, and so has a negative.

        Takes as long as one epoch of negatives. Rows without a text (None) are left out too.
        """
        if not hasattr(dataset, "select"):  # a streamed one
            return dataset.filter(self._have_words, batched=True, input_columns=[self.column])
        rows = iter(dataset.with_format(None).select_columns(_checked_column(dataset.column_names, self.column)))
        kept: list[bool] = []
        while block := [row[self.column] for row in islice(rows, ROWS_A_CALL)]:
            kept += self._have_words(block)
        return dataset if all(kept) else dataset.select([row for row, keep in enumerate(kept) if keep])

    def _have_words(self, texts: Sequence[str | None]) -> list[bool]:
        anchors = [text or "" for text in texts]
        return [bool(negative) for negative in self.augmenter.augment(_checked_texts(anchors, self.column))]

    def __deepcopy__(self, memo: dict[int, Any]) -> Negatives:
        return self  # many calls of datasets copy the transform, and a copy would open the index again


def _texts(batch: Mapping[str, Sequence[str]], column: str) -> list[str]:
    return _checked_texts(batch[_checked_column(list(batch), column)], column)


def _checked_column(names: Sequence[str] | None, column: str) -> str:
    if names is not None and column not in names:
        raise InputError(f"there is no column {column!r}: the dataset has {', '.join(map(repr, names))}")
    return column


def _checked_texts(values: Sequence[Any], column: str) -> list[str]:
    texts = list(values)
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(
                f"column {column!r}: row {row} of the batch holds {type(text).__name__}, and a sentence (str) is needed"
            )
    return texts
