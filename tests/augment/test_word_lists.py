"""Word lists: sections, several files, capitals, guards, and errors that name the line."""

import pytest

from una_fast import InputError
from una_fast.augment.edits import listed_edits
from una_fast.augment.word_lists import read_word_lists


def read(tmp_path, *texts: str):
    files = [tmp_path / f"{i}.txt" for i in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        file.write_text(text, encoding="utf-8")
    return read_word_lists(files[0] if len(files) == 1 else files)


def test_two_files_are_merged(tmp_path):
    lists = read(
        tmp_path, "[function words]\nthe\n", "# two\n[opposites]\non, off\n\nHot\tCold\n[negations]\nnot\nno more\n"
    )
    assert lists.opposites == {"on": ("off",), "off": ("on",), "hot": ("cold",), "cold": ("hot",)}
    assert lists.words["function words"] == {"the"} and lists.capitalised == {"hot", "cold"}
    assert lists.negation == "not" and lists.negations == [["no", "more"], ["not"]]
    assert read_word_lists().opposites["on"] == ("off",) and read_word_lists(()).opposites["on"] == ("off",)


@pytest.mark.parametrize(("text", "line"), [
    ("[opposites]\nturn on, turn off", 2),
    ("on, off", 1), ("[opposites]\na, b, c", 2), ("[opposites]\non off", 2), ("[opposites]\n\nBad, bad", 3),
    ("[opposite]", 1), ("[auxiliaries]\nis", 2), ("[not after]\nis what", 2), ("[function words]\nan, aus", 2),
    ("[negations]\nnicht\tkein", 2),
])  # fmt: skip
def test_a_line_that_fits_no_section_is_an_error_with_its_number(tmp_path, text, line):
    with pytest.raises(InputError, match=f"^word_lists: .*0.txt: line {line}"):
        read(tmp_path, text)


def test_guards_look_at_neighbours(tmp_path):
    lists = read(
        tmp_path,
        "[opposites]\nup, x1\ndown, x1\nhot, x1\ncold, x1\n[only after]\nup down: turn\n[only before]\nup: #\n"
        "[right after]\nhot: the\n[not after]\nhot: a the\n[not before]\ncold: war .\n",
    )
    allowed = {
        "up": False, "turn it up": True, "turn it all the up": False, "up 5": True, "down 5": False,
        "hot": False, "cold x": True, "cold war": False, "cold": False, "x cold": False,
    }  # fmt: skip
    for text, is_allowed in allowed.items():
        assert bool(listed_edits(text, lists)["polarity"]) == is_allowed, text


def test_a_file_without_words_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"^word_lists: .*0\.txt"):
        read(tmp_path, "[opposites]\n# none yet\n")


def test_articles():
    lists = read_word_lists()
    for text in ("easy", "hour", "8", "80", "11", "18", "unsafe", "8-hour"):
        assert lists.article(text) == "an", text
    for text in ("hard", "useful", "110", "7", "euro", "one"):
        assert lists.article(text) == "a", text
