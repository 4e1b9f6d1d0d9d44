"""Augmentations compiled by Numba: UNA draw for draw, and functions with invalid output."""

import runpy
from pathlib import Path

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import una_fast
from una_fast import InputError
from una_fast.augment.numba import ROW, sample

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.filterwarnings("ignore:radius=4000:una_fast.InputWarning")
LETTERS = st.lists(st.text("abcdefg ", min_size=1, max_size=12), min_size=2, max_size=8)


@pytest.fixture(scope="module")
def una():
    return runpy.run_path(str(ROOT / "examples" / "numba_una.py"))["una"]


def cython(index, seed=42):
    return una_fast.Augmenter(index, beta=0.5, radius=4000, surface="paper", seed=seed)


WORDS = np.random.default_rng(0).zipf(1.3, (10_000, 24)) % 20_000
CORPORA = {
    "words by Zipf's law": [" ".join(map(str, row[: 1 + i % 24])) for i, row in enumerate(WORDS)],
    "nearly all candidates are rejected: cumulative weights": [" ".join(f"w{i}" for i in range(2000)), "rare"],
    "all scores are 0: uniform": ["all words are everywhere"],
}


@pytest.mark.parametrize("n_draws", [200_000, pytest.param(2_000_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("corpus", CORPORA)
def test_una_in_numba_equals_una_in_cython(una, corpus, n_draws):
    index = una_fast.build_index(CORPORA[corpus])
    kernel, reference = una(index, surface="paper")._kernel, cython(index)._kernel
    rows, n = np.arange(index.n_documents), 0
    for epoch in range(n_draws):
        drawn, bounds = kernel.terms(rows, epoch)
        expected, expected_bounds = reference.terms(rows, epoch)
        assert np.array_equal(drawn, expected) and np.array_equal(bounds, expected_bounds)
        n += len(drawn)
        if n >= n_draws:
            return


@settings(max_examples=100, deadline=None)
@given(LETTERS, st.lists(st.text("abcxyz ", max_size=12), max_size=4), st.integers(0, 2**64 - 1))
def test_una_in_numba_equals_una_in_cython_on_any_text(una, corpus, text, seed):
    try:
        index = una_fast.build_index([" ".join(line) for line in corpus])
        reference = cython(index, seed)
    except InputError:  # fewer than two terms
        return
    augmentation, rows = una(index, surface="paper", seed=seed), range(index.n_documents)
    assert augmentation.texts(rows, epoch=3) == reference.texts(rows, epoch=3)
    assert augmentation.augment(text, epoch=3) == reference.augment(text, epoch=3)


def test_a_function_may_drop_words_with_the_paper_surface():
    @numba.cfunc(ROW)
    def first_half(ids, n, key, idf, max_tfidf, document_frequency, n_terms, out):
        for k in range((n + 1) // 2):
            out[k] = ids[k]
        return (n + 1) // 2

    index = una_fast.build_index(["a b c d", "e", ""])
    make = una_fast.numba_augmentation(first_half)
    augmentation = make(index, surface="paper")
    assert augmentation.texts([0, 1, 2]) == ["a b", "e", ""]
    assert augmentation.augment(["d x a"]) == ["d x"]
    assert str(augmentation.explain("d x a")) == "d x a\nd x"
    with pytest.raises(InputError, match="first_half.* 2 .* 4 words"):
        make(index).texts([0])


def test_a_function_may_move_unseen_words():
    @numba.cfunc(ROW)
    def backwards(ids, n, key, idf, max_tfidf, document_frequency, n_terms, out):
        for k in range(n):
            out[k] = ids[n - 1 - k]
        return n

    reverse = una_fast.numba_augmentation(backwards)(una_fast.build_index(["a b c d"]))
    assert reverse.augment(["A unseen, word b"]) == ["B word, unseen a"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(("returned", "written", "row", "named"), [
    (-3, 0, 1, "returned 3 .* 1 words"), (-1, 3, 1, "id 3.* 0 to 2"), (-1, -1, 1, "id -1"),
    (-1, 0, 0, "returned 0 .* 2 words"),  # it divides by zero
])  # fmt: skip
def test_invalid_output_of_a_function_is_refused(returned, written, row, named):
    @una_fast.numba_augmentation
    @numba.cfunc(ROW)
    def invalid(ids, n, key, idf, max_tfidf, document_frequency, n_terms, out):
        out[0] = written
        return returned // (n - 2)

    with pytest.raises(InputError, match=named):
        invalid(una_fast.build_index(["a b", "c"]), surface="paper").texts([row])


def test_a_function_may_not_write_unseen_words_of_other_texts():
    @una_fast.numba_augmentation
    @numba.cfunc(ROW)
    def next_unseen(ids, n, key, idf, max_tfidf, document_frequency, n_terms, out):
        for k in range(n):
            out[k] = ids[k] + 1 if ids[k] >= n_terms else ids[k]
        return n

    augmentation = next_unseen(una_fast.build_index(["a b", "c"]), surface="paper")
    for texts in (["new"], ["new", "other"]):
        with pytest.raises(InputError, match="id 4"):
            augmentation.augment(texts)


def test_a_function_that_is_not_compiled_with_row_is_refused():
    for function in (lambda ids: 0, numba.cfunc(numba.types.int64(numba.types.int64))(lambda n: n)):
        with pytest.raises(InputError, match="ROW"):
            una_fast.numba_augmentation(function)


def test_an_empty_window_has_no_candidate():
    assert sample(np.uint64(7), 0, np.array([3.0, 2.0, 1.0]), 2, 2, -1) == -1
