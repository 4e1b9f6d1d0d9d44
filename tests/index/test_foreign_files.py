"""A save deletes the files of an earlier save, and no others; it follows no link."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, TimeoutError
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import una_fast
from support.staged import Killed, failing_syncs
from una_fast import storage
from una_fast.errors import InputError
from una_fast.storage import load_arrays, read_seal, save_arrays

ARRAYS = {"ids": np.arange(5)}


def save(folder, **settings):
    return save_arrays(folder, "index", 1, {}, ARRAYS, **settings)


def tree(folder):
    return {path.relative_to(folder): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


@pytest.fixture
def folder(tmp_path):
    save(tmp_path / "saved")
    return tmp_path / "saved"


def array_of(folder, name="ids"):
    """The file of an array."""
    (path,) = folder.glob(f"{name}-*.npy")
    return path


def add_array(folder):
    np.save(folder / "embeddings.npy", np.zeros(3))
    np.save(folder / "ids.npy", np.zeros(3))


def add_index(folder):
    save(folder / "other")


def add_folder_with_a_manifest(folder):
    (folder / "web").mkdir()
    (folder / "web" / "manifest.json").write_text("{}")


def add_links(folder):
    (folder / "folder").symlink_to(folder.parent)
    outside = folder.parent / "outside"
    save_arrays(outside, "token ids", 1, {}, ARRAYS)
    (folder / "tokens-2").symlink_to(outside)
    (folder / f"ids-{'0' * 16}.npy").symlink_to(array_of(outside))


def add_a_folder_named_as_a_temporary_file(folder):
    name = f".model.{'0' * 32}.partial"
    (folder / name).mkdir()
    (folder / name / "weights.bin").touch()


def add_a_copy_of_a_part(folder):
    save_arrays(folder / "tokens-1", "token ids", 1, {}, ARRAYS, part_of=read_seal(folder))
    shutil.copytree(folder / "tokens-1", folder / "tokens.bak")


def change_an_array_of_a_part(folder):
    save_arrays(folder / "tokens-1", "token ids", 1, {}, ARRAYS, part_of=read_seal(folder))
    array_of(folder / "tokens-1").write_text("mine")


def change_an_array(folder):
    array_of(folder).write_text("mine")


def add_copies_of_arrays(folder):
    save_arrays(folder.parent / "other", "index", 1, {}, {"ids": np.arange(7)})
    shutil.copy(array_of(folder.parent / "other"), folder)


def add_notes_to_a_part(folder):
    part = folder / "tokens-1"
    save_arrays(part, "token ids", 1, {}, ARRAYS, part_of=read_seal(folder))
    (part / "notes.txt").write_text("mine")


@pytest.mark.parametrize(
    "change",
    [
        add_array,
        add_index,
        add_folder_with_a_manifest,
        add_links,
        add_a_folder_named_as_a_temporary_file,
        add_notes_to_a_part,
        add_a_copy_of_a_part,
        change_an_array_of_a_part,
        change_an_array,
        add_copies_of_arrays,
    ],
)
def test_what_others_put_into_a_saved_folder_stays(folder, change):
    ours = tree(folder.parent).items()
    change(folder)
    others = dict(tree(folder.parent).items() - ours)
    others = {path: content for path, content in others.items() if not is_ours(path, content)}
    save_arrays(folder, "index", 1, {"new": True}, {"ids": np.arange(9)})
    now = tree(folder.parent)
    assert others and others.items() <= now.items()
    assert load_arrays(folder, "index", 1).arrays["ids"].tolist() == list(range(9))


def is_ours(path, content):
    return "tokens-1" in path.parts and content != b"mine"


@pytest.mark.parametrize("name", ["ids.npy", "manifest.json", "notes.txt"])
def test_a_folder_without_our_manifest_is_refused_before_a_byte_is_written(tmp_path, name):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / name).write_text(json.dumps({"name": "web application"}))
    before = tree(tmp_path)
    with pytest.raises(InputError, match=f"mine: holds '{name}', and no manifest of una_fast"):
        save(tmp_path / "mine")
    assert tree(tmp_path) == before


@pytest.mark.parametrize("name", ["saved", "new"])
def test_a_manifest_that_comes_or_changes_during_a_save_stays(folder, monkeypatch, name):
    target, new_file = folder.parent / name, storage.save.new_file

    def beside_mine(path, **options):
        (target / "manifest.json").write_text("mine")
        return new_file(path, **options)

    monkeypatch.setattr(storage.save, "new_file", beside_mine)
    with pytest.raises(InputError, match="its 'manifest.json' was changed meanwhile" if name == "saved" else "exists"):
        save_arrays(target, "index", 1, {}, {"ids": np.arange(9)})
    assert (target / "manifest.json").read_text() == "mine"


def test_a_folder_with_copies_of_arrays_is_somebody_elses(folder):
    (folder / "manifest.json").unlink()
    before = tree(folder)
    for content in (ARRAYS, {"ids": np.arange(9)}):
        with pytest.raises(InputError, match=r"holds 'ids-\w+\.npy', and no manifest of una_fast"):
            save_arrays(folder, "index", 1, {}, content)
    assert tree(folder) == before


def test_an_array_that_was_changed_is_not_written_again(folder):
    array_of(folder).write_text("mine")
    before = tree(folder)
    with pytest.raises(InputError, match=r"ids-\w+\.npy: holds something else than una_fast wrote there"):
        save(folder)
    assert tree(folder) == before


def test_a_link_in_place_of_a_part_or_of_an_array_is_not_followed(folder):
    outside = folder.parent / "outside"
    outside.mkdir()
    (folder / "tokens-1").symlink_to(outside)
    with pytest.raises(InputError, match="tokens-1: is a link"):
        save_arrays(folder / "tokens-1", "token ids", 1, {}, ARRAYS, part_of=read_seal(folder))
    assert not list(outside.iterdir())
    (outside / "precious").write_bytes(b"mine")
    path = array_of(folder)
    path.unlink()
    path.symlink_to(outside / "precious")
    with pytest.raises(InputError, match=f"{path.name}: holds something else than una_fast wrote there"):
        save(folder)
    assert (outside / "precious").read_bytes() == b"mine" and path.is_symlink()


def test_a_part_goes_with_the_content_that_it_belongs_to(folder):
    part = folder / "tokens-1"
    save_arrays(part, "token ids", 1, {}, ARRAYS, part_of=save(folder))
    save(folder)
    assert part.exists()  # the content is the same
    save_arrays(folder, "index", 1, {"new": True}, ARRAYS)
    assert not part.exists()


def test_another_kind_is_not_replaced(folder):
    with pytest.raises(InputError, match="holds a saved 'index', not a 'token ids'"):
        save_arrays(folder, "token ids", 1, {}, ARRAYS)


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("part_of", [True, False])
def test_what_killed_saves_left_goes_with_the_next_save(folder, monkeypatch, is_first, part_of):
    """A kill before any write, and in the cleaning at the end."""
    kind, place = ("token ids", folder / "tokens-1") if part_of else ("index", folder.parent / "other")
    other = {"ids": np.arange(9), "scores": np.zeros(2)}
    settings = {"part_of": read_seal(folder)} if part_of else {}
    n_left = []
    for at in range(1, 30):
        if not is_first:
            save_arrays(place, kind, 1, {}, ARRAYS, **settings)
        with monkeypatch.context() as patch, suppress(Killed):
            failing_syncs(patch, at, Killed())
            patch.setattr(storage.save, "_clean", lambda folder: None)  # a killed process cleans nothing
            patch.setattr(storage.save, "WRITERS", 1)
            save_arrays(place, kind, 1, {}, other, **settings)
            n_left.append(at)
        place.mkdir(exist_ok=True)
        if not (place / "manifest.json").exists():
            with pytest.raises(InputError, match=r"not a saved .* \(it has no manifest\.json\)"):
                load_arrays(place, kind, 1)
        (place / f".ids-{'a' * 16}.npy.{'b' * 32}.partial").write_bytes(b"half an array")
        save_arrays(place, kind, 1, {"new": True}, {"ids": np.arange(3)}, **settings)
        assert sorted(path.name for path in place.iterdir()) == [array_of(place).name, "manifest.json"]
        shutil.rmtree(place)
    assert 5 < len(n_left) < 25


def test_a_save_waits_for_another_one(folder):
    script = "import fcntl, os, sys; fcntl.flock(os.open(sys.argv[1], 0), 2); print(flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", script, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        holder.stdout.readline()
        with ThreadPoolExecutor(1) as thread:
            saved = thread.submit(save, folder)
            with pytest.raises(TimeoutError):
                saved.result(0.2)
            holder.stdin.close()
            saved.result()


@pytest.mark.parametrize("name", ["/", "/dev", "a\0b", "\ud800", "x" * 300, 3, None])
def test_a_place_that_cannot_be_replaced_is_refused(tmp_path, monkeypatch, name):
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    index = una_fast.build_index(["the cat sat", "a dog"])
    with pytest.raises(InputError, match=r"give a|no name of a folder|cannot be written"):
        index.save(name)
    with pytest.raises(InputError):
        una_fast.load_index(name)
    assert not list(tmp_path.glob("**/*.npy"))
    assert Path.cwd() == tmp_path / "empty"


def test_a_loop_of_links_is_refused(tmp_path):
    (tmp_path / "one").symlink_to(tmp_path / "two")
    (tmp_path / "two").symlink_to(tmp_path / "one")
    for path in (tmp_path / "one", tmp_path / "one" / "x"):
        with pytest.raises(InputError, match="cannot be written"):
            save(path)
        with pytest.raises(InputError, match="cannot be read"):
            load_arrays(path, "index", 1)


def test_a_file_that_does_not_fit_names_the_cause(tmp_path):
    """numpy's own message would be "60107 requested and 0 written"."""
    script = """
import resource, signal, sys
from pathlib import Path
import numpy as np
from una_fast.storage import save_arrays
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, -1))
save_arrays(Path(sys.argv[1]), "index", 1, {}, {"ids": np.zeros(60_000)})
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "saved")], env=environment, capture_output=True, text=True
    )
    assert done.stderr.endswith("saved: cannot be written (File too large); nothing was changed\n")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["array", "manifest.json"])
@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_a_folder_or_a_pipe_in_place_of_a_file_is_refused(folder, name, make):
    path = array_of(folder) if name == "array" else folder / name
    path.unlink()
    make(path)
    with pytest.raises(InputError, match="cannot be read"):
        load_arrays(folder, "index", 1)


@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
def test_what_may_not_be_read_is_refused_with_a_sentence(folder):
    """If the tests run as root, who may read everything, the script changes to another user."""
    script = """
import os, sys
from pathlib import Path
from una_fast import InputError
from una_fast.storage import load_arrays
if os.getuid() == 0:
    os.setuid(65534)
try:
    load_arrays(Path(sys.argv[1]), "index", 1)
except InputError as error:
    print(error)
"""
    for path in (folder.parents[1], folder.parents[2]):
        path.chmod(0o755)  # pytest's folders are closed to other users
    for closed in (array_of(folder), folder / "manifest.json", folder):
        mode = closed.stat().st_mode
        closed.chmod(0)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(
            [sys.executable, "-c", script, str(folder)], env=environment, capture_output=True, text=True
        )
        closed.chmod(mode)
        assert "cannot be read (Permission denied)" in done.stdout, done.stderr
