"""Folders of arrays: the saved arrays are loaded again; any other content is refused with a message."""

from __future__ import annotations

import errno
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from una_fast.errors import InputError
from una_fast.storage import load, load_arrays, save_arrays
from una_fast.storage.files import new_file

ARRAYS = {
    "ids": np.arange(1000, dtype=np.int32),
    "scores": np.linspace(0, 1, 7),
    "empty": np.empty(0, dtype=np.int64),
    "records": np.arange(24, dtype=np.int32).reshape(3, 8),
}


@pytest.fixture
def folder(tmp_path):
    save_arrays(tmp_path / "saved", "index", 3, {"name": "né"}, ARRAYS)
    return tmp_path / "saved"


def test_what_was_saved_comes_back_read_only(folder):
    meta, arrays, _ = load_arrays(folder, "index", 3)
    assert meta == {"name": "né"}
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        assert np.array_equal(arrays[name], array)
        assert not arrays[name].size or not arrays[name].flags.writeable


def test_saving_again_replaces_and_leaves_nothing_behind(folder):
    before = load_arrays(folder, "index", 3)[1]["ids"]
    save_arrays(folder, "index", 3, {}, {"ids": np.zeros(3, dtype=np.int32)})
    assert load_arrays(folder, "index", 3)[1]["ids"].tolist() == [0, 0, 0]
    assert before[-1] == 999  # an open array of the old content stays readable
    assert [path.name.partition("-")[0] for path in sorted(folder.iterdir())] == ["ids", "manifest.json"]
    assert [path.name for path in folder.parent.iterdir()] == ["saved"]


def file_of(folder, name):
    """The file of an array."""
    (path,) = folder.glob(f"{name}-*.npy")
    return path


@pytest.mark.parametrize("name", ARRAYS)
def test_a_flipped_bit_anywhere_is_refused(folder, name):
    path = file_of(folder, name)
    content = path.read_bytes()
    for at in {0, len(content) // 2, len(content) - 1}:
        changed = bytearray(content)
        changed[at] ^= 1
        path.write_bytes(changed)
        with pytest.raises(InputError, match="damaged"):
            load_arrays(folder, "index", 3)


@pytest.mark.parametrize("keep", [0, 1, 100])
def test_a_file_cut_short_is_refused(folder, keep):
    path = file_of(folder, "ids")
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(InputError, match=r"ids-.*\.npy: damaged \(cut short or changed\)"):
        load_arrays(folder, "index", 3)


def test_a_missing_file_is_named(folder):
    file_of(folder, "ids").unlink()
    with pytest.raises(InputError, match=r"ids-.*\.npy: missing"):
        load_arrays(folder, "index", 3)


def test_another_kind_version_or_folder_is_refused(folder, tmp_path):
    with pytest.raises(InputError, match="holds a saved 'index', not a 'tokens'"):
        load_arrays(folder, "tokens", 3)
    with pytest.raises(InputError, match="written in version 3 of the index layout, and this is version 4"):
        load_arrays(folder, "index", 4)
    with pytest.raises(InputError, match="not a saved index"):
        load_arrays(tmp_path, "index", 3)


def test_a_full_disk_leaves_the_old_folder_as_it_was(folder, monkeypatch):
    def full(_handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(InputError, match=r"saved: the disk is full: free some space; nothing was changed"):
        save_arrays(folder, "index", 3, {}, {"ids": np.zeros(3)})
    monkeypatch.undo()
    assert len(list(folder.iterdir())) == len(ARRAYS) + 1
    assert load_arrays(folder, "index", 3)[0] == {"name": "né"}
    assert [path.name for path in folder.parent.iterdir()] == ["saved"]


def test_a_file_where_the_folder_should_be_is_refused(tmp_path):
    (tmp_path / "saved").write_text("mine")
    with pytest.raises(InputError, match="saved: cannot be written"):
        save_arrays(tmp_path / "saved", "index", 3, {}, ARRAYS)
    assert (tmp_path / "saved").read_text() == "mine"


def test_an_empty_folder_and_a_link_to_one_are_filled(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    for content in (1, 2):
        save_arrays(tmp_path / "link", "index", 3, {}, {"ids": np.array([content])})
        assert load_arrays(tmp_path / "empty", "index", 3)[1]["ids"].tolist() == [content]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "link"]


def test_who_loads_while_another_saves_has_the_new_one(folder, monkeypatch):
    map_file = load.map_file

    def after_a_save(path):
        monkeypatch.undo()
        save_arrays(folder, "index", 3, {"name": "new"}, {"ids": np.array([1])})
        return map_file(path)

    monkeypatch.setattr(load, "map_file", after_a_save)
    meta, arrays, _ = load_arrays(folder, "index", 3)
    assert (meta, arrays["ids"].tolist()) == ({"name": "new"}, [1])


def test_loads_beside_saves_never_fail_or_mix(tmp_path):
    """Two threads save, each content twice, and two load: each load gives the arrays of a single save."""

    def save(first):
        for i in range(first, first + 40):
            number = np.array([i // 2])  # every content is saved twice
            save_arrays(tmp_path / "saved", "index", 3, {}, {"a": number, "b": number})

    def load(_):
        for _ in range(300):
            arrays = load_arrays(tmp_path / "saved", "index", 3)[1]
            assert arrays["a"] == arrays["b"]

    save_arrays(tmp_path / "saved", "index", 3, {}, {"a": np.array([0]), "b": np.array([0])})
    with ThreadPoolExecutor(4) as threads:
        for done in [threads.submit(save, 0), threads.submit(save, 100), *(threads.submit(load, i) for i in range(2))]:
            done.result()
    assert [path.name for path in tmp_path.iterdir()] == ["saved"]


def test_a_new_file_that_another_has_replaced_is_refused(tmp_path):
    """What is renamed is what was opened, and a file of others is not deleted."""

    def write():
        with new_file(tmp_path / "file") as file:
            file.write(b"ours")
            (tmp_path / "other").write_text("theirs")
            (tmp_path / "other").replace(file.name)
            return file.name

    with pytest.raises(OSError, match="was replaced by another file"):
        write()
    (left,) = tmp_path.iterdir()
    assert left.read_text() == "theirs" and left.name.startswith(".file.")


def test_what_killed_processes_left_is_deleted_and_what_is_being_written_stays(tmp_path):
    left = tmp_path / f".words-0123456789abcdef.npy.{'0' * 32}.partial"
    left.write_text("cut short")
    with new_file(tmp_path / "file") as file:
        save_arrays(tmp_path, "index", 3, {}, {"ids": np.array([1])})
        file.write(b"whole")
    assert not left.exists() and (tmp_path / "file").read_bytes() == b"whole"


def test_a_file_that_comes_before_a_new_file_has_its_name_stays(tmp_path):
    with pytest.raises(FileExistsError), new_file(tmp_path / "file", replace=False) as file:
        file.write(b"ours")
        (tmp_path / "file").write_text("theirs")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["theirs"]


def test_a_link_at_the_name_of_a_new_file_is_not_followed(tmp_path):
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "file").symlink_to(tmp_path / "precious")
    with new_file(tmp_path / "file") as file:
        file.write(b"new")
    assert (tmp_path / "precious").read_text() == "mine"
    assert (tmp_path / "file").read_text() == "new" and not (tmp_path / "file").is_symlink()
