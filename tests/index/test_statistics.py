"""The statistics in an index: equation 2, shapes and dtypes, and the same bytes for any number of threads."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import una_fast
from support import reference
from support.short_corpus import CORPUS


@pytest.fixture(scope="module")
def index():
    return una_fast.build_index(CORPUS)


def documents(index):
    return [index.words(row) for row in range(index.n_documents)]


def test_the_index_is_equation_2(index):
    rows = documents(index)
    assert list(index.terms) == reference.ranking(rows)
    idf = reference.idf(rows)
    np.testing.assert_allclose(index.idf, [idf[t] for t in index.terms], rtol=1e-15)
    z = index.tfidf()
    for row, words in enumerate(rows):
        expected = reference.tfidf(words, idf, 0.0)
        found = {index.terms[j]: v for j, v in zip(z[[row]].indices, z[[row]].data, strict=True)}
        assert found == pytest.approx(expected, rel=1e-14)
        counts = index.counts[[row]]
        found = dict(zip(counts.indices.tolist(), counts.data.tolist(), strict=True))
        assert found == Counter(index.word_ids[row].tolist())
    np.testing.assert_array_equal(z.tocsc().max(axis=0).toarray().ravel(), index.max_tfidf)


def test_dtypes_and_shapes_are_the_documented_ones(index):
    v = index.n_terms
    assert (index.document_frequency.dtype, index.document_frequency.shape) == (np.int64, (v,))
    assert (index.idf.dtype, index.idf.shape) == (np.float64, (v,))
    assert (index.max_tfidf.dtype, index.max_tfidf.shape) == (np.float64, (v,))
    assert index.counts.shape == index.tfidf().shape == (index.n_documents, v)
    assert index.n_documents == len(CORPUS)
    assert index.sentence(3) == CORPUS[3]
    assert index.words(3) == ["the", "the", "the", "cat", "sat", "."]


def test_indexes_are_equal_byte_for_byte_for_any_number_of_threads(tmp_path):
    for n_jobs in (1, 2, 5):
        una_fast.build_index(CORPUS * 50, n_jobs=n_jobs).save(tmp_path / str(n_jobs))
    files = {path.name: path.read_bytes() for path in (tmp_path / "1").iterdir()}
    for n_jobs in (2, 5):
        assert {path.name: path.read_bytes() for path in (tmp_path / str(n_jobs)).iterdir()} == files
