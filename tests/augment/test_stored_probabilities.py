"""Probabilities stored with an index: they do not change the draws, and each set of settings has a separate folder."""

import pickle

import numpy as np
import pytest

import una_fast
from support.short_corpus import CORPUS
from support.token_ids import assert_ids
from support.tokenizer_families import bert_uncased, roberta
from una_fast.augment import una as una_module

LONG = " ".join(f"w{i % 3000}" for i in range(5000))  # more words than LONGEST_CHOICE
LINES = [*CORPUS, LONG]


def saved_in(folder):
    una_fast.build_index(LINES).save(folder)
    return una_fast.load_index(folder)


@pytest.fixture
def saved(tmp_path):
    return saved_in(tmp_path / "index")


@pytest.fixture(scope="module")
def bound(tmp_path_factory):
    """Return (index, tokenizer bound to it) of two tokenizers, for a saved index and for the same index in memory."""
    indexes = saved_in(tmp_path_factory.mktemp("stored") / "index"), una_fast.build_index(LINES)
    return [[(index, una_fast.TokenIds(index, make())) for index in indexes] for make in (bert_uncased, roberta)]


def folders(index):
    return sorted(path.name for path in index.path.glob("probabilities-*"))


def ids_of(index, tokens, lengths=(32,), **settings):
    una = una_fast.Augmenter(index, tokenizer=tokens, **settings)
    rows = np.tile(np.arange(len(LINES)), 2)
    batches = [una.token_ids(rows, epoch, length) for epoch in range(2) for length in lengths]
    return [(name, ids.numpy().tobytes()) for batch in batches for name, ids in batch.items()]


RANDOM = {"select": "random", "beta": 0.02}


@pytest.mark.parametrize(
    "setting", [{}, {"variant": "released"}, RANDOM, {"keep_words": ["the", "of"]}, {"replace": "random"}]
)
def test_the_draws_are_the_same_with_and_without_stored_probabilities(bound, setting):
    for saved, in_memory in bound:
        stored = ids_of(*saved, (8, 32, 6000), **setting)
        assert ids_of(*saved, (8, 32, 6000), keep_probabilities=False, **setting) == stored
        assert ids_of(*in_memory, (8, 32, 6000), **setting) == stored


@pytest.mark.parametrize("surface", ["kept", "paper"])
@pytest.mark.parametrize("beta", [0.0, 0.05])
def test_random_selection_replaces_at_least_one_word(saved, beta, surface):
    """If no draw is below beta, one word is replaced, which truncation can remove."""
    tokenizer = bert_uncased()
    una = una_fast.Augmenter(saved, beta=beta, select="random", surface=surface, tokenizer=tokenizer)
    rows = np.array([row for row in range(saved.n_documents) if saved.words(row)])
    texts, written = una.texts(rows), {"kept": saved.sentence, "paper": lambda row: " ".join(saved.words(row))}
    assert all(text != written[surface](row) for text, row in zip(texts, rows.tolist(), strict=True))
    for max_length in (4, 8, 32):
        assert_ids(una.token_ids(rows, max_length=max_length), tokenizer, texts, max_length)


def test_probabilities_are_computed_once_and_memory_mapped(saved, monkeypatch):
    first = ids_of(saved, bert_uncased())
    monkeypatch.setattr(una_module, "packed_words", None)  # fails if they are computed again
    again = una_fast.load_index(saved.path)
    assert ids_of(again, bert_uncased(), seed=42, radius=None) == first
    una = una_fast.Augmenter(again, tokenizer=bert_uncased(), seed=7, radius=3, replace="random")  # the same p
    assert pickle.loads(pickle.dumps(una)).token_ids([0]).keys() == una.token_ids([0]).keys()
    assert len(folders(saved)) == 1


def test_each_set_of_settings_has_a_separate_folder(saved):
    tokens = una_fast.TokenIds(saved, bert_uncased())
    settings = [{}, {"beta": 0.4}, {"select": "random"}, {"variant": "released"}]
    settings += [{"keep_words": words} for words in (["the"], ["of"], ["of", "unseen"])]
    for setting in settings:
        una_fast.Augmenter(saved, tokenizer=tokens, **setting)
    assert len(folders(saved)) == 6


def test_nothing_is_stored_if_not_needed_or_with_too_little_memory_or_too_many_terms(saved, monkeypatch):
    tokens = una_fast.TokenIds(saved, bert_uncased())
    una_fast.Augmenter(saved).texts([0])
    una_fast.Augmenter(saved, tokenizer=tokens, keep_probabilities=False)
    for limit, value in (("free_memory", lambda: 8 * len(saved.word_ids.values) - 1), ("MOST_ID_BITS", 4)):
        with monkeypatch.context() as patch:
            patch.setattr(una_module, limit, value)
            una_fast.Augmenter(saved, tokenizer=tokens).token_ids([0])
    assert folders(saved) == []


def test_probabilities_of_another_index_are_not_used(saved):
    """Another process can save another index to the same folder."""
    tokens = una_fast.TokenIds(saved, bert_uncased())
    expected = ids_of(saved, tokens)
    una_fast.build_index(LINES[::-1]).save(saved.path)
    other = una_fast.load_index(saved.path)
    theirs = ids_of(other, bert_uncased())
    assert ids_of(saved, tokens) == expected and ids_of(other, bert_uncased()) == theirs
    assert ids_of(other, bert_uncased(), keep_probabilities=False) == theirs
