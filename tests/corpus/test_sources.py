"""Every kind of corpus gives the same documents; a message says what is wrong with one, where, and what to do."""

import gzip
import itertools
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from support.alphabet import text
from support.corpus_files import LINES, WITH_NEWLINES, read, write_csv, write_json, write_parquet, write_text, written
from una_fast.corpus.files import first_invalid_utf8, split_lines
from una_fast.corpus.reading import Reading
from una_fast.corpus.sources import source_digests
from una_fast.corpus.tables import ParquetFile
from una_fast.errors import InputError

WRITERS: dict[str, tuple[Callable[[Path, list[str]], None], list[str]]] = {
    "corpus.txt": (write_text, LINES),
    "corpus.csv": (write_csv, WITH_NEWLINES),
    "corpus.tsv": (write_csv, WITH_NEWLINES),
    "corpus.jsonl": (write_json, WITH_NEWLINES),
    "corpus.parquet": (write_parquet, WITH_NEWLINES),
}


@pytest.mark.parametrize("name", WRITERS)
def test_files_give_their_documents(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write, lines = WRITERS[name]
    path = tmp_path / name
    write(path, lines)
    options = {"quoting": True if path.suffix == ".tsv" else None}  # the writer quotes cells
    assert read(path, **options) == read(str(path), **options) == read([path], **options) == lines
    monkeypatch.setattr("una_fast.corpus.files.BLOCK_BYTES", 5)
    monkeypatch.setattr("una_fast.corpus.tables.BATCH_ROWS", 3)
    assert read(path, **options) == lines
    if path.suffix != ".parquet":
        zipped = tmp_path / (name + ".gz")
        zipped.write_bytes(gzip.compress(path.read_bytes()) + gzip.compress(b""))
        assert read(zipped, **options) == lines


def test_iterables_give_their_documents() -> None:
    for corpus in (WITH_NEWLINES, tuple(WITH_NEWLINES), iter(WITH_NEWLINES), dict.fromkeys(WITH_NEWLINES).keys()):
        assert read(corpus) == WITH_NEWLINES


def test_datasets_give_their_documents(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    dataset = datasets.Dataset.from_dict({"text": WITH_NEWLINES, "id": list(range(len(WITH_NEWLINES)))})
    assert read(dataset) == WITH_NEWLINES
    assert read(dataset.select([6, 0, 4])) == [WITH_NEWLINES[i] for i in (6, 0, 4)]
    assert read(dataset.to_iterable_dataset()) == WITH_NEWLINES
    assert read([dataset, dataset.to_iterable_dataset()]) == 2 * WITH_NEWLINES
    with pytest.raises(InputError, match="the dataset: no column 'sentence', only 'text', 'id'; name one"):
        read(dataset, column="sentence")
    with pytest.raises(InputError, match=r"mapping of 'train', 'test': name one, as corpus\['train'\]"):
        read(datasets.DatasetDict({"train": dataset, "test": dataset}))


def test_several_sources_are_one_corpus(tmp_path: Path) -> None:
    write_text(tmp_path / "a.txt", ["one", "two"])
    write_parquet(tmp_path / "b.parquet", ["three"])
    assert read([str(tmp_path / "a.txt"), tmp_path / "b.parquet", ["four", "five.txt"], iter(["six"])]) == [
        *["one", "two", "three", "four", "five.txt", "six"]
    ]
    assert read(["a sentence", "and one on notes.txt"]) == ["a sentence", "and one on notes.txt"]


def test_other_columns(tmp_path: Path) -> None:
    pa.csv.write_csv(pa.table({"text": ["a"], "sentence": ["b"]}), tmp_path / "c.csv")
    pa.parquet.write_table(
        pa.table({"sentence": pa.array(["b", "c", "b"]).dictionary_encode()}), tmp_path / "c.parquet"
    )
    assert read(tmp_path / "c.csv", column="sentence") == ["b"]
    assert read(tmp_path / "c.parquet", column="sentence") == ["b", "c", "b"]


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"a\rb\n\r\r\n", ["a\rb", "\r"]),
        (b"\xef\xbb\xbfa\nb", ["a", "b"]),
        (b"\n\na", ["", "", "a"]),
        (b"a\n\n", ["a", ""]),
        (b"a\x00b\x0c\xc2\x85\xe2\x80\xa8c\n", ["a\x00b\x0c\x85\u2028c"]),
    ],
)
def test_lines_of_text_files(content: bytes, lines: list[str], tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_bytes(content)
    assert read(path) == lines


@pytest.mark.parametrize("n_bytes", [60, 100, 250, 10_000])
def test_a_parquet_is_split_after_row_groups_that_reach_a_multiple_of_the_size(n_bytes: int, tmp_path: Path) -> None:
    lines = ["a" * (1 + i % 7) for i in range(40)]
    write_parquet(tmp_path / "a.parquet", lines)
    metadata = pa.parquet.ParquetFile(tmp_path / "a.parquet").metadata
    cuts, total = [0], 0
    for group in range(20):
        before, total = total, total + metadata.row_group(group).column(0).total_uncompressed_size
        if total // n_bytes > before // n_bytes or group == 19:
            cuts.append(group + 1)
    parts = ParquetFile(tmp_path / "a.parquet", Reading()).split(n_bytes)
    assert [part.part for part in parts or []] == list(itertools.pairwise(cuts))


def test_a_parquet_with_a_large_row_group_is_not_split(tmp_path: Path) -> None:
    write_parquet(tmp_path / "a.parquet", ["a" * 1000, "b"])
    assert ParquetFile(tmp_path / "a.parquet", Reading()).split(100) is None


@given(st.lists(st.sampled_from([b"a", b"\n", b"\r", b"\r\n", b"bc", b"\n\n"])).map(b"".join))
def test_split_lines_is_split_at_newlines(data: bytes) -> None:
    starts, stops = split_lines(np.frombuffer(data, dtype=np.uint8))
    expected = data.removesuffix(b"\n").split(b"\n") if data else []
    assert [data[i:j] for i, j in zip(starts, stops, strict=True)] == [line.removesuffix(b"\r") for line in expected]


def python_offset(data: bytes) -> int:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start
    return -1


@given(st.lists(st.binary(max_size=4) | text.map(str.encode) | st.sampled_from(
    [b"\xed\xa0\x80", b"\xed\x9f\xbf", b"\xf4\x8f\xbf\xbf", b"\xf4\x90\x80\x80", b"\xc1\xbf", b"\xe0\x9f\xbf",
     b"\xf0\x8f\xbf\xbf", b"\xf0\x90\x80\x80", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98", b"\xff", b"\x80"]
)).map(b"".join))  # fmt: skip
def test_invalid_utf8_is_found_where_python_finds_it(data: bytes) -> None:
    assert first_invalid_utf8(np.frombuffer(data, dtype=np.uint8)) == python_offset(data)


def test_digests_tell_sources_apart_without_parsing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.txt"
    write_text(path, LINES)
    raw = xxhash.xxh3_128_hexdigest(path.read_bytes())
    first = source_digests([path, LINES])
    assert first[0] == {"name": "a.txt", "xxh3_128": raw}
    assert source_digests(LINES) == source_digests(iter(LINES)) == [first[1]]
    assert source_digests(["ab", "c"]) != source_digests(["a", "bc"])
    monkeypatch.setattr("una_fast.corpus.source.BLOCK_BYTES", 3)
    assert source_digests(LINES) == [first[1]]


def test_another_column_is_another_corpus(tmp_path: Path) -> None:
    for name in ("a.csv", "a.jsonl", "a.parquet"):
        WRITERS["corpus" + Path(name).suffix][0](tmp_path / name, LINES)
        text_column, id_column = (source_digests(tmp_path / name, column)[0] for column in ("text", "id"))
        assert text_column["xxh3_128"] != id_column["xxh3_128"]


def test_digests_of_tables_stay(tmp_path: Path) -> None:
    """They stand in the manifests of indexes that users have."""
    for name, quoting, key in (("a.csv", True, "text"), ("a.tsv", False, "text without quotation marks")):
        write_csv(tmp_path / name, ["a"])
        raw = xxhash.xxh3_128_hexdigest((tmp_path / name).read_bytes())
        (found,) = source_digests(tmp_path / name, quoting=quoting)
        assert found == {"name": name, "xxh3_128": xxhash.xxh3_128_hexdigest(f"{raw} {key}".encode())}


GZIPPED = gzip.compress(bytes(range(32, 127)) * 1000)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"", r"a\.txt is empty"),
        ("a.doc", b"x", r"a\.doc: unknown kind of file; known are \.txt, \.csv, \.tsv"),
        ("a", b"x", "unknown kind of file"),
        ("a.txt", b"good\nbad \xe9\n", r"a\.txt, line 2: byte 9 of the text is not UTF-8; convert the file"),
        ("a.txt", b"a\n" * 3 + b"\xff", "line 4: byte 6 of the text"),
        ("a.txt.gz", GZIPPED[:-20], r"a\.txt\.gz: the compressed data is damaged or cut short"),
        ("a.txt.gz", b"not gzip at all", r"a\.txt\.gz: the compressed data is damaged or cut short"),
        ("a.txt.gz", gzip.compress(b"", mtime=0), r"a\.txt\.gz: it holds no sentence"),
        (
            "a.csv",
            b"id,title\n1,x\n",
            r"a\.csv: no column 'text', only 'id', 'title'; name one with `column` \(--column\)",
        ),
        ("a.csv", b"text,id\n", r"a\.csv: it holds no sentence"),
        ("a.csv", b"text,id\nx\n", r"a\.csv cannot be read as a table: .*Expected 2 columns, got 1"),
        ("a.csv", b"text\n\xe9\n", r"a\.csv cannot be read as a table: .*UTF8"),
        ("a.csv.gz", GZIPPED[:-20], r"a\.csv\.gz: the compressed data is damaged or cut short"),
        ("a.jsonl", b'{"text": "x"}\n\n{"title": 1}\n', r"a\.jsonl, line 3: no column 'text', only 'title'; name one"),
        ("a.jsonl", b'{"text": "x"}\n{"text": null}\n', r"a\.jsonl, line 2: the value of 'text' is null"),
        ("a.jsonl", b'{"text": 3}\n', r"a\.jsonl, line 1: the value of 'text' is int, not str"),
        ("a.jsonl", b"text\n", r"a\.jsonl, line 1: not one JSON value"),
        ("a.parquet", b"PAR1 no it is not", r"a\.parquet cannot be read as parquet"),
    ],
)
def test_bad_files(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    from una_fast.corpus.words import parse_corpus

    with pytest.raises(InputError, match=message):
        parse_corpus(written(tmp_path, name, content))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (pa.table({"title": ["x"]}), "no column 'text', only 'title'"),
        (pa.table({"text": [1, 2]}), "column 'text' holds int64, not text"),
        (pa.table({"text": ["x", None]}), r"column 'text': row 1 \(from 0\) is null; drop it"),
        (pa.table({"text": pa.array([b"x", b"\xe9"]).view(pa.string())}), "Invalid UTF8 sequence at string index 1"),
    ],
)
def test_bad_parquet(values: pa.Table, message: str, tmp_path: Path) -> None:
    pa.parquet.write_table(values, tmp_path / "a.parquet")
    with pytest.raises(InputError, match=message):
        read(tmp_path / "a.parquet")


def test_cut_parquet(tmp_path: Path) -> None:
    write_parquet(tmp_path / "a.parquet", LINES)
    content = (tmp_path / "a.parquet").read_bytes()
    with pytest.raises(InputError, match=r"b\.parquet cannot be read as parquet"):
        read(written(tmp_path, "b.parquet", content[: len(content) // 2]))


@pytest.mark.parametrize(
    ("corpus", "message"),
    [
        ("nowhere/corpus.txt", "nowhere/corpus.txt: no such file"),
        (["nowhere/corpus.txt"], "nowhere/corpus.txt: no such file"),
        (["a", 3], r"item 1 of the corpus \(from 0\) is int, not str"),
        (["a", b"b"], r"item 1 of the corpus \(from 0\) is bytes, not str"),
        (iter(["a", "b \ud800"]), r"item 1 of the corpus \(from 0\) holds a lone surrogate, '\\ud800' at character 2"),
        ([], "iterable: it holds no sentence"),
        (iter([]), "iterable: it holds no sentence"),
        ([["a"], []], "iterable: it holds no sentence"),
        (b"text", "a corpus is a path, a table, a dataset or an iterable of str, or a list of these, not bytes"),
        (7, "not int"),
        (None, "not NoneType"),
        ({"train": ["a"]}, "mapping of 'train'"),
    ],
)
def test_bad_arguments(corpus: Iterable[Any], message: str) -> None:
    from una_fast.corpus.words import parse_corpus

    with pytest.raises(InputError, match=message):
        parse_corpus(corpus)
