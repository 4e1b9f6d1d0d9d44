"""Builds in stages that are stopped, killed, or find the disk full: no work is lost, and the next run goes on."""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import una_fast
from index.test_staged import LINES, same
from support.staged import Calling, Killed, cut, disk_full, failing_syncs
from una_fast._kernels.words.strings import hash_strings
from una_fast.arrays import StringTable
from una_fast.errors import InputError
from una_fast.index.staged import plan
from una_fast.index.staged.plan import Budget
from una_fast.index.staged.work import work_folder
from una_fast.storage.packs import Pack, write_pack
from una_fast.storage.place import lock_folder

STEP = int(os.environ.get("UNA_FAST_STEP", "11"))  # a failure at every STEP-th write; 1 takes two minutes
OLD = ["an index that stood there", "before the build"]


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join(LINES))
    other = tmp_path / "more.jsonl"
    other.write_text("".join(f'"{line} more"\n' for line in LINES[:9]))
    return [path, other]


@pytest.fixture
def build(corpus, tmp_path, monkeypatch):
    """Builds the index of `corpus` in small pieces, one task after the other."""
    cut(monkeypatch, split_bytes=700, n_partitions=2, n_ranges=2)
    return partial(una_fast.build_index, corpus=corpus, folder=tmp_path / "index", memory="1GB", executor=Calling())


@pytest.fixture
def n_syncs(build, tmp_path, monkeypatch):
    """The number of writes of a build."""
    with monkeypatch.context() as patch:
        calls = failing_syncs(patch, at=0, error=None)
        build(folder=tmp_path / "counted")
    return len(calls)


@pytest.mark.parametrize("error", [disk_full(), Killed()], ids=["disk full", "killed"])
def test_after_a_failure_at_any_write_the_build_goes_on(build, corpus, tmp_path, n_syncs, monkeypatch, error):
    """The old index stays until the new one is complete, and the next run goes on."""
    expected = una_fast.build_index(corpus)
    stopped = set()
    for at in range(1, n_syncs, STEP):
        una_fast.build_index(OLD).save(tmp_path / "index")
        with monkeypatch.context() as patch:
            failing_syncs(patch, at, error)
            try:
                build()
            except Killed:
                stopped.add("killed")
            except InputError as said:
                assert "the disk is full: free some space; finished files are kept" in str(said) or (
                    "nothing was changed" in str(said)
                )
                stopped.add("said")
        if work_folder(tmp_path / "index").exists():
            assert list(una_fast.load_index(tmp_path / "index")) == OLD
        assert same(build(), expected), at
        assert sorted(path.name for path in tmp_path.iterdir() if "index" in path.name) == ["index"], at
    assert stopped == ({"killed"} if isinstance(error, Killed) else {"said"})


def test_what_is_done_is_not_done_again(build, n_syncs, monkeypatch):
    """A build that was stopped after most of its writes has few left to do."""
    with monkeypatch.context() as patch:
        failing_syncs(patch, n_syncs - 12, Killed())
        with pytest.raises(Killed):
            build()
    left = failing_syncs(monkeypatch, 0, None)
    build()
    assert len(left) < 0.7 * n_syncs


def test_a_shard_that_changed_between_runs_is_refused(build, corpus, n_syncs, monkeypatch):
    with monkeypatch.context() as patch:
        failing_syncs(patch, n_syncs // 2, Killed())
        with pytest.raises(Killed):
            build()
    about = corpus[0].stat()
    text = corpus[0].read_text()
    corpus[0].write_text(text + " and more")
    with pytest.raises(InputError, match=r"corpus\.txt: changed since the build .* put the old back .* or delete"):
        build()
    corpus[0].write_text(text)
    os.utime(corpus[0], ns=(about.st_atime_ns, about.st_mtime_ns))
    with pytest.raises(InputError, match="another corpus"):
        build(corpus=corpus[:1])
    with pytest.raises(InputError, match="another word tokenizer"):
        build(lowercase=False)
    assert same(build(), una_fast.build_index(corpus))


def test_a_shard_that_changes_during_a_build_is_refused(build, corpus, monkeypatch):
    calls = failing_syncs(monkeypatch, 0, None)
    grow = calls.append

    class Growing(list):
        def append(self, call):
            grow(call)
            if len(calls) == 4:
                corpus[0].write_text("other text\n" * 3)

    monkeypatch.setattr(os, "fsync", Growing().append)
    with pytest.raises(InputError, match=r"corpus\.txt: changed since the build was started"):
        build()


def test_two_builds_of_one_folder_do_not_mix(build, tmp_path):
    work = work_folder(tmp_path / "index")
    work.mkdir()
    handle = lock_folder(work)
    with pytest.raises(InputError, match="another process is building there"):
        build()
    os.close(handle)
    build()


def test_what_others_put_into_the_work_folder_stays(build, tmp_path):
    work = work_folder(tmp_path / "index")
    work.mkdir()
    (work / "notes.txt").write_text("mine")
    build()
    assert [path.name for path in work.iterdir()] == ["notes.txt"]


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
        ({"memory": "100MB"}, "at least 512 MiB"),
        ({"executor": "threads"}, "executor is str: give an executor"),
        ({"folder": None}, "memory and executor are for a build in a folder only"),
    ],
)
def test_bad_options_get_a_sentence(build, options, said):
    with pytest.raises(InputError, match=said):
        build(**options)


@pytest.mark.parametrize("stage", ["rows", "runs", "merge", "rank", "label"])
@pytest.mark.parametrize("share", [0.5, 0.9])
def test_a_damaged_file_of_a_stage_is_named_and_made_again(build, corpus, tmp_path, n_syncs, monkeypatch, stage, share):
    with monkeypatch.context() as patch:
        failing_syncs(patch, int(share * n_syncs), Killed())
        with pytest.raises(Killed):
            build()
    for path in list(work_folder(tmp_path / "index").glob(f"{stage}-*"))[:2]:
        path.write_bytes(path.read_bytes()[:-1])
        with suppress(InputError):  # not raised if no stage reads the file again
            build()
            break
        path.unlink(missing_ok=True)
    assert same(build(), una_fast.build_index(corpus))


def test_a_damaged_file_is_named(tmp_path):
    write_pack(tmp_path / "pack", {}, {"a": np.arange(99)})
    whole = (tmp_path / "pack").read_bytes()
    for damaged in (whole[:-1], whole[:20], b"", b"x" * 400):
        (tmp_path / "pack").write_bytes(damaged)
        with pytest.raises(InputError, match="pack: damaged or cut short; delete it and run the build again"):
            Pack(tmp_path / "pack")


def test_what_a_task_may_take_follows_from_the_memory():
    alone, eight = Budget.of(4 << 30, 1, 2), Budget.of(4 << 30, 8, 1)
    assert 2 * alone.task + plan.BASE <= 4 << 30
    assert 8 * (eight.task + plan.BASE) <= 4 << 30
    assert alone.split_bytes() * plan.TEXT_FACTOR <= alone.task
    with pytest.raises(InputError, match="16 tasks at once take at least .* MiB: give more memory, or fewer workers"):
        Budget.of(1 << 30, 16, 1)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.text(max_size=12), max_size=20), st.data())
def test_strings_taken_and_hashed_are_those_of_python(strings, data):
    order = data.draw(st.lists(st.integers(0, len(strings) - 1), max_size=30)) if strings else []
    taken = StringTable.from_strings(strings).take(np.array(order, dtype=np.int64))
    assert list(taken) == [strings[i] for i in order]
    hashes = hash_strings(taken.utf8, taken.offsets).tolist()
    alone = [StringTable.from_strings(["before", text]) for text in taken]
    assert hashes == [int(hash_strings(table.utf8, table.offsets)[1]) for table in alone]


def test_a_mistake_at_the_start_is_not_in_the_way(tmp_path):
    table, blank, folder = tmp_path / "a.csv", tmp_path / "blank.txt", tmp_path / "index"
    table.write_text("title,id\nThe cat sat.,1\nA dog ran.,2\n")
    blank.write_text("\n\n \n")
    with pytest.raises(InputError, match="no column 'text'"):
        una_fast.build_index(table, folder=folder)
    with pytest.raises(InputError, match="3 sentences read, all of them blank"):
        una_fast.build_index(blank, folder=folder)
    assert len(una_fast.build_index(table, column="title", folder=folder)) == 2
