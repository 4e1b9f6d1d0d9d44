"""A word of a script without spaces is replaced by words of its script alone, and no other word by such."""

from __future__ import annotations

import random

import numpy as np
import pytest

import una_fast
from support.checks import reference_negatives
from una_fast.augment.counter_rng import SampleKey
from una_fast.augment.settings import scripts_of

WORDS = [
    "可以 修改 删去 地址 天气 电影 音乐 食べる ねこ".split(),
    "แมว หมา บ้าน รถ น้ำ".split(),
    "linux path file user".split(),
    ["ខ្មែរ"],
]
DRAW = random.Random(0)
KINDS = [WORDS[0], WORDS[0] + WORDS[2], WORDS[1], WORDS[2], WORDS[2] * 3 + WORDS[0][:1] + WORDS[3]]
LINES = ["|".join(DRAW.choices(DRAW.choice(KINDS), k=7)) for _ in range(200)]
ROWS = np.arange(len(LINES))


@pytest.fixture(scope="module")
def index():
    return una_fast.build_index(LINES, word_tokenizer=lambda text: text.split("|"))


def test_the_script_of_a_word():
    words = [*"北京 ひらがな カタカナ IT业 。 ＡＢ แมว ລາວ မြန်မာ ខ្មែរ path привет 한국어 —".split(), ""]
    assert scripts_of(words).tolist() == [1] * 6 + [2, 3, 4, 5] + [0] * 5


@pytest.mark.parametrize("radius", [1, 4, 30])
def test_negatives_are_those_of_the_reference(index, radius):
    una = una_fast.Augmenter(index, beta=0.7, radius=radius, seed=5)
    scripts = scripts_of([*index.terms]).tolist()

    def others_of(term):
        if scripts.count(scripts[term]) < 2:  # nothing else is of its script, and it is drawn for nothing but itself
            return frozenset()
        return frozenset(j for j, script in enumerate(scripts) if script != scripts[term])

    rows, setting = [row.tolist() for row in index.word_ids], {"beta": 0.7, "others_of": others_of}
    expected = reference_negatives(rows, index, len(rows), radius, setting, seed=5, epoch=3)
    assert [row.tolist() for row in una._draw(una._documents, ROWS, SampleKey(3))] == expected


def test_unseen_words_too(index):
    una = una_fast.Augmenter(index, beta=1.0, radius=2)
    words = ["鸟", "นก", "ລາວ", "shell", "地址", "path", "ខ្មែរ"]
    for epoch in range(20):
        for word in una.explain("|".join(words), epoch).words:
            if word.word not in ("ລາວ", "ខ្មែរ"):  # no term is of the one's script, and no other of the other's
                near = [term for term, _ in word.candidates] + [word.replacement or word.word]
                assert {*scripts_of(near)} == {*scripts_of([word.word])}
            assert word.candidates


def test_without_it_both_surfaces_have_the_same_draws(index):
    paper, kept = (una_fast.Augmenter(index, surface=surface, same_script=False) for surface in ("paper", "kept"))
    drawn = [una._draw(una._documents, ROWS, SampleKey()).values for una in (paper, kept)]
    assert np.array_equal(*drawn)
    same = una_fast.Augmenter(index, surface="paper", same_script=True)
    assert paper.negatives(ROWS) == same.negatives(ROWS)
