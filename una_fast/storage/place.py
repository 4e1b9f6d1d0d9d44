"""Gives a complete folder its name, so that there always is a folder of that name, with the old content or the new.

Linux and macOS exchange two folders in one step. Elsewhere the old one is moved aside first; a process that is killed
between these two renames leaves no folder under the name, and the next load or save puts the old one back.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from una_fast.storage.files import sync_folder
from una_fast.storage.manifest import find_manifest
from una_fast.storage.ownership import delete_saved, leftovers, partial_name

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

AT_FDCWD, RENAME_EXCHANGE = -100, 2  # linux/fcntl.h, linux/fs.h
RENAME_SWAP = 2  # macOS, sys/stdio.h
# the errors of systems and file systems that cannot exchange two folders
NO_EXCHANGE = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM}


@contextmanager
def partial_folder(folder: Path) -> Iterator[Path]:
    """A new folder beside `folder`, locked while this process lives; what is in it at the end is deleted."""
    partial = partial_name(folder)
    handle = None
    try:
        while handle is None:
            partial.mkdir(parents=True)
            handle = lock_folder(partial)  # None if another process took it for a leftover before it was locked
        yield partial
    finally:
        if handle is not None and handle >= 0:
            os.close(handle)
        kept = delete_saved(partial)
        if kept:
            warnings.warn(f"{folder}: {kept[0]!r}, put there during the save, is now in {partial}", stacklevel=4)


def move_into_place(partial: Path, folder: Path) -> None:
    """Give `partial` the name `folder`; what was there has the name `partial` afterwards, or was deleted.

    If several processes do so at the same time, all succeed, and the folder of the last one stays.
    """
    while not _renamed(partial, folder):
        try:
            exchange(partial, folder)
            break
        except FileNotFoundError:  # another process has moved the old one away
            continue
        except OSError as error:
            if error.errno not in NO_EXCHANGE:
                raise
        _move_aside(folder, partial.with_suffix(".replaced"))
    sync_folder(folder.parent)
    delete_saved(partial.with_suffix(".replaced"))


def exchange(one: Path, other: Path) -> None:
    """Exchange the names of two folders in one step, so that both names always exist. Raises OSError."""
    if _EXCHANGE is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    if _EXCHANGE(os.fsencode(one), os.fsencode(other)) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(other))


def recover(folder: Path) -> None:
    """Put the old content back where a process was killed between its two renames."""
    if os.path.lexists(folder):
        return
    complete = [path for path in leftovers(folder, ".replaced") if find_manifest(path)]
    for replaced in sorted(complete, key=_changed, reverse=True)[:1]:
        with suppress(OSError):  # another process has put it back already
            replaced.rename(folder)


def clean_leftovers(folder: Path) -> None:
    """Delete what killed processes left beside `folder`. Folders of running processes are locked, and stay."""
    for path in leftovers(folder) if folder.exists() else leftovers(folder, ".partial"):
        handle = lock_folder(path, wait=False)
        if handle is not None and handle >= 0:
            delete_saved(path)
            os.close(handle)


def lock_folder(folder: Path, wait: bool = True) -> int | None:
    """A handle that keeps `folder` locked till it is closed; None if it is gone or locked by another.

    -1 if it cannot be locked here.
    """
    if fcntl is None:
        return -1
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        if os.path.samestat(folder.stat(), os.fstat(handle)):
            return handle
        result = None
    except (BlockingIOError, FileNotFoundError):
        result = None
    except OSError:  # network file systems that do not lock folders
        result = -1
    os.close(handle)
    return result


def _move_aside(folder: Path, replaced: Path) -> None:
    delete_saved(replaced)  # from an earlier try, after which another process put its own folder in place
    with suppress(FileNotFoundError):  # another process has moved it aside
        folder.rename(replaced)


def _renamed(source: Path, target: Path) -> bool:
    """Rename the folder `source`; False where `target` is a folder with something in it."""
    try:
        source.rename(target)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
            return False
        raise
    return True


def _changed(folder: Path) -> int:
    with suppress(OSError):
        return folder.stat().st_mtime_ns
    return 0


def _system_exchange() -> Callable[[bytes, bytes], int] | None:
    """The system's call, as a function of two names that returns 0 or sets errno; None where there is none."""
    if os.name == "nt":
        return None
    libc = ctypes.CDLL(None, use_errno=True)
    names = [ctypes.c_char_p, ctypes.c_char_p]
    if sys.platform == "darwin" and hasattr(libc, "renamex_np"):
        swap = libc.renamex_np
        swap.argtypes = [*names, ctypes.c_uint]
        return lambda one, other: swap(one, other, RENAME_SWAP)
    if sys.platform.startswith("linux") and hasattr(libc, "renameat2"):
        rename = libc.renameat2
        rename.argtypes = [ctypes.c_int, names[0], ctypes.c_int, names[1], ctypes.c_uint]
        return lambda one, other: rename(AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE)
    return None


_EXCHANGE = _system_exchange()
