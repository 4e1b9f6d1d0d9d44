"""Tables, datasets and rows give the documents of one column; what looks wrong gives a warning or an error."""

import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import una_fast
from support.corpus_files import LINES, WITH_NEWLINES, read, write_text, written
from una_fast.corpus.source import Reading
from una_fast.corpus.sources import open_sources
from una_fast.corpus.words import parse_corpus
from una_fast.errors import InputError, InputWarning


def polars() -> Any:
    return pytest.importorskip("polars")


@pytest.mark.parametrize("frame", [pd.DataFrame, lambda columns: polars().DataFrame(columns), pa.table])
def test_frames_are_read_by_their_column(frame: Callable[[dict], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    table = frame({"id": list(range(len(WITH_NEWLINES))), "text": WITH_NEWLINES})
    assert read(table) == read(table["text"]) == WITH_NEWLINES
    assert read([table, ["one more"]]) == [*WITH_NEWLINES, "one more"]
    monkeypatch.setattr("una_fast.corpus.sources.BATCH_ROWS", 2)
    assert read(table) == WITH_NEWLINES
    assert read(frame({"sentence": ["a"], "text": ["b"]}), column="sentence") == ["a"]
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
    assert read(type("Frame", (pd.DataFrame,), {})({"text": ["a", "b", "c"]}).iloc[[2, 0]]) == ["c", "a"]
    assert read(pd.Series(["a", "b", "a"], dtype="category")) == ["a", "b", "a"]


def test_reading_a_file_imports_neither_pandas_nor_polars(tmp_path: Path) -> None:
    write_text(tmp_path / "a.txt", LINES)
    program = (
        "import sys; from una_fast.corpus.words import parse_corpus; "
        f"parse_corpus({str(tmp_path / 'a.txt')!r}); print({{'pandas', 'polars'}} & set(sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "set()\n"


def test_datasets_give_their_documents() -> None:
    datasets = pytest.importorskip("datasets")
    dataset = datasets.Dataset.from_dict({"text": WITH_NEWLINES, "id": list(range(len(WITH_NEWLINES)))})
    assert read(dataset) == WITH_NEWLINES
    assert read(dataset.select([6, 0, 4])) == [WITH_NEWLINES[i] for i in (6, 0, 4)]
    assert read([dataset, dataset.to_iterable_dataset()]) == 2 * WITH_NEWLINES
    with pytest.raises(InputError, match="the dataset: no column 'sentence', only 'text', 'id'; name one"):
        read(dataset, column="sentence")
    with pytest.raises(InputError, match=r"mapping of 'train', 'test': name one, as corpus\['train'\]"):
        read(datasets.DatasetDict({"train": dataset, "test": dataset}))


def test_rows_that_are_mappings_are_read_by_their_key() -> None:
    rows = [{"id": i, "text": line} for i, line in enumerate(WITH_NEWLINES)]
    assert read(rows) == read(iter(rows)) == WITH_NEWLINES
    with pytest.raises(InputError, match=r"item 1 of the corpus \(from 0\): no column 'text', only 'title'"):
        read([{"text": "a"}, {"title": "b"}])


def test_a_quotation_mark_in_a_tsv_is_a_character(tmp_path: Path) -> None:
    rows = [f'"row {i} opens a quotation' if i % 10 == 0 else f"row {i}" for i in range(2000)]
    path = written(tmp_path, "a.tsv", ("text\n" + "\n".join(rows) + "\n").encode())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read(path) == rows
    quoted = Reading(quoting=True)
    with pytest.warns(InputWarning, match=r"a\.tsv: .* line ends in quotation marks, .* documents; .* quoting=False"):
        assert len(parse_corpus(path, reading=quoted)[0].sentences) < 2000
    digests = {open_sources(path, reading)[0].digest() for reading in (Reading(), quoted, Reading(quoting=False))}
    assert len(digests) == 2
    una_fast.build_index(path).save(tmp_path / "index")
    una_fast.load_index(tmp_path / "index", path)
    with pytest.raises(InputError, match="made from another corpus"):
        una_fast.load_index(tmp_path / "index", path, quoting=True)


def test_a_parquet_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    """Frames show the other errors of Arrow arrays."""
    pa.parquet.write_table(pa.table({"text": pa.array([b"x", b"\xe9"]).view(pa.string())}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match="Invalid UTF8 sequence at string index 1"):
        read(tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"a\.parquet: no column 'title', only 'text'"):
        read(tmp_path / "a.parquet", "title")
