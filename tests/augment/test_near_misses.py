"""NearMisses: how edits are drawn, names, ids, any text, word lists, other languages, bad input."""

import pickle
import random
import tracemalloc
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
from una_fast.augment.edits import listed_edits
from una_fast.augment.near_misses import EDITS, MOST_BYTES, find_names
from una_fast.augment.word_lists import ENGLISH as ENGLISH_FILE
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


def test_german_nouns_are_no_names():
    lines = ["Gibt es eine Schule in Berlin?", "Wo ist der Bahnhof in Hamburg?", "Ist die Schule am Bahnhof?"]
    index = una_fast.build_index(lines * 5)
    assert {index.terms[i] for i in np.flatnonzero(find_names(index, (), {"eine", "der", "die"}))} == {
        "berlin",
        "hamburg",
    }
    near = NearMisses(index, edits=["name"])
    assert near.augment(lines[:1]) == ["Gibt es eine Schule in Hamburg?"] and near.explain(lines[2]).edit == "word"


def test_names_are_words_that_are_mostly_capitalised_inside_sentences_but_no_question_words():
    index = una_fast.build_index(["In Lima I saw Ann.", "Is Lima old, Ann's old", "the old lima bean; An old man"])
    assert {index.terms[i] for i in np.flatnonzero(find_names(index))} == {"lima", "ann", "an"}
    cased = una_fast.build_index(["In Lima and lima and Lima"], lowercase=False)
    assert {cased.terms[i] for i in np.flatnonzero(find_names(cased))} == {"Lima"}
    questions = una_fast.build_index(["Is it Lima? What is it?", "Is Peru far? What is it?"])
    names = find_names(questions, ENGLISH.words["question words"])
    assert {questions.terms[i] for i in np.flatnonzero(names)} == {"lima", "peru"}
    near = NearMisses(questions, edits=["name"])
    assert near.augment(["What is Lima?"]) == ["What is Peru?"] and near.explain("What is this?").edit == "word"


@pytest.fixture(scope="module")
def index():
    return una_fast.build_index(QUESTIONS * 40)


def test_a_name_becomes_another_one(index):
    near = NearMisses(index, edits=["name"])
    for row, text in enumerate(near.texts(range(8))):
        expected = {QUESTIONS[row].replace("Lima", "Peru"), QUESTIONS[row].replace("Peru", "Lima")} - {QUESTIONS[row]}
        assert text in expected if expected else text != QUESTIONS[row]
    assert near.augment(["in Zorg and Lima"]) == ["in Zorg and Peru"]  # an unseen word is not known to be a name
    none = NearMisses(una_fast.build_index(["no names at all", "none"]), edits=["name"])
    assert none.explain("no names at all").edit == "word"


def test_draws_equal_a_plain_implementation(index):
    """An edit that fits is drawn by weight, then uniformly one of its places, then one of the options there."""
    near, seed = NearMisses(index, seed=5), seed_of("near-misses", 5)
    for epoch in range(3):
        for row, text in enumerate(near.texts(range(8), epoch)):
            bits = [draw64(seed, epoch, row, position, 0) for position in range(3)]
            edits = listed_edits(QUESTIONS[row], ENGLISH)
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
    near = NearMisses(index, edits={"number": 4, "polarity": 1})
    made = Counter(near.explain(QUESTIONS[2], epoch).edit for epoch in range(400))
    assert set(made) == {"polarity", "number"}
    assert abs(made["number"] - 320) < 4 * 8  # 4 standard deviations
    everything = NearMisses(index, edits=EDITS)
    made = Counter(everything.explain(QUESTIONS[7], epoch).edit for epoch in range(500))
    assert set(made) == set(EDITS) and all(abs(n - 100) < 4 * 9 for n in made.values())


def test_explain_states_which_edit_was_made_where_and_why(index):
    near = NearMisses(index)
    told = near.explain("How do I start 2 phones", 1)
    assert told.result == told.sentence[: told.place] + told.new + told.sentence[told.place + len(told.old) :]
    assert told.fitting == ["polarity", "number"] and told.why and told.edit in str(told)
    word = near.explain("What is the capital of Peru?")
    assert (word.edit, word.why) == ("word", "the most important word of the sentence")
    assert word.result == word.sentence[: word.place] + word.new + word.sentence[word.place + len(word.old) :]
    assert near.explain("?!").edit == "" and near.explain("?!").result == "?!"


WORDS = (
    "Turn on the light not can't don't I can never 5 12, 2016. 1st what's The a is it safe to go? two first May".split()
)


def fuzzed_line(draw: random.Random) -> str:
    words = [draw.choice(WORDS) for _ in range(draw.randrange(1, 6))]
    words.insert(draw.randrange(len(words)), fuzz.text(draw))
    return draw.choice([" "] * 9 + ["  "]).join(words)


@pytest.mark.parametrize("n_odd", [20, pytest.param(2000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("family", FAMILIES)
def test_ids_equal_those_of_every_kind_of_tokenizer(family, n_odd):
    """2,000 odd lines in three epochs are 114,000 rows for all families together."""
    draw, tokenizer = random.Random(family), FAMILIES[family]()
    texts = [*QUESTIONS, "", " not  this", "don't", "Turn on 5", "? not", "x" * 99 + " is 5", "a\u00a0can not"]
    texts += [fuzzed_line(draw) for _ in range(n_odd)]
    index = una_fast.build_index(texts, lowercase=draw.random() < 0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        near = NearMisses(index, edits=EDITS, tokenizer=tokenizer)
    for epoch, length in enumerate((32, 8, 128)):
        found = near.token_ids(range(len(texts)), epoch, length)
        assert fuzz.compare(tokenizer, near.texts(range(len(texts)), epoch), found, length) == []


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 100))])
def test_ids_are_exact_for_random_tokenizers_and_texts(seed):
    draw = random.Random(seed)
    tokenizer, edits = fuzz.tokenizer(draw), draw.choice([{"polarity": 1, "number": 3}, EDITS, ["swap"]])
    index = una_fast.build_index([*(fuzzed_line(draw) for _ in range(150)), "", "not"], lowercase=draw.random() < 0.8)
    near, length = NearMisses(index, edits=edits, tokenizer=tokenizer), draw.choice([8, 12, 40, 200])
    texts, found = near.texts(range(152)), near.token_ids(range(152), max_length=length)
    assert fuzz.compare(tokenizer, texts, found, length) == []


def test_threads_and_processes_give_the_same_ids(index):
    near = NearMisses(index, tokenizer=bert_uncased(), n_jobs=2)
    expected = [near.token_ids(range(320), epoch)["input_ids"] for epoch in range(8)]
    copy = pickle.loads(pickle.dumps(near))
    with ThreadPoolExecutor(4) as pool:
        found = pool.map(lambda epoch: copy.token_ids(range(320), epoch)["input_ids"], range(8))
    assert all(map(torch.equal, found, expected))


def test_an_edit_that_fits_few_sentences_gives_a_warning():
    def warnings_of(n_fitting: int, n: int = 200, **settings):
        index = una_fast.build_index(["It is 5"] * n_fitting + ["ein Wort", "zwei"] * n)
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            near = NearMisses(index, edits=["number"], **settings)
        assert near.fits(range(len(index))).tolist() == [row < n_fitting for row in range(len(index))]
        return [str(one.message) for one in found if one.category is InputWarning]

    (few,) = warnings_of(0)
    assert "number fits 0 of 200" in few and "word_lists" in few
    assert warnings_of(4, 98) == [] and "number fits 3 of 199" in warnings_of(3, 98)[0]
    assert "word_lists" not in warnings_of(0, word_lists=ENGLISH_FILE)[0]


def test_word_lists_without_function_words_use_the_english_ones(tmp_path):
    index = una_fast.build_index(["of cats city upon"] + ["cats", "city"] * 3)
    lists = tmp_path / "lists.txt"
    for text, edit in (("[opposites]\na, b\n", "word"), ("[function words]\nthe\n", "swap")):
        lists.write_text(text, encoding="utf-8")
        assert NearMisses(index, edits=["swap"], word_lists=lists).explain("of cats city upon").edit == edit


def test_one_long_word_of_a_cased_index_takes_no_memory_for_each_term():
    index = una_fast.build_index([f"Word{n} is there{n}" for n in range(1000)] + ["x" * 20_000], lowercase=False)
    near = NearMisses(index, edits=["word"])
    tracemalloc.start()
    near.augment(["Word1 runs"])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10e6


def test_a_sentence_whose_places_are_no_int32_is_refused(monkeypatch):
    assert MOST_BYTES == np.iinfo(np.int32).max
    monkeypatch.setattr("una_fast.augment.near_misses.MOST_BYTES", 30)
    assert NearMisses().augment(["It is 5. \u00e9" + "x" * 19]) != ["It is 5. \u00e9" + "x" * 19]
    with pytest.raises(InputError, match="sentence 1 has 31 bytes: at most 30 can be read"):
        NearMisses().augment(["It is 5.", "It is 5. \u00e9" + "x" * 20])


def test_a_swap_finds_the_words_of_a_cased_index_in_any_case():
    index = una_fast.build_index(["Cats of LIMA", "of", "a b"], lowercase=False)
    assert NearMisses(index, edits=["swap"]).texts([0]) == ["LIMA of cats"]


def test_a_cased_index_never_returns_a_fitting_sentence_unchanged():
    """The words "Lima" and "lima" differ, but with the old word's capital they are the same text."""
    lines = ["We saw Lima.", "We saw lima.", "We saw LIMA.", "We saw Peru.", "the PERU"] * 4
    index = una_fast.build_index(lines, lowercase=False)
    for edits in (["word"], ["name"]):
        near = NearMisses(index, edits=edits)
        for epoch in range(60):
            found = near.texts(range(5), epoch)
            assert all(new.lower() != old.lower() for new, old in zip(found, lines, strict=False))


def test_without_an_index_polarity_and_numbers_of_any_text_change():
    near = NearMisses()
    index = una_fast.build_index(QUESTIONS)
    texts = [QUESTIONS[0], QUESTIONS[4], "Zorg has 7 toes", "", "a red cat", "\u2028 "]
    assert near.augment(texts, 3)[:3] == NearMisses(index).augment(texts, 3)[:3]
    assert all(new != old for new, old in zip(near.augment(texts)[:3], texts, strict=False))
    assert near.augment(texts)[3:] == ["", "a red cat", ""]
    told = near.explain("a red cat")
    assert (told.result, told.edit, told.fitting) == ("a red cat", "", [])
    assert pickle.loads(pickle.dumps(near)).augment(texts) == near.augment(texts)
    assert NearMisses(edits=["number"]).augment(["It is not 5"]) != ["It is 5"]
    for call in (
        lambda: near.texts([0]),
        lambda: NearMisses(edits=["name"]),
        lambda: NearMisses(tokenizer=bert_uncased()),
    ):
        with pytest.raises(InputError, match="needs an index: give NearMisses"):
            call()
    with pytest.raises(InputError, match="needs a tokenizer"):
        near.token_ids([0])


@pytest.mark.parametrize("near", [NearMisses(), NearMisses(una_fast.build_index(QUESTIONS))], ids=["any text", "index"])
@pytest.mark.parametrize("blank", ["", " ", "\u2028 "])
def test_a_blank_text_has_no_edit(near, blank):
    told = near.explain(blank)
    assert (told.result, told.edit, told.old, told.new) == ("", "", "", "") and near.augment([blank]) == [""]


def test_iterators_of_edits_and_files_are_read_once(index, tmp_path):
    (tmp_path / "lists.txt").write_text("[opposites]\nsafe, red\n", encoding="utf-8")
    near = NearMisses(index, edits=iter(["polarity"]), word_lists=iter([tmp_path / "lists.txt"]))
    assert near.edits == {"polarity": 1.0} and near.word_lists == [tmp_path / "lists.txt"]
    text = "Is it red to drink water after 9 pm?"
    assert near.texts([2]) == pickle.loads(pickle.dumps(near)).texts([2]) == [text]


@pytest.mark.parametrize(("edits", "named"), [
    (["polarty"], "'polarty'.* polarity"), (["zzz"], "'zzz'"), ([], r"edits=\[\]"), ({"number": "x"}, "number"),
    ({"number": 0}, "number"), ({"number": float("inf")}, "number"), ({"number": True}, "number"),
    ("polarity:1,number:4", "edits="), (3, "edits=3"), ([["number"]], "number"),
])  # fmt: skip
def test_bad_edits_are_named(index, edits, named):
    with pytest.raises(InputError, match=named):
        NearMisses(index, edits=edits)


def test_bad_arguments_are_named(index):
    for call, named in (
        (lambda: NearMisses(index, edit=["number"]), "'edit'.* edits"),
        (lambda: NearMisses("x"), "^index='x'"),
        (lambda: NearMisses(index, word_lists="nowhere.txt"), "^word_lists: nowhere.txt"),
        (lambda: NearMisses(index).fits([-1]), "^rows: -1"),
    ):
        with pytest.raises(InputError, match=named):
            call()
    with pytest.raises(TypeError):
        NearMisses(index, ["number"])


def test_the_near_misses_of_a_seed_are_fixed(index):
    """Fixed values: if they change, so do the negatives of every run."""
    assert NearMisses(index, edits={"polarity": 1, "number": 4, "word": 1}).texts(range(8), 1) == [
        "How do I turn on light mode?",
        "Can I pay with 2 cards in June?",
        "Is eggs safe to drink water after 9 pm?",
        "Capital is the capital of Peru?",
        "Why does my phone stop before 3 hours?",
        "I pm n't open the 2nd file from Lima.",
        "People in Lima do hours like cold soup.",
        "Where do people in Peru buy 11 eggs?",
    ]
