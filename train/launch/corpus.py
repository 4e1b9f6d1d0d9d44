"""What a run trains on: its corpus and paraphrases as an index, and the rows of it that are used."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import una_fast
from train.config.run import Run, reading_arguments
from train.demo.demo import prepare_demo
from train.encoder.pretrained import check_embeddings, load_tokenizer
from train.loop.data import Plan, usable_rows
from train.record.folder import INDEX
from train.signals import tell_user
from una_fast.augment.kept_words import KeptWords
from una_fast.corpus.source import Reading, Source
from una_fast.corpus.sources import check_sources, open_sources
from una_fast.corpus.word_tokenizers import tokenizer_name
from una_fast.errors import InputError, InputWarning, counted
from una_fast.index.index import KIND, Index
from una_fast.storage import check_own, is_saved
from una_fast.tokens.ids import TokenIds


class Indexes(NamedTuple):
    """The index of the sentences to train on, and the one that the negatives' words come from if it is another."""

    sentences: Index
    words: Index | None = None

    @property
    def fingerprint(self) -> str:
        """The fingerprint of both."""
        return ", negatives from ".join(index.fingerprint for index in self if index)


def sources(run: Run) -> list[Path]:
    """The files that the index is made from, paraphrases last."""
    # Path, not str: a str without a known extension counts as a sentence
    return [Path(path) for path in (*run.corpus, *filter(None, [run.paraphrases]))]


def opened(run: Run, paths: Path | list[Path]) -> Sequence[Source]:
    """The sources at `paths`: several for a folder or a glob."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)  # on files left out; building the index shows these warnings
        return open_sources(paths, Reading(run.column, run.quoting))


def open_index(run: Run) -> Index:
    """Load the saved index of a run. Raises InputError if it is damaged, or was made with other options."""
    tokenizer = run.word_tokenizer if ":" in run.word_tokenizer else None  # load_index needs an import path again
    index = una_fast.load_index(run.index, word_tokenizer=tokenizer)
    if (tokenizer is None and index.word_tokenizer != run.word_tokenizer) or index.lowercase != run.lowercase:
        raise InputError(
            f"--index {run.index}: its words were made by {tokenizer_name(index.word_tokenizer)!r} with "
            f"--{'' if index.lowercase else 'no-'}lowercase, and the run asks for {run.word_tokenizer!r} with "
            f"--{'' if run.lowercase else 'no-'}lowercase: name a new folder with --index, or give the same options"
        )
    return index


def open_indexes(run: Run, checked: bool = True) -> Indexes:
    """The saved indexes of a run. An --index of other text gives the words of the negatives alone.

    checked: whether another process of this machine has compared the index with the corpus.

    Raises:
        InputError: as `open_index`, or the index was made from files of the corpus' names with other content.
    """
    index, given = open_index(run), opened(run, sources(run))
    is_of_run = Path(run.index) == Path(run.output) / INDEX
    if is_of_run or [source.name for source in given] == [source["name"] for source in index.sources]:
        if not checked:
            digests = [{"name": source.name, "xxh3_128": source.digest()} for source in given]
            check_sources(Path(run.index), index.sources, digests)
        return Indexes(index)
    if [source.digest() for source in given] == [source["xxh3_128"] for source in index.sources]:
        return Indexes(index)
    return Indexes(build_index_of(run), index)


def build_index_of(run: Run) -> Index:
    """An index in memory of the sources of a run."""
    return una_fast.build_index(
        sources(run),
        word_tokenizer=run.word_tokenizer,
        lowercase=run.lowercase,
        progress=True,
        **reading_arguments(vars(run)),
    )


def make_indexes(run: Run) -> Indexes:
    """`open_indexes`, bound to the model's tokenizer; run.index and a demo's corpus are made if they are missing.

    Raises:
        InputError: as `open_indexes`, or the corpus or the tokenizer cannot be used.
    """
    prepare_demo(run)
    tokenizer = load_tokenizer(run.model, run.trust_remote_code)
    check_embeddings(run.model, tokenizer, run.trust_remote_code)
    if not is_saved(Path(run.index)):
        check_own(Path(run.index), KIND, unused=True)
        tell_user(f"indexing {', '.join(map(str, sources(run)))}")
        index = build_index_of(run)
        TrainingRows.of(run, index)  # raises InputError before anything is written
        index.save(run.index)
    indexes = open_indexes(run, checked=False)
    index, words = indexes
    if words:
        warnings.warn(
            f"--index {run.index} was made from other text than --corpus: the words of the negatives come from its "
            f"{counted(words.n_documents, 'sentence')}; without --index they come from the corpus itself",
            InputWarning,
            stacklevel=2,
        )
    TokenIds(index, tokenizer)  # kept in the index's folder, for all ranks
    rows = TrainingRows.of(run, index)
    left_out = rows.counts["sentences"] - len(rows.rows)
    note = f", {left_out:,} left out as blank" if left_out else ""
    tell_user(f"{counted(len(rows.rows), 'sentence')} to train on{note}; {counted(index.n_terms, 'term')}")
    return indexes


@dataclass(frozen=True)
class TrainingRows:
    """The sentences to train on.

    Attributes:
        rows: int64, the usable rows of the index.
        paraphrase_offset: row of the first paraphrase, or None.
        counts: as in run.json: "sentences", those "trained_on", "blank" ones and "blank_paraphrases", which have no
            words but those that --keep-punctuation and --keep-words keep, and "terms".
    """

    rows: NDArray[np.int64]
    paraphrase_offset: int | None
    counts: dict[str, int]

    @classmethod
    def of(cls, run: Run, index: Index) -> TrainingRows:
        """Count and check the rows of an index against the options.

        Raises:
            InputError: paraphrases of another length than the corpus, or fewer sentences than a batch.
        """
        n_anchors, offset = index.n_documents, None
        if run.paraphrases:
            last = index.sources[-len(opened(run, Path(run.paraphrases))) :]
            n_paraphrases = sum(source["n_documents"] for source in last)
            n_anchors = offset = index.n_documents - n_paraphrases
            if n_anchors != n_paraphrases:
                raise InputError(
                    f"--paraphrases {run.paraphrases}: has {counted(n_paraphrases, 'sentence')} and the corpus "
                    f"{n_anchors:,}: line i of one must be a paraphrase of line i of the other"
                )
        kept = KeptWords.of(run.keep_punctuation, run.keep_words, index.lowercase)
        rows, blank, blank_paraphrases = usable_rows(kept.rows(index), n_anchors)
        if len(rows) < run.batch_size:
            raise InputError(
                f"the corpus has {counted(len(rows), 'sentence')} with words, fewer than --batch-size "
                f"{run.batch_size}: give more text or a smaller batch"
            )
        about = {"sentences": n_anchors, "trained_on": len(rows), "blank": blank}
        return cls(rows, offset, about | {"blank_paraphrases": blank_paraphrases, "terms": index.n_terms})

    def plan(self, run: Run) -> Plan:
        """Which rows each step of the run takes."""
        return Plan(self.rows, run.batch_size, run.seed, run.epochs, run.max_steps)
