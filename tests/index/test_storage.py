"""Folders of arrays are saved completely or not at all, damage is noticed, and caches are rebuilt."""

import itertools
import os
import random
import signal
import time

import numpy as np
import pytest

from support.staged import disk_full, failing_syncs
from una_fast.errors import InputError
from una_fast.storage import array_folder
from una_fast.storage.array_folder import cached_arrays, load_arrays, save_arrays

ARRAYS = {
    "ids": np.arange(1000, dtype=np.int32),
    "scores": np.linspace(0, 1, 7),
    "empty": np.empty(0, dtype=np.int64),
    "records": np.arange(24, dtype=np.int32).reshape(3, 8),
}


@pytest.fixture
def saved(tmp_path):
    save_arrays(tmp_path / "saved", "index", 3, {"name": "né"}, ARRAYS)
    return tmp_path / "saved"


def file_of(saved, name):
    (path,) = saved.glob(f"{name}-*.npy")
    return path


def test_saved_arrays_are_loaded_read_only(saved):
    meta, arrays = load_arrays(saved, "index", 3, verify=True)
    assert meta == {"name": "né"} and arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype and np.array_equal(arrays[name], array)
        assert np.array_equal(np.load(file_of(saved, name)), array)
        assert not arrays[name].size or not arrays[name].flags.writeable


def test_saving_again_replaces_the_old_files(saved):
    before = load_arrays(saved, "index", 3)[1]["ids"]
    (saved / "notes.txt").write_text("mine")
    save_arrays(saved, "index", 3, {}, {"ids": np.zeros(3, dtype=np.int32)})
    assert load_arrays(saved, "index", 3)[1]["ids"].tolist() == [0, 0, 0]
    assert before[-1] == 999  # old arrays that are open stay readable
    names = [path.name.partition("-")[0] for path in sorted(saved.iterdir())]
    assert names == ["ids", "manifest.json", "notes.txt"]
    assert [path.name for path in saved.parent.iterdir()] == ["saved"]


@pytest.mark.parametrize("name", ["ids", "records", "manifest.json"])
def test_loading_notices_truncation(saved, name):
    path = saved / name if name == "manifest.json" else file_of(saved, name)
    content = path.read_bytes()
    for other in (b"", content[:100], content[:-2]):
        path.write_bytes(other)
        with pytest.raises(InputError, match=path.name):
            load_arrays(saved, "index", 3)
    path.unlink()
    with pytest.raises(InputError, match=path.name.partition("-")[0] + "|not a saved index"):
        load_arrays(saved, "index", 3)


@pytest.mark.parametrize(("version", "remedy"), [(4, "build it again"), (2, "install a newer una_fast")])
def test_another_version_is_refused(saved, version, remedy):
    with pytest.raises(InputError, match=f"version 3 .* version {version}; {remedy}"):
        load_arrays(saved, "index", version)


@pytest.mark.parametrize("call", range(1, 9))
def test_a_full_disk_leaves_the_old_content(saved, monkeypatch, call):
    for goal in (saved, saved.parent / "new"):
        with monkeypatch.context() as patch:
            failing_syncs(patch, call, disk_full())
            try:
                save_arrays(goal, "index", 3, {}, {"ids": np.zeros(3)})
            except InputError as said:
                assert f"{goal}: the disk is full: free some space; nothing was changed" in str(said)
    assert len(list(saved.iterdir())) in (len(ARRAYS) + 1, 2)
    load_arrays(saved, "index", 3, verify=True)
    assert {path.name for path in saved.parent.iterdir()} <= {"saved", "new"}


def test_a_folder_with_other_files_is_refused_and_unchanged(saved, tmp_path):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    for goal, kind, named in (
        ("file", "index", "file"),
        ("other", "index", "'notes.txt'"),
        ("saved", "tokens", "'index'"),
    ):
        with pytest.raises(InputError, match=named):
            save_arrays(tmp_path / goal, kind, 3, {}, ARRAYS)
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["notes.txt"]
    assert (tmp_path / "file").read_text() == "mine"


def test_a_killed_save_leaves_the_old_or_the_new_content(tmp_path):
    folder, moments = tmp_path / "saved", random.Random(0)
    save_arrays(folder, "index", 1, {"i": -1}, {"a": np.array([-1])})
    left = [folder / f".ids-0123456789abcdef.npy.{'0' * 16}.partial", folder / "ids-0123456789abcdef.npy"]
    for path in left:  # the files of another killed save
        path.write_text("cut short")
    for _ in range(int(os.environ.get("UNA_FAST_KILLS", "10"))):
        pid = os.fork()
        if not pid:
            try:
                for i in itertools.count():
                    save_arrays(folder, "index", 1, {"i": i}, {name: np.full(1000, i) for name in "abc"})
            finally:
                os._exit(1)
        time.sleep(moments.uniform(0, 0.05))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        meta, arrays = load_arrays(folder, "index", 1)
        assert all((array == meta["i"]).all() for array in arrays.values())
    save_arrays(folder, "index", 1, {"i": -1}, {"a": np.zeros(3)})
    assert [path.name.partition("-")[0] for path in sorted(folder.iterdir())] == ["a", "manifest.json"]


def test_cached_arrays_are_computed_once_unless_they_are_unusable(tmp_path, monkeypatch):
    made = []

    def cached(path=tmp_path / "cache", version=1, made_from="one"):
        return cached_arrays(path, version, made_from, lambda: made.append(1) or {"a": np.arange(3)}, fits)["a"]

    def fits(arrays):
        return arrays["a"].shape == (3,)

    assert cached().tolist() == cached().tolist() == [0, 1, 2] and len(made) == 1
    cached(made_from="two")
    cached(version=3)
    assert len(made) == 3
    file = file_of(tmp_path / "cache", "a")
    file.write_bytes(file.read_bytes()[:-1])
    assert cached(version=3).tolist() == [0, 1, 2] and len(made) == 4
    (tmp_path / "cache" / "manifest.json").write_bytes(b"{")
    assert cached(version=3).tolist() == cached(version=3).tolist() == [0, 1, 2] and len(made) == 5
    cached(None)
    monkeypatch.setattr(array_folder, "new_file", None)  # fails if anything is written
    assert cached(version=3).tolist() == [0, 1, 2] and len(made) == 6
    (tmp_path / "file").touch()
    assert cached(tmp_path / "file").tolist() == [0, 1, 2] and not (tmp_path / "file").read_bytes()
