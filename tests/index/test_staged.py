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
from una_fast.index import executors
from una_fast.index.index import DTYPES
from una_fast.index.staged import work_folder
from una_fast_cli.__main__ import main
from una_fast_cli.index import connected

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


@pytest.fixture(scope="module")
def distributed():
    return pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def cluster(distributed):
    """Two workers in this process: no processes have to start, but the workers act as on machines of their own."""
    how = {"processes": False, "dashboard_address": None, "protocol": "tcp"}
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, **how) as cluster:
        yield cluster


@pytest.mark.slow
class TestDask:
    """A Dask cluster builds the same bits; one that cannot build gets a message."""

    def test_the_command_builds_on_a_cluster_what_a_build_in_memory_makes(self, cluster, tmp_path, monkeypatch):
        cut(monkeypatch, split_bytes=300)
        (tmp_path / "corpus.txt").write_text("\n".join(LINES))
        words = [tmp_path / "corpus.txt", "--output", tmp_path / "index", "--cluster", cluster.scheduler_address]
        assert main(["index", *map(str, words), "--memory", "1GB"]) == 0
        assert same(una_fast.load_index(tmp_path / "index"), una_fast.build_index(tmp_path / "corpus.txt"))

    @pytest.mark.parametrize("address", ["127.0.0.1:1", "nothing://here"])
    def test_an_unreachable_scheduler_is_said_with_a_sentence(self, distributed, address, monkeypatch):
        monkeypatch.setattr("una_fast_cli.index.TIMEOUT", 0.2)
        message = "no Dask scheduler answers at .* start one with `dask scheduler`"
        with pytest.raises(InputError, match=message), connected(address):
            pass

    def test_workers_that_cannot_take_part_are_named(self, distributed, cluster, tmp_path, monkeypatch):
        monkeypatch.setattr(executors, "worker_answer", lambda folder: ("0.0.1", False))
        message = r"worker tcp://.* answers .* must have una_fast .*, on a disk that all machines"
        with distributed.Client(cluster) as client, pytest.raises(InputError, match=message):
            built(LINES, folder=tmp_path / "index", executor=client)

    def test_a_cluster_without_workers_is_said_with_a_sentence(self, distributed, tmp_path):
        with (
            distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as empty,
            distributed.Client(empty) as client,
            pytest.raises(InputError, match="the cluster has no worker"),
        ):
            built(LINES, folder=tmp_path / "index", executor=client)
