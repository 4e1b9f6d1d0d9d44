"""Edits of one sentence: the exact texts that each rule makes, agreement, limits, and the cost of a long text."""

import time

import pytest

from una_fast._kernels.edits.finder import EditFinder, FoundBatch
from una_fast.augment import edits
from una_fast.augment.edits import listed_edits, swap_edits, word_ends
from una_fast.augment.word_lists import read_word_lists

ENGLISH = read_word_lists()

POLARITY = {
    # opposites, in the case of the word
    "Is it a GOOD phone": {"Is it a BAD phone"},
    "Best way": {"Worst way"},
    "How do I turn on dark mode?": {"How do I turn off dark mode?", "How do I turn on light mode?"},
    "I like it. Good cats": {"I like it. Bad cats"},
    "The Old Cat": {"The New Cat"},  # in title case, a capital does not make a name
    # the article agrees
    "an easy way": {"a hard way"},
    "A successful cat": {"An unsuccessful cat"},
    "a useful cat": {"a useless cat"},
    # negations that are inserted
    "the cats should sleep": {"the cats shouldn't sleep", "the cats should not sleep"},
    "I'm sure it\u2019s": {"I'm not sure it\u2019s"},
    "I have eaten": {"I haven't eaten", "I have not eaten"},
    "is one of us": frozenset(),
    "he was a cat": {"he wasn't a cat"},
    "he was Ann": {"he wasn't Ann"},
    # a question asks something else only after "why", or if a clause inside it is negated
    "Why does the sun shine?": {"Why doesn't the sun shine?"},
    "Why do I go?": {"Why do I not go?", "Why don't I go?"},
    "Why don't I go?": {"Why do I go?"},
    "Why people don't go?": {"Why people do go?"},
    "What are cats that can swim?": {"What are cats that can't swim?", "What are cats that can not swim?"},
    "Is it on if it is red?": {"Is it on if it isn't red?", "Is it on if it is not red?"},
    "Cats sleep. Do they? He can swim.": {
        "Cats sleep. Do they? He can't swim.",
        "Cats sleep. Do they? He can not swim.",
    },
    # infinitives and commands
    "the way to stay": {"the way to not stay"},
    "Turn around": {"Don't turn around", "Do not turn around"},
    "Don't go.": {"Go."},
    "We don't go.": {"We do go."},
    # no negation near another one
    "he should never eat": {"he should always eat"},
    "no one red cat can swim": {"no one red cat can't swim", "no one red cat can not swim"},
    "he can go up not": {"he can go up", "he can go down not"},
    "he can go on so not": {"he can go on so"},
    "the way to not eat": {"the way to eat"},
    "the way to never eat": {"the way to always eat"},
    "not a b c way to eat": {"not a b c way to not eat"},
    # negations that are removed
    "I can't see": {"I can see"},
    "I dont eat": {"I do eat"},
    "I cannot see": {"I can see"},
    "we do not eat": {"we do eat"},
    "we no longer eat": {"we eat"},
    "What should I not eat?": {"What should I eat?"},
    "the right hand": {"the left hand"},
    "the right time": {"the wrong time"},
    "my son has a cat": {"my daughter has a cat"},
    "With a tail": {"Without a tail"},
    "Is it legal to swim": {"Is it illegal to swim", "Is it legal to not swim"},
}
# texts without a polarity edit
WITHOUT_POLARITY = (
    # both opposites, a name, no auxiliary, no imperative, a negation that must stay
    "a book on cats|more than 3 cats|the good and the bad|Courtney Love sings|Besides, Major Ann sings|Why am I|"
    "What is a cat|I have a cat|what I do|free will and a can|the way to the sea|Turn around?|we eat, or not|"
    "not only cats|(not) cats|Show Business|it does its work|a 14-strong cat|"
    # questions that ask the same with a negation
    "Is it?|Can I turn it|Does the sun shine|CAN\u2019T WE|Isn't it red?|Don't you go?|Don't cats go?|"
    "How do I go?|"
    "How can cats swim|Who can swim|What does it do|Which cat has eaten?|Who would go?|Is it not here?|"
    "Do cats not eat?|"
    "Can any cat swim and why?|How do I know that it is on?|Did he swim or did Ann?|Cats are here?|"
    # a second negation near the first
    "no one cat can swim|not the way to eat|not a b way to eat|"
    # words that another word needs
    "from time to time|the hot dog|it works before|two or more|from A to Z|full species|an illegal scholar|"
    "the only possible way|above all|a safe seat|the new-comers|cats in love|six more cats|"
    "we add it to it|the top block|there is no way|"
    "we stay, how do cats that swim eat?|how much is it? and how much is it|"
    "taking advantage of it|a cat with a tail|"
    # words that fit no opposite nearby
    "my husband and his cat|her son|they sold it to a b c|I can\u2019t swim but I fly|why should/shouldn't they|"
    "a \\big cat"
)

IN_TEXT = {
    "at 12 am": {f"at {hour} am" for hour in range(6, 12)},
    "at 7 a.m.": {f"at {hour} a.m." for hour in range(2, 13)} - {"at 7 a.m."},
    "95 %": {f"{n} %" for n in range(48, 143)} - {"95 %"},
    "95 percent": {f"{n} percent" for n in range(48, 101)} - {"95 percent"},
    "at 1:08 am": {f"at {n}:08 am" for n in range(2, 7)},
    "95%": {f"{n}%" for n in range(48, 101)} - {"95%"},
    "99.9%": {f"{n // 10}.{n % 10}%" for n in range(949, 1001)} - {"99.9%"},
    "the 1st": {"the 2nd", "the 3rd", "the 4th", "the 5th", "the 6th"},
    "the 11TH": {f"the {n}" for n in ("6TH", "7TH", "8TH", "9TH", "10TH", "12TH", "13TH", "14TH", "15TH", "16TH")},
    "the 9th or the 11th": {f"the {n}th or the 11th" for n in (4, 5, 6, 7, 8, 10, 12, 13, 14)} - {"the 9th or the 11th"}
    | {f"the 9th or the {n}th" for n in (6, 7, 8, 10, 12, 13, 14, 15, 16)},
    "4.0.2": {f"{a}.0.2" for a in range(1, 10) if a != 4}
    | {f"4.{b}.2" for b in range(1, 6)}
    | {f"4.0.{c}" for c in (1, 3, 4, 5, 6, 7)},
    "Two cats": {f"{n} cats" for n in "Three Four Five Six Seven Eight Nine Ten Eleven Twelve".split()},
    "may 5": {f"{month} 5" for month in ENGLISH.classes["may"]} | {f"may {n}" for n in range(1, 11)} - {"may 5"},
    "in May": {f"in {month.capitalize()}" for month in ENGLISH.classes["may"]},
    "a second, first of all": {
        f"a {n}, first of all" for n in ENGLISH.classes["second"] if n not in ("first", "eighth")
    }
    | {"an eighth, first of all"},
    "every minute": {"every hour", "every day"},
    "my second cat": {f"my {n} cat" for n in ENGLISH.classes["second"]},
    "5 years": {"5 days", "5 weeks", "5 months"} | {f"{n} years" for n in range(2, 11)} - {"5 years"},
    # notation and limits
    "12": {"6", "7", "8", "9", "10", "11", "13", "14", "15", "16", "17", "18"},
    "0": {"1", "2", "3", "4", "5"},
    "500": {"100", "200", "300", "400", "600", "700", "800", "900", "1000"},
    "100": {"50", "60", "70", "80", "90", "110", "120", "130", "140", "150"},
    "2016": {str(year) for year in range(2007, 2026)} - {"2016"},
    "1,000": {"1,100", "1,200", "1,300", "1,400", "1,500"},
    "1.3": {"0.7", "0.8", "0.9", "1.0", "1.1", "1.2", "1.4", "1.5", "1.6", "1.7", "1.8", "1.9"},
    "007": {"002", "003", "004", "005", "006", "008", "009", "010", "011", "012"},
    "\u0663": {"\u0661", "\u0662", "\u0664", "\u0665", "\u0666", "\u0667", "\u0668"},  # Arabic digits
    "$1,000.50": {f"${n}.50" for n in ("1,100", "1,200", "1,300", "1,400", "1,500")},
    "12.1": {f"{n // 10}.{n % 10}" for n in range(71, 172)} - {"12.1"},
    "100.0": {f"{n}.0" for n in range(50, 151, 10)} - {"100.0"},
    "23:30": {f"{n}:30" for n in range(12, 24)} - {"23:30"},
    "10:30": {f"{n}:30" for n in range(5, 16)} - {"10:30"},
    "2:1": {f"{n}:1" for n in (3, 4, 5, 6, 7)},
    "12/31": {f"{n}/31" for n in range(6, 12)} | {f"12/{n}" for n in range(16, 32)} - {"12/31"},
    "on 3-11-99": {f"on {n}-11-99" for n in (1, 2, 4, 5, 6, 7, 8)}
    | {f"on 3-{n}-99" for n in (6, 7, 8, 9, 10, 12)}
    | {f"on 3-11-{n}" for n in range(50, 149) if n != 99},
    "31 December": {f"{n} December" for n in range(16, 31)},
    "June 30": {"June 10", "June 20"},  # not every month has a 30th
    "the 1990s": {f"the {n}0s" for n in range(194, 205)} - {"the 1990s"},
    "in his 20s": {f"in his {n}0s" for n in range(3, 8)},
    "28th June": {f"28th {month.capitalize()}" for month in ENGLISH.classes["june"]}
    | {f"{n}th June" for n in (*range(14, 21), *range(24, 28))}
    | {"21st June", "22nd June", "23rd June"},
    "10-12 cats": {f"{n}-12 cats" for n in range(5, 12) if n != 10}
    | {f"10-{n} cats" for n in range(11, 19) if n != 12},
    "2008\u201312": {f"{n}\u201312" for n in range(1999, 2012) if n != 2008}
    | {f"2008\u2013{n}" for n in range(9, 19) if n != 12},
    "24-29 May": {f"{n}-29 May" for n in range(12, 29) if n != 24} | {f"24-{n} May" for n in range(25, 29)},
    "5km": {f"{n}km" for n in range(1, 11) if n != 5} | {"5miles"},
    "the 1980s and 1990s": {f"the {n}0s and 1990s" for n in range(193, 204) if n not in (198, 199)}
    | {f"the 1980s and {n}0s" for n in range(194, 205) if n not in (198, 199)},
    "from 3 to 5": {"from 2 to 5", "from 4 to 5"} | {f"from 3 to {n}" for n in (4, 6, 7, 8, 9, 10)},
    "the first 20 cats": {f"the first {n} cats" for n in range(10, 31) if n != 20},
    # agreement
    "2 crore": {f"{n} crore" for n in (1, 3, 4, 5, 6, 7) if n > 1} | {"2 lakh"},
    "lakhs": {"crores"},
    "an 8": {f"a {n}" for n in (3, 4, 5, 6, 7, 9, 10, 12, 13)} | {"an 11"},
    "twice a day": {"once a day", "twice an hour", "twice a minute"}
    | {f"twice a {n}" for n in ("week", "month", "year")},
    "twenty-two": {f"{n}-two" for n in ("thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")},
    "1 cat": frozenset(),
    "1": {"2", "3", "4", "5", "6"},
    "2 or 4": {f"{n} or 4" for n in (3, 5, 6, 7)} | {f"2 or {n}" for n in (1, 3, 5, 6, 7, 8, 9)},
    "\u79c1\u306f3\u6642": {f"\u79c1\u306f{n}\u6642" for n in (1, 2, 4, 5, 6, 7, 8)},
}
WITHOUT_NUMBER = (
    "b2b and a@b1.com, http://x.org/1|see www.x.org/1 2nd@x|no one|May I|minute|the Day After|"
    "24/7|he first slept|"
    # seasons, names, one number in two places, parts of a known number
    "2008-09|in 2015/16|1999\u201300|2008\u20112009|28\u201329|mp3 in 3D|Road 404 (Rv404)|3 of them|one or two cats|"
    "the second largest|in '99|the second half|all three cats|the two cats|two thirds|the top 1 cat|" + "1" * 16
)

TEXTS_OF = {
    "polarity": POLARITY | dict.fromkeys(WITHOUT_POLARITY.split("|"), frozenset()),
    "number": IN_TEXT | dict.fromkeys(WITHOUT_NUMBER.split("|"), frozenset()),
}


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, texts in TEXTS_OF.items() for text in texts])
def test_each_edit_makes_exactly_these_texts(kind, text):
    edits, expected = listed_edits(text, ENGLISH)[kind], TEXTS_OF[kind][text]
    assert {edit._replace(options=[new]).applied(text) for edit in edits for new in edit.options} == expected


def test_important_words_change_places():
    scores = {"does": 0.1, "kayla": 3.0, "really": 1.0, "like": 2.0, "mary": 3.1}
    found = swap_edits("Does Kayla really like Mary?", scores, ["does"], ENGLISH)
    assert [edit.options for edit in found] == [("Mary really like Kayla",)]
    (edit,) = swap_edits("Cats of Lima", {"cats": 2.0, "of": 0.0, "lima": 2.0}, (), ENGLISH)
    assert (edit.start, edit.stop, edit.options) == (0, 12, ("Lima of cats",))
    (edit,) = swap_edits("Cats OF lima", {"cats": 2.0, "lima": 2.0}, (), ENGLISH)
    assert edit.options == ("Lima OF cats",)
    assert swap_edits("the of one", {"the": 1.0, "of": 1.0, "one": 1.0}, {"the"}, ENGLISH) == []
    assert swap_edits("", {}, (), ENGLISH) == []


def test_only_the_most_important_words_of_a_long_text_change_places(monkeypatch):
    monkeypatch.setattr(edits, "MOST_SWAPPED", 3)
    words = "ant bee cat dog elk fox".split()
    scores = dict(zip(words, (9, 1, 9, 9, 1, 9), strict=True))
    found = swap_edits(" a ".join(words), scores, (), ENGLISH)
    assert [(edit.start, edit.options) for edit in found] == [(0, ("cat a bee a ant",))]


def test_words_of_a_tokenizer_divide_text_without_spaces():
    text, words = "\u5f7c\u306f5\u6642 don't", ENGLISH.finder.words
    assert words(text)[0] == ["\u5f7c\u306f", "5", "\u6642", "don't"]
    divided, places = words(text, word_ends(text, ["\u5f7c", "\u306f", "5", "\u6642", "don't"]))
    assert divided == ["\u5f7c", "\u306f", "5", "\u6642", "don't"]
    assert places == [(0, 1), (1, 2), (2, 3), (3, 4), (5, 10)]
    assert word_ends(text, ["\u306f", "\u5f7c"]) is None  # not in this order
    assert words("12.50", word_ends("12.50", ["12", ".", "50"]))[0] == ["12.50"]
    assert word_ends("\u0130x", ["x"]) is None  # the lower case is longer


PARTS = "5 cats |is not good, turn on |1/2 |a@b |www.a1|Good |2-|A. is |\u00e9 5 |7.7.|up|an |5-|5/|5 to |to 5."


@pytest.mark.parametrize("part", [*PARTS.split("|"), "{0} is not {0}1:30 www.a.org 1/2/{0} an old {0}0s {0}2-{0}5 "])
def test_the_cost_of_a_long_text_is_that_of_its_parts(part):
    """A quadratic cost would be 25 times as high for 5 times the words."""

    def seconds(n: int) -> float:
        text = "".join(part.replace("5", "{0}").format(k) for k in range(10**6, 10**6 + 200 * n, 200))
        finder = EditFinder(ENGLISH)  # a used one knows the numbers of the shorter text
        found, start = FoundBatch(), time.process_time()
        finder.find(text, found)
        found.to_bytes(text, 2)
        return time.process_time() - start

    assert min(seconds(2_500) for _ in range(2)) < 15 * max(*(seconds(500) for _ in range(2)), 1e-4)
