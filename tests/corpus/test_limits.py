"""Endless lines and documents are refused before they fill the memory."""

import gzip
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import una_fast
from support.corpus_files import read, written
from una_fast.corpus import files, tables
from una_fast.errors import InputError

MIB = 1 << 20


@pytest.mark.parametrize(
    ("name", "start", "where"),
    [("a.txt.gz", b"one\ntwo\n", "line 3"), ("a.csv.gz", b"text\n", "a row"), ("a.tsv.gz", b"text\n", "a row"),
     ("a.jsonl.gz", b'{"text": "one"}\n"', "line 2")],
)  # fmt: skip
def test_a_line_without_end_is_refused_as_it_is_read(
    name: str, start: bytes, where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = []

    @contextmanager
    def counted(path: Path) -> Iterator[IO[bytes]]:
        with opened(path) as file:
            yield file
            taken.append(file.tell())

    opened = files.opened
    monkeypatch.setattr(files, "opened", counted)
    monkeypatch.setattr(tables, "opened", counted)
    path = written(tmp_path, name, gzip.compress(start + b"a b " * (16 * MIB)))
    with pytest.raises(InputError, match=rf"{where}.* is longer than [18],.* bytes: split it .* max_document_bytes "):
        una_fast.build_index(path)
    assert sum(taken) < 24 * MIB


def corpora(tmp_path: Path, text: str) -> dict[str, Any]:
    pa.parquet.write_table(pa.table({"text": ["a", text]}), tmp_path / "a.parquet")
    return {
        "txt": written(tmp_path, "a.txt", f"a\n{text}\n".encode()),
        "csv": written(tmp_path, "a.csv", f"text\na\n{text}\n".encode()),
        "jsonl": written(tmp_path, "a.jsonl", f'"a"\n{json.dumps(text)}\n'.encode()),
        "json": written(tmp_path, "a.json", json.dumps(["a", text]).encode()),
        "parquet": tmp_path / "a.parquet",
        "list": ["a", text],
        "table": pa.table({"text": ["a", text]}),
    }


@pytest.mark.parametrize("kind", ["txt", "csv", "jsonl", "json", "parquet", "list", "table"])
def test_the_longest_document_is_an_option(kind: str, tmp_path: Path) -> None:
    text = "ü b" * 100
    corpus = corpora(tmp_path, text)[kind]
    assert read(corpus, max_document_bytes=400) == ["a", text]
    assert read(corpus, max_document_bytes=None) == ["a", text]
    with pytest.raises(
        InputError, match=r"(line|row) 2.* is longer than 399 bytes|document 1 \(from 0\) is longer than 399"
    ):
        read(corpus, max_document_bytes=399)


def test_build_index_takes_the_limit() -> None:
    with pytest.raises(InputError, match="iterable, row 2 is longer than 3 bytes"):
        una_fast.build_index(["a b", "c de"], max_document_bytes=3)
    with pytest.raises(InputError, match="is longer than 1,048,576 bytes"):
        una_fast.build_index(["a", "b " * MIB])


def fails(error: Exception) -> Callable:
    def failing(*_: Any, **__: Any) -> None:
        raise error

    return failing


def test_no_memory_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("una_fast.index.build.score_terms", fails(MemoryError("Unable to allocate 9 TiB")))
    with pytest.raises(
        InputError, match=r"building the index needs more memory than there is \(Unable to allocate 9 TiB\)"
    ):
        una_fast.build_index(["a b", "c"])
