"""A text augmentation written in Python: its words, its draws, and what `edit` returns.

test_text_augmentations.py has the tests that it shares with all others.
"""

import itertools

import pytest

import una_fast
from support.tokenizer_families import training_lines
from una_fast.augment.base import WordAugmentation
from una_fast.augment.counter_rng import CounterRNG

TEXTS = [*training_lines()[:60], ""]


class Rotation(WordAugmentation):
    """Moves a drawn number of first words of a sentence to its end."""

    def edit(self, words: list[str], draws: CounterRNG) -> list[str]:
        at = int(draws.below(len(words), 1)[0, 0])
        return words[at:] + words[:at]


@pytest.fixture(scope="module")
def rotation():
    return Rotation(una_fast.build_index(TEXTS), seed=7)


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
    assert (told.words, told.result) == (["one", "two"], "two one")
    for wrong in (" ".join, lambda words: None, lambda words: [1]):
        Reversed.of = staticmethod(wrong)
        with pytest.raises(una_fast.InputError, match=r"Reversed.edit made .* of \['one', 'two'\]: .* a list of str"):
            Reversed(rotation.index).augment(["one two"])
