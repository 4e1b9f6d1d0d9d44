"""Reading documents from files of every format; messages that name the bad line; endless lines."""

import bz2
import gzip
import lzma
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import una_fast
from support.corpus_files import LINES, WITH_NEWLINES, read, write, written
from una_fast.corpus import files
from una_fast.corpus.words import parse_corpus
from una_fast.errors import InputError

MIB = 1 << 20


COMPRESSED: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda content: pa.compress(content, "zstd", asbytes=True),
}


@pytest.mark.filterwarnings("ignore::una_fast.InputWarning")
@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.tsv", "a.jsonl", "a.json", "lines.json", "a.parquet"])
def test_documents_are_read_from_every_format(name, tmp_path, monkeypatch):
    path, lines = tmp_path / name, LINES if name == "a.txt" else WITH_NEWLINES
    write(path, lines)
    options = {"quoting": True if path.suffix == ".tsv" else None}  # the writer quotes cells
    assert read(path, **options) == read(str(path), **options) == read([path], **options) == lines
    monkeypatch.setattr(files, "BLOCK_BYTES", 5)
    monkeypatch.setattr(files, "BATCH_ROWS", 3)
    assert read(path, **options) == lines


@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.json"])
@pytest.mark.parametrize("ending", COMPRESSED)
def test_compressed_files_are_read(ending, name, tmp_path):
    write(tmp_path / name, LINES)
    content = COMPRESSED[ending]((tmp_path / name).read_bytes())
    assert read(written(tmp_path, name + ending, content)) == LINES
    for damaged in (content[:-9], b"not compressed at all"):
        with pytest.raises(InputError, match=f"damaged-{name}{ending}"):
            read(written(tmp_path, "damaged-" + name + ending, damaged))


@pytest.mark.parametrize(("name", "content", "lines"), [
    ("a.txt", b"a\r\nb\r\n", ["a", "b"]),
    ("a.txt", b"a\rb\n\r\r\n", ["a\rb", "\r"]),
    ("a.txt", b"\xef\xbb\xbfa\nb", ["a", "b"]),
    ("a.txt", b"\n\na", ["", "", "a"]),
    ("a.txt", b"a\n\n", ["a", ""]),
    ("a.txt", b"a\x00b\x0c\xc2\x85\xe2\x80\xa8c\n", ["a\x00b\x0c\x85\u2028c"]),
    ("a.jsonl", b'\xef\xbb\xbf{"text": "a"}\n"a text"\n{"text": "b", "t2": [{"text": 1}]}\n', ["a", "a text", "b"]),
    ("a.json", b'["a\\u00e9", "b\\n"]', ["aé", "b\n"]),
    ("A.TSV", b"other\ttext\n1, 2\ta, b\n", ["a, b"]),
    ("A.CSV", b'other,text\n1,"a, b"\n', ["a, b"]),
])  # fmt: skip
def test_chosen_bytes_give_the_expected_documents(name, content, lines, tmp_path):
    assert read(written(tmp_path, name, content)) == lines


@given(st.lists(st.sampled_from([b"a", b"\n", b"\r", b"\r\n", b"bc", b"\n\n"])).map(b"".join).filter(len))
def test_split_lines_splits_at_newlines(data):
    expected = data.decode().removesuffix("\n").split("\n")
    assert [*files.split_lines(data)] == [line.removesuffix("\r") for line in expected]


@pytest.mark.parametrize(("name", "content", "place"), [
    ("a.txt", b"", ""), ("a.doc", b"x", ""), ("a.txt", b"good\nbad \xe9\n", ", line 2"),
    ("a.txt", "in UTF-16".encode("utf-16"), ", line 1.*utf-16"),
    ("a.jsonl", b'{"text":\n null}\n', ", line 1"),
    ("a.jsonl", b'{"text": "a"}\n{"text": "\\ud800"}\n', ", line 2.* lone surrogate"),
    ("a.jsonl", b'{"text": "a"}\n{"text": "\xff"}\n', ", line 2"),
    ("a.jsonl", b'{"text": "a"}\n' + b"[" * 99_999, ", line 2"),
    ("a.jsonl", b'{"text": "x"}\n\n{"title": 1}\n', ", line 3: .*'text'.* 'title'"),
    ("a.jsonl", b'{"text": "x"}\n{"text": null}\n', ", line 2: .*'text'"),
    ("a.jsonl", b'{"text": 3}\n', ", line 1: .*'text'.* int"),
    ("a.json", b'["a",\n\n3]', ", item 1 .* int"),
    ("a.json", b'["a"\n"b"]', ", line 2"), ("a.json", b"[" * 99_999, ", line 1"),
    ("a.json", b'["a",\n"\xff"]', ", line 2"),
    ("a.csv", b"id,title\n1,x\n", ": .*'text'.* 'id', 'title'.*--column"), ("a.csv", b"text,id\n", ""),
    ("a.csv", b"text,id\nx\n", ".*got 1: x"), ("a.csv", b"text\n\xe9\n", ".*UTF8"),
    ("a.csv", b"id,t\xe9xt\n1,a\n", ".*utf-8"), ("a.parquet", b"PAR1 no it is not", ""),
])  # fmt: skip
def test_messages_about_bad_files_name_the_place(name, content, place, tmp_path):
    with pytest.raises(InputError, match=f"{name}{place}"):
        parse_corpus(written(tmp_path, name, content))


@pytest.mark.parametrize(
    ("name", "start", "where"),
    [("a.txt.gz", b"one\ntwo\n", "line 3"), ("a.csv.gz", b"text\n", "a row"), ("a.tsv.gz", b"text\n", "a row"),
     ("a.jsonl.gz", b'{"text": "one"}\n"', "line 2")],
)  # fmt: skip
def test_an_endless_line_is_refused_before_it_fills_the_memory(name, start, where, tmp_path, monkeypatch):
    taken = []

    @contextmanager
    def counted(path):
        with opened(path) as file:
            yield file
            taken.append(file.tell())

    opened = files.opened
    monkeypatch.setattr(files, "opened", counted)
    path = written(tmp_path, name, gzip.compress(start + b"a b " * (16 * MIB), 1))
    with pytest.raises(InputError, match=f"{where}.* max_sentence_bytes"):
        una_fast.build_index(path)
    assert sum(taken) < 24 * MIB


@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.jsonl", "a.json", "a.parquet", "list", "table"])
@pytest.mark.parametrize("size", [400, 9 * MIB], ids=["short", "longer than a block"])
def test_the_longest_document_can_be_set(name, size, tmp_path):
    lines = ["a", "ü b" * (size // 4)]
    corpus: Any = {"list": lines, "table": pa.table({"text": lines})}.get(name, tmp_path / name)
    if isinstance(corpus, Path):
        write(corpus, lines)
    for limit in (size, 2**40, None):
        assert read(corpus, max_sentence_bytes=limit) == lines
    with pytest.raises(InputError, match=f"(line|row) 2.* {size - 1:,} bytes"):
        read(corpus, max_sentence_bytes=size - 1)


def test_too_little_memory_is_an_input_error(monkeypatch):
    def fails(*_: Any):
        raise MemoryError("Unable to allocate 9 TiB")

    monkeypatch.setattr("una_fast.index.build.score_terms", fails)
    with pytest.raises(InputError, match="9 TiB"):
        una_fast.build_index(["a b", "c"])
