"""A save deletes the files of an earlier save, and no others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import una_fast
from una_fast.errors import InputError
from una_fast.storage import load_arrays, save_arrays

ARRAYS = {"ids": np.arange(5)}


def save(folder, **settings):
    return save_arrays(folder, "index", 1, {}, ARRAYS, **settings)


def tree(folder):
    return {path.relative_to(folder): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


@pytest.fixture
def folder(tmp_path):
    save(tmp_path / "saved")
    return tmp_path / "saved"


def add_array(folder):
    np.save(folder / "embeddings.npy", np.zeros(3))
    return "embeddings.npy"


def add_index(folder):
    save(folder / "other")
    return "other"


def add_folder_with_a_manifest(folder):
    (folder / "web").mkdir()
    (folder / "web" / "manifest.json").write_text("{}")
    return "web"


def add_a_link(folder):
    (folder / "link").symlink_to(folder.parent)
    return "link"


def add_a_leftover_by_name(folder):
    name = f".model.{'0' * 32}.partial"
    (folder / name).mkdir()
    (folder / name / "weights.bin").touch()
    return name


def replace_a_file_by_a_folder(folder):
    (folder / "ids.npy").unlink()
    (folder / "ids.npy").mkdir()
    return "ids.npy"


def replace_the_manifest(folder):
    (folder / "manifest.json").write_text(json.dumps({"name": "web application"}))
    return "ids.npy"


@pytest.mark.parametrize(
    "change",
    [
        add_array,
        add_index,
        add_folder_with_a_manifest,
        add_a_link,
        add_a_leftover_by_name,
        replace_a_file_by_a_folder,
        replace_the_manifest,
    ],
)
def test_what_a_save_did_not_write_is_never_deleted(folder, change):
    name = change(folder)
    before = tree(folder.parent)
    with pytest.raises(InputError, match=f"saved: holds '{name}', which saving here would delete"):
        save(folder)
    assert tree(folder.parent) == before


def test_a_part_is_replaced_with_its_folder_and_only_if_it_is_clean(folder):
    part = folder / "tokens-1"
    save_arrays(part, "token ids", 1, {}, ARRAYS, part_of=save(folder))
    save(folder)
    assert not part.exists()
    save_arrays(part, "token ids", 1, {}, ARRAYS, part_of=save(folder))
    (part / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="holds 'tokens-1'"):
        save(folder)
    assert (part / "notes.txt").read_text() == "mine"


def test_another_kind_is_not_replaced(folder):
    with pytest.raises(InputError, match="holds a saved 'index', not a 'token ids'"):
        save_arrays(folder, "token ids", 1, {}, ARRAYS)


def test_leftovers_of_the_dead_go_and_those_of_the_living_stay(folder):
    dead = folder.with_name(f".saved.{'a' * 32}.partial")
    living = folder.with_name(f".saved.{'b' * 32}.partial")
    mine = folder.with_name(f".saved.{'c' * 32}.partial")
    for path in (dead, living, mine):
        path.mkdir()
        np.save(path / "ids.npy", np.zeros(3))
    (mine / "notes.txt").touch()
    script = "import fcntl, os, sys; fcntl.flock(os.open(sys.argv[1], 0), 2); print(flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", script, str(living)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        holder.stdout.readline()
        save(folder)
        assert not dead.exists()
        assert (living / "ids.npy").exists()
        assert (mine / "notes.txt").exists()
        holder.stdin.close()
    save(folder)
    assert not living.exists()


@pytest.mark.parametrize("name", [".", "", "/", "/dev", "a\0b", "\ud800", "x" * 250, 3, None])
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


@pytest.mark.parametrize("name", ["ids.npy", "manifest.json"])
@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_a_folder_or_a_pipe_in_place_of_a_file_is_refused(folder, name, make):
    (folder / name).unlink()
    make(folder / name)
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
    for closed in (folder / "ids.npy", folder / "manifest.json", folder):
        mode = closed.stat().st_mode
        closed.chmod(0)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(
            [sys.executable, "-c", script, str(folder)], env=environment, capture_output=True, text=True
        )
        closed.chmod(mode)
        assert "cannot be read (Permission denied)" in done.stdout, done.stderr
