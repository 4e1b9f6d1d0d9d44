"""bench.evidence.opposites: opposites that a corpus gives, and pairs that differ by opposites."""

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

from bench.evidence import opposites
from una_fast.augment.word_lists import read_word_lists

LISTS = read_word_lists()
TEXTS = ["Is it wet or dry in Rome?", "Is it wet in May?", "The dry sand is not wet.", "How hot is Rome, or Bonn?"]


BOTH = {"list": LISTS, "new": SimpleNamespace(opposites={"matt": ("shiny",), "hot": ("cold",)})}


@pytest.fixture
def net():
    """Stands for WordNet. "sink" is both a noun and a verb."""
    found = {"wet": ["dry"], "dry": ["wet"], "rise": ["fall"], "fall": ["rise"], "sodden": ["dry"], "sink": ["dry"]}
    kinds = {"wet": "a", "dry": "a", "sodden": "a", "rise": "v", "fall": "v"}
    bases = {"rises": ("rise", "s"), "drys": ("dry", "s"), "wets": ("wet", "s")}
    return SimpleNamespace(
        opposites=found, lemma=lambda word: bases.get(word, (word, "")), kind=lambda word: kinds.get(word, "")
    )


def test_new_words_are_on_no_list_and_no_names():
    words = opposites.new_words(TEXTS, LISTS)
    assert words == {"wet": 3, "dry": 2, "sand": 1}  # "hot" is listed, "Rome" has a capital, "is" is short


def test_antonyms_are_no_verbs_and_mutual(net):
    found = {*opposites.of_wordnet(["wet", "rise", "sodden", "wets", "sink"], net)}
    assert found == {("wet", "dry"), ("wets", "dries")}


def test_affixes():
    words = ["unhappy", "non-toxic", "painless", "indirectly", "informal", "include", "tent", "intent", "improvement"]
    found = {pair for pair in opposites.of_affixes(words) if pair[0] != pair[1]}
    expected = {"unhappy": "happy", "non-toxic": "toxic", "painless": "painful"}
    assert found == {*expected.items(), ("indirectly", "directly"), ("informal", "formal")}


def test_frames_need_a_joint_and_equal_words_around():
    texts = [f"buy {word} socks {end}" for word in ("wool", "silk", "blue") for end in ("now", "here", "there", "soon")]
    texts += ["wool or silk", "blue socks and wool", "cash or silk"]
    words = Counter({"wool": 8, "silk": 8, "blue": 8, "cash": 8, "socks": 20})
    assert [*opposites.of_frames(words, texts)] == [("wool", "silk")]
    assert not [*opposites.of_frames({**words, "silk": opposites.FREQUENT - 1}, texts)]


def test_a_word_list_has_each_pair_once_and_no_rare_words():
    words = {"wet": 20, "dry": 2, "tidy": 1, "messy": 11}
    pairs = [("wet", "dry"), ("dry", "wet"), ("wet", "wet"), ("tidy", "messy"), ("wet", "unseen")]
    assert opposites.word_list(words, pairs) == ["[opposites]", "dry, wet"]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("A hot day", "A cold day.", ["list"]),
        ("A matt wall", "A shiny wall", ["new"]),
        ("A wet dog", "a dry dog", ["wordnet", "reader"]),
        ("A sodden dog", "A dry dog", ["wordnet"]),
        ("A tidy dog", "A messy dog", ["reader"]),
        ("A tidy dog", "A small dog", []),
        ("A wet dog", "A dry cat", []),
        ("A wet dog", "A dog", []),
    ],
)
def test_groups_of_a_near_miss(net, first, second, expected):
    assert opposites.groups(first, second, BOTH, net, [["dry", "wet"], ["messy", "tidy"]]) == expected


def test_encoders_are_scored_on_all_sets(net, tmp_path, monkeypatch, capsys):
    near = [("Is it wet?", "Is rain coming?", 1, ""), ("Is it wet here?", "Is it dry here?", 0, "polarity")]
    for name in ("qqp_near", "qqp_close", "checklist"):
        path = tmp_path / opposites.PAIRS / f"{name}_dev.tsv"
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = ["sentence1\tsentence2\tlabel\tgroup", *("\t".join(map(str, pair)) for pair in near)]
        path.write_text("\n".join(lines))
    rows = ["1\tA hot dog\tA cold dog\t2\tCONTRADICTION", "2\tA wet dog\tA dry dog\t2\tNEUTRAL"]
    rows.append("4\tA matt wall\tA shiny wall\t3\tNEUTRAL")
    for part, row in (("train", "\n".join(rows)), ("trial", "3\tA dog\tA pet\t4\tENTAILMENT")):
        path = tmp_path / f"{opposites.SICK}_{part}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"heading\n{row}\n")
    captions = [
        ("A hot dog", "A cold dog", 0, "list"),
        ("A wet dog", "A dry dog", 0, "wordnet"),
        ("A wet dog", "A dry dog", 0, "reader"),
        ("A matt wall", "A shiny wall", 0, "new"),
    ]
    assert opposites.dev_sets(tmp_path, BOTH, net)["sick"] == [*captions, ("A dog", "A pet", 1, "")]
    page = tmp_path / "page.md"
    page.write_text("<!-- opposites: begin --><!-- opposites: end -->")
    monkeypatch.setattr(opposites, "PAGE", page)
    monkeypatch.setattr(opposites, "WordNet", lambda folder: net)
    monkeypatch.setattr(opposites, "load_encode", lambda name: lambda texts: np.array([[len(t), 9] for t in texts]))
    runs = ["new=run0", "new=run1"]
    made = tmp_path / "made.txt"
    made.write_text("[opposites]\nmatt, shiny\n")
    given = ["--data", str(tmp_path), "--word-list", str(made), "--model", "M", "--runs", *runs]
    monkeypatch.setattr("sys.argv", ["opposites", *given])
    assert opposites.main() == 0
    table = capsys.readouterr().out.strip()
    assert table in page.read_text() and "|  | pairs | changed words | before | new |" in table
    labels = [line.split(" | ")[0] for line in table.splitlines()[2:]]
    assert labels[-4:] == ["| sick, list", "| sick, new", "| sick, wordnet", "| sick, reader"]
