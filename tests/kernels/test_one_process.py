"""The lock around compilation: whatever file is in its place, a process neither fails nor waits for long."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from una_fast._kernels import one_process
from una_fast._kernels.one_process import one_process_at_a_time, private_folder

pytestmark = pytest.mark.skipif(os.name == "nt", reason="there is no fcntl")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(one_process, "TIMEOUT", 0.2)
    (tmp_path / "cache").mkdir()
    return tmp_path / "cache"


def enter() -> bool:
    with one_process_at_a_time("verify"):
        return True


def test_the_lock_lies_in_a_folder_of_the_user_alone(cache):
    assert enter()
    assert stat.S_IMODE((cache / "una_fast").stat().st_mode) == 0o700
    assert stat.S_IMODE((cache / "una_fast" / "verify.lock").stat().st_mode) == 0o600
    (cache / "una_fast").chmod(0o777)
    assert enter()
    assert stat.S_IMODE((cache / "una_fast").stat().st_mode) == 0o700


def test_one_process_waits_for_another_and_then_goes_on(cache):
    script = """
import sys
from una_fast._kernels.one_process import one_process_at_a_time
with one_process_at_a_time("verify"):
    print("held", flush=True)
    sys.stdin.read()
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", script], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout.readline() == b"held\n"
        handle = one_process._open("verify")
        with pytest.raises(BlockingIOError):
            one_process.fcntl.flock(handle, one_process.fcntl.LOCK_EX | one_process.fcntl.LOCK_NB)
        os.close(handle)
        assert enter()  # after TIMEOUT, without the lock
        holder.stdin.close()


def test_a_link_is_not_followed(cache, tmp_path):
    (cache / "una_fast").mkdir()
    (tmp_path / "victim").write_text("mine")
    (cache / "una_fast" / "verify.lock").symlink_to(tmp_path / "victim")
    assert enter()
    assert one_process._open("verify") is None
    (cache / "una_fast" / "verify.lock").unlink()
    (cache / "una_fast" / "verify.lock").symlink_to(tmp_path / "new")
    assert enter()
    assert not (tmp_path / "new").exists()
    assert (tmp_path / "victim").read_text() == "mine"


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_a_folder_or_a_pipe_in_place_of_the_lock_is_left_alone(cache, make):
    (cache / "una_fast").mkdir()
    make(cache / "una_fast" / "verify.lock")
    assert enter()
    assert one_process._open("verify") is None


def test_a_cache_folder_that_is_a_link_or_a_file_or_cannot_be_made_is_not_used(cache, tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    (cache / "una_fast").symlink_to(tmp_path / "elsewhere")
    assert private_folder() is None and enter()
    (cache / "una_fast").unlink()
    (cache / "una_fast").touch()
    assert private_folder() is None and enter()
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache / "una_fast" / "below a file"))
    assert private_folder() is None and enter()
    assert not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="needs root to give a folder away")
def test_a_cache_folder_of_another_user_is_not_used(cache):
    (cache / "una_fast").mkdir()
    os.chown(cache / "una_fast", 65534, 65534)
    assert private_folder() is None and enter()


def test_a_relative_cache_folder_is_not_used(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert private_folder() == tmp_path / ".cache" / "una_fast"
    assert not Path("here").exists()


def test_an_error_under_the_lock_is_raised_and_unlocks(cache):
    with pytest.raises(KeyError), one_process_at_a_time("verify"):
        raise KeyError
    handle = one_process._open("verify")
    one_process.fcntl.flock(handle, one_process.fcntl.LOCK_EX | one_process.fcntl.LOCK_NB)
    os.close(handle)
