"""Tests that every text augmentation must pass, and the checks of `WordAugmentation.edit`."""

import itertools
import pickle
import re
import sys

import numpy as np
import pytest
import torch

import una_fast
from support.small_runs import ROOT
from support.token_ids import assert_ids
from support.tokenizer_families import bert_uncased, roberta, training_lines
from una_fast import InputError
from una_fast.augment.base import TextAugmentation, WordAugmentation
from una_fast.augment.counter_rng import CounterRNG
from una_fast.augment.registry import AUGMENTATIONS, make_augmentation

TEXTS = [*training_lines()[:150], "", "Hello", "a b"]
TABLE = {"the": ["that one", "zorg"], "of": ["from"], "is": ["seems", "appears to be"], "statement": ["utterance"]}
SETTINGS: dict[str, dict] = {"eda-synonym": {"synonyms": TABLE}, "eda-insert": {"synonyms": TABLE}}


class Rotation(WordAugmentation):
    """An augmentation that moves a random number of words from the start of a sentence to its end."""

    def edit(self, words: list[str], draws: CounterRNG) -> list[str]:
        at = int(draws.below(len(words), 1)[0, 0])
        return words[at:] + words[:at]


@pytest.fixture(scope="module")
def index():
    return una_fast.build_index(TEXTS)


OTHERS = ["numba_una:una", "augment.test_text_augmentations:Rotation", "una_fast:HarmlessEdits"]


@pytest.fixture(scope="module", params=[*AUGMENTATIONS, *OTHERS])
def name(request):
    sys.path.insert(0, str(ROOT / "examples"))
    yield request.param
    sys.path.remove(str(ROOT / "examples"))


@pytest.fixture(scope="module")
def augmentation(index, name) -> TextAugmentation:
    return make_augmentation(name, index, tokenizer=bert_uncased(), n_jobs=2, **SETTINGS.get(name, {}))


def test_a_row_does_not_depend_on_its_batch_or_order(augmentation):
    order = np.random.default_rng(0).permutation(len(TEXTS))
    together = augmentation.texts(order, epoch=3)
    assert [augmentation.texts([row], epoch=3)[0] for row in order] == together
    assert together != augmentation.texts(order, epoch=4)


@pytest.mark.parametrize("make_tokenizer", [bert_uncased, roberta])
def test_ids_equal_those_of_the_tokenizer(index, name, make_tokenizer):
    tokenizer = make_tokenizer()
    augmentation = make_augmentation(name, index, tokenizer=tokenizer, **SETTINGS.get(name, {}))
    rows = np.arange(len(TEXTS))
    for sample_index in (0, 2):
        texts = augmentation.texts(rows, 1, sample_index=sample_index)
        assert_ids(augmentation.token_ids(rows, 1, 24, sample_index=sample_index), tokenizer, texts, 24)


def test_ids_do_not_depend_on_threads_or_out(augmentation):
    rows = np.arange(5000) % len(TEXTS)
    out = augmentation.token_ids(rows, 1)
    one = augmentation.token_ids(rows[:150], 1)
    assert torch.equal(out["input_ids"][:150], one["input_ids"])
    assert augmentation.token_ids(rows, 2, out=out)["input_ids"] is out["input_ids"]
    anchors = [augmentation.tokens.anchor_ids(part)["input_ids"] for part in (rows, rows[:2500], rows[2500:])]
    assert torch.equal(anchors[0], torch.cat(anchors[1:]))


def test_samples_differ_and_sample_0_is_the_default(augmentation):
    rows = range(150)
    sets = [augmentation.texts(rows, sample_index=k) for k in range(3)]
    assert sets[0] == augmentation.texts(rows)
    assert sets[0] != sets[1] != sets[2] != sets[0]
    texts = [augmentation.augment(TEXTS, sample_index=k) for k in range(3)]
    assert texts[0] == augmentation.augment(TEXTS)
    assert texts[0] != texts[1] != texts[2]
    assert str(augmentation.explain(TEXTS[5], 2, sample_index=1))
    for wrong in (-1, 2**64, "a", None):
        with pytest.raises(InputError, match="sample_index="):
            augmentation.texts([0], sample_index=wrong)


def test_an_augmentation_can_be_pickled_and_has_a_repr(augmentation, name):
    again = pickle.loads(pickle.dumps(augmentation))
    assert again.texts([0, 1, 2]) == augmentation.texts([0, 1, 2])
    assert repr(again) == repr(augmentation)
    assert repr(augmentation).startswith(f"<una_fast.{type(augmentation).__name__} of <una_fast.Index")
    assert augmentation.seed == 42 and "seed=" not in repr(augmentation)  # 42 is the default
    shown = re.findall("tokenizer=([^,>]+)", repr(augmentation), re.IGNORECASE)
    assert shown == [type(bert_uncased()).__name__]


def test_blank_text_stays_blank(augmentation):
    assert augmentation.texts([150]) == [""]
    assert [text.strip() for text in augmentation.augment(["", "  \t", "the word"])[:2]] == ["", ""]
    assert augmentation.augment([]) == []


def test_an_unknown_name_lists_the_choices(index):
    with pytest.raises(InputError, match="'eda-x'.* una, near-misses, eda-synonym"):
        make_augmentation("eda-x", index)


@pytest.fixture(scope="module")
def rotation():
    return Rotation(una_fast.build_index(TEXTS[:60]), seed=7)


def test_classes_and_seeds_draw_independently(rotation):
    class Other(Rotation):
        pass

    made = [kind(rotation.index, seed=seed).texts(range(60)) for kind in (Rotation, Other) for seed in (7, 8)]
    assert made[0] == rotation.texts(range(60))
    assert all(a != b for a, b in itertools.combinations(made, 2))


def test_edit_may_change_its_input_and_must_return_a_list_of_str(rotation):
    class Reversed(WordAugmentation):
        def edit(self, words, draws):
            words.reverse()
            return self.of(words)

        of = staticmethod(lambda words: words)

    explanation = Reversed(rotation.index).explain("one two")
    assert (explanation.words, explanation.result) == (["one", "two"], "two one")
    for wrong in (" ".join, lambda words: None, lambda words: [1]):
        Reversed.of = staticmethod(wrong)
        with pytest.raises(InputError, match="Reversed.edit.* returned"):
            Reversed(rotation.index).augment(["one two"])
