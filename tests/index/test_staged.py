"""A build in stages gives the index of a build in memory for any splits and executor, and continues after a stop."""

import gzip
import itertools
import os
import shutil
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial

import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import una_fast
from support.staged import Calling, Killed, cut, disk_full, failing_syncs, flip
from una_fast.corpus.sources import Source
from una_fast.errors import InputError
from una_fast.index import executors
from una_fast.index.executors import Runner
from una_fast.index.index import DTYPES
from una_fast.index.stages import work_folder
from una_fast.storage.files import locked
from una_fast_cli.__main__ import main
from una_fast_cli.index import connected

WORDS = ["the", "cat", "Sat", "dog.", "it's", "(a)", "...", "naïve", "x", "x's", "10:30", '"', "''", ")"]
CORPORA = st.lists(st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join), min_size=1, max_size=25)
LINES = [f"the {a} cat {b} sat on {a}{b} . it 's {b}" for a, b in itertools.product("abcde", "fghij")]
built = partial(una_fast.build_index, memory="1GB")


def same(one, other):
    """Assert that two indexes are bit-identical."""
    for array in DTYPES:
        a, b = one._arrays[array], other._arrays[array]
        assert a.dtype == b.dtype and a.tobytes() == b.tobytes(), array
    assert one.fingerprint == other.fingerprint
    assert one.sources == other.sources
    return True


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(CORPORA, st.integers(1, 200), st.integers(1, 5), st.booleans())
def test_any_splits_give_the_index_of_a_build_in_memory(tmp_path_factory, texts, split_bytes, n_partitions, in_a_file):
    folder, corpus = tmp_path_factory.mktemp("staged"), texts
    if in_a_file and any(texts):
        corpus = folder / "corpus.txt"
        corpus.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
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


def write_shards(folder):
    """Write a folder of shards: text, compressed text, JSON lines, CSV, and parquet of several row groups."""
    folder.mkdir()
    (folder / "a.txt").write_bytes("\ufeff".encode() + "\r\n".join(LINES[:8]).encode())
    (folder / "b.txt.gz").write_bytes(gzip.compress("\n".join(LINES[5:15]).encode()))
    (folder / "c.jsonl").write_text("".join(f'{{"text": "{line}"}}\n' for line in LINES[12:17]))
    (folder / "d.csv").write_text("text\n" + "".join(f'"{line}\nmore"\n' for line in LINES[15:20]))
    pa.parquet.write_table(pa.table({"text": LINES[18:]}), folder / "e.parquet", row_group_size=2)
    return folder


@pytest.mark.filterwarnings("ignore::una_fast.InputWarning")
def test_every_executor_and_every_kind_of_source_give_the_same_index(tmp_path, monkeypatch):
    shards = write_shards(tmp_path / "shards")
    corpus = [shards, pa.table({"text": LINES[3:]}), LINES, shards / "a.txt"]
    expected = una_fast.build_index(corpus)
    cut(monkeypatch, split_bytes=100)
    with ThreadPoolExecutor(3) as threads, ProcessPoolExecutor(1) as processes:
        executors = {"none": None, "threads": threads, "processes": processes, "calling": Calling()}
        for name, executor in executors.items():
            assert same(built(corpus, folder=tmp_path / name, executor=executor), expected), name
    own = built(LINES, word_tokenizer=list, folder=tmp_path / "own", n_jobs=3)
    assert same(own, una_fast.build_index(LINES, word_tokenizer=list))


def test_a_corrected_word_tokenizer_scans_all_splits_again(tmp_path, monkeypatch):
    """The scans of the old function are not reused, although it has the same signature."""
    cut(monkeypatch, split_bytes=100)
    corpus = [[f"they were seen by the river {i}" for i in range(50)], ["bad"]]

    def without(left_out, bad=None):
        return lambda text: [""] if text == bad else [word for word in text.split() if word != left_out]

    corrected = without("by")
    settings = {"folder": tmp_path / "index", "n_jobs": 1}
    with pytest.raises(InputError, match="none empty"):
        built(corpus, word_tokenizer=without("were", bad="bad"), **settings)
    assert [*work_folder(tmp_path / "index").glob("scan-*.pack")]
    expected = una_fast.build_index(corpus, word_tokenizer=corrected)
    assert same(built(corpus, word_tokenizer=corrected, **settings), expected)


STEP = int(os.environ.get("UNA_FAST_STEP", "11"))  # a failure at every STEP-th write; 1 takes two minutes
OLD = ["an index that existed", "before the build"]


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join(LINES))
    other = tmp_path / "more.jsonl"
    other.write_text("".join(f'"{line} more"\n' for line in LINES[:9]))
    return [path, other, LINES[3:8]]


@pytest.fixture
def build(corpus, tmp_path, monkeypatch):
    """Return a function that builds the index of `corpus` in small splits, one task after the other."""
    cut(monkeypatch, split_bytes=700, n_partitions=2)
    return partial(una_fast.build_index, corpus=corpus, folder=tmp_path / "index", memory="1GB", executor=Calling())


@pytest.fixture
def n_syncs(build, tmp_path, monkeypatch):
    """Return the number of writes of a build."""
    with monkeypatch.context() as patch:
        calls = failing_syncs(patch, at=0, error=None)
        build(folder=tmp_path / "counted")
    return len(calls)


@pytest.fixture
def stop(build, n_syncs, monkeypatch):
    """Return a function that starts a build and kills it after a share of its writes."""

    def start(share):
        with monkeypatch.context() as patch, pytest.raises(Killed):
            failing_syncs(patch, int(share * n_syncs), Killed())
            build()

    return start


@pytest.mark.slow
@pytest.mark.parametrize("error", [disk_full(), Killed()], ids=["disk full", "killed"])
def test_a_build_continues_after_a_failure_at_any_write(build, corpus, tmp_path, n_syncs, monkeypatch, error):
    """The old index stays until the new one is complete, and the next run finishes the build."""
    expected = una_fast.build_index(corpus)
    for at in range(1, n_syncs, STEP):
        una_fast.build_index(OLD).save(tmp_path / "index")
        with monkeypatch.context() as patch:
            failing_syncs(patch, at, error)
            try:
                build()
            except (Killed, InputError) as said:
                assert isinstance(said, Killed) or "the disk is full: free some space; " in str(said)
        if work_folder(tmp_path / "index").exists():
            assert list(una_fast.load_index(tmp_path / "index", verify=True)) == OLD
        assert same(build(), expected), at
        assert len(list((tmp_path / "index").iterdir())) == 12
        assert sorted(path.name for path in tmp_path.iterdir() if "index" in path.name) == ["index"], at


def test_a_restarted_build_reuses_finished_scans(build, stop, monkeypatch):
    stop(0.9)
    monkeypatch.setattr("una_fast.index.tasks.scan_split", None)
    build()


@pytest.mark.parametrize("bit", [3, 500, -9, None])
def test_a_damaged_file_of_a_stopped_build_is_written_again(build, stop, tmp_path, bit):
    """bit: the bit of the file that is flipped. If None, the file is emptied."""
    stop(0.9)
    work, expected = work_folder(tmp_path / "index"), build(folder=tmp_path / "expected")
    whole = {path: path.read_bytes() for path in work.iterdir() if path.stat().st_size}
    assert len(whole) > 3
    for damaged in whole:
        shutil.rmtree(tmp_path / "index", ignore_errors=True)
        work.mkdir(exist_ok=True)
        for path, content in whole.items():
            path.write_bytes(content if path != damaged or bit is not None else b"")
        if bit is not None:
            flip(damaged, bit % (8 * len(whole[damaged])))
        assert same(build(), expected), damaged


def test_changes_between_two_runs_are_noticed(build, stop, corpus, monkeypatch):
    """The changes are a longer file, a file with the old size and time, fewer sources, and other settings."""
    text, about = corpus[0].read_text(), corpus[0].stat()
    for changed in (f"{text} and more", text.upper(), text):
        stop(0.5)
        corpus[0].write_text(changed)
        os.utime(corpus[0], ns=(about.st_atime_ns, about.st_mtime_ns))
        assert same(build(), una_fast.build_index(corpus))
    for other in ({"corpus": corpus[:1]}, {"corpus": [*corpus[:2], LINES[4:8]]}, {"lowercase": False}):
        stop(0.5)
        assert same(build(**other), una_fast.build_index(**{"corpus": corpus, **other}))
    stop(0.9)
    monkeypatch.setattr(Runner, "n_partitions", lambda self, n_bytes: 3)
    assert same(build(memory="2GB"), una_fast.build_index(corpus))


@pytest.mark.parametrize("settings", [{}, {"folder": "index"}])
def test_a_corpus_that_changes_while_it_is_read_is_refused(tmp_path, monkeypatch, settings):
    """If it were accepted, an index of the old text would have the digest of the new text."""
    (tmp_path / "corpus.txt").write_text("some old text\n" * 3)
    digest = Source.digest

    def of_new_text(source):
        (tmp_path / "corpus.txt").write_text("some other text\n" * 3)
        return digest(source)

    monkeypatch.setattr(Source, "digest", of_new_text)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="corpus.txt: changed"):
        una_fast.build_index("corpus.txt", **settings)


def test_a_second_build_in_the_same_folder_is_refused(build, tmp_path):
    work = work_folder(tmp_path / "index")
    work.mkdir()
    with locked(work), pytest.raises(InputError, match="another process"):
        build()
    build()


def test_other_files_in_the_work_folder_are_kept(build, stop, corpus, tmp_path):
    work = work_folder(tmp_path / "index")
    stop(0.9)
    (work / "notes.txt").write_text("mine")
    assert same(build(), una_fast.build_index(corpus))
    assert [path.name for path in work.iterdir()] == ["notes.txt"]
    with pytest.raises(InputError, match="'notes.txt'"):
        build(folder=work)


def test_a_lost_worker_gives_a_clear_message(build, corpus):
    with ProcessPoolExecutor(1) as pool:
        pool.submit(os._exit, 9)
        with pytest.raises(InputError, match="worker process was lost"):
            build(executor=pool)
    assert same(build(), una_fast.build_index(corpus))


@pytest.mark.parametrize(("options", "named"), [
    ({"memory": "much"}, "^memory"), ({"memory": "9" * 400 + "GB"}, "^memory"), ({"memory": "100MB"}, "^memory"),
    ({"executor": "threads"}, "^executor"), ({"folder": None}, "^memory, executor"),
])  # fmt: skip
def test_bad_options_are_named(build, options, named):
    with pytest.raises(InputError, match=named):
        build(**options)


def test_the_memory_of_all_tasks_is_within_the_limit():
    alone, eight = executors.task_memory(4 << 30, 1, 2), executors.task_memory(4 << 30, 8, 1)
    assert 3 * alone + executors.BASE <= 4 << 30
    assert 9 * eight + 8 * executors.BASE <= 4 << 30
    with pytest.raises(InputError, match="16 .* MiB"):
        executors.task_memory(1 << 30, 16, 1)


def test_a_refused_corpus_leaves_no_files(tmp_path):
    table, blank = tmp_path / "a.csv", tmp_path / "blank.txt"
    table.write_text("title,id\nThe cat sat.,1\nA dog ran.,2\n")
    blank.write_text("\n\n \n")
    build = partial(una_fast.build_index, folder=tmp_path / "index", executor=Calling())
    for corpus, named in ((table, "a.csv.*'text'"), (blank, "3 sentences")):
        with pytest.raises(InputError, match=named):
            build(corpus)
        assert sorted(path.name for path in tmp_path.iterdir()) == [table.name, blank.name]
    assert len(build(table, column="title")) == 2


@pytest.fixture(scope="module")
def distributed():
    return pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def cluster(distributed):
    """Start two workers in this process, which is faster. They behave like workers on separate machines."""
    how = {"processes": False, "dashboard_address": None, "protocol": "tcp"}
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, **how) as cluster:
        yield cluster


@pytest.mark.slow
class TestDask:
    """A Dask cluster builds the same index, and an unusable cluster gives a clear message."""

    def test_the_command_builds_the_same_index_on_a_cluster(self, cluster, tmp_path, monkeypatch):
        cut(monkeypatch, split_bytes=300)
        (tmp_path / "corpus.txt").write_text("\n".join(LINES))
        words = [tmp_path / "corpus.txt", "--output", tmp_path / "index", "--cluster", cluster.scheduler_address]
        assert main(["index", *map(str, words), "--memory", "1GB"]) == 0
        assert same(una_fast.load_index(tmp_path / "index"), una_fast.build_index(tmp_path / "corpus.txt"))

    @pytest.mark.parametrize("address", ["127.0.0.1:1", "nothing://here"])
    def test_an_unreachable_scheduler_is_named(self, distributed, address, monkeypatch):
        monkeypatch.setattr("una_fast_cli.index.TIMEOUT", 0.2)
        with pytest.raises(InputError, match=f"{address}.*`dask scheduler`"), connected(address):
            pass

    def test_unusable_workers_are_named(self, distributed, cluster, tmp_path, monkeypatch):
        monkeypatch.setattr(executors, "worker_answer", lambda folder: ("0.0.1", False))
        with distributed.Client(cluster) as client, pytest.raises(InputError, match="worker tcp://"):
            built(LINES, folder=tmp_path / "index", executor=client)

    def test_a_cluster_without_workers_is_refused(self, distributed, tmp_path):
        with distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as empty:
            with distributed.Client(empty) as client, pytest.raises(InputError, match="no worker"):
                built(LINES, folder=tmp_path / "index", executor=client)
