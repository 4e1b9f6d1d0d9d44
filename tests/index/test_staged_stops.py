"""Builds in stages that are stopped, killed, or find the disk full: no work is lost, and the next run goes on."""

from __future__ import annotations

import os
import random
import re
import shutil
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import una_fast
from index.test_staged import LINES, same
from support.staged import Calling, Killed, cut, disk_full, failing_syncs
from una_fast._kernels.words.strings import hash_strings
from una_fast.arrays import StringTable
from una_fast.corpus.source import FileSource
from una_fast.errors import InputError
from una_fast.index.staged import executors
from una_fast.index.staged.executors import Budget, Runner, worker_answer
from una_fast.index.staged.work import MARK, work_folder
from una_fast.storage import is_saved
from una_fast.storage.files import locked
from una_fast.storage.packs import Pack, write_pack

STEP = int(os.environ.get("UNA_FAST_STEP", "11"))  # a failure at every STEP-th write; 1 takes two minutes
TABLES = {"csv": pandas.DataFrame.to_csv, "parquet": pandas.DataFrame.to_parquet}
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


@pytest.mark.slow
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
                assert "the disk is full: free some space; " in str(said)
                if "nothing was changed" not in str(said):
                    assert ("finished files are kept" in str(said)) == work_folder(tmp_path / "index").exists()
                stopped.add("said")
        if work_folder(tmp_path / "index").exists():
            assert list(una_fast.load_index(tmp_path / "index")) == OLD
        assert same(build(), expected), at
        assert sorted(path.name for path in tmp_path.iterdir() if "index" in path.name) == ["index"], at
    assert stopped == ({"killed"} if isinstance(error, Killed) else {"said"})


@pytest.mark.parametrize("at", [1, 3, 5, 21])
def test_a_full_disk_is_said_to_keep_finished_files_only_where_they_are_kept(build, tmp_path, monkeypatch, at):
    """Writes 1 and 2 are of the mark, 3 and 4 of the first segment."""
    failing_syncs(monkeypatch, at, disk_full())
    with pytest.raises(InputError, match="the disk is full: free some space") as said:
        build()
    is_kept = work_folder(tmp_path / "index").exists()
    assert ("finished files are kept" in str(said.value)) == is_kept == (at >= 5)


def test_what_is_done_is_not_done_again(build, n_syncs, monkeypatch):
    """A build that was stopped after most of its writes has few left to do."""
    with monkeypatch.context() as patch:
        failing_syncs(patch, n_syncs - 12, Killed())
        with pytest.raises(Killed):
            build()
    left = failing_syncs(monkeypatch, 0, None)
    build()
    assert len(left) < 0.7 * n_syncs


def stopped_at(share, build, n_syncs, monkeypatch):
    with monkeypatch.context() as patch:
        failing_syncs(patch, int(share * n_syncs), Killed())
        with pytest.raises(Killed):
            build()


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_what_changed_between_two_runs_is_made_again(build, corpus, n_syncs, monkeypatch, share):
    """A longer file, one of the old size and time, fewer files, other settings: the index is of what is there now."""
    text, about = corpus[0].read_text(), corpus[0].stat()
    for changed in (f"{text} and more", text.upper(), text):
        stopped_at(share, build, n_syncs, monkeypatch)
        corpus[0].write_text(changed)
        os.utime(corpus[0], ns=(about.st_atime_ns, about.st_mtime_ns))
        assert same(build(), una_fast.build_index(corpus))
    for other in ({"corpus": corpus[:1]}, {"lowercase": False}):
        stopped_at(share, build, n_syncs, monkeypatch)
        assert same(build(**other), una_fast.build_index(**{"corpus": corpus, **other}))


def test_a_build_goes_on_with_other_memory(build, corpus, tmp_path, n_syncs, monkeypatch):
    """Other ranges of ranks are cut then; what was ranked in the old ranges is not used."""
    for share in (0.3, 0.4, 0.5, 0.6, 0.7):
        stopped_at(share, build, n_syncs, monkeypatch)
        with monkeypatch.context() as patch:
            patch.setattr(Budget, "n_ranges", lambda self, n_bytes: 3)
            assert same(build(), una_fast.build_index(corpus)), share


def test_a_shard_that_changes_during_a_build_is_refused(build, corpus, monkeypatch):
    calls = failing_syncs(monkeypatch, 0, None)
    grow = calls.append

    class Growing(list):
        def append(self, call):
            grow(call)
            if len(calls) == 6:
                corpus[0].write_text("other text\n" * 3)

    monkeypatch.setattr(os, "fsync", Growing().append)
    with pytest.raises(InputError, match=r"corpus\.txt: changed since the build was started"):
        build()


@pytest.mark.parametrize("settings", [{}, {"folder": "index"}])
def test_a_corpus_that_changes_while_it_is_read_is_refused(tmp_path, monkeypatch, settings):
    """An index of the old text would have the digest of the new one."""
    (tmp_path / "corpus.txt").write_text("some old text\n" * 3)
    digest = FileSource.digest

    def of_new_text(source):
        (tmp_path / "corpus.txt").write_text("some other text\n" * 3)
        return digest(source)

    monkeypatch.setattr(FileSource, "digest", of_new_text)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"corpus\.txt: changed since the build was started"):
        una_fast.build_index("corpus.txt", **settings)


def test_a_folder_that_is_named_through_a_missing_one_is_opened(tmp_path):
    assert una_fast.build_index(["some text"], folder=tmp_path / "missing" / ".." / "index").n_terms == 2


def test_a_work_folder_that_is_deleted_or_exchanged_ends_the_build(build, tmp_path, monkeypatch):
    work, run = work_folder(tmp_path / "index"), Runner.run
    for exchange in (False, True):

        def without_work(runner, stage, tasks, exchange=exchange):
            if stage == "write":
                work.rename(tmp_path / f"moved-{exchange}")
                if exchange:
                    work.mkdir()
                    (work / MARK).write_text("mine")
            run(runner, stage, tasks)

        monkeypatch.setattr(Runner, "run", without_work)
        with pytest.raises(InputError, match="rank-.* cannot be read .*; run the build again"):
            build()
    assert (work / MARK).read_text() == "mine"


def test_two_builds_of_one_folder_do_not_mix(build, tmp_path):
    work = work_folder(tmp_path / "index")
    work.mkdir()
    with locked(work), pytest.raises(InputError, match="another process is building there"):
        build()
    build()


def test_names_like_those_of_a_build_stay_and_the_next_build_goes_on(build, tmp_path, n_syncs, monkeypatch):
    work = work_folder(tmp_path / "index")
    stopped_at(0.9, build, n_syncs, monkeypatch)
    backup = work / "rows-2026112308123700"
    backup.mkdir()
    names = ("notes.txt", "merge-notes", "idf.npy", "thesis-2026112308123700", "array-2026112308123700")
    mine = {backup / "idf.npy", *(work / name for name in names)}
    for path in mine:
        path.write_text("mine")
    for _ in range(2):
        build()
        assert {path for path in work.rglob("*") if path.is_file()} == {*mine, work / MARK}


def test_a_folder_of_others_in_place_of_the_work_folder_stays(build, tmp_path):
    work = work_folder(tmp_path / "index")
    work.mkdir()
    (work / "notes.txt").write_text("mine")
    with pytest.raises(
        InputError, match=r"building: holds 'notes.txt', and no build made it; move it, or delete it to build anew"
    ):
        build()
    assert (work / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("make", [lambda path: path.symlink_to("mine"), Path.touch])
def test_a_link_or_a_file_in_place_of_the_work_folder_stays(build, tmp_path, make):
    (tmp_path / "mine").mkdir()
    make(work_folder(tmp_path / "index"))
    with pytest.raises(InputError, match=r"\.index\.building: no folder; move it, or give another folder"):
        build()
    assert not list((tmp_path / "mine").iterdir()) and os.path.lexists(work_folder(tmp_path / "index"))


@pytest.mark.parametrize("kind", ["link", "folder", "hard link"])
@pytest.mark.parametrize("share", [0.5, 0.9])
def test_no_array_leads_out_of_the_work_folder(build, tmp_path, n_syncs, monkeypatch, share, kind):
    outside, work = tmp_path / "outside", work_folder(tmp_path / "index")
    outside.mkdir()
    stopped_at(share, build, n_syncs, monkeypatch)
    path = work / f"array-words_values-{next(work.glob('rows-*')).name[-16:]}"
    path.rename(outside / "mine") if path.exists() else (outside / "mine").write_text("mine")
    if kind == "folder":
        path.mkdir()
    elif kind == "hard link":
        os.link(outside / "mine", path)
    else:
        path.symlink_to(outside / "mine")
    before = {each: each.read_bytes() for each in outside.rglob("*") if each.is_file()}
    with suppress(InputError):
        build()
    assert before == {each: each.read_bytes() for each in outside.rglob("*") if each.is_file()}
    assert not any(each.is_symlink() for each in (tmp_path / "index").glob("*"))


@pytest.mark.slow
@pytest.mark.parametrize(("module", "error"), [("distributed.cfexecutor", InputError), ("mine", TypeError)])
def test_an_answer_that_is_lost_with_its_worker_is_said_with_a_sentence(build, module, error):
    library: dict = {"__name__": module}
    exec("def result(timeout=None): raise TypeError('cannot unpack non-iterable NoneType object')", library)

    class LosesAnswers(Calling):
        def submit(self, function, /, *arguments, **named):
            future = super().submit(function, *arguments, **named)
            if function is not worker_answer:
                future.result = library["result"]
            return future

    with pytest.raises(error, match="NoneType object"):
        build(executor=LosesAnswers())
    build()


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


@pytest.mark.parametrize("stage", ["rows", "runs", "merge", "rank", "label"])
@pytest.mark.parametrize("share", [0.5, 0.9])
def test_a_damaged_file_of_a_stage_is_named_and_made_again(build, corpus, tmp_path, n_syncs, monkeypatch, stage, share):
    stopped_at(share, build, n_syncs, monkeypatch)
    for path in list(work_folder(tmp_path / "index").rglob(f"{stage}-*"))[:2]:
        path.write_bytes(path.read_bytes()[:-1])
        with suppress(InputError):  # not raised if no stage reads the file again
            build()
            break
        path.unlink(missing_ok=True)
    assert same(build(), una_fast.build_index(corpus))


def intermediate_files(folder):
    return sorted(path for path in work_folder(folder).rglob("*") if path.is_file())


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.2, 0.4, 0.6, 0.8, 0.98])
def test_a_flipped_bit_of_any_intermediate_file_gives_the_same_bits_or_a_sentence(
    build, corpus, tmp_path, n_syncs, monkeypatch, share
):
    """What the sentence names is deleted; then the build ends with the same bits."""
    expected, moments = una_fast.build_index(corpus), random.Random(share)
    stopped_at(share, build, n_syncs, monkeypatch)
    stopped = tmp_path / "stopped"
    shutil.copytree(work_folder(tmp_path / "index"), stopped)
    for path in intermediate_files(tmp_path / "index"):
        shutil.rmtree(tmp_path / "index", ignore_errors=True)
        shutil.copytree(stopped, work_folder(tmp_path / "index"), dirs_exist_ok=True)
        flip_a_bit(path, moments)
        try:
            index = build()
        except InputError as said:
            assert f"{path}: damaged" in str(said) or (path.name == MARK and "no build made it" in str(said))
            delete_what_is_named(str(said))
            index = build()
        assert same(index, expected), path


@pytest.mark.parametrize("share", [0.3, 0.5, 0.7, 0.9])
def test_exchanged_intermediate_files_give_the_same_bits_or_a_sentence(
    build, corpus, tmp_path, n_syncs, monkeypatch, share
):
    """Each file is whole, and there under the name of another one of its kind."""
    expected, work, stopped = una_fast.build_index(corpus), work_folder(tmp_path / "index"), tmp_path / "stopped"
    stopped_at(share, build, n_syncs, monkeypatch)
    kinds: dict = {}
    for path in intermediate_files(tmp_path / "index"):
        kinds.setdefault(re.sub("[0-9].*", "", path.name), []).append(path)
    shutil.copytree(work, stopped)
    refused = []
    for kind, (one, *others) in kinds.items():
        for other in others[:2]:
            for folder in (tmp_path / "index", work):
                shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(stopped, work)
            one.rename(tmp_path / "kept")
            other.rename(one)
            (tmp_path / "kept").rename(other)
            try:
                assert same(build(), expected), (one.name, other.name)
            except InputError as said:
                assert "damaged" in str(said)
                refused.append(kind)
    assert refused


def flip_a_bit(path, moments):
    content = bytearray(path.read_bytes())
    content[moments.randrange(len(content))] ^= 1 << moments.randrange(8)
    path.write_bytes(content)


def delete_what_is_named(said):
    """What the sentence says to delete, or the path that it starts with."""
    found = re.search(r"; delete (/\S+) to build", said)
    named = Path(found[1] if found else said.partition(": ")[0])
    shutil.rmtree(named) if named.is_dir() else named.unlink()


def test_ids_that_a_stage_reads_are_checked_before_a_kernel_uses_them(build, tmp_path, n_syncs, monkeypatch):
    """Whoever wrote the file, with whatever checksum."""
    for share in (0.4, 0.5, 0.6, 0.7):
        stopped_at(share, build, n_syncs, monkeypatch)
        for path in work_folder(tmp_path / "index").glob("rows-*"):
            with Pack(path) as pack:
                arrays = {name: pack.read(name) for name in pack._places}
            arrays["words_values"][:] = 2**31 - 1
            write_pack(path, pack.meta, arrays)
        with pytest.raises(InputError, match="rows-.*: damaged, cut short or exchanged; delete it and build again"):
            build()
        shutil.rmtree(work_folder(tmp_path / "index"))


def test_a_damaged_file_is_named(tmp_path):
    write_pack(tmp_path / "pack", {}, {"a": np.arange(99)})
    whole = (tmp_path / "pack").read_bytes()
    for damaged in (whole[:-1], whole[:20], b"", b"x" * 400):
        (tmp_path / "pack").write_bytes(damaged)
        with pytest.raises(InputError, match="pack: damaged, cut short or exchanged; delete it and build again"):
            Pack(tmp_path / "pack")


def test_what_a_task_may_take_follows_from_the_memory():
    alone, eight = Budget.of(4 << 30, 1, 2), Budget.of(4 << 30, 8, 1)
    assert 2 * alone.task + executors.BASE <= 4 << 30
    assert 8 * (eight.task + executors.BASE) <= 4 << 30
    assert alone.split_bytes() * executors.TEXT_FACTOR <= alone.task
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


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_mistake_at_the_start_is_not_in_the_way(tmp_path, kind):
    table, other, blank = tmp_path / f"a.{kind}", tmp_path / f"b.{kind}", tmp_path / "blank.txt"
    TABLES[kind](pandas.DataFrame({"title": ["The cat sat.", "A dog ran."], "id": [1, 2]}), table)
    TABLES[kind](pandas.DataFrame({"title": ["A bird sang."], "text": ["It rained."]}), other)
    blank.write_text("\n\n \n")
    build = partial(una_fast.build_index, folder=tmp_path / "index", executor=Calling())
    for corpus, said in ((table, "no column 'text'"), (blank, "3 sentences read, all of them blank")):
        with pytest.raises(InputError, match=said):
            build(corpus)
        assert sorted(path.name for path in tmp_path.iterdir()) == [table.name, other.name, "blank.txt"]
    with pytest.raises(InputError, match="no column 'text'"):
        build([other, table])  # the first table is read, and its files stay
    assert len(build([other, table], column="title")) == 3


@pytest.mark.parametrize("n_names", range(0, 40, 3))
def test_a_build_killed_while_it_deletes_its_files_goes_on(build, corpus, tmp_path, monkeypatch, n_names):
    unlink, left = Path.unlink, iter(range(n_names))

    def killing(path, missing_ok=False):
        if ".index.building" in str(path) and is_saved(tmp_path / "index") and next(left, None) is None:
            raise Killed
        unlink(path, missing_ok)

    with monkeypatch.context() as patch, suppress(Killed):
        patch.setattr(Path, "unlink", killing)
        build()
    assert same(build(), una_fast.build_index(corpus))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["corpus.txt", "index", "more.jsonl"]
