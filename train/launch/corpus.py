"""What a run trains on: its corpus and paraphrases as an index, and the rows of it that are used."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import una_fast
from train.config.run import Run, reading_arguments
from train.demo.demo import prepare_demo
from train.encoder.pretrained import check_embeddings, load_tokenizer
from train.loop.data import Plan, usable_rows
from train.record.folder import INDEX
from train.signals import tell_user
from una_fast.augment.punctuation import rows_of_punctuation
from una_fast.corpus.reading import Reading
from una_fast.corpus.source import Source
from una_fast.corpus.sources import check_sources, open_sources, source_digests
from una_fast.corpus.word_tokenizers import tokenizer_name
from una_fast.errors import InputError, InputWarning, counted
from una_fast.index.index import Index
from una_fast.index.layout import KIND
from una_fast.storage import check_own, is_saved
from una_fast.tokens.ids import TokenIds


def sources(run: Run) -> list[Path]:
    """The files that the index is made from, paraphrases last."""
    # Path, not str: a str without a known extension counts as a sentence
    return [Path(path) for path in (*run.corpus, *filter(None, [run.paraphrases]))]


def opened(run: Run, paths: Path | list[Path]) -> Sequence[Source]:
    """The sources at `paths`: several for a folder or a glob."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)  # on files left out; building the index shows these warnings
        return open_sources(paths, Reading(run.column, run.quoting))


def open_index(run: Run, corpus: Any = None) -> Index:
    """Load the saved index of a run. corpus: the sources that it must have been made from, if given.

    Raises:
        InputError: the index is damaged, or was made with other options or from another corpus.
    """
    tokenizer = run.word_tokenizer if ":" in run.word_tokenizer else None  # load_index needs an import path again
    index = una_fast.load_index(
        run.index, corpus=corpus, column=run.column, word_tokenizer=tokenizer, quoting=run.quoting
    )
    if (tokenizer is None and index.word_tokenizer != run.word_tokenizer) or index.lowercase != run.lowercase:
        raise InputError(
            f"--index {run.index}: its words were made by {tokenizer_name(index.word_tokenizer)!r} with "
            f"--{'' if index.lowercase else 'no-'}lowercase, and the run asks for {run.word_tokenizer!r} with "
            f"--{'' if run.lowercase else 'no-'}lowercase: name a new folder with --index, or give the same options"
        )
    return index


def open_indexes(run: Run) -> tuple[Index, Index | None]:
    """The index of the sentences to train on, and the index of the negatives if it is another one.

    An --index that was made from other text gives the words of the negatives; the corpus is then indexed in memory.
    """
    index = open_index(run)
    if Path(run.index) == Path(run.output) / INDEX or _is_of_corpus(run, index):
        return index, None
    return build_index_of(run), index


def _is_of_corpus(run: Run, index: Index) -> bool:
    """Whether an index was made from files of the corpus' names, or of the same content."""
    given = opened(run, sources(run))
    if [source.name for source in given] == [source["name"] for source in index.sources]:
        return True
    return [source.digest() for source in given] == [source["xxh3_128"] for source in index.sources]


def build_index_of(run: Run) -> Index:
    """An index in memory of the sources of a run."""
    return una_fast.build_index(
        sources(run),
        word_tokenizer=run.word_tokenizer,
        lowercase=run.lowercase,
        progress=True,
        **reading_arguments(vars(run)),
    )


def make_index(run: Run) -> tuple[Index, Index | None]:
    """`open_indexes` after a check, bound to the model's tokenizer; run.index and a demo's corpus are made if missing.

    Raises:
        InputError: the index is damaged, was made with other options, or from files of the corpus' names with other
            content.
    """
    prepare_demo(run)
    tokenizer = load_tokenizer(run.model, run.trust_remote_code)
    check_embeddings(run.model, tokenizer, run.trust_remote_code)
    if not is_saved(Path(run.index)):
        check_own(Path(run.index), KIND, unused=True)
        tell_user(f"indexing {', '.join(map(str, sources(run)))}")
        index = build_index_of(run)
        TrainingRows.of(run, index)  # raises InputError before anything is written
        TokenIds(index, tokenizer)
        index.save(run.index)
    index, other = open_indexes(run)
    if other is None:
        check_sources(Path(run.index), index.sources, source_digests(sources(run), run.column, run.quoting))
    else:
        warnings.warn(
            f"--index {run.index} was made from other text than --corpus: the words of the negatives come from its "
            f"{counted(other.n_documents, 'sentence')}; without --index they come from the corpus itself",
            InputWarning,
            stacklevel=2,
        )
    TokenIds(index, tokenizer)
    rows = TrainingRows.of(run, index)
    left_out = rows.counts["sentences"] - len(rows.rows)
    note = f", {left_out:,} left out as blank" if left_out else ""
    tell_user(f"{counted(len(rows.rows), 'sentence')} to train on{note}; {counted(index.n_terms, 'term')}")
    return index, other


@dataclass(frozen=True)
class TrainingRows:
    """The sentences to train on and their counts.

    rows: int64, the usable rows of the index; paraphrase_offset: row of the first paraphrase, or None. counts, as in
    run.json: "sentences", those "trained_on", "blank" ones and "blank_paraphrases", which have no words (with
    --keep-punctuation, none with a letter or digit), and "terms".
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
            own = index.sources[-len(opened(run, Path(run.paraphrases))) :]
            n_paraphrases = sum(source["n_documents"] for source in own)
            n_anchors = offset = index.n_documents - n_paraphrases
            if n_anchors != n_paraphrases:
                raise InputError(
                    f"--paraphrases {run.paraphrases}: has {counted(n_paraphrases, 'sentence')} and the corpus "
                    f"{n_anchors:,}: line i of one must be a paraphrase of line i of the other"
                )
        no_negative = rows_of_punctuation(index) if run.keep_punctuation else index.word_ids.empty_rows()
        rows, blank, blank_paraphrases = usable_rows(no_negative, n_anchors)
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
