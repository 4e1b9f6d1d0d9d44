"""contradicts: the rule, its symmetry, word lists and bad input."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from una_fast import InputError, contradicts

PAIRS = {
    ("Can I turn it on?", "Can I turn it off?"): True,
    ("It is red", "It is not red"): True,
    ("It is never hot", "It is always cold"): False,  # an opposite and a negation cancel out
    ("Is it hot?", "Isn't it cold?"): False,
    ("I saw 2 cats", "I saw 3 cats"): True,
    ("I saw two cats", "I saw three cats"): True,
    ("I saw 2 cats", "I saw those 2 cats"): False,
    ("we go in May", "we go in June"): True,
    ("you may go", "you can go"): False,  # here "may" is not a month
    ("It is hot in Lima", "what a cold day"): False,  # fewer than half of the words are shared
    ("a b not c", "a b x y"): True,  # exactly half
    ("", ""): False,
    ("with sugar", "without sugar"): True,
    ("turn right now", "turn left now, wrong"): True,
    ("tea, no sugar", "tea, sugar"): True,
}


@pytest.mark.parametrize("pair", PAIRS)
def test_texts_contradict_each_other_by_parity_and_numbers(pair):
    assert contradicts(*pair) == contradicts(*reversed(pair)) == PAIRS[pair]


WORDS = "the is isn't not never hot cold on off turn right left wrong 2 3 two may June".split()


@given(*[st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)] * 2)
def test_it_is_symmetric_and_no_text_contradicts_itself(first, second):
    assert contradicts(first, second) == contradicts(second, first)
    assert not contradicts(first, first)


def test_word_lists_of_another_language(tmp_path):
    lists = tmp_path / "lists.txt"
    lists.write_text("[opposites]\nan, aus\n[negations]\nnicht\n", encoding="utf-8")
    assert contradicts("Das Licht ist an", "Das Licht ist aus", word_lists=lists)
    assert contradicts("Das mag ich", "Das mag ich nicht", word_lists=[lists])
    assert not contradicts("Das Licht ist an", "Das Licht ist aus")
    assert not contradicts("It is on, turn it", "It is off, turn it", word_lists=str(lists))


@pytest.mark.parametrize(("arguments", "settings", "named"), [
    (("a", 3), {}, " 3 "), ((None, "a"), {}, "None"),
    (("a", "b"), {"word_lists": "nowhere.txt"}, "^word_lists"), (("a", "b"), {"word_list": "x"}, "word_lists"),
])  # fmt: skip
def test_bad_input_is_named(arguments, settings, named):
    with pytest.raises(InputError, match=named):
        contradicts(*arguments, **settings)
