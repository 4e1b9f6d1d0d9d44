"""A lock by which the processes of one user do something one at a time; where it cannot be had, they go on without."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

TIMEOUT = 60.0  # s
PAUSE = 0.02  # s, between two looks at a lock that another process holds


@contextmanager
def one_process_at_a_time(name: str, timeout: float | None = None) -> Iterator[None]:
    """Hold the user's lock `name`; go on without it where it cannot be made, or is held for longer than `timeout`.

    timeout: s; TIMEOUT if None.
    """
    handle = _open(name)
    try:
        if handle is not None:
            _wait(handle, TIMEOUT if timeout is None else timeout)
        yield
    finally:
        if handle is not None:
            os.close(handle)  # unlocks


def private_folder() -> Path | None:
    """The user's cache folder of una_fast: ``$XDG_CACHE_HOME/una_fast`` or ``~/.cache/una_fast``, mode 700.

    None where it cannot be made, is a link, or belongs to somebody else, and on Windows.
    """
    if fcntl is None:
        return None
    try:
        home = os.environ.get("XDG_CACHE_HOME", "")
        folder = (Path(home) if Path(home).is_absolute() else Path.home() / ".cache") / "una_fast"
        folder.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        about = folder.lstat()
        if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.getuid():
            return None
        folder.chmod(0o700)
    except (OSError, RuntimeError, ValueError):  # RuntimeError: a user without a home
        return None
    return folder


def _open(name: str) -> int | None:
    """A handle of the lock file: a regular file of this user in the private folder, never behind a link; or None."""
    folder = private_folder()
    if folder is None:
        return None
    try:
        handle = os.open(folder / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    except OSError:
        return None
    about = os.fstat(handle)
    if stat.S_ISREG(about.st_mode) and about.st_uid == os.getuid():
        return handle
    os.close(handle)
    return None


def _wait(handle: int, timeout: float) -> None:
    """Lock the file of `handle`, or give up after `timeout` s."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(PAUSE)
        except OSError:  # a file system without locks
            return
        else:
            return
