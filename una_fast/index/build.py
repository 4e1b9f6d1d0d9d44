"""Corpus -> index: its words are counted, and its terms scored and ranked (step 1 of the paper)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from una_fast._kernels import csr
from una_fast.arrays import ID
from una_fast.corpus.words import ParsedCorpus, parse_corpus
from una_fast.index.index import Index
from una_fast.index.scores import rank, score_terms
from una_fast.parallel import n_cores


def build_index(
    corpus: Any,
    word_tokenizer: str | Callable[[str], Sequence[str]] = "treebank",
    lowercase: bool = True,
    column: str = "text",
    n_jobs: int | None = None,
    progress: bool = False,
) -> Index:
    """Index a corpus: split it into words, count them, score and rank the terms (step 1 of the paper).

    The same corpus and settings give the same index byte for byte, whatever the number of cores.

    Args:
        corpus: a path or several (.txt, .txt.gz, .csv, .tsv, .jsonl, .parquet; one sentence a line or row), a Hugging
            Face dataset, or any iterable of str. Several sources are one corpus, in their order.
        word_tokenizer: "treebank" (NLTK's word_tokenize(text, preserve_line=True), word for word), "whitespace", or a
            function from str to its words.
        lowercase: lower-case the text before it is split.
        column: the column of a table or dataset that holds the text.
        n_jobs: threads; all cores this process may use if None.
        progress: show a progress bar.

    Raises:
        InputError: a source that cannot be read or holds no sentence; the message says which, where and why.

    """
    parsed = parse_corpus(corpus, word_tokenizer, lowercase, column, n_jobs, progress)
    return _rank_terms(parsed, word_tokenizer, lowercase, n_cores(n_jobs))


def _rank_terms(parsed: ParsedCorpus, word_tokenizer: Any, lowercase: bool, n_jobs: int) -> Index:
    """Score the terms and renumber them by rank; the words are renumbered in place."""
    scores = score_terms(parsed.words, len(parsed.vocabulary), n_jobs)
    order = rank(scores.max_tfidf)
    ranks = np.empty_like(order)
    ranks[order] = np.arange(len(order), dtype=ID)
    csr.relabel(parsed.words.values, ranks)
    return Index(
        chunks=parsed.chunks,
        sentences=parsed.sentences,
        terms=parsed.vocabulary.take(order),
        word_ids=parsed.words,
        scores=scores.take(order),
        sources=parsed.sources,
        word_tokenizer=word_tokenizer,
        lowercase=lowercase,
    )
