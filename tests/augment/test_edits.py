"""NearMisses: exact results of each edit, how edits are drawn, ids, other languages."""

import pickle
import random
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

import una_fast
from bench.endurance import fuzz_tokenizers as fuzz
from support.reference import draw64
from support.tokenizer_families import FAMILIES, bert_uncased
from una_fast import InputError, InputWarning, NearMisses
from una_fast.augment.counter_rng import seed_of
from una_fast.augment.edits import Sentence, near_numbers, number_edits, polarity_edits, swap_edits
from una_fast.augment.near_misses import BY_LISTS, EDITS, find_names, parse_edits
from una_fast.augment.word_lists import read_word_lists

ENGLISH = read_word_lists()
QUESTIONS = [
    "How do I turn on dark mode?",
    "Can I pay with 2 cards in March?",
    "Is it safe to drink water after 9 pm?",
    "What is the capital of Peru?",
    "Why does my phone stop after 3 hours?",
    "I can't open the 2nd file from Lima.",
    "People in Lima do not like cold soup.",
    "Where do people in Peru buy 12 eggs?",
]

POLARITY = {
    # opposites, in the case of the word
    "Is it a GOOD phone": {"Is it a BAD phone", "Is it not a GOOD phone", "Isn't it a GOOD phone"},
    "Best way": {"Worst way"},
    "How do I turn on dark mode?": {
        "How do I turn off dark mode?",
        "How do I turn on light mode?",
        "How do I not turn on dark mode?",
        "How don't I turn on dark mode?",
    },
    # negations that are inserted
    "Can I turn it": {"Can I not turn it", "Can't I turn it"},
    "Does the sun shine": {"Doesn't the sun shine"},
    "the cats should sleep": {"the cats shouldn't sleep", "the cats should not sleep"},
    "I'm sure it\u2019s": {"I'm not sure it\u2019s"},
    "there is no way, no one, more or less": {"there is way, no one, more or less"},
    "the right hand": {"the left hand"},
    "the right time": {"the wrong time"},
    "I have eaten": {"I haven't eaten", "I have not eaten"},
    "the way to stay": {"the way not to stay", "the way to not stay"},
    "Turn around": {"Don't turn around", "Do not turn around"},
    # negations that are removed
    "I can't see": {"I can see"},
    "CAN\u2019T WE": {"CAN WE"},
    "I dont eat": {"I do eat"},
    "I cannot see": {"I can see"},
    "we do not eat": {"we do eat"},
    "we no longer eat": {"we eat"},
}
# texts without a polarity edit: no or both opposites, a name, no auxiliary, no imperative, a negation that must stay
WITHOUT_POLARITY = (
    "a book on cats|more than 3 cats|the good and the bad|Courtney Love sings|Why am I|What is a cat|I have a cat|"
    "what I do|free will and a can|the way to the sea|Turn around?|we eat, or not|not only cats|(not) cats"
)

IN_TEXT = {
    "at 12 am": {f"at {hour} am" for hour in range(6, 12)},
    "95 %": {f"{n} %" for n in range(48, 143)} - {"95 %"},
    "95%": {f"{n}%" for n in range(48, 101)} - {"95%"},
    "the 1st": {"the 2nd", "the 3rd", "the 4th", "the 5th", "the 6th"},
    "the 11TH": {f"the {n}" for n in ("6TH", "7TH", "8TH", "9TH", "10TH", "12TH", "13TH", "14TH", "15TH", "16TH")},
    "10:30": {f"{n}:30" for n in range(5, 16)} - {"10:30"},
    "4.0.2": {f"{a}.{b}.{c}" for a, b, c in [*((n, 0, 2) for n in range(1, 10)), *((4, n, 2) for n in range(1, 6))]}
    - {"4.0.2"}
    | {f"4.0.{n}" for n in (1, 3, 4, 5, 6, 7)},
    "Two cats": {f"{n} cats" for n in "Three Four Five Six Seven Eight Nine Ten Eleven Twelve".split()},
    "may 5": {f"{month} 5" for month in ENGLISH.classes["may"]} | {f"may {n}" for n in range(1, 11)} - {"may 5"},
    "in May": {f"in {month.capitalize()}" for month in ENGLISH.classes["may"]},
    "every minute": {"every hour", "every day"},
    "my second cat": {f"my {n} cat" for n in ENGLISH.classes["second"]},
    "5 years": {"5 days", "5 weeks", "5 months"} | {f"{n} years" for n in range(1, 11)} - {"5 years"},
}
WITHOUT_NUMBER = "b2b and a@b1.com, http://x.org/1|no one|May I|minute|a second, first of all|the Day After"

TEXTS_OF = {
    polarity_edits: POLARITY | dict.fromkeys(WITHOUT_POLARITY.split("|"), frozenset()),
    number_edits: IN_TEXT | dict.fromkeys(WITHOUT_NUMBER.split("|"), frozenset()),
}


@pytest.mark.parametrize(("find", "text"), [(find, text) for find, texts in TEXTS_OF.items() for text in texts])
def test_each_edit_makes_exactly_these_texts(find, text):
    edits, expected = find(Sentence(text), ENGLISH), TEXTS_OF[find][text]
    assert {edit._replace(options=[new]).applied(text) for edit in edits for new in edit.options} == expected


NUMBERS = {
    "12": {"6", "7", "8", "9", "10", "11", "13", "14", "15", "16", "17", "18"},
    "1": {"2", "3", "4", "5", "6"},
    "0": {"1", "2", "3", "4", "5"},
    "500": {"100", "200", "300", "400", "600", "700", "800", "900", "1000"},
    "100": {"50", "60", "70", "80", "90", "110", "120", "130", "140", "150"},
    "2016": {str(year) for year in range(2007, 2026)} - {"2016"},
    "1,000": {"1,100", "1,200", "1,300", "1,400", "1,500"},
    "1.3": {"0.7", "0.8", "0.9", "1.0", "1.1", "1.2", "1.4", "1.5", "1.6", "1.7", "1.8", "1.9"},
    "007": {"002", "003", "004", "005", "006", "008", "009", "010", "011", "012"},
    "\u0663": {"\u0661", "\u0662", "\u0664", "\u0665", "\u0666", "\u0667", "\u0668"},  # Arabic digits
    "1" * 16: set(),
}


@pytest.mark.parametrize("number", NUMBERS)
def test_a_number_becomes_a_close_number_in_the_same_notation(number):
    assert set(near_numbers(number)) == NUMBERS[number]


def test_important_words_change_places():
    scores = {"does": 0.1, "kayla": 3.0, "really": 1.0, "like": 2.0, "mary": 3.1}
    sentence = Sentence("Does Kayla really like Mary?")
    assert [edit.options for edit in swap_edits(sentence, scores, ["does"])] == [("Mary really like Kayla",)]
    (edit,) = swap_edits(Sentence("Cats of Lima"), {"cats": 2.0, "of": 0.0, "lima": 2.0}, ())
    assert (edit.start, edit.stop, edit.options) == (0, 12, ("Lima of cats",))
    assert swap_edits(Sentence("the of one"), {"the": 1.0, "of": 1.0, "one": 1.0}, {"the"}) == []
    assert swap_edits(Sentence(""), {}, ()) == []


def test_names_are_words_that_are_mostly_capitalised_inside_sentences_but_no_question_words():
    index = una_fast.build_index(["In Lima I saw Ann.", "Is Lima old, Ann's old", "the old lima bean; An old man"])
    assert {index.terms[i] for i in np.flatnonzero(find_names(index))} == {"lima", "ann", "an"}
    cased = una_fast.build_index(["In Lima and lima and Lima"], lowercase=False)
    assert {cased.terms[i] for i in np.flatnonzero(find_names(cased))} == {"Lima"}
    questions = una_fast.build_index(["Is it Lima? What is it?", "Is Peru far? What is it?"])
    names = find_names(questions, ENGLISH.words["question words"])
    assert {questions.terms[i] for i in np.flatnonzero(names)} == {"lima", "peru"}
    near = NearMisses(questions, "name")
    assert near.augment(["What is Lima?"]) == ["What is Peru?"] and near.explain("What is this?").edit == "word"


@pytest.fixture(scope="module")
def index():
    return una_fast.build_index(QUESTIONS * 40)


def test_a_name_becomes_another_one(index):
    near = NearMisses(index, "name")
    for row, text in enumerate(near.texts(range(8))):
        expected = {QUESTIONS[row].replace("Lima", "Peru"), QUESTIONS[row].replace("Peru", "Lima")} - {QUESTIONS[row]}
        assert text in expected if expected else text != QUESTIONS[row]
    assert near.augment(["in Zorg and Lima"]) == ["in Zorg and Peru"]  # an unseen word is not known to be a name
    none = NearMisses(una_fast.build_index(["no names at all", "none"]), "name")
    assert none.explain("no names at all").edit == "word"


def test_draws_equal_a_plain_implementation(index):
    """An edit that fits is drawn by weight, then uniformly one of its places, then one of the options there."""
    near, seed = NearMisses(index, "polarity:1,number:4", seed=5), seed_of("near-misses", 5)
    for epoch in range(3):
        for row, text in enumerate(near.texts(range(8), epoch)):
            bits = [draw64(seed, epoch, row, position, 0) for position in range(3)]
            edits = {name: BY_LISTS[name](Sentence(QUESTIONS[row]), ENGLISH) for name in ("polarity", "number")}
            weights = {name: {"polarity": 1, "number": 4}[name] for name in edits if edits[name]}
            if not weights:
                assert len(text.split()) == len(QUESTIONS[row].split()) and text != QUESTIONS[row]
                continue
            place, names = (bits[0] >> 11) / 2**53 * sum(weights.values()), [*weights]
            name = names[0] if place < weights[names[0]] else names[-1]
            edit = edits[name][bits[1] * len(edits[name]) >> 64]
            new = edit.options[bits[2] * len(edit.options) >> 64]
            assert text == QUESTIONS[row][: edit.start] + new + QUESTIONS[row][edit.stop :]


def test_edits_are_drawn_in_proportion_to_their_weights(index):
    near = NearMisses(index, "polarity:1,number:4")
    made = Counter(near.explain(QUESTIONS[2], epoch).edit for epoch in range(400))
    assert set(made) == {"polarity", "number"}
    assert abs(made["number"] - 320) < 4 * 8  # 4 standard deviations
    everything = NearMisses(index, "word,swap,name,number,polarity")
    made = Counter(everything.explain(QUESTIONS[7], epoch).edit for epoch in range(500))
    assert set(made) == set(EDITS) and all(abs(n - 100) < 4 * 9 for n in made.values())


def test_explain_states_which_edit_was_made_where_and_why(index):
    near = NearMisses(index)
    told = near.explain("How do I reset 2 phones", 1)
    assert told.result == told.sentence[: told.place] + told.new + told.sentence[told.place + len(told.old) :]
    assert told.fitting == ["polarity", "number"] and told.why and told.edit in str(told)
    word = near.explain("What is the capital of Peru?")
    assert (word.edit, word.why) == ("word", "the most important word of the sentence")
    assert word.result == word.sentence[: word.place] + word.new + word.sentence[word.place + len(word.old) :]
    assert near.explain("?!").edit == "" and near.explain("?!").result == "?!"


@pytest.mark.parametrize("family", FAMILIES)
def test_ids_equal_those_of_every_kind_of_tokenizer(index, family):
    texts = [*QUESTIONS, "", " not  this", "don't", "Turn on 5", "? not", "x" * 99 + " is 5", "a\u00a0can not"]
    index, tokenizer = una_fast.build_index(texts), FAMILIES[family]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        near = NearMisses(index, ",".join(EDITS), tokenizer=tokenizer)
    for epoch, length in ((0, 32), (1, 8), (2, 128)):
        found = near.token_ids(range(len(texts)), epoch, length)
        assert fuzz.compare(tokenizer, near.texts(range(len(texts)), epoch), found, length) == []


WORDS = (
    "Turn on the light not can't don't I can never 5 12, 2016. 1st what's The a is it safe to go? two first May".split()
)


def fuzzed_line(draw: random.Random) -> str:
    words = [draw.choice(WORDS) for _ in range(draw.randrange(1, 6))]
    words.insert(draw.randrange(len(words)), fuzz.text(draw))
    return draw.choice([" "] * 9 + ["  "]).join(words)


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 100))])
def test_ids_are_exact_for_random_tokenizers_and_texts(seed):
    draw = random.Random(seed)
    tokenizer, edits = fuzz.tokenizer(draw), draw.choice(["polarity,number:3", ",".join(EDITS), "swap"])
    index = una_fast.build_index([*(fuzzed_line(draw) for _ in range(150)), "", "not"], lowercase=draw.random() < 0.8)
    near, length = NearMisses(index, edits, tokenizer=tokenizer), draw.choice([8, 12, 40, 200])
    texts, found = near.texts(range(152)), near.token_ids(range(152), max_length=length)
    assert fuzz.compare(tokenizer, texts, found, length) == []


def test_threads_and_processes_give_the_same_ids(index):
    near = NearMisses(index, tokenizer=bert_uncased(), n_jobs=2)
    expected = [near.token_ids(range(320), epoch)["input_ids"] for epoch in range(8)]
    copy = pickle.loads(pickle.dumps(near))
    with ThreadPoolExecutor(4) as pool:
        found = pool.map(lambda epoch: copy.token_ids(range(320), epoch)["input_ids"], range(8))
    assert all(map(torch.equal, found, expected))


GERMAN = "an, aus\nimmer\tnie\nnicht\n"


def test_a_file_adds_the_opposites_of_another_language(tmp_path):
    lines = ["Das Licht ist immer an.", "Ich mag das nicht.", "Er kommt um 9 Uhr nicht an"] * 20
    index = una_fast.build_index(lines)
    with pytest.warns(InputWarning, match="polarity fits 0 of 60 sentences.*lists are English: give polarity=FILE"):
        NearMisses(index, "polarity")
    (tmp_path / "german.txt").write_text(GERMAN, encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        near = NearMisses(index, "polarity", polarity=tmp_path / "german.txt")
    made = [{near.texts([row], epoch)[0] for epoch in range(20)} for row in range(3)]
    assert made[0] == {"Das Licht ist nie an.", "Das Licht ist immer aus."}
    assert made[1] == {"Ich mag das."}
    assert made[2] == {"Er kommt um 9 Uhr an", "Er kommt um 9 Uhr nicht aus"}
    assert near.explain("Der Hund schläft").edit == "word"


def test_without_word_lists_digits_still_change_and_other_sentences_get_the_edit_word():
    index = una_fast.build_index(["私 は 3 時 に 行く", "彼 は 来る"] * 20, word_tokenizer="whitespace")
    with pytest.warns(InputWarning, match="polarity fits 0 of 40 sentences"):
        near = NearMisses(index)
    assert {near.explain("私 は 3 時 に 行く", epoch).edit for epoch in range(5)} == {"number"}
    assert near.explain("彼 は 来る").edit == "word"


def test_bad_input_raises_an_error_that_says_what_to_do(index, tmp_path):
    for edits, message in (
        ("polarty", r"no edit is called 'polarty': did you mean polarity\?"),
        ("zzz", "choose from polarity, number, name, swap, word"),
        ("", "no edit is called ''"),
        ("number:x", "the weight of number is 'x': give a number above 0"),
        ("number:0", "the weight of number is '0'"),
        ("number:inf", "the weight of number is 'inf'"),
    ):
        with pytest.raises(InputError, match=message):
            NearMisses(index, edits)
    assert parse_edits(" number : 2 , polarity") == {"polarity": 1.0, "number": 2.0}
    with pytest.raises(InputError, match="NearMisses has no argument 'edit': did you mean edits"):
        NearMisses(index, edit="number")
    path = tmp_path / "words.txt"
    for text, message in (
        ("a, b, c", "line 1: 'a, b, c' is not a line of .opposites.: give two different words"),
        ("on off\nbad, bad", "line 2: 'bad, bad' is not a line"),
        ("[opposite]", r"line 1: no section is called \[opposite\]: did you mean opposites"),
        ("[auxiliaries]\nis", "line 2: 'is' is not a line of .auxiliaries."),
    ):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match=message):
            NearMisses(index, polarity=path)
    with pytest.raises(InputError, match="index='x': must be an Index"):
        NearMisses("x")
    with pytest.raises(InputError, match="polarity: nowhere.txt: No such file"):
        NearMisses(index, polarity="nowhere.txt")


def test_the_near_misses_of_a_seed_are_fixed(index):
    """Fixed values: if they change, so do the negatives of every run."""
    assert NearMisses(index, "polarity:1,number:4,word:1").texts(range(8), 1) == [
        "How do I turn on light mode?",
        "Can I pay with 2 cards in June?",
        "Is eggs safe to drink water after 9 pm?",
        "Capital is the capital of Peru?",
        "Why does my phone stop before 3 hours?",
        "I pm n't open the 2nd file from Lima.",
        "People in Lima do hours like cold soup.",
        "Where do people in Peru buy 11 eggs?",
    ]
