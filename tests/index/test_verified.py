"""A folder is read and checked once on a machine and then has a mark; a changed file is read again."""

import multiprocessing
import os
import shutil
import stat
from pathlib import Path

import numpy as np
import pytest

import una_fast
from una_fast.errors import InputError
from una_fast.index.layout import KIND, VERSION
from una_fast.storage import load, load_arrays, save_arrays
from una_fast.storage.load import marks_folder

TEXTS = ["the cat sat", "on the mat", "a dog, a cat"]


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The names of files that were read whole, in order; here small and new files get marks too."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(load, "SMALLEST", 0)
    monkeypatch.setattr(load, "SETTLED", 0)
    files: list[str] = []
    verify = load.verify_checksum

    def noted(file, checksum):
        files.append(file.path.name.partition("-")[0])
        verify(file, checksum)

    monkeypatch.setattr(load, "verify_checksum", noted)
    return files


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    una_fast.build_index(TEXTS).save(tmp_path / "index")
    return tmp_path / "index"


def test_a_second_load_reads_nothing(folder: Path, read: list[str]) -> None:
    una_fast.load_index(folder)
    assert "words_values" in read
    read.clear()
    assert list(una_fast.load_index(folder)) == TEXTS
    assert read == []
    una_fast.load_index(folder, verify=True)
    assert "words_values" in read


def test_a_mark_is_the_users_and_does_not_travel_with_the_folder(folder: Path, read: list[str]) -> None:
    before = sorted(path.name for path in folder.iterdir())
    una_fast.load_index(folder)
    assert sorted(path.name for path in folder.iterdir()) == before
    cache = marks_folder()
    assert cache is not None and len(list(cache.iterdir())) == 1
    read.clear()
    shutil.copytree(folder, folder.with_name("copy"))
    una_fast.load_index(folder.with_name("copy"))
    assert len(read) == 11


def test_every_folder_gets_a_mark(folder: Path, read: list[str], tmp_path: Path) -> None:
    una_fast.build_index([*TEXTS, "one more"]).save(tmp_path / "other")
    folders = (folder, tmp_path / "other")
    for _ in range(2):
        read.clear()
        for each in folders:
            una_fast.load_index(each)
    assert read == []


@pytest.mark.parametrize("keep_times", [False, True])
def test_a_changed_file_is_read_again(folder: Path, read: list[str], keep_times: bool) -> None:
    una_fast.load_index(folder)
    (path,) = folder.glob("words_values-*.npy")
    about = path.stat()
    with path.open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"\x7f")
    if keep_times:
        os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))
    with pytest.raises(InputError, match="words_values-.*: damaged"):
        una_fast.load_index(folder)


def test_content_of_others_is_checked_before_it_is_marked(folder: Path, read: list[str]) -> None:
    """If an id is out of range, right checksums do not help, nor that the checksums alone were read before."""
    meta, arrays, _ = load_arrays(folder, KIND, VERSION)
    save_arrays(folder, KIND, VERSION, meta, {**arrays, "words_values": arrays["words_values"] + np.int32(1)})
    load_arrays(folder, KIND, VERSION)
    for _ in range(2):
        with pytest.raises(InputError, match="has an id outside of 0"):
            una_fast.load_index(folder)


def test_new_files_and_small_ones_are_read_each_time(folder: Path, read: list[str], monkeypatch) -> None:
    monkeypatch.setattr(load, "SETTLED", 10**12)
    for _ in range(2):
        read.clear()
        una_fast.load_index(folder)
        assert len(read) == 11
    monkeypatch.setattr(load, "SETTLED", 0)
    monkeypatch.setattr(load, "SMALLEST", 1 << 20)
    una_fast.load_index(folder)
    assert len(read) == 22


def test_without_a_cache_folder_every_load_reads(folder: Path, read: list[str], monkeypatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    for _ in range(2):
        read.clear()
        una_fast.load_index(folder)
        assert len(read) == 11


def test_old_marks_are_forgotten(tmp_path: Path, read: list[str], monkeypatch) -> None:
    folder = tmp_path / "numbers"
    monkeypatch.setattr(load, "MOST_MARKS", 4)
    for number in range(9):
        save_arrays(folder, "numbers", 1, {"number": number}, {})
        load_arrays(folder, "numbers", 1)
        (marks_folder() / "notes.txt").touch()
        assert 2 <= len(list(marks_folder().iterdir())) <= 5
    assert (marks_folder() / "notes.txt").exists()


def load_beside(folder: Path, start, read) -> None:
    load.SMALLEST = load.SETTLED = 0
    verify = load.verify_checksum

    def counted(file, checksum):
        with read.get_lock():
            read.value += 1
        verify(file, checksum)

    load.verify_checksum = counted
    start.wait()
    una_fast.load_index(folder)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_processes_that_start_together_read_once(folder: Path, read: list[str]) -> None:
    context = multiprocessing.get_context("fork")
    start, files = context.Event(), context.Value("i", 0)
    processes = [context.Process(target=load_beside, args=(folder, start, files)) for _ in range(3)]
    for process in processes:
        process.start()
    start.set()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert files.value == 11


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "cache").mkdir()
    return tmp_path / "cache"


def test_the_cache_folder_is_the_users_alone(cache: Path) -> None:
    for _ in range(2):
        assert marks_folder() == cache / "una_fast" / "verified"
    assert [stat.S_IMODE(path.stat().st_mode) for path in cache.rglob("*")] == [0o700] * 2


@pytest.mark.parametrize("mode", [0o700, 0o755, 0o777])
@pytest.mark.parametrize("name", ["setup.py", "verified"])
def test_a_folder_of_the_user_in_place_of_the_cache_folder_is_left_as_it_is(cache, mode, name) -> None:
    """Such as a checkout of una_fast."""
    (cache / "una_fast").mkdir()
    (cache / "una_fast" / name).touch()
    (cache / "una_fast").chmod(mode)
    assert marks_folder() is None
    assert [path.name for path in cache.rglob("*")] == ["una_fast", name]
    assert stat.S_IMODE((cache / "una_fast").stat().st_mode) == mode


@pytest.mark.parametrize("below", ["", "verified"])
def test_a_cache_folder_that_is_a_link_or_a_file_or_cannot_be_made_is_not_used(
    cache, tmp_path, monkeypatch, below
) -> None:
    place = cache / "una_fast" / below
    place.parent.mkdir(exist_ok=True)
    (tmp_path / "elsewhere").mkdir()
    place.symlink_to(tmp_path / "elsewhere")
    assert marks_folder() is None
    place.unlink()
    place.touch()
    assert marks_folder() is None
    monkeypatch.setenv("XDG_CACHE_HOME", str(place / "below a file"))
    assert marks_folder() is None
    assert not list((tmp_path / "elsewhere").iterdir())


def test_small_folders_need_no_cache_folder(cache: Path, folder: Path) -> None:
    una_fast.load_index(folder)
    assert not list(cache.iterdir())


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="needs root to give a folder away")
def test_a_cache_folder_of_another_user_is_not_used(cache: Path) -> None:
    (cache / "una_fast").mkdir()
    os.chown(cache / "una_fast", 65534, 65534)
    assert marks_folder() is None


def test_a_relative_cache_folder_is_not_used(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert marks_folder() == tmp_path / ".cache" / "una_fast" / "verified"
    assert not Path("here").exists()


def test_what_an_earlier_version_left_beside_the_marks_is_no_hindrance(cache: Path) -> None:
    folder = marks_folder()
    (cache / "una_fast" / "verify.lock").touch()
    assert folder is not None and marks_folder() == folder
