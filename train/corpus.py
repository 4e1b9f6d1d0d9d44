"""The sentences that a run trains on: the index of --corpus and --paraphrases, and what is made from it."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from train.config import SAME, ResolvedRun
from train.demo import prepare_demo
from train.loop.data import Rows, ViewMaker, Views, on_share, original_text
from train.losses import loss_spec
from train.messages import tell_user
from una_fast.augment.kept_words import KeptWords
from una_fast.augment.registry import make_augmentation
from una_fast.command import settings_of
from una_fast.corpus.documents import Reading
from una_fast.corpus.sources import Source, check_sources, open_sources
from una_fast.errors import InputError, counted
from una_fast.index.build import build_index
from una_fast.index.index import KIND, Index, load_index, warn_of_few_terms
from una_fast.options import Files
from una_fast.parallel import RowThreads
from una_fast.storage.array_folder import check_array_folder, find_manifest
from una_fast.tokens.ids import TokenIds


class TrainingCorpus:
    """The corpus of a run. Everything is read or computed when it is first used."""

    def __init__(self, run: ResolvedRun, kept_words: frozenset[str], tokenizer: Any) -> None:
        self.run, self.kept_words, self.tokenizer = run, kept_words, tokenizer

    @cached_property
    def sources(self) -> tuple[list[Source], list[Source]]:
        """The sources of --corpus and those of --paraphrases. A new index contains both, in this order."""
        reading = Reading(**settings_of(self.run, Files))
        # Path, not str: a str without a known extension counts as a sentence
        corpus = open_sources([*map(Path, self.run.corpus)], reading)
        return [*corpus], [*open_sources(Path(self.run.paraphrases), reading)] if self.run.paraphrases else []

    @cached_property
    def index(self) -> Index:
        """The index of `sources`. An existing index may contain more sentences, whose words can be replacements."""
        index = load_index(self.run.index, word_tokenizer=self.run.word_tokenizer)
        if index.lowercase != self.run.lowercase:
            raise InputError(
                f"--index {self.run.index}: was made with --{'' if index.lowercase else 'no-'}lowercase: give it here "
                "too, or name a new folder with --index"
            )
        return index

    def make_index(self) -> None:
        """Build and save the index, or check that an existing one matches the corpus. Store the index's token ids."""
        run, folder = self.run, Path(self.run.index)
        if run.demo:
            prepare_demo(run)
        sources = [*self.sources[0], *self.sources[1]]
        if find_manifest(folder):
            check_sources(folder, self.index.sources[: len(sources)], sources)
        else:
            check_array_folder(folder, KIND, unused=True)
            tell_user(f"indexing {', '.join(filter(None, [*run.corpus, run.paraphrases]))}")
            self.index = build_index(sources, run.word_tokenizer, run.lowercase, progress=True)
            _ = self.rows  # raises InputError before anything is written
            self.index.save(folder)
            del self.index  # from now on the saved one, which is memory-mapped
        _ = self.tokens  # stores them with the index, for the other ranks
        left_out = self.n_sentences - len(self.rows)
        note = f", {left_out:,} left out as blank" if left_out else ""
        if run.augment == "una":
            warn_of_few_terms(self.index)
        tell_user(f"{counted(len(self.rows), 'sentence')} to train on{note}; {counted(self.index.n_terms, 'term')}")

    @cached_property
    def n_sentences(self) -> int:
        """Number of sentences in --corpus. Row i + n_sentences of the index is the paraphrase of row i.

        Raises InputError if --paraphrases has another number of sentences.
        """
        sizes, n_files = [source["n_documents"] for source in self.index.sources], len(self.sources[0])
        n, n_paraphrases = sum(sizes[:n_files]), sum(sizes[n_files : n_files + len(self.sources[1])])
        if self.run.paraphrases and n_paraphrases != n:
            raise InputError(
                f"--paraphrases {self.run.paraphrases}: has {counted(n_paraphrases, 'sentence')} and the corpus {n:,}: "
                "line i of one must be a paraphrase of line i of the other"
            )
        return n

    @cached_property
    def blank(self) -> tuple[Rows, Rows]:
        """The rows of the sentences without a replaceable word, and of those whose paraphrase has none."""
        kept = KeptWords.of(self.run.keep_punctuation, self.kept_words, self.index.lowercase)
        rows, n = kept.unchangeable_rows(self.index), self.n_sentences
        sentences, paraphrases, _ = np.split(rows, np.searchsorted(rows, [n, 2 * n]))
        return sentences, paraphrases - n if self.run.paraphrases else rows[:0]

    @cached_property
    def rows(self) -> Rows:
        """The rows to train on, ascending: the sentences that are not `blank`. Raises InputError for too few."""
        rows = np.delete(np.arange(self.n_sentences), np.union1d(*self.blank))
        if len(rows) < self.run.batch_size:
            raise InputError(
                f"the corpus has {counted(len(rows), 'sentence')} with words, fewer than --batch-size "
                f"{self.run.batch_size}: give more text or a smaller batch"
            )
        return rows

    @cached_property
    def tokens(self) -> TokenIds:
        """The token ids of the index."""
        tokens = TokenIds(self.index, self.tokenizer)  # computed on all cores
        tokens.threads = RowThreads(1)  # to make batches, because the training steps need the other cores
        return tokens

    def views(self) -> Views:
        """Make the views of a step: anchors, positives and, in every --alpha-th step, negatives."""
        run, tokens = self.run, self.tokens
        always = {"seed": run.seed, "tokenizer": tokens, "n_jobs": 1}
        positive: ViewMaker | None = None  # None: a sentence is its own positive
        negative: ViewMaker | None = None
        if run.augment != "none":
            offered = {**vars(run), "keep_words": self.kept_words}
            negative = make_augmentation(run.augment, self.index, offered, **always).token_ids
        if run.positives != SAME:
            offered = {"strength": run.positives_strength, "synonyms": run.synonyms or None}
            edited = make_augmentation(run.positives, self.index, offered, **always).token_ids
            positive = on_share(edited, original_text(tokens), run.positives_share, run.seed)
        elif run.paraphrases:
            positive = original_text(tokens, self.n_sentences)
        n_negatives = loss_spec(run.loss).negative_views
        return Views(original_text(tokens), positive, negative, run.max_length, run.alpha, n_negatives)

    def about(self) -> dict[str, Any]:
        """Return what run.json records about the corpus."""
        blank, blank_paraphrases = map(len, self.blank)
        counts = {"sentences": self.n_sentences, "trained_on": len(self.rows)}
        counts |= {"blank": blank, "blank_paraphrases": blank_paraphrases, "terms": self.index.n_terms}
        return {**counts, "sources": self.index.sources}
