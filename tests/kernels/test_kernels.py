"""Every kernel against its plain reference, on corpora by hypothesis: exact values, ends of the ranking, ties."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from support import checks, reference
from support.checks import ragged, ranked, sampling_config, score, weigh
from una_fast.index.scores import rank

ROWS = st.lists(st.lists(st.integers(0, 30), max_size=12), min_size=1, max_size=30)
SENTENCES = ROWS.filter(lambda rows: len({term for row in rows for term in row}) > 1)
SETTINGS = st.fixed_dictionaries(
    {
        "beta": st.sampled_from([0.0, 0.3, 0.5, 1.0]),
        "variant": st.sampled_from(["paper", "released"]),
        "select": st.sampled_from(["tfidf", "random"]),
        "replace": st.sampled_from(["tfidf", "random"]),
        "every": st.sampled_from([None, 2, 5]),
    }
)
RADII = st.sampled_from([1, 3, 50])
PIECES = st.lists(st.lists(st.integers(1, 99), max_size=10), min_size=5, max_size=5)
ID_TYPES = st.sampled_from([np.uint16, np.int32])


@given(SENTENCES)
def test_scores_and_ranks_are_equation_2(rows):
    checks.check_scores(rows)


def test_rank_breaks_ties_by_first_appearance():
    assert rank(np.array([0.5, 1.0, 0.5, 1.0, 0.5])).tolist() == [1, 3, 0, 2, 4]


@given(st.lists(st.integers(0, 20), max_size=50), st.permutations(range(21)))
def test_relabel_replaces_each_value_by_its_label(values, labels):
    checks.check_relabel(values, labels)


@settings(max_examples=200)
@given(SENTENCES, SETTINGS)
def test_probabilities_are_equations_3_and_4(rows, setting):
    checks.check_probabilities(rows, setting)


@settings(max_examples=300)
@given(SENTENCES, SETTINGS, RADII, st.integers(0, 2**64 - 1), st.integers(0, 3))
def test_negatives_are_the_reference_draw_for_draw(rows, setting, radius, seed, epoch):
    checks.check_negatives(rows, setting, radius, seed, epoch)


@settings(max_examples=200)
@given(
    SENTENCES, st.lists(st.lists(st.one_of(st.integers(0, 30), st.sampled_from("abc")), max_size=8)), SETTINGS, RADII
)
def test_unseen_words_stand_at_the_place_of_their_score(rows, text, setting, radius):
    checks.check_unseen(rows, text, setting, radius)


@given(
    PIECES,
    st.one_of(st.none(), PIECES),
    st.lists(st.lists(st.integers(0, 4), max_size=9), max_size=6),
    st.integers(3, 20),
    st.booleans(),
)
def test_token_writes_are_a_list_cut_and_padded(terms, first_terms, rows, length, pads_left):
    checks.check_token_writes(terms, first_terms, rows, length, pads_left)


@given(PIECES, st.lists(st.integers(0, 4), max_size=9), st.integers(3, 20), ID_TYPES, st.booleans())
def test_padded_rows_are_a_list_cut_and_padded(sentences, rows, length, dtype, pads_left):
    checks.check_padded_rows(sentences, rows, length, dtype, pads_left)


def test_a_long_document_of_few_terms_needs_no_other_path():
    row = np.random.default_rng(0).integers(0, 50, 20_000).tolist()
    rows = ranked([row, list(range(50)), [3]])
    scores = score(rows)
    first, _, p = weigh(sampling_config(scores, 3), ragged(rows))
    assert first[:20_000].tolist() == [rows[0].index(t) for t in rows[0]]
    assert p[:20_000].tolist() == reference.probabilities(rows[0], dict(enumerate(scores.idf)), 0.0, 0.5)
