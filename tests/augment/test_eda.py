"""EDA against its plain reference, draw for draw: when it changes a text, how many words, and its synonyms."""

from __future__ import annotations

import numpy as np
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

import una_fast
from support import reference
from una_fast import EDA, InputError
from una_fast.augment import eda as sources

OPERATIONS = ["synonym", "insert", "swap", "delete"]
TABLE = {"a": ["b", "two words", "zz"], "b": ["a"], "unseen": ["c", "rare one"], "d": ["d"]}
SENTENCES = st.lists(st.lists(st.sampled_from([*"abcd", "unseen", "other"]), max_size=9).map(" ".join), max_size=6)
LONG = " ".join(f"w{i}" for i in range(20))


def look_up(word):
    return [synonym for synonym in TABLE.get(word, []) if synonym != word]


def expected(words, row, operation, strength, seed=42, epoch=0):
    stream = xxhash.xxh3_64_intdigest(f"eda {operation} {seed}".encode())
    bits = lambda step, number: reference.draw64(stream, epoch, row, step, number)  # noqa: E731
    return " ".join(reference.edit(words, operation, strength, look_up, bits))


@pytest.mark.parametrize("operation", OPERATIONS)
@settings(max_examples=150)
@given(sentences=SENTENCES, strength=st.sampled_from([0.01, 0.1, 0.5, 1.0]), epoch=st.integers(0, 2))
def test_rows_and_text_are_the_reference_draw_for_draw(operation, sentences, strength, epoch):
    corpus = [*sentences, "a b c d"]
    index = una_fast.build_index([line.replace("unseen", "c") for line in corpus])
    eda = EDA(index, operation, strength, synonyms=TABLE)
    rows = [index.words(row) for row in range(len(corpus))]
    assert eda.texts(range(len(corpus)), epoch) == [
        expected(words, row, operation, strength, epoch=epoch) for row, words in enumerate(rows)
    ]
    keys = [xxhash.xxh3_64_intdigest(" ".join(line.split()).encode()) for line in corpus]
    found = eda.augment(corpus, epoch)
    assert found == [
        expected(line.split(), key, operation, strength, epoch=epoch) for line, key in zip(corpus, keys, strict=True)
    ]
    for line, edited in zip(corpus, found, strict=True):
        told = eda.explain(line, epoch)
        assert told.words == line.split() and " ".join(told.result) == edited
        assert str(told).endswith(edited) and told.to_dict() == {"words": told.words, "result": told.result}
        assert bool(edited) == bool(line.split()), "empty"
        could = {
            "synonym": any(map(look_up, told.words)),
            "insert": any(map(look_up, told.words)),
            "swap": len(set(told.words)) > 1,
            "delete": len(told.words) > 1,
        }
        assert (edited != " ".join(told.words)) == could[operation]


@pytest.mark.parametrize("strength", [0.1, 0.3])
def test_each_word_is_deleted_with_its_probability(strength):
    eda = EDA(una_fast.build_index([LONG] * 4000), "delete", strength)
    gone = np.array([20 - len(text.split()) for text in eda.texts(range(4000))])
    exact = strength + (1 - strength) ** 20 / 20  # if none is drawn, one is deleted all the same
    assert gone.mean() / 20 == pytest.approx(exact, abs=4 * (strength * (1 - strength) / 80_000) ** 0.5)
    assert gone.min() == 1


@pytest.mark.parametrize(("strength", "n"), [(0.01, 1), (0.1, 2), (0.25, 5)])
def test_a_share_of_the_words_is_changed(strength, n):
    table = {f"w{i}": [f"s{i}"] for i in range(20)}
    index = una_fast.build_index([LONG] * 300)
    replaced = EDA(index, "synonym", strength, synonyms=table).texts(range(300))
    assert {text.count("s") for text in replaced} == {n}
    counts = np.bincount([int(word[1:]) for text in replaced for word in text.split() if word[0] == "s"], minlength=20)
    assert counts.min() > 0, "every word is replaced at times"
    inserted = EDA(index, "insert", strength, synonyms=table).texts(range(300))
    assert {len(text.split()) for text in inserted} == {20 + n}
    assert {text.split()[0][0] for text in inserted} == {text.split()[-1][0] for text in inserted} == {"w", "s"}
    swapped = EDA(index, "swap", strength).texts(range(300))
    assert all(sorted(text.split()) == sorted(LONG.split()) for text in swapped)
    assert all(2 <= sum(a != b for a, b in zip(t.split(), LONG.split(), strict=True)) <= 2 * n for t in swapped)


def test_operations_draw_apart():
    index = una_fast.build_index([LONG])
    seeds = {EDA(index, operation, synonyms=TABLE)._seed for operation in OPERATIONS}
    assert len(seeds | {42}) == 5


def test_a_file_of_synonyms(tmp_path):
    path = tmp_path / "synonyms.tsv"
    path.write_text("cat\tfeline\ttom  cat\n\ncat\tfeline\tcat\tpuss\ndog\thound\n", encoding="utf-8")
    assert sources.read_table(path) == {"cat": ["feline", "tom cat", "puss"], "dog": ["hound"]}
    index = una_fast.build_index(["the cat sat"])
    assert EDA(index, "synonym", synonyms=path).texts([0])[0] in {f"the {s} sat" for s in ("feline", "tom cat", "puss")}
    for text, message in (("cat\n", "line 1: 'cat' has no synonym"), ("\n", "it holds no word")):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match=message):
            EDA(index, "insert", synonyms=path)
    with pytest.raises(InputError, match="gone.tsv: No such file"):
        EDA(index, "synonym", synonyms=tmp_path / "gone.tsv")
    path.write_bytes(b"\xff\tx\n")
    with pytest.raises(InputError, match="not UTF-8"):
        EDA(index, "synonym", synonyms=path)


class FakeWordNet:
    """Two attributes of nltk.corpus.wordnet: tests do not download its data."""

    def __init__(self, is_there: bool):
        self._is_there = is_there

    def ensure_loaded(self):
        if not self._is_there:
            raise LookupError("Resource 'wordnet' not found.")

    def synsets(self, word):
        return [self]

    def lemma_names(self):
        return ["cat", "true_cat", "Felis-catus", "true_cat"]


def test_wordnet_gives_the_lemmas_of_all_senses(monkeypatch):
    corpus = pytest.importorskip("nltk.corpus")
    monkeypatch.setattr(corpus, "wordnet", FakeWordNet(is_there=True))
    look_up = sources.wordnet_synonyms()
    assert look_up("cat") == ["true cat", "felis catus"]
    assert look_up("the") == look_up("42") == []


def test_a_wordnet_that_is_not_there_is_answered_with_the_command_that_fetches_it(monkeypatch):
    corpus = pytest.importorskip("nltk.corpus")
    monkeypatch.setattr(corpus, "wordnet", FakeWordNet(is_there=False))
    with pytest.raises(InputError, match="run `python -m nltk.downloader wordnet`, or give a TSV file"):
        EDA(una_fast.build_index(["a b"]))


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"operation": "x"}, "operation='x': must be 'synonym' or 'insert' or 'swap' or 'delete'"),
        *(({"strength": value}, "strength=.*above 0 and up to 1") for value in (0, -1, 1.1, float("nan"), "0.1", True)),
        ({"seed": 1.5}, "seed=1.5: give an integer"),
        ({"operation": "insert", "synonyms": 3}, "synonyms: got int"),
    ],
)
def test_settings_out_of_range_are_refused(setting, message):
    with pytest.raises(InputError, match=message):
        EDA(una_fast.build_index(["a b"]), **{"operation": "swap", **setting})
