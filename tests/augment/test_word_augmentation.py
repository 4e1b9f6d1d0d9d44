"""A text augmentation written in Python has the methods of all others, and the same draws as the kernels."""

import itertools
import pickle

import numpy as np
import pytest
import torch

import una_fast
from support.tokenizer_families import bert_uncased, training_lines
from una_fast.augment.counter_rng import CounterRNG
from una_fast.augment.surface import QUOTES
from una_fast.augment.word_augmentation import WordAugmentation

TEXTS = [*training_lines()[:60], ""]


class Rotation(WordAugmentation):
    """Moves a drawn number of first words of a sentence to its end."""

    def edit(self, words: list[str], draws: CounterRNG) -> list[str]:
        at = int(draws.below(len(words), 1)[0, 0])
        return words[at:] + words[:at]


@pytest.fixture(scope="module")
def rotation():
    return Rotation(una_fast.build_index(TEXTS), seed=7, tokenizer=bert_uncased())


def test_a_row_becomes_the_same_in_every_order_and_process(rotation):
    order = np.random.default_rng(0).permutation(len(TEXTS))
    together = rotation.texts(order, epoch=3)
    assert [rotation.texts([row], epoch=3)[0] for row in order] == together
    assert pickle.loads(pickle.dumps(rotation)).texts(order, epoch=3) == together
    others = [rotation.texts(order, 4), rotation.texts(order, 3, sample_index=1)]
    assert together not in others and others[0] != others[1]


def test_text_keeps_its_words_and_blank_text_stays_blank(rotation):
    texts = [*TEXTS, "words that nobody has ever indexed qwxz"]
    for text, made in zip(texts, rotation.augment(texts), strict=True):
        words = rotation.explain(text).words
        spelled = ['"' if word in QUOTES else word for word in words]
        assert sorted(made.split()) == sorted(spelled)
        assert str(rotation.explain(text)).endswith(made) or spelled != words
    assert rotation.texts([60]) == rotation.augment([""]) == [""]


def test_ids_are_the_tokenizers_on_the_text(rotation):
    texts = rotation.texts(range(len(TEXTS)), 1)
    expected = bert_uncased()(texts, truncation=True, padding="max_length", max_length=24, return_tensors="pt")
    found = rotation.token_ids(range(len(TEXTS)), 1, 24)
    assert all(torch.equal(found[key], expected[key]) for key in expected)


def test_classes_and_seeds_have_their_own_draws(rotation):
    class Other(Rotation):
        pass

    made = [kind(rotation.index, seed=seed).texts(range(60)) for kind in (Rotation, Other) for seed in (7, 8)]
    assert made[0] == rotation.texts(range(60))
    assert all(a != b for a, b in itertools.combinations(made, 2))


def test_edit_may_change_its_words_and_returns_a_list_of_them(rotation):
    class Reversed(WordAugmentation):
        def edit(self, words, draws):
            words.reverse()
            return self.of(words)

        of = staticmethod(lambda words: words)

    told = Reversed(rotation.index).explain("one two")
    assert (told.words, told.result) == (["one", "two"], ["two", "one"])
    for wrong in (" ".join, lambda words: None, lambda words: [1]):
        Reversed.of = staticmethod(wrong)
        with pytest.raises(una_fast.InputError, match=r"Reversed.edit made .* of \['one', 'two'\]: .* a list of str"):
            Reversed(rotation.index).augment(["one two"])


def test_seeds_and_units():
    draws = CounterRNG(3, 0, np.arange(50))
    units = draws.units(200)
    assert 0 <= units.min() and units.max() < 1 and abs(units.mean() - 0.5) < 0.02
    assert not np.array_equal(units, CounterRNG(4, 0, np.arange(50)).units(200))
    assert set(draws.below(3, 200).ravel()) == {0, 1, 2}
