"""Sentences of a corpus, and texts made into one line each."""

from hypothesis import given
from hypothesis import strategies as st

from train.generation.write import one_line, record, sentences

BREAKS = ["\n", "\r", "\r\n", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]


CHARACTERS = st.sampled_from(["a", "é", " ", "\t", "\xa0", "\u200b", *BREAKS]) | st.characters(codec="utf-8")


@given(st.lists(CHARACTERS).map("".join))
def test_a_text_becomes_one_line_and_keeps_its_words(text):
    line = one_line(text)
    assert len(line.splitlines()) == bool(text.strip())
    assert line.split() == text.split() and line == line.strip()


def test_an_empty_text_falls_back_to_the_sentence_on_one_line():
    assert record(3, "a\u2028b", " \n\v", cut=False) == (3, "a b", "empty")
    assert record(3, "s", "x\ny", cut=True) == (3, "x y", "cut")
    assert record(3, "s", "x", cut=False) == (3, "x", "")


def test_rows_go_through_all_files_and_kinds(tmp_path):
    (tmp_path / "a.txt").write_text("one\n\ntwo\r\n", encoding="utf-8")
    (tmp_path / "b.jsonl").write_text('{"s": "three\\nlines"}\n{"s": ""}\n', encoding="utf-8")
    read = list(sentences((str(tmp_path / "a.txt"), str(tmp_path / "b.jsonl")), "s"))
    assert read == ["one", "", "two", "three\nlines", ""]
