"""Every kernel against its plain reference, on corpora that hypothesis makes: exact values, dtypes, ends, ties."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
from una_fast._kernels import csr
from una_fast._kernels.emit import Pieces, write_tokens
from una_fast._kernels.law import Law
from una_fast._kernels.negatives import Negatives, Workspace
from una_fast._kernels.probability import replacement_probabilities
from una_fast._kernels.replace import replace_terms
from una_fast.arrays import ID, POINTER, Ragged
from una_fast.scores import rank, score_terms
from una_fast.windows import score_windows

SENTENCES = st.lists(st.lists(st.integers(0, 30), max_size=12), min_size=1, max_size=30).filter(
    lambda rows: len({term for row in rows for term in row}) > 1
)
SETTINGS = st.fixed_dictionaries(
    {
        "beta": st.sampled_from([0.0, 0.3, 0.5, 1.0]),
        "variant": st.sampled_from(["paper", "released"]),
        "select": st.sampled_from(["tfidf", "random"]),
        "replace": st.sampled_from(["tfidf", "random"]),
    }
)


def ragged(rows) -> Ragged:
    indptr = np.zeros(len(rows) + 1, dtype=POINTER)
    np.cumsum([len(row) for row in rows], out=indptr[1:])
    return Ragged(np.array([v for row in rows for v in row], dtype=ID), indptr)


def ranked(rows):
    """The rows with ids that are ranks, and the reference's ranking: the ids of a made-up corpus, renumbered."""
    order = reference.ranking(rows)
    place = {term: i for i, term in enumerate(order)}
    return [[place[term] for term in row] for row in rows]


def law(scores, n_documents, *, beta=0.5, radius=3, seed=7, variant="paper", select="tfidf", replace="tfidf",
        window="rank"):
    bounds = score_windows(scores.max_tfidf, radius) if window == "score" else (np.empty(0, ID),) * 2
    return Law(
        scores.idf, scores.max_tfidf, *bounds, unseen_idf=math.log(n_documents), beta=beta, radius=radius, seed=seed,
        by_score=window == "score", released=variant == "released", random_select=select == "random",
        random_replace=replace == "random",
    )


def weigh(rules, words):
    first = np.empty(len(words.values), dtype=ID)
    z, p = np.empty((2, len(words.values)))
    replacement_probabilities(rules, words.values, words.indptr, first, z, p)
    return first, z, p


@given(SENTENCES)
def test_scores_and_ranks_are_equation_2(rows):
    order = reference.ranking(rows)
    first_seen = list(dict.fromkeys(term for row in rows for term in row))
    words = ragged([[first_seen.index(term) for term in row] for row in rows])
    scores = score_terms(words, len(first_seen), n_jobs=3)
    idf, highest = reference.idf(rows), reference.max_tfidf(rows)
    np.testing.assert_allclose(scores.idf, [idf[t] for t in first_seen], rtol=1e-15)
    np.testing.assert_allclose(scores.max_tfidf, [highest[t] for t in first_seen], rtol=1e-14)
    assert scores.document_frequency.tolist() == [sum(t in row for row in rows) for t in first_seen]
    np.testing.assert_allclose(
        scores.max_tfidf[rank(scores.max_tfidf)], [highest[t] for t in order], rtol=1e-14
    )
    assert np.all(np.diff(scores.max_tfidf[rank(scores.max_tfidf)]) <= 0)


def test_rank_breaks_ties_by_first_appearance():
    assert rank(np.array([0.5, 1.0, 0.5, 1.0, 0.5])).tolist() == [1, 3, 0, 2, 4]


@given(SENTENCES)
def test_counts_are_those_of_a_counter(rows):
    words = ragged(rows)
    indptr = np.empty(len(rows) + 1, dtype=POINTER)
    indices, counts = np.empty((2, len(words.values)), dtype=ID)
    csr.warm_up()
    end = csr.count_terms(words.values, words.indptr, indptr, indices, counts)
    assert end == indptr[-1]
    for i, row in enumerate(rows):
        found = list(zip(indices[indptr[i] : indptr[i + 1]], counts[indptr[i] : indptr[i + 1]], strict=True))
        assert found == sorted(Counter(row).items())


@given(st.lists(st.integers(0, 20), max_size=50), st.permutations(range(21)))
def test_relabel_replaces_each_value_by_its_label(values, labels):
    csr.warm_up()
    found = np.array(values, dtype=ID)
    csr.relabel(found, np.array(labels, dtype=ID))
    assert found.tolist() == [labels[v] for v in values]


@given(st.lists(st.integers(0, 12), min_size=2, max_size=40), st.integers(1, 5))
def test_score_windows_hold_the_terms_within_the_distance(tenths, distance):
    scores = np.sort(np.array(tenths, dtype=float))[::-1].copy()
    start, stop = score_windows(scores, float(distance))
    for i in range(len(scores)):
        assert (start[i], stop[i]) == reference.score_window(scores.tolist(), i, None, distance)


@settings(max_examples=200)
@given(SENTENCES, SETTINGS)
def test_probabilities_are_equations_3_and_4(rows, setting):
    rows = ranked(rows)
    words = ragged(rows)
    scores = score_terms(words, int(words.values.max()) + 1)
    first, z, p = weigh(law(scores, len(rows), **setting), words)
    idf = dict(enumerate(scores.idf))
    for i, row in enumerate(rows):
        part = slice(*words.indptr[i : i + 2])
        by_term = reference.tfidf(row, idf, 0.0)
        assert first[part].tolist() == [row.index(term) for term in row]
        assert z[part].tolist() == [by_term[term] for term in row]
        assert p[part].tolist() == reference.probabilities(
            row, idf, 0.0, setting["beta"], setting["variant"], setting["select"]
        )


@settings(max_examples=300)
@given(SENTENCES, SETTINGS, st.sampled_from([("rank", 1), ("rank", 3), ("rank", 50), ("score", 0.2)]),
       st.integers(0, 2**64 - 1), st.integers(0, 3))
def test_negatives_are_the_reference_draw_for_draw(rows, setting, window, seed, epoch):
    rows = ranked(rows)
    words = ragged(rows)
    scores = score_terms(words, int(words.values.max()) + 1)
    rules = law(scores, len(rows), seed=seed, window=window[0], radius=window[1], **setting)
    kernel = Negatives(words, rules)
    out = np.empty_like(words.values)
    kernel.terms(np.arange(len(rows)), epoch, Workspace(12), out)
    by_row = _reference_negatives(rows, scores, setting, window, seed, epoch)
    assert out.tolist() == [term for row in by_row for term in row]

    first, z, p = weigh(rules, words)  # the stages one by one give what the fused kernel gives
    staged = np.empty_like(out)
    replace_terms(rules, np.arange(len(rows), dtype=np.uint64), epoch, words.values, words.indptr, first, z, p, staged)
    assert staged.tolist() == out.tolist()


def _reference_negatives(rows, scores, setting, window, seed, epoch):
    listed, idf = scores.max_tfidf.tolist(), dict(enumerate(scores.idf))
    window_of = reference.rank_window if window[0] == "rank" else reference.score_window
    return [
        reference.negative(
            row, listed, idf, math.log(len(rows)), lambda term, z: window_of(listed, term, z, window[1]), i,
            seed=seed, epoch=epoch, **setting,
        )
        for i, row in enumerate(rows)
    ]


@settings(max_examples=200)
@given(SENTENCES, SETTINGS, st.data(), st.sampled_from([("rank", 2), ("score", 0.3)]))
def test_unseen_words_stand_at_the_place_of_their_score(rows, setting, data, window):
    rows = ranked(rows)
    words = ragged(rows)
    n_terms = int(words.values.max()) + 1
    scores = score_terms(words, n_terms)
    text = data.draw(st.lists(st.lists(st.one_of(st.integers(0, n_terms - 1), st.sampled_from("abc")), max_size=8)))
    rules = law(scores, len(rows), window=window[0], radius=window[1], **setting)
    given_rows = ragged([[t if isinstance(t, int) else -1 - "abc".index(t) for t in row] for row in text])
    first, z, p = weigh(rules, given_rows)
    out = np.empty_like(given_rows.values)
    keys = np.arange(len(text), dtype=np.uint64)
    replace_terms(rules, keys, 0, given_rows.values, given_rows.indptr, first, z, p, out)
    idf, listed = dict(enumerate(scores.idf)), scores.max_tfidf.tolist()
    window_of = reference.rank_window if window[0] == "rank" else reference.score_window
    for i, row in enumerate(text):
        expected = reference.negative(
            row, listed, idf, math.log(len(rows)), lambda term, z: window_of(listed, term, z, window[1]), i,
            seed=7, epoch=0, **setting,
        )
        part = slice(*given_rows.indptr[i : i + 2])
        assert out[part].tolist() == [t if isinstance(t, int) else -1 - "abc".index(t) for t in expected]


PIECES = st.lists(st.lists(st.integers(1, 99), max_size=10), min_size=5, max_size=5)


@given(PIECES, st.one_of(st.none(), PIECES), st.lists(st.lists(st.integers(0, 4), max_size=9), max_size=6),
       st.integers(3, 20))
def test_token_writes_are_a_list_cut_and_padded(terms, first_terms, rows, length):
    pieces = ragged(terms)
    other = pieces if first_terms is None else ragged(first_terms)
    first_terms = terms if first_terms is None else first_terms
    words = ragged(rows)
    input_ids, attention_mask = np.full((2, len(rows), length), -7)
    writer = Pieces(pieces, other, np.array([101]), np.array([102, 103][: 1 + length % 2]), 0)
    write_tokens(writer, words.values, words.indptr, input_ids, attention_mask)
    suffix = [102, 103][: 1 + length % 2]
    for i, row in enumerate(rows):
        ids = [piece for k, t in enumerate(row) for piece in (first_terms if k == 0 else terms)[t]]
        ids = [101, *ids[: length - 1 - len(suffix)], *suffix]
        assert input_ids[i].tolist() == ids + [0] * (length - len(ids))
        assert attention_mask[i].tolist() == [1] * len(ids) + [0] * (length - len(ids))


def test_a_long_document_of_few_terms_needs_no_other_path():
    row = np.random.default_rng(0).integers(0, 50, 20_000).tolist()
    rows = ranked([row, list(range(50)), [3]])
    words = ragged(rows)
    scores = score_terms(words, 50)
    rules = law(scores, 3, variant="paper")
    first, _, p = weigh(rules, words)
    assert first[:20_000].tolist() == [rows[0].index(t) for t in rows[0]]
    assert p[:20_000].tolist() == reference.probabilities(rows[0], dict(enumerate(scores.idf)), 0.0, 0.5)


@pytest.mark.parametrize("batch", [1, 15, 16, 17, 33, 100])
def test_a_row_is_the_same_in_every_batch(batch):
    rng = np.random.default_rng(1)
    rows = ranked([rng.integers(0, 40, rng.integers(0, 9)).tolist() for _ in range(100)])
    words = ragged(rows)
    scores = score_terms(words, int(words.values.max()) + 1)
    kernel = Negatives(words, law(scores, 100, radius=5))
    order, work = rng.permutation(100), Workspace(9)
    whole = {}
    for start in range(0, 100, batch):
        part = order[start : start + batch]
        out = np.empty(sum(len(rows[r]) for r in part), dtype=ID)
        kernel.terms(part, 0, work, out)
        bounds = np.cumsum([0, *(len(rows[r]) for r in part)])
        whole |= {int(r): out[a:b].tolist() for r, a, b in zip(part, bounds, bounds[1:], strict=False)}
    expected = _reference_negatives(rows, scores, {"beta": 0.5}, ("rank", 5), 7, 0)
    assert [whole[r] for r in range(100)] == expected
