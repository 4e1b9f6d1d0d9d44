"""Data frames, folders, globs and other formats give their documents; input that looks wrong gives a warning."""

import bz2
import gzip
import json
import lzma
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import una_fast
from support.corpus_files import LINES, WITH_NEWLINES, read, write_csv, write_json, write_parquet, write_text, written
from una_fast.corpus.reading import Reading
from una_fast.corpus.remote import address_in
from una_fast.corpus.sources import open_sources
from una_fast.corpus.words import parse_corpus
from una_fast.errors import InputError, InputWarning


def polars() -> Any:
    return pytest.importorskip("polars")


@pytest.mark.parametrize("frame", [pd.DataFrame, lambda columns: polars().DataFrame(columns), pa.table])
def test_frames_are_read_by_their_column(frame: Callable[[dict], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    table = frame({"id": list(range(len(WITH_NEWLINES))), "text": WITH_NEWLINES})
    assert read(table) == WITH_NEWLINES
    assert read(table["text"]) == WITH_NEWLINES
    assert read([table, ["one more"]]) == [*WITH_NEWLINES, "one more"]
    monkeypatch.setattr("una_fast.corpus.tables.BATCH_ROWS", 2)
    assert read(table) == WITH_NEWLINES
    with pytest.raises(InputError, match="no column 'sentence', only 'id', 'text'; name one with `column`"):
        read(table, "sentence")
    with pytest.raises(InputError, match="holds int64, not text"):
        read(table, "id")
    with pytest.raises(InputError, match=r"row 2 \(from 0\) is null; drop it"):
        read(frame({"text": ["a", "b", None]}))


def test_frames_of_unusual_values_are_refused_in_words() -> None:
    with pytest.raises(InputError, match=r"DataFrame's column 'text', rows from 0 \(from 0\): not all text"):
        read(pd.DataFrame({"text": pd.Series(["a", 3], dtype=object)}))
    with pytest.raises(InputError, match="has 2 columns 'text': rename all but one"):
        read(pd.DataFrame([["a", "b"]], columns=["text", "text"]))
    with pytest.raises(InputError, match="a corpus is a path, a table, .* not LazyFrame"):
        read(polars().DataFrame({"text": ["a"]}).lazy())
    assert read(pd.DataFrame({"text": ["a", "b", "c"]}).iloc[[2, 0]]) == ["c", "a"]
    assert read(pd.Series(["a", "b", "a"], dtype="category")) == ["a", "b", "a"]


def test_reading_a_file_imports_neither_pandas_nor_polars(tmp_path: Path) -> None:
    write_text(tmp_path / "a.txt", LINES)
    program = (
        "import sys; from una_fast.corpus.words import parse_corpus; "
        f"parse_corpus({str(tmp_path / 'a.txt')!r}); print({{'pandas', 'polars'}} & set(sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "set()\n"


def test_rows_that_are_mappings_are_read_by_their_key() -> None:
    rows = [{"id": i, "text": line} for i, line in enumerate(WITH_NEWLINES)]
    assert read(rows) == read(iter(rows)) == WITH_NEWLINES
    with pytest.raises(InputError, match=r"item 1 of the corpus \(from 0\): no column 'text', only 'title'"):
        read([{"text": "a"}, {"title": "b"}])
    with pytest.raises(InputError, match="item 0 of the corpus .* the value of 'text' is null"):
        read([{"text": None}])
    with pytest.raises(InputError, match="the value of 'text' is int, not str"):
        read([{"text": 3}])


def test_a_quotation_mark_in_a_tsv_is_a_character(tmp_path: Path) -> None:
    rows = [f'"row {i} opens a quotation' if i % 10 == 0 else f"row {i}" for i in range(2000)]
    path = written(tmp_path, "a.tsv", ("text\n" + "\n".join(rows) + "\n").encode())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read(path) == rows
        assert parse_corpus(path).sources[0]["n_documents"] == 2000
    quoted = Reading(quoting=True)
    with pytest.warns(InputWarning, match=r"a\.tsv: .* line ends in quotation marks, .* documents; .* quoting=False"):
        merged = parse_corpus(path, reading=quoted)
    assert len(merged.sentences) < 2000
    digests = {open_sources(path, reading)[0].digest() for reading in (Reading(), quoted, Reading(quoting=False))}
    assert len(digests) == 2


def test_the_folder_of_a_run_is_no_corpus(tmp_path: Path) -> None:
    written(tmp_path, "a.txt", b"one\n")
    (tmp_path / "run" / "best").mkdir(parents=True)
    written(tmp_path / "run" / "best", "config.json", b"{}")
    written(tmp_path / "run", ".una_fast.json", b"{}")
    assert read(tmp_path) == ["one"]


def test_capitals_in_the_ending_of_a_file_change_nothing(tmp_path: Path) -> None:
    assert read(written(tmp_path, "A.TSV", b"other\ttext\n1, 2\ta, b\n")) == ["a, b"]
    assert read(written(tmp_path, "A.CSV", b'other,text\n1,"a, b"\n')) == ["a, b"]


def test_an_index_of_a_tsv_knows_its_quoting(tmp_path: Path) -> None:
    path = written(tmp_path, "a.tsv", b'text\n"a b"\nc\n')
    una_fast.build_index(path, quoting=True).save(tmp_path / "index")
    una_fast.load_index(tmp_path / "index", path, quoting=True)
    with pytest.raises(InputError, match="made from another corpus"):
        una_fast.load_index(tmp_path / "index", path)


def test_line_ends_in_quotation_marks_are_said(tmp_path: Path) -> None:
    with pytest.warns(InputWarning, match="1 line end in quotation marks, inside of 2 documents; if its quotation"):
        assert len(parse_corpus(written(tmp_path, "a.csv", b'text\n"two\nlines"\none\n')).sentences) == 2


def write_json_array(path: Path, lines: list[str]) -> None:
    path.write_text(json.dumps([{"n": [1], "text": line} for line in lines], indent=2), encoding="utf-8")


def write_json_texts(path: Path, lines: list[str]) -> None:
    path.write_text("\ufeff" + json.dumps(lines, ensure_ascii=False), encoding="utf-8")


@pytest.mark.parametrize("write", [write_json_array, write_json_texts, write_json])
def test_json_files(write: Callable, tmp_path: Path) -> None:
    write(tmp_path / "a.json", WITH_NEWLINES)
    assert read(tmp_path / "a.json") == WITH_NEWLINES


@given(st.lists(st.one_of(st.text(st.characters(exclude_categories=["Cs"]))), max_size=6), st.sampled_from([None, 1]))
def test_json_arrays_are_read_as_python_reads_them(tmp_path_factory, texts: list[str], indent: int | None) -> None:
    path = tmp_path_factory.mktemp("json") / "a.json"
    path.write_text(json.dumps(texts, indent=indent), encoding="utf-8")
    assert read(path) == texts


def test_json_lines_that_are_not_plain(tmp_path: Path) -> None:
    content = '\ufeff{"text": "a"}\n"only a text"\n{"text": "b", "text2": [{"text": 1}]}\n'
    assert read(written(tmp_path, "a.jsonl", content.encode())) == ["a", "only a text", "b"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "a.jsonl",
            b'{"text":\n null}\n',
            r"a\.jsonl, line 1: not one JSON value \(Expecting.*\); .* in a file named \.json$",
        ),
        ("a.tsv", b"id\tbody\n1\n", r"a\.tsv cannot be read as a table: .*Expected 2 columns, got 1"),
        ("a.csv", b"id,t\xe9xt\n1,a\n", r"a\.csv cannot be read as a table: 'utf-8' codec can't decode"),
        ("a.jsonl", b'{"text": "a"}\n{"text":\n"b"}\n', r"a\.jsonl, line 2: not one JSON value"),
        ("a.jsonl", b'{"text": "a"}\n{"text": "\\ud800"}\n', r"a\.jsonl, line 2.* lone surrogate"),
        ("a.jsonl", b'{"text": "a"}\n{"text": "\xff"}\n', r"a\.jsonl, line 2: not UTF-8"),
        ("a.jsonl", b'{"text": "a"}\n' + b"[" * 99_999, r"a\.jsonl, line 2: not one JSON value"),
        ("a.json", b'[{"text": "a"},\n{"text":\n null}]', r"a\.json, item 1 \(from 0\): the value of 'text' is null"),
        ("a.json", b'["a",\n\n3]', r"a\.json, item 1 \(from 0\) is int, not str"),
        ("a.json", b'["a"\n"b"]', r"a\.json, line 2: not an array of JSON values \(Expecting ',' delimiter"),
        ("a.json", b'["a",\n"b"', r"a\.json, line 2: not an array of JSON values"),
        ("a.json", b'["a"]\n["b"]', r"a\.json, line 2: not an array of JSON values \(Extra data"),
        ("a.json", b"{'text': 1}", r"a\.json, line 1: not one JSON value"),
        ("a.json", b"[" * 99_999, r"a\.json, line 1: not an array of JSON values"),
        ("a.json", b'["a",\n"\xff"]', r"a\.json, line 2: not UTF-8"),
        ("a.json", b"[]", r"a\.json: it holds no sentence"),
        ("a.txt", "words in UTF-16".encode("utf-16"), r"looks like UTF-16 .*iconv -f UTF-16 -t UTF-8 a\.txt > utf8-a"),
        ("a.txt", "words without a mark".encode("utf-16-le"), "looks like UTF-16"),
        ("a.csv", "text\nwords\n".encode("utf-16-be"), "looks like UTF-16"),
        ("a.jsonl", '{"text": "words"}\n'.encode("utf-32"), "looks like UTF-16 or UTF-32"),
        ("a.json", '["words"]'.encode("utf-32-le"), "looks like UTF-16 or UTF-32"),
    ],
)
def test_bad_text_files_say_where(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        parse_corpus(written(tmp_path, name, content))


def zst(content: bytes) -> bytes:
    return pa.compress(content, "zstd", asbytes=True)


@pytest.mark.parametrize(
    ("ending", "compress"), [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress), (".zst", zst)]
)
@pytest.mark.parametrize("write", [write_text, write_csv, write_json, write_json_array])
def test_compressed_files(ending: str, compress: Callable, write: Callable, tmp_path: Path) -> None:
    name = {write_text: "a.txt", write_csv: "a.csv", write_json: "a.jsonl", write_json_array: "a.json"}[write]
    write(tmp_path / name, LINES)
    content = compress((tmp_path / name).read_bytes())
    assert read(written(tmp_path, name + ending, content)) == LINES
    with pytest.raises(InputError, match="the compressed data is damaged or cut short"):
        read(written(tmp_path, "cut-" + name + ending, content[:-9]))
    with pytest.raises(InputError, match="the compressed data is damaged or cut short"):
        read(written(tmp_path, "no-" + name + ending, b"not compressed at all"))


def folder_of_files(folder: Path) -> Path:
    (folder / "sub").mkdir(parents=True)
    write_text(folder / "b.txt", ["3"])
    write_parquet(folder / "a.parquet", ["1", "2"])
    write_text(folder / "sub" / "c.txt", ["4"])
    write_text(folder / ".hidden.txt", ["never"])
    return folder


def test_folders_and_globs_are_their_files_in_order(tmp_path: Path) -> None:
    folder = folder_of_files(tmp_path / "data")
    assert read(folder) == read(str(folder)) == ["1", "2", "3", "4"]
    assert read(folder / "*.txt") == read(str(folder / "*.txt")) == read([str(folder / "*.txt")]) == ["3"]
    assert read(folder / "**" / "*.txt") == ["3", "4"]
    assert read([folder / "sub", folder / "b.txt"]) == ["4", "3"]
    write_text(folder / "odd[1].txt", ["5"])
    assert read(folder / "odd[1].txt") == ["5"]
    written(folder, "README.md", b"x")
    with pytest.warns(InputWarning, match=r"data: 1 file of an unknown kind left out, the first is .*README\.md"):
        assert read(folder) == ["1", "2", "3", "5", "4"]
    with pytest.raises(InputError, match=r"\*\.csv: no file matches"):
        read(folder / "*.csv")
    with pytest.raises(InputError, match=r"\*\.md: unknown kind of file; known are \.txt"):
        read(folder / "*.md")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="empty: an empty folder"):
        read(tmp_path / "empty")


def test_links_in_circles_and_other_odd_paths(tmp_path: Path) -> None:
    (tmp_path / "loop.txt").symlink_to(tmp_path / "loop.txt")
    with pytest.raises(InputError, match=r"loop\.txt is not a regular file"):
        read(tmp_path / "loop.txt")
    folder = folder_of_files(tmp_path / "data")
    (folder / "sub" / "up").symlink_to(folder)
    assert read(folder) == ["1", "2", "3", "4"]
    os.mkfifo(tmp_path / "pipe.txt")
    with pytest.raises(InputError, match=r"pipe\.txt is not a regular file"):
        read(tmp_path / "pipe.txt")
    with pytest.raises(InputError, match="sentences come in a list. cannot be read: File name too long"):
        read("a sentence " * 500)
    with pytest.raises(InputError, match="no such file"):
        read("a\0b")


def test_an_unreadable_folder_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests may run as root, who may read everything, so the test raises the system's error itself."""
    folder = folder_of_files(tmp_path / "data")

    def refused(path: Any) -> Any:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("os.scandir", refused)
    with pytest.raises(InputError, match="data cannot be read: Permission denied"):
        read(folder)


@pytest.mark.parametrize("address", ["nowhere://x.org/a.txt", "nowhere://bucket/a.csv", "nowhere://a/b.parquet"])
def test_an_address_is_shown_as_it_is(address: str) -> None:
    for given_as in (address, Path(address), [address]):
        with pytest.raises(InputError, match=f"^{address} cannot be read"):
            read(given_as)


def test_an_address_keeps_its_root_as_a_path() -> None:
    given = ("file:///a/b", "s3://a/b", "memory:///a", "file://a")
    found = [address_in(text) for address in given for text in (address, str(Path(address)))]
    assert found[:6] == ["file:///a/b", "file:///a/b", "s3://a/b", "s3://a/b", "memory:///a", "memory://a"]
    assert found[6] == "file://a"
