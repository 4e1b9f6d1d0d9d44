"""Negatives by batch size, threads and radius, compared with plain Python, the tokenizer and nlpaug."""

import itertools
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import una_fast
from bench import peers
from support import reference
from una_fast._kernels.edits.finder import FoundBatch
from una_fast.augment.word_lists import read_word_lists
from una_fast.options import parse_edits

IDS, RADII, TEXT = "token_ids", "token_ids by radius", "negatives as text"
FIRST_PASS = "near-misses: first pass, and of other text"
BATCH = 4_096
CALLS = 16  # batches per round, each of other rows: as in training, the rows are not in cache
REFERENCE_SENTENCES = 200
TOKENIZER_SENTENCES = 4_096
NLPAUG_SENTENCES = 50
PAPER: dict[str, Any] = {"beta": 0.5, "surface": "paper"}  # so that times are comparable with earlier versions


def batches(size: int, batch: int, calls: int) -> list[np.ndarray]:
    """Return batches of random rows, the same in every run."""
    rng = np.random.default_rng(0)
    return [rng.integers(0, size, batch) for _ in range(calls)]


def run_ids(una: Any, rows: list[np.ndarray]) -> None:
    out = None
    for epoch, batch in enumerate(rows):
        out = una.token_ids(batch, epoch, out=out)


@pytest.mark.parametrize(("batch", "n_jobs"), [(BATCH, 1), (BATCH, 2), (64, 1)])
def test_token_ids(note, size: int, index: Any, tokenizer: Any, batch: int, n_jobs: int) -> None:
    una = una_fast.Augmenter(index, tokenizer=tokenizer, n_jobs=n_jobs, **PAPER)
    rows = batches(size, batch, CALLS * BATCH // batch)
    label = f"una_fast, batches of {batch:,}, {n_jobs} thread{'s' * (n_jobs > 1)}"
    note(IDS, size, label, CALLS * BATCH, lambda: run_ids(una, rows), rounds=7, threads=n_jobs, batch=batch)


def test_probabilities_computed_in_each_call(note, size: int, index: Any, tokenizer: Any) -> None:
    una = una_fast.Augmenter(index, tokenizer=tokenizer, n_jobs=1, radius=4000, keep_probabilities=False, **PAPER)
    rows = batches(size, BATCH, CALLS)
    note(IDS, size, "una_fast, keep_probabilities=False, 1 thread", CALLS * BATCH, lambda: run_ids(una, rows), rounds=7)


def test_numba(note, size: int, index: Any, tokenizer: Any) -> None:
    make_una = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "numba_una.py"))["una"]
    una = make_una(index, tokenizer=tokenizer, n_jobs=1, surface="paper")
    rows = batches(size, BATCH, CALLS)
    note(IDS, size, "una_fast, UNA in Numba, 1 thread", CALLS * BATCH, lambda: run_ids(una, rows), rounds=7)


def test_default_surface(note, size: int, index: Any, tokenizer: Any) -> None:
    una = una_fast.Augmenter(index, tokenizer=tokenizer, n_jobs=1)
    rows = batches(size, BATCH, CALLS)
    epochs = itertools.count()  # new draws in every round, as in training

    def run() -> None:
        for batch in rows:
            una.token_ids(batch, next(epochs))

    note(IDS, size, "una_fast, the default surface, 1 thread", CALLS * BATCH, run, rounds=5)


@pytest.mark.parametrize("edits", ["polarity:1,number:4", "name", "word"])
def test_near_misses(note, size: int, index: Any, tokenizer: Any, edits: str) -> None:
    near = una_fast.NearMisses(index, edits=parse_edits(edits), tokenizer=tokenizer, n_jobs=1)
    rows = batches(size, BATCH, 2)
    note(IDS, size, f"una_fast.NearMisses, {edits}, 1 thread", 2 * BATCH, lambda: run_ids(near, rows), rounds=3)


@pytest.mark.parametrize("label", ["una_fast: edits found", "una_fast.NearMisses.augment", "fast tokenizer only"])
def test_first_pass_of_near_misses(note, size: int, lines: list[str], tokenizer: Any, label: str) -> None:
    sample, finder = lines[:TOKENIZER_SENTENCES], read_word_lists().finder
    near = una_fast.NearMisses(n_jobs=1)

    def find_edits() -> None:
        found = FoundBatch()
        for line in sample:
            finder.find(line, found)

    work = {
        "una_fast: edits found": find_edits,
        "una_fast.NearMisses.augment": lambda: near.augment(sample),
        "fast tokenizer only": lambda: peers.tokenizer_batch(tokenizer, sample),
    }[label]
    note(FIRST_PASS, size, label, len(sample), work, rounds=5)


@pytest.mark.parametrize("radius", [10, 100, 1_000, 4_000, 40_000])
def test_radius(note, size: int, index: Any, tokenizer: Any, radius: int) -> None:
    una = una_fast.Augmenter(index, radius=radius, tokenizer=tokenizer, n_jobs=1, **PAPER)
    rows = batches(size, BATCH, CALLS)
    note(RADII, size, f"radius {radius:,}", CALLS * BATCH, lambda: run_ids(una, rows), rounds=5)


def test_tokenizer_given_the_text(note, size: int, index: Any, tokenizer: Any) -> None:
    texts = una_fast.Augmenter(index, **PAPER).texts(batches(size, TOKENIZER_SENTENCES, 1)[0])
    label = "fast tokenizer only, given the text"
    note(IDS, size, label, len(texts), lambda: peers.tokenizer_batch(tokenizer, texts))


@pytest.mark.parametrize(("label", "settings"), [("una_fast", PAPER), ("una_fast, the default surface", {})])
def test_negatives(note, size: int, index: Any, label: str, settings: dict[str, Any]) -> None:
    una = una_fast.Augmenter(index, n_jobs=1, **settings)
    (rows,) = batches(size, BATCH, 1)
    negatives = note(TEXT, size, label, BATCH, lambda: una.texts(rows), rounds=5)
    assert len(negatives) == BATCH


def test_near_misses_as_text(note, size: int, index: Any) -> None:
    near = una_fast.NearMisses(index, n_jobs=1)
    (rows,) = batches(size, BATCH, 1)
    note(TEXT, size, "una_fast.NearMisses", BATCH, lambda: near.texts(rows), rounds=5)


def test_reference(note, size: int, index: Any) -> None:
    scores, unseen = index.max_tfidf.tolist(), float(np.log(index.n_documents))
    idf = dict(enumerate(index.idf.tolist()))
    sentences = [index.word_ids[row].tolist() for row in batches(size, REFERENCE_SENTENCES, 1)[0]]

    def window(term: int, _: float) -> tuple[int, int]:
        return reference.rank_window(scores, term, None, 4000)

    def negatives() -> None:
        for row, ids in enumerate(sentences):
            reference.negative(ids, scores, idf, unseen, window, row, beta=0.5, seed=42, epoch=0)

    note(TEXT, size, "plain Python", len(sentences), negatives)


def test_nlpaug(note, size: int, lines: list[str]) -> None:
    words = peers.nltk_words(lines[: min(size, 100_000)])  # its draws cost O(vocabulary): more would take minutes
    substitute = peers.nlpaug_substitution(words)
    if substitute is None:
        pytest.skip("nlpaug is not installed: pip install '.[peers]'")
    sample = [" ".join(sentence) for sentence in words[:NLPAUG_SENTENCES]]
    note(TEXT, size, "nlpaug TfIdfAug", len(sample), lambda: substitute(sample), rounds=1)
