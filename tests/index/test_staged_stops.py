"""Builds in stages that are stopped, killed, or find the disk full: no work is lost, and the next run goes on."""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import pytest

import una_fast
from index.test_staged import LINES, same
from support.staged import Calling, Killed, cut, disk_full, failing_syncs
from una_fast.corpus.source import Source
from una_fast.errors import InputError
from una_fast.index import executors
from una_fast.index.executors import Runner
from una_fast.index.staged import work_folder
from una_fast.storage.files import locked

STEP = int(os.environ.get("UNA_FAST_STEP", "11"))  # a failure at every STEP-th write; 1 takes two minutes
OLD = ["an index that stood there", "before the build"]


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join(LINES))
    other = tmp_path / "more.jsonl"
    other.write_text("".join(f'"{line} more"\n' for line in LINES[:9]))
    return [path, other, LINES[3:8]]


@pytest.fixture
def build(corpus, tmp_path, monkeypatch):
    """Builds the index of `corpus` in small pieces, one task after the other."""
    cut(monkeypatch, split_bytes=700, n_partitions=2)
    return partial(una_fast.build_index, corpus=corpus, folder=tmp_path / "index", memory="1GB", executor=Calling())


@pytest.fixture
def n_syncs(build, tmp_path, monkeypatch):
    """The number of writes of a build."""
    with monkeypatch.context() as patch:
        calls = failing_syncs(patch, at=0, error=None)
        build(folder=tmp_path / "counted")
    return len(calls)


def stopped_at(share, build, n_syncs, monkeypatch):
    with monkeypatch.context() as patch:
        failing_syncs(patch, int(share * n_syncs), Killed())
        with pytest.raises(Killed):
            build()


@pytest.mark.slow
@pytest.mark.parametrize("error", [disk_full(), Killed()], ids=["disk full", "killed"])
def test_after_a_failure_at_any_write_the_build_goes_on(build, corpus, tmp_path, n_syncs, monkeypatch, error):
    """The old index stays until the new one is complete, and the next run goes on."""
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


def test_what_is_scanned_is_not_scanned_again(build, n_syncs, monkeypatch):
    stopped_at(0.9, build, n_syncs, monkeypatch)
    with monkeypatch.context() as patch:
        patch.setattr("una_fast.index.staged.scan_split", None)
        build()


def test_what_changed_between_two_runs_is_made_again(build, corpus, n_syncs, monkeypatch):
    """A longer file, one of the old size and time, fewer sources, other settings: the index is of what is there now."""
    text, about = corpus[0].read_text(), corpus[0].stat()
    for changed in (f"{text} and more", text.upper(), text):
        stopped_at(0.5, build, n_syncs, monkeypatch)
        corpus[0].write_text(changed)
        os.utime(corpus[0], ns=(about.st_atime_ns, about.st_mtime_ns))
        assert same(build(), una_fast.build_index(corpus))
    for other in ({"corpus": corpus[:1]}, {"corpus": [*corpus[:2], LINES[4:8]]}, {"lowercase": False}):
        stopped_at(0.5, build, n_syncs, monkeypatch)
        assert same(build(**other), una_fast.build_index(**{"corpus": corpus, **other}))
    stopped_at(0.9, build, n_syncs, monkeypatch)
    monkeypatch.setattr(Runner, "n_partitions", lambda self, n_bytes: 3)
    assert same(build(memory="2GB"), una_fast.build_index(corpus))


@pytest.mark.parametrize("settings", [{}, {"folder": "index"}])
def test_a_corpus_that_changes_while_it_is_read_is_refused(tmp_path, monkeypatch, settings):
    """An index of the old text would have the digest of the new one."""
    (tmp_path / "corpus.txt").write_text("some old text\n" * 3)
    digest = Source.digest

    def of_new_text(source):
        (tmp_path / "corpus.txt").write_text("some other text\n" * 3)
        return digest(source)

    monkeypatch.setattr(Source, "digest", of_new_text)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"corpus\.txt: changed since the build was started"):
        una_fast.build_index("corpus.txt", **settings)


def test_two_builds_of_one_folder_do_not_mix(build, tmp_path):
    work = work_folder(tmp_path / "index")
    work.mkdir()
    with locked(work), pytest.raises(InputError, match="another process is building there"):
        build()
    build()


def test_files_of_others_stay(build, corpus, tmp_path, n_syncs, monkeypatch):
    work = work_folder(tmp_path / "index")
    stopped_at(0.9, build, n_syncs, monkeypatch)
    (work / "notes.txt").write_text("mine")
    assert same(build(), una_fast.build_index(corpus))
    assert [path.name for path in work.iterdir()] == ["notes.txt"]
    with pytest.raises(InputError, match="holds 'notes.txt', and no manifest of una_fast"):
        build(folder=work)


def test_a_lost_worker_is_said_with_a_sentence(build, corpus):
    with ProcessPoolExecutor(1) as pool:
        pool.submit(os._exit, 9)
        with pytest.raises(InputError, match="a worker process was lost .* run the same again"):
            build(executor=pool)
    assert same(build(), una_fast.build_index(corpus))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"memory": "much"}, "give a size, as '2GB'"),
        ({"memory": "9" * 400 + "GB"}, "give a size, as '2GB'"),
        ({"memory": "100MB"}, "at least 512 MiB"),
        ({"executor": "threads"}, "executor is str: give an executor"),
        ({"folder": None}, "memory and executor are for a build in a folder only"),
    ],
)
def test_bad_options_get_a_sentence(build, options, said):
    with pytest.raises(InputError, match=said):
        build(**options)


def test_what_a_task_may_take_follows_from_the_memory():
    alone, eight = executors.task_memory(4 << 30, 1, 2), executors.task_memory(4 << 30, 8, 1)
    assert 3 * alone + executors.BASE <= 4 << 30
    assert 9 * eight + 8 * executors.BASE <= 4 << 30
    with pytest.raises(InputError, match="16 tasks at once take at least .* MiB: give more memory, or fewer workers"):
        executors.task_memory(1 << 30, 16, 1)


def test_a_mistake_at_the_start_is_not_in_the_way(tmp_path):
    table, other, blank = tmp_path / "a.csv", tmp_path / "b.csv", tmp_path / "blank.txt"
    table.write_text("title,id\nThe cat sat.,1\nA dog ran.,2\n")
    other.write_text("title,text\nA bird sang.,It rained.\n")
    blank.write_text("\n\n \n")
    build = partial(una_fast.build_index, folder=tmp_path / "index", executor=Calling())
    for corpus, said in ((table, "no column 'text'"), (blank, "3 sentences read, all of them blank")):
        with pytest.raises(InputError, match=said):
            build(corpus)
        assert sorted(path.name for path in tmp_path.iterdir()) == [table.name, other.name, "blank.txt"]
    with pytest.raises(InputError, match="no column 'text'"):
        build([other, table])  # the first table is read, and its files stay
    assert len(build([other, table], column="title")) == 3
