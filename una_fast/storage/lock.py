"""A lock of a folder, which the system frees when the process ends, however it ends."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


@contextmanager
def locked(folder: Path, wait: bool = True) -> Iterator[bool]:
    """Keep `folder` locked in the block; nothing is written for it.

    Yields:
        False if the folder is gone or a link, or, without `wait`, if another process has locked it. True where folders
        cannot be locked: on Windows, and on some network file systems.
    """
    handle = None
    try:
        if fcntl is None:
            yield True
            return
        with suppress(OSError):
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        yield handle is not None and lock(handle, wait) and _is_at(handle, folder)
    finally:
        if handle is not None:
            os.close(handle)


def lock(handle: int, wait: bool = False) -> bool:
    """Lock an open file or folder until it is closed; False if another process has locked it."""
    try:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError:  # a network file system without locks
        pass
    return True


def _is_at(handle: int, folder: Path) -> bool:
    with suppress(OSError):
        return os.path.samestat(folder.lstat(), os.fstat(handle))
    return False
