"""HarmlessEdits: each edit by its exact results, which of them are made, and rows that stay."""

from __future__ import annotations

import pytest

import una_fast
from support.reference import draw64
from una_fast import HarmlessEdits, InputError
from una_fast.augment import harmless
from una_fast.augment.counter_rng import seed_of
from una_fast.augment.edits import Sentence
from una_fast.augment.word_lists import read_word_lists

ENGLISH = read_word_lists()
LINES = ["How do I reset the phone?", "What is a cat", "it is cold.", "東京", "?!", "", "I don't know"]


def results(text: str, find) -> set[str]:
    edits = find(Sentence(text), ENGLISH)
    return {f"{text[: edit.start]}{new}{text[edit.stop :]}" for edit in edits for new in edit.options}


CASES = [
    (
        harmless.openings,
        "Can I fly",
        {f"{opening} fly" for opening in ("Can you", "Can one", "Is it possible to", "Is there a way to")}
        | {"Is there any way to fly"},
    ),
    (harmless.openings, "should I go", {"should one go"}),
    (harmless.openings, "should one go", {"should i go"}),  # all in lower case, "i" too
    (harmless.openings, "How to", set()),
    (harmless.contractions, "What is it", {"What's it"}),
    (harmless.contractions, "it's cold and I'm ill", {"it is cold and I'm ill", "it's cold and I am ill"}),
    (harmless.contractions, "We don't know", {"We do not know"}),
    (harmless.contractions, "Why don't we", set()),  # not "Why do not we"
    (harmless.contractions, "they cannot", {"they can't"}),
    (harmless.articles, "buy the car or a bus", {"buy car or a bus", "buy the car or bus"}),
    (harmless.articles, "The car, a lot of the cars, vitamin A is", set()),
    (harmless.fillers, "Can I really go", {"Can I go"}),
    (
        harmless.fillers,
        "Can I go",
        {f"Can I {new} go" for new in ("actually", "basically", "just", "really", "simply")},
    ),
    (harmless.fillers, "I go", set()),
    (harmless.final_marks, "Go now!", {"Go now"}),
    (harmless.final_marks, "去吗？", {"去吗"}),
    (harmless.final_marks, "去吗", set()),
    (harmless.final_marks, "go now", {"go now."}),
    (harmless.final_marks, "How far is it", {"How far is it?"}),
    (harmless.final_marks, "wait...", set()),
    (harmless.first_letter, "Go Now", {"go Now"}),
    (harmless.first_letter, "go now", {"Go now"}),
    (harmless.first_letter, "NASA", set()),
    (harmless.first_letter, "東京", set()),
]


@pytest.mark.parametrize(("find", "text", "expected"), CASES)
def test_each_edit(find, text, expected):
    assert results(text, find) == expected


def plain(row: int, epoch: int, seed: int) -> str:
    """The text of a row by the law in plain words."""
    sentence, n = Sentence(LINES[row]), len(harmless.EDITS)
    fitting = [k for k, find in enumerate(harmless.EDITS) if sentence.words and find(sentence, ENGLISH)]
    fitting += [n] if sentence.words and LINES[row] != LINES[row].lower() else []
    if not fitting:
        return LINES[row]
    chosen = [k for k in fitting if draw64(seed, epoch, row, k, 0) >= 2**63]
    text, changed = [*LINES[row], ""], set()
    for k in chosen or [fitting[draw64(seed, epoch, row, n + 1, 0) * len(fitting) >> 64]]:
        if k == n:
            text = [part.lower() for part in text]
            continue
        found = harmless.EDITS[k](sentence, ENGLISH)
        edit = found[draw64(seed, epoch, row, k, 1) * len(found) >> 64]
        new = edit.options[draw64(seed, epoch, row, k, 2) * len(edit.options) >> 64]
        if changed.isdisjoint(range(edit.start, edit.stop)):
            changed |= {*range(edit.start, edit.stop)}
            text[edit.start : edit.stop] = ["" for _ in range(edit.start, edit.stop)]
            text[edit.start] = new + text[edit.start]
    return "".join(text)


def test_each_fitting_edit_is_made_with_probability_one_half_and_one_at_least():
    index = una_fast.build_index(LINES)
    edits, seed = HarmlessEdits(index, seed=3), seed_of("harmless", 3)
    for epoch in range(20):
        texts = edits.texts(range(len(LINES)), epoch)
        assert texts == [plain(row, epoch, seed) for row in range(len(LINES))]
        assert [text == line for text, line in zip(texts, LINES, strict=True)] == [False] * 3 + [True] * 3 + [False]


def test_the_draws_of_a_seed_are_fixed():
    """Fixed values: if they change, so do the positives of every run."""
    edits = HarmlessEdits(una_fast.build_index(LINES))
    assert edits.texts(range(7), 1) == [
        "how would i just reset the phone",
        "what's cat?",
        "it's cold.",
        "東京",
        "?!",
        "",
        "I do not know",
    ]
    assert edits.augment(LINES[:2], 2, sample_index=1) == [
        "What is the best way to actually reset the phone?",
        "what is cat?",
    ]


def test_bad_input():
    with pytest.raises(InputError, match="index='x': must be an Index"):
        HarmlessEdits("x")
