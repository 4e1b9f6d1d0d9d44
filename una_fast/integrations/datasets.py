"""Adds negatives to a Hugging Face dataset as columns. `DrawnByEpoch` is the base of all integrations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from una_fast.augment.counter_rng import SampleKey
from una_fast.corpus.documents import missing_column
from una_fast.errors import InputError, counted, suggests_keywords, warn_user
from una_fast.imports import naming_extras

if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import TrainerCallback

    from una_fast.augment.base import TextAugmentation

FORMATS = ("triplet", "n-tuple", "labeled-pair")
D = TypeVar("D", bound=Any)  # Dataset, DatasetDict or IterableDataset
ARGUMENTS = "`column`, `positive` or `keep`"  # the arguments that name columns
COUNTERS = 32  # one per worker, because several processes that add to one counter can lose additions
PASSES = 1.5  # over the index, before `_note_drawn` warns: a sampler may repeat some sentences within the first pass


def negative_names(n: int, argument: str = "n") -> list[str]:
    """Return the names that sentence-transformers' losses expect: "negative", or "negative_1" to "negative_n"."""
    if not isinstance(n, int) or n < 1:
        raise InputError(f"{argument}={n!r}: give the number of negatives per sentence, an integer of at least 1")
    return ["negative"] if n == 1 else [f"negative_{number}" for number in range(1, n + 1)]


class DrawnByEpoch:
    """The base class of transforms and collators that draw new negatives in each epoch.

    The trainer (with `callback`) or the training loop (with `set_epoch`) sets the epoch. `views` lists the texts made
    from a sentence: "anchor", "positive" (if any) and the names in `negatives`.
    """

    def __init__(self, augmenter: TextAugmentation, has_positive: bool, n: int) -> None:
        with naming_extras("integrations"):
            import torch

        kind = type(augmenter).__name__
        if not hasattr(augmenter, "index"):
            raise InputError(f"augmenter: is {kind}: give una_fast.Augmenter(index)")
        if augmenter.index.path is None:
            raise InputError(
                f"augmenter: this {kind} has no saved index, which each worker would open: make an index of the corpus "
                f"with una_fast.build_index, call index.save(FOLDER), and give {kind}(index)"
            )
        self.augmenter, self.negatives = augmenter, negative_names(n)
        self.views = ["anchor", *["positive"] * has_positive, *self.negatives]
        # [the epoch, 1 if something sets it or the warning was given, then how many sentences each worker has drawn].
        # All workers of a DataLoader share this memory, so persistent workers see each new epoch.
        self._shared = torch.zeros(2 + COUNTERS, dtype=torch.int64).share_memory_()

    def __repr__(self) -> str:
        name = f"{type(self).__module__}.{type(self).__name__}"
        return f"<{name} of {self.augmenter!r}: views {', '.join(self.views)}, epoch={self.epoch}>"

    @property
    def epoch(self) -> int:
        """The epoch for which negatives are drawn, from 0."""
        return int(self._shared[0])

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch of the negatives for all workers. Call this before the first batch of the epoch is made."""
        self._shared[0] = SampleKey(epoch).epoch
        self._shared[1] = 1

    def callback(self) -> TrainerCallback:
        """Return a `TrainerCallback` that sets the epoch each time the trainer begins one, before its first batch."""
        with naming_extras("integrations"):
            from transformers import TrainerCallback

        set_epoch = self.set_epoch
        set_epoch(self.epoch)

        class EpochCallback(TrainerCallback):
            # Counts epochs itself, because for streamed data without a length, the trainer computes `state.epoch` as if
            # an epoch had max_steps steps.
            next_epoch = 0

            def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
                self.next_epoch = int(state.epoch or 0)  # a resumed run continues in the epoch in which it stopped

            def on_epoch_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
                set_epoch(self.next_epoch)
                self.next_epoch += 1

        return EpochCallback()

    def _note_drawn(self, n: int) -> None:
        """Add n to the count of drawn sentences. Warn once if a second pass draws the same negatives as the first."""
        from torch.utils.data import get_worker_info  # not at the top, because torch may be missing

        worker = get_worker_info()
        self._shared[2 + (0 if worker is None else 1 + worker.id) % COUNTERS] += n
        if not self._shared[1] and self._shared[2:].sum() > PASSES * self.augmenter.index.n_documents:
            self._shared[1] = 1
            warn_user(
                "more sentences are drawn than the index has: a second pass gets the same negatives, because nothing "
                f"sets the epoch. For several epochs, add {type(self).__name__}.callback() to the trainer's callbacks, "
                "or call set_epoch(EPOCH) before each epoch"
            )


class Negatives(DrawnByEpoch):
    """A batched transform for ``dataset.with_transform``: a text column becomes anchor, positive and negatives::

        negatives = Negatives(una, column="text")
        dataset = negatives.select(dataset).with_transform(negatives)
        trainer = SentenceTransformerTrainer(..., train_dataset=dataset, callbacks=[negatives.callback()])

    The columns are in the order that sentence-transformers' losses expect: ``anchor``, ``positive`` if there is one,
    ``negative`` (or ``negative_1`` to ``negative_n`` for n > 1), then the columns of `keep`. A negative depends only on
    the seed, the epoch and the text, so it is the same in any batch, worker and rank.

    Use ``dataset.map(negatives, batched=True)`` only to write negatives to a file: it stores the negatives of one
    epoch. The ``map`` of a streamed dataset (`IterableDataset`) stores nothing and draws new ones in each epoch.

    Args:
        augmenter: an `Augmenter` or another text augmentation. Its index must be saved: each worker process opens it.
        column: the column of the sentences.
        positive: "same" for the sentence itself (with another dropout mask), the name of another column, or None.
        n: negatives per sentence.
        of: the text that is changed to make negatives: "anchor", or "positive" for pairs such as (query, product),
            where a negative is a product that does not answer the query.
        keep: columns that are passed on unchanged, such as mined negatives or a label.

    Raises:
        InputError: the index is not saved, `n` or `of` is invalid, or a column of `keep` has the name of a new column.
    """

    @suggests_keywords
    def __init__(
        self,
        augmenter: TextAugmentation,
        column: str = "text",
        positive: str | None = "same",
        n: int = 1,
        of: Literal["anchor", "positive"] = "anchor",
        keep: Sequence[str] = (),
    ):
        super().__init__(augmenter, positive is not None, n)
        self.of, self.keep = of, (keep,) if isinstance(keep, str) else tuple(keep)
        self._columns = {"anchor": column}  # of the anchors and positives
        if positive is not None:
            self._columns["positive"] = column if positive == "same" else positive
        if of not in ("anchor", "positive"):
            raise InputError(f"of={of!r}: negatives are made from the 'anchor' or from the 'positive'")
        if of == "positive" and positive is None:
            raise InputError("of='positive': needs a positive: give the column of the positives as positive=")
        if clashes := [name for name in self.keep if name in self.views]:
            raise InputError(
                f"keep: the column {clashes[0]!r} has the name of a new column ({', '.join(self.views)}): rename it "
                "with dataset.rename_column"
            )

    def __call__(self, batch: Mapping[str, Sequence[Any]]) -> dict[str, Sequence[Any]]:
        """Return the new columns of a batch by name: the views, then the columns of `keep`.

        Args:
            batch: the columns of n rows by name, as datasets passes them.

        Returns:
            The new columns, n values each. An anchor, a positive and a negative are texts.

        Raises:
            InputError: a column is missing, or a value of a text column is not a str.
        """
        views: dict[str, Any] = {view: _texts(batch, column) for view, column in self._columns.items()}
        self._note_drawn(len(views["anchor"]))
        for number, name in enumerate(self.negatives):
            views[name] = self.augmenter.augment(views[self.of], self.epoch, sample_index=number)
        return views | {name: _column(batch, name) for name in self.keep}

    def select(self, dataset: D) -> D:
        """Return the dataset without the rows that lack a text, a word to replace, or a value in a column of `keep`.

        Args:
            dataset: a `Dataset`, an `IterableDataset` or a `DatasetDict`, whose splits are all filtered.

        Raises:
            InputError: the dataset has another type, or a column is missing.
        """
        if isinstance(dataset, dict):
            return type(dataset)({split: self.select(part) for split, part in dataset.items()})
        if not hasattr(dataset, "with_format"):
            raise InputError(
                f"select accepts a Dataset of the library datasets, not {type(dataset).__name__}: make one with "
                "Dataset.from_pandas(TABLE), Dataset.from_polars(TABLE) or Dataset.from_dict({'text': [...]})"
            )
        columns = [*dict.fromkeys([*self._columns.values(), *self.keep])]
        for column in columns:
            if dataset.column_names is not None and column not in dataset.column_names:
                raise missing_column("the dataset", column, dataset.column_names, ARGUMENTS)
        selected: D
        if not hasattr(dataset, "select"):  # a streamed one
            selected = dataset.filter(self._kept_by_select, batched=True)
            return selected
        blocks = dataset.with_format(None).select_columns(columns).iter(batch_size=1024)
        kept = [keep for block in blocks for keep in self._kept_by_select(block)]
        selected = dataset if all(kept) else dataset.select([row for row, keep in enumerate(kept) if keep])
        return selected

    def _kept_by_select(self, batch: Mapping[str, Sequence[Any]]) -> list[bool]:
        """Return for each row of a batch whether `select` keeps it."""
        views = {view: _texts(batch, column, none_is_blank=True) for view, column in self._columns.items()}
        whole = ~self.augmenter.keeps_all(views[self.of])  # without a word to replace, a negative equals its text
        for texts in views.values():
            whole &= [bool(text.strip()) for text in texts]
        for name in self.keep:
            whole &= [value is not None for value in _column(batch, name)]
        kept: list[bool] = whole.tolist()
        return kept

    def __deepcopy__(self, memo: dict[int, Any]) -> Negatives:
        return self  # many methods of a dataset copy its transform, and a copy would open the index again


@suggests_keywords
def add_negatives(
    dataset: Dataset,
    augmentation: TextAugmentation,
    anchor_column_name: str | None = None,
    positive_column_name: str | None = None,
    *,
    num_negatives: int = 1,
    output_format: Literal["triplet", "n-tuple", "labeled-pair"] = "triplet",
    of: Literal["anchor", "positive"] = "anchor",
    epoch: int = 0,
) -> Dataset:
    """Make a dataset of (anchor, positive) pairs with negatives, like `mine_hard_negatives` of sentence-transformers.

    It stores the negatives of one epoch. `Negatives` draws new ones in every epoch.

    Args:
        dataset: the pairs.
        augmentation: what makes the negatives, such as ``una_fast.NearMisses()``, which needs no index.
        anchor_column_name: the column of the anchors, such as queries; by default the first column that
            `positive_column_name` does not name.
        positive_column_name: the column of the positives, such as passages; by default the first column that is not
            the anchors'.
        num_negatives: negatives per pair.
        output_format: "triplet" has the columns anchor, positive and negative, and a row per negative. "n-tuple" has a
            row per pair, with the columns negative_1 to negative_n. "labeled-pair" has the columns anchor, positive and
            label: 1 for a pair, and 0 for a pair whose positive is replaced by a negative.
        of: the text that is changed. With "positive", a negative is a passage that does not answer the query. With
            "anchor", it is a query that the passage does not answer: train with the positives as the first column.
        epoch: as in `TextAugmentation.augment`.

    Returns:
        The dataset without other columns. Negatives that are blank, equal to their text or repeated are left out;
        "n-tuple" leaves out the whole pair.

    Raises:
        InputError: a column is missing, two columns would have one name, a value is not a text, or an argument is
            invalid.

    Warns:
        InputWarning: the result has no negatives, because `augmentation` changes none of the texts.
    """
    from datasets import Dataset

    if not isinstance(dataset, Dataset):
        raise InputError(
            f"dataset: is {type(dataset).__name__}, must be a Dataset of the library datasets: give one split of a "
            "DatasetDict; a streamed dataset gets negatives with Negatives(...)"
        )
    if isinstance(augmentation, type) or not hasattr(augmentation, "augment"):
        raise InputError(f"augmentation: is {augmentation!r:.60}: give an object, such as una_fast.NearMisses()")
    names = negative_names(num_negatives, "num_negatives")
    for name, value, allowed in (("output_format", output_format, FORMATS), ("of", of, ("anchor", "positive"))):
        if value not in allowed:
            raise InputError(f"{name}={value!r}: must be {' or '.join(map(repr, allowed))}")
    given = _pair_columns(dataset, anchor_column_name, positive_column_name)
    titles = [*given.values(), *{"triplet": ["negative"], "n-tuple": names, "labeled-pair": ["label"]}[output_format]]
    title, n = Counter(titles).most_common(1)[0]
    if n > 1:
        raise InputError(f"two columns of {titles} would be {title!r}: rename one with dataset.rename_column")
    table = dataset.with_format(None).select_columns([*given.values()])[:]
    advice = "leave out such rows with dataset.filter"
    texts = {view: _texts(table, column, place="", advice=advice) for view, column in given.items()}
    drawn = [augmentation.augment(texts[of], epoch, sample_index=number) for number in range(num_negatives)]
    rows: list[tuple[Any, ...]] = []
    for anchor, positive, source, made in zip(*texts.values(), texts[of], zip(*drawn, strict=True), strict=True):
        negatives = [text for text in dict.fromkeys(made) if text.strip() and text != source]
        if output_format == "n-tuple":
            rows += [(anchor, positive, *negatives)] * (len(negatives) == num_negatives)
        elif output_format == "triplet":
            rows += [(anchor, positive, negative) for negative in negatives]
        else:
            rows += [(anchor, positive, 1), *((anchor, negative, 0) for negative in negatives)]
    if texts[of] and all(row[2] == 1 for row in rows):  # no rows, or only pairs with the label 1
        warn_user(
            f"augmentation: makes {counted(num_negatives, 'negative')} from none of the {len(texts[of]):,} texts of "
            f"column {given[of]!r}, so the result has no negatives: give another augmentation or `of`"
        )
    return Dataset.from_dict({title: [row[i] for row in rows] for i, title in enumerate(titles)})


def _pair_columns(dataset: Dataset, anchor: str | None, positive: str | None) -> dict[str, str]:
    """Return the columns of the anchors and of the positives, each the given one or the first that is not given."""
    columns = {"anchor": anchor, "positive": positive}
    unnamed = (column for column in dataset.column_names if column not in columns.values())
    found = {view: column or next(unnamed, "") for view, column in columns.items()}
    for view, column in found.items():
        if not column:
            existing = ", ".join(map(repr, dataset.column_names)) or "none"
            raise InputError(
                f"dataset: no column is left for the {view}s: give a dataset of pairs; columns: {existing}"
            )
        if column not in dataset.column_names:
            arguments = "`anchor_column_name` or `positive_column_name`"
            raise missing_column("the dataset", column, dataset.column_names, arguments)
    return found


def _texts(
    batch: Mapping[str, Sequence[Any]],
    column: str,
    none_is_blank: bool = False,
    place: str = " of the batch",
    advice: str = "select(dataset) of this object leaves out rows with None",
) -> list[str]:
    """Return the texts of a column, or raise InputError if a value is not a text. place, advice: for its message."""
    values = _column(batch, column)
    if isinstance(values, str):
        raise InputError(
            f"column {column!r} is one sentence, but a batch of rows is needed: use dataset.map(..., batched=True) or "
            "dataset.with_transform(...)"
        )
    texts = ["" if none_is_blank and text is None else text for text in values]
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(
                f"column {column!r}: row {row}{place} contains {type(text).__name__}, but a sentence (str) is needed; "
                f"{advice}"
            )
    return texts


def _column(batch: Mapping[str, Sequence[Any]], column: str) -> Sequence[Any]:
    if column not in batch:
        raise missing_column("the dataset", column, list(batch), ARGUMENTS)
    return batch[column]
