"""The index as a sequence of sentences."""

from __future__ import annotations

import numpy as np
import pytest

import una_fast

TEXTS = ["The cat sat.", "", "A dog  ran, far!", "\u00e9t\u00e9 \U0001f600"]


@pytest.fixture(scope="module")
def index():
    return una_fast.build_index(TEXTS)


def test_an_index_is_a_sequence_of_its_sentences(index):
    assert len(index) == index.n_documents == 4
    assert [index[row] for row in range(4)] == list(index) == TEXTS
    assert index[-1] == index[np.int64(3)] == TEXTS[3]
    assert index[1:3] == TEXTS[1:3]
    assert index[::-1] == TEXTS[::-1]
    assert index[9:] == []
    assert TEXTS[2] in index
    assert repr(index) == f"<una_fast.Index of 4 documents, {index.n_terms} terms>"


def test_a_corpus_can_be_another_index(index):
    again = una_fast.build_index(index)
    assert list(again.terms) == list(index.terms)
    assert np.array_equal(again.max_tfidf, index.max_tfidf)


@pytest.mark.parametrize("row", [4, -5, 10**30])
def test_a_row_that_is_not_there_is_named(index, row):
    with pytest.raises(IndexError, match=r"of an index of 4 documents: give 0 to 3"):
        index[row]


@pytest.mark.parametrize("row", ["0", 1.0, None, [0, 1]])
def test_a_row_that_is_no_integer_is_named(index, row):
    for get in (index.__getitem__, index.words, index.sentence):
        with pytest.raises(TypeError, match=r"give an integer from 0 to 3, or a slice"):
            get(row)
