"""EDA: fixed draws, when it changes a text, how many words it changes, and its synonyms."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import una_fast
from una_fast import EDA, InputError
from una_fast.augment import eda as sources

OPERATIONS = ["synonym", "insert", "swap", "delete"]
TABLE = {"a": ["b", "two words", "zz"], "b": ["a"], "unseen": ["c", "rare one"], "d": ["d"]}
SENTENCES = st.lists(st.lists(st.sampled_from([*"abcd", "unseen", "other"]), max_size=9).map(" ".join), max_size=6)
LONG = " ".join(f"w{i}" for i in range(20))


@pytest.fixture(scope="module")
def index():
    return una_fast.build_index(["a b c d", "b b a", "c d c a b other", LONG])


DRAWN = {  # at strength 0.5: rows 1 and 4 in epoch 1, then a text in epoch 2 with sample index 1
    "synonym": ["b b two words", "c d c b a other", "b rare one b new"],
    "insert": ["b b a b", "c a d a b c a b other", "a zz unseen b c new"],
    "swap": ["b a b", "a d b c other c", "b unseen a new"],
    "delete": ["b a", "c d a other", "b"],
}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_the_draws_of_a_seed_are_fixed(operation):
    """If these values change, so do the positives of every run."""
    corpus = una_fast.build_index(["a b c d", "b b a", "d", "", "c d c a b other"])
    eda = EDA(corpus, operation=operation, strength=0.5, synonyms=TABLE)
    drawn = [*eda.texts([1, 4], 1), *eda.augment(["a unseen b new"], 2, sample_index=1)]
    assert drawn == DRAWN[operation]


@pytest.mark.parametrize("operation", OPERATIONS)
@given(sentences=SENTENCES, strength=st.sampled_from([0.01, 0.1, 0.5, 1.0]), epoch=st.integers(0, 2))
def test_a_sentence_changes_if_it_can_and_is_never_empty(operation, index, sentences, strength, epoch):
    eda = EDA(index, operation=operation, strength=strength, synonyms=TABLE)
    for line, edited in zip(sentences, eda.augment(sentences, epoch), strict=True):
        words = line.split()
        has_synonyms = any(set(TABLE.get(word, [])) - {word} for word in words)
        could = {"synonym": has_synonyms, "insert": has_synonyms, "swap": len(set(words)) > 1, "delete": len(words) > 1}
        assert (edited != " ".join(words)) == could[operation] and bool(edited) == bool(words)
        explained = eda.explain(line, epoch)
        assert explained.words == words and explained.result == edited


@pytest.mark.parametrize(("strength", "n"), [(0.01, 1), (0.1, 2), (0.25, 5)])
def test_a_share_of_the_words_is_changed(strength, n):
    table = {f"w{i}": [f"s{i}"] for i in range(20)}
    index = una_fast.build_index([LONG] * 300)
    replaced = EDA(index, operation="synonym", strength=strength, synonyms=table).texts(range(300))
    assert {text.count("s") for text in replaced} == {n}
    counts = np.bincount([int(word[1:]) for text in replaced for word in text.split() if word[0] == "s"], minlength=20)
    assert counts.min() > 0, "some word is never replaced"
    inserted = EDA(index, operation="insert", strength=strength, synonyms=table).texts(range(300))
    assert {len(text.split()) for text in inserted} == {20 + n}
    assert {text.split()[0][0] for text in inserted} == {text.split()[-1][0] for text in inserted} == {"w", "s"}
    swapped = EDA(index, operation="swap", strength=strength).texts(range(300))
    assert all(sorted(text.split()) == sorted(LONG.split()) for text in swapped)
    assert all(2 <= sum(a != b for a, b in zip(t.split(), LONG.split(), strict=True)) <= 2 * n for t in swapped)


def test_synonyms_are_read_from_a_file(tmp_path):
    path = tmp_path / "synonyms.tsv"
    path.write_text("cat\tfeline\ttom  cat\n\ncat\tfeline\tcat\tpuss\ndog\thound\n", encoding="utf-8")
    look_up = sources.open_synonyms(path)
    assert (look_up("cat"), look_up("dog"), look_up("a")) == (["feline", "tom cat", "puss"], ["hound"], ())
    index = una_fast.build_index(["the cat sat"])
    assert EDA(index, operation="synonym", synonyms=path).texts([0])[0] in {
        f"the {s} sat" for s in ("feline", "tom cat", "puss")
    }
    for content, place in ((b"cat\n", "synonyms.tsv: line 1"), (b"\n", "synonyms.tsv"), (b"\xff\tx\n", "synonyms.tsv")):
        path.write_bytes(content)
        with pytest.raises(InputError, match=place):
            EDA(index, operation="insert", synonyms=path)
    for wrong in (tmp_path / "gone.tsv", {"cat": "puss"}, {"cat": None}, {"cat": ["puss", 7]}):
        with pytest.raises(InputError, match="gone.tsv|'cat'"):
            EDA(index, operation="synonym", synonyms=wrong)


class FakeWordNet:
    """Stands in for nltk.corpus.wordnet, because tests do not download its data."""

    def __init__(self, is_there: bool):
        self._is_there = is_there

    def ensure_loaded(self):
        if not self._is_there:
            raise LookupError("Resource 'wordnet' not found.")

    def synsets(self, word):
        return [self]

    def lemma_names(self):
        return ["cat", "true_cat", "Felis-catus", "true_cat"]


def test_wordnet_gives_the_lemmas_of_all_senses_or_an_error_with_the_download_command(monkeypatch):
    corpus = pytest.importorskip("nltk.corpus")
    monkeypatch.setattr(corpus, "wordnet", FakeWordNet(is_there=True))
    look_up = sources.wordnet_synonyms()
    assert look_up("cat") == ["true cat", "felis catus"]
    assert look_up("the") == look_up("42") == []
    monkeypatch.setattr(corpus, "wordnet", FakeWordNet(is_there=False))
    with pytest.raises(InputError, match="run `python -m nltk.downloader wordnet`, or give a TSV file"):
        EDA(una_fast.build_index(["a b"]))


REFUSED = {
    "operation": ["x"], "strength": [0, -1, 1.1, float("nan"), "0.1", True], "seed": [1.5], "synonyms": [3],
}  # fmt: skip


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in REFUSED for value in REFUSED[name]])
def test_settings_out_of_range_are_refused(name, value):
    operation = "insert" if name == "synonyms" else "swap"
    with pytest.raises(InputError, match=f"^{name}"):
        EDA(una_fast.build_index(["a b"]), **{"operation": operation, name: value})
