"""Reading documents from files, folders, globs, addresses, iterables, tables and datasets; digests of sources."""

import gzip
import os
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
import xxhash

import una_fast
from support.corpus_files import LINES, WITH_NEWLINES, read, served, write, written
from una_fast.corpus.documents import Reading
from una_fast.corpus.sources import address_in, check_sources, open_sources
from una_fast.corpus.words import parse_corpus
from una_fast.errors import InputError, InputWarning


@pytest.fixture
def folder(tmp_path) -> Path:
    """Return a folder with files of several formats and a subfolder."""
    folder = tmp_path / "data"
    (folder / "sub").mkdir(parents=True)
    write(folder / "a.parquet", ["1 one", "2 two"])
    write(folder / "b.txt", ["3 three"])
    (folder / "c.txt.gz").write_bytes(gzip.compress(b"4 four\n"))
    write(folder / "sub" / "c.jsonl", ["5 five"])
    write(folder / "sub" / "d.txt", ["6 six", "7 seven"] * 9)
    write(folder / ".hidden.txt", ["never"])
    return folder


def numbers(corpus: Any) -> str:
    return "".join(dict.fromkeys(line[0] for line in read(corpus)))


def test_documents_are_read_from_iterables(tmp_path):
    for corpus in (WITH_NEWLINES, tuple(WITH_NEWLINES), iter(WITH_NEWLINES), dict.fromkeys(WITH_NEWLINES).keys()):
        assert read(corpus) == WITH_NEWLINES
    write(tmp_path / "a.txt", ["one", "two"])
    several = [str(tmp_path / "a.txt"), tmp_path / "a.txt", ["four", "five.txt"], iter(["six"])]
    assert read(several) == ["one", "two", "one", "two", "four", "five.txt", "six"]
    assert read(["a sentence", "and one on notes.txt"]) == ["a sentence", "and one on notes.txt"]


def test_folders_and_globs_give_their_files_in_order(folder, tmp_path):
    assert numbers(folder) == numbers(str(folder)) == "1234567"
    assert numbers(folder / "*.txt") == numbers([str(folder / "*.txt")]) == "3"
    assert numbers(folder / "**" / "*.txt*") == "3467"
    assert numbers([folder / "sub", folder / "b.txt"]) == "5673"
    write(folder / "odd[1].txt", ["8"])
    assert numbers(folder / "odd[1].txt") == "8"
    written(folder, "README.md", b"x")
    (folder / "sub" / "up").symlink_to(folder)
    una_fast.build_index(["an index in the folder"]).save(folder / "index")
    with pytest.warns(InputWarning, match=r"data: .* 1 file .*README\.md"):
        assert numbers(folder) == "12348567"
    (tmp_path / "empty").mkdir()
    for path in (folder / "*.csv", folder / "*.md", tmp_path / "empty", folder / "index"):
        with pytest.raises(InputError, match=re.escape(str(path))):
            read(path)


def test_unusual_paths_are_refused(tmp_path, folder, monkeypatch):
    os.mkfifo(tmp_path / "pipe.txt")
    for path, named in ((tmp_path / "pipe.txt", "pipe.txt"), ("a sentence " * 500, "list.*too long"), ("a\0b", "file")):
        with pytest.raises(InputError, match=named):
            read(path)

    def refused(path):  # root may read every file, and tests may run as root
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("os.scandir", refused)
    with pytest.raises(InputError, match="data .*Permission denied"):
        read(folder)


@pytest.mark.parametrize(("corpus", "named"), [
    ("nowhere/corpus.txt", "^nowhere/corpus.txt"), (["a", 3], "^item 1 .* int"), (["a", b"b"], "^item 1 .* bytes"),
    (iter(["a", "b \ud800"]), "^item 1 .* character 2"), ([], "no sentence"), (b"text", "bytes"),
    ({"train": ["a"]}, "'train'"), ([{"text": "a"}, {"title": "b"}], "^item 1 .*'text'.* 'title'"),
    (pa.table({"text": pa.DictionaryArray.from_arrays([0, 1, 0], ["a", None])}), "row 1"),
    (pd.DataFrame({"text": pd.Series(["a", 3], dtype=object)}), "'text'.* row 0"),
    (pd.DataFrame([["a", "b"]], columns=["text", "text"]), "2 columns 'text'"),
], ids=lambda value: value if isinstance(value, str) else type(value).__name__)  # fmt: skip
def test_an_unusable_corpus_is_refused_with_the_place(corpus, named):
    with pytest.raises(InputError, match=named):
        parse_corpus(corpus)


def digests(corpus: Any, column: str = "text", quoting: bool | None = None) -> list[str]:
    sources = open_sources(corpus, Reading(column, quoting))
    for source in sources:
        assert source.file or [*source.blocks()]
    return [source.digest() for source in sources]


def test_digests_identify_sources(tmp_path, monkeypatch):
    write(tmp_path / "a.txt", LINES)
    of_file, of_list = digests([tmp_path / "a.txt", LINES])
    assert of_file == xxhash.xxh3_128_hexdigest((tmp_path / "a.txt").read_bytes())
    assert digests(LINES) == digests(iter(LINES)) == [of_list]
    assert digests(["ab", "c"]) != digests(["a", "bc"])
    monkeypatch.setattr("una_fast.corpus.documents.BLOCK_BYTES", 3)
    assert digests(LINES) == [of_list]


def test_digests_of_tables_contain_the_column_and_never_change(tmp_path):
    """The manifests of existing indexes contain these digests."""
    for name, quoting, key in (("a.csv", True, "text"), ("a.tsv", False, "text without quotation marks")):
        write(tmp_path / name, ["1"])
        raw = xxhash.xxh3_128_hexdigest((tmp_path / name).read_bytes())
        assert digests(tmp_path / name, quoting=quoting) == [xxhash.xxh3_128_hexdigest(f"{raw} {key}".encode())]
        assert digests(tmp_path / name, "id", quoting) != digests(tmp_path / name, quoting=quoting)


@pytest.fixture
def in_memory(folder) -> Iterator[str]:
    """Return the address of the same files in fsspec's in-memory file system."""
    files = pytest.importorskip("fsspec").filesystem("memory")
    files.put(f"{folder}/", "/corpus/", recursive=True)
    yield "memory://corpus"
    files.rm("/corpus", recursive=True)


@pytest.mark.parametrize("what", ["/b.txt", "", "/*.txt*", "/**/*.jsonl", "/a.parquet", "/[bc].txt*"])
def test_a_remote_corpus_gives_the_documents_of_the_local_one(folder, in_memory, what):
    assert read(f"file://{folder}{what}") == read(f"{in_memory}{what}") == read(f"{folder}{what}")


def test_files_are_read_over_http(folder):
    with served(folder) as address:
        assert read([f"{address}/b.txt", f"{address}/c.txt.gz"]) == ["3 three", "4 four"]
        with pytest.raises(InputError, match=r"http://.*/missing\.txt"):
            read(f"{address}/missing.txt")


@pytest.mark.parametrize("address", ["memory://corpus/missing.txt", "memory://nothing/*.txt", "nonsense://a/b.txt"])
def test_an_unreadable_address_is_named(in_memory, address):
    for given_as in (address, Path(address), [address]):
        with pytest.raises(InputError, match=re.escape(address.rpartition("/")[2])):
            read(given_as)


def test_an_address_survives_conversion_to_a_path():
    for address in ("file:///a/b", "s3://a/b"):
        assert address_in(address) == address_in(str(Path(address))) == address
    assert address_in("memory:///a") == "memory:///a" and address_in("file://a") == "file://a"
    assert address_in("a/b.txt") is None


def polars_frame(columns: dict[str, Any]) -> Any:
    return pytest.importorskip("polars").DataFrame(columns)


@pytest.mark.parametrize("frame", [pd.DataFrame, polars_frame, pa.table])
def test_frames_are_read_by_their_column(frame, monkeypatch):
    table = frame({"id": list(range(len(WITH_NEWLINES))), "text": WITH_NEWLINES})
    assert read(table) == read(table["text"]) == WITH_NEWLINES
    assert read([table, ["one more"]]) == [*WITH_NEWLINES, "one more"]
    monkeypatch.setattr("una_fast.corpus.documents.BATCH_ROWS", 2)
    assert read(table) == WITH_NEWLINES
    assert read(frame({"sentence": ["a"], "text": ["b"]}), column="sentence") == ["a"]
    wrong = [(table, "sentence", "'sentence'.* 'id', 'text'.*`column`"), (table, "id", "int64")]
    wrong += [(frame({"text": ["a", "b", None]}), "text", "row 2")]
    wrong += [(table.lazy(), "text", "LazyFrame")] if frame is polars_frame else []
    for corpus, column, named in wrong:
        with pytest.raises(InputError, match=named):
            read(corpus, column)


def test_documents_are_read_from_unusual_frames_and_from_mappings():
    rows = [{"id": i, "text": line} for i, line in enumerate(WITH_NEWLINES)]
    assert read(rows) == read(iter(rows)) == WITH_NEWLINES
    assert read(type("Frame", (pd.DataFrame,), {})({"text": ["a", "b", "c"]}).iloc[[2, 0]]) == ["c", "a"]
    assert read(pd.Series(["a", "b", "a"], dtype="category")) == ["a", "b", "a"]


def test_documents_are_read_from_datasets():
    datasets = pytest.importorskip("datasets")
    dataset = datasets.Dataset.from_dict({"text": WITH_NEWLINES, "id": list(range(len(WITH_NEWLINES)))})
    assert read(dataset) == WITH_NEWLINES
    assert read(dataset.select([6, 0, 4])) == [WITH_NEWLINES[i] for i in (6, 0, 4)]
    assert read([dataset, dataset.to_iterable_dataset()]) == 2 * WITH_NEWLINES
    with pytest.raises(InputError, match="'sentence'.* 'text', 'id'"):
        read(dataset, column="sentence")
    with pytest.raises(InputError, match="'train', 'test'"):
        read(datasets.DatasetDict({"train": dataset, "test": dataset}))


def test_a_quotation_mark_in_a_tsv_is_an_ordinary_character(tmp_path):
    rows = [f'"row {i} opens a quotation' if i % 10 == 0 else f"row {i}" for i in range(2000)]
    path = written(tmp_path, "a.tsv", ("text\n" + "\n".join(rows) + "\n").encode())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read(path) == rows
    quoted = Reading(quoting=True)
    with pytest.warns(InputWarning, match=r"a\.tsv: .*quoting=False"):
        assert len(parse_corpus(path, reading=quoted)[0].sentences) < 2000
    digests = {open_sources(path, reading)[0].digest() for reading in (Reading(), quoted, Reading(quoting=False))}
    assert len(digests) == 2
    indexed = una_fast.build_index(path).sources
    check_sources(tmp_path, indexed, open_sources(path, Reading()))
    with pytest.raises(InputError, match="another corpus"):
        check_sources(tmp_path, indexed, open_sources(path, quoted))


def test_a_parquet_that_is_not_utf8_or_lacks_the_column_is_refused(tmp_path):
    """The tests of frames cover the other errors of Arrow arrays."""
    pa.parquet.write_table(pa.table({"text": pa.array([b"x", b"\xe9"]).view(pa.string())}), tmp_path / "a.parquet")
    for column, named in (("text", "index 1"), ("title", r"a\.parquet: .*'title'.* 'text'")):
        with pytest.raises(InputError, match=named):
            read(tmp_path / "a.parquet", column)
