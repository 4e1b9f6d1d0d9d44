"""A build in stages gives the bits of the build in memory, for any split and any executor."""

from __future__ import annotations

import gzip
import itertools
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import una_fast
from support.staged import Calling, cut
from una_fast.errors import InputError
from una_fast.index.index import DTYPES
from una_fast.index.staged import work_folder

WORDS = ["the", "cat", "Sat", "dog.", "it's", "(a)", "...", "naïve", "x", "x's", "10:30", '"', "''", ")"]
CORPORA = st.lists(st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join), min_size=1, max_size=25)
LINES = [f"the {a} cat {b} sat on {a}{b} . it 's {b}" for a, b in itertools.product("abcde", "fghij")]
built = partial(una_fast.build_index, memory="1GB")


def same(one, other):
    """Whether both indexes hold the same bits."""
    for array in DTYPES:
        a, b = (array_of(index, array) for index in (one, other))
        assert a.dtype == b.dtype and np.array_equal(a.view(np.uint8), b.view(np.uint8)), array
    assert one.fingerprint == other.fingerprint
    assert one.sources == other.sources
    return True


def array_of(index, name):
    table, _, part = name.rpartition("_")
    owner = {"chunks": index.chunks, "terms": index.terms, "sentences": index.sentences, "words": index.word_ids}
    return np.ascontiguousarray(getattr(owner[table], part) if table in owner else getattr(index, name))


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(CORPORA, st.integers(1, 200), st.integers(1, 5), st.booleans())
def test_any_cut_gives_the_bits_of_the_build_in_memory(
    tmp_path_factory, monkeypatch, texts, split_bytes, n_partitions, in_a_file
):
    folder = tmp_path_factory.mktemp("staged")
    corpus = texts
    if in_a_file and any(texts):
        corpus = folder / "corpus.txt"
        corpus.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    with monkeypatch.context() as patch:
        cut(patch, split_bytes, n_partitions)
        try:
            expected = una_fast.build_index(corpus)
        except InputError as error:
            with pytest.raises(InputError, match="no word|no sentence") as found:
                built(corpus, folder=folder / "index", executor=Calling())
            assert str(found.value) == str(error)
            return
        assert same(built(corpus, folder=folder / "index", executor=Calling()), expected)
    assert not work_folder(folder / "index").exists()


@pytest.fixture
def shards(tmp_path):
    """A folder of shards: text, compressed text, JSON lines, CSV, and parquet of several row groups."""
    folder = tmp_path / "shards"
    folder.mkdir()
    (folder / "a.txt").write_bytes("\ufeff".encode() + "\r\n".join(LINES[:8]).encode())
    (folder / "b.txt.gz").write_bytes(gzip.compress("\n".join(LINES[5:15]).encode()))
    (folder / "c.jsonl").write_text("".join(f'{{"text": "{line}"}}\n' for line in LINES[12:17]))
    (folder / "d.csv").write_text("text\n" + "".join(f'"{line}\nmore"\n' for line in LINES[15:20]))
    pa.parquet.write_table(pa.table({"text": LINES[18:]}), folder / "e.parquet", row_group_size=2)
    return folder


@pytest.mark.filterwarnings("ignore::una_fast.InputWarning")
def test_every_executor_and_every_kind_of_source_give_the_same_bits(shards, tmp_path, monkeypatch):
    corpus = [shards, pa.table({"text": LINES[3:]}), LINES, shards / "a.txt"]
    expected = una_fast.build_index(corpus)
    cut(monkeypatch, split_bytes=100)
    with ThreadPoolExecutor(3) as threads, ProcessPoolExecutor(1) as processes:
        executors = {"none": None, "threads": threads, "processes": processes, "calling": Calling()}
        for name, executor in executors.items():
            assert same(built(corpus, folder=tmp_path / name, executor=executor), expected), name


def test_a_function_of_the_caller_splits_the_words(tmp_path, monkeypatch):
    cut(monkeypatch)
    index = built(LINES, word_tokenizer=list, folder=tmp_path / "index", n_jobs=3)
    assert same(index, una_fast.build_index(LINES, word_tokenizer=list))
