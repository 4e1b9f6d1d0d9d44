"""A file that appears whole or not at all, checksums of files, and locks."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import xxhash

from una_fast.errors import InputError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

PARTIAL = re.compile(r"\..+\.[0-9a-f]{16}\.partial", re.DOTALL)  # what `new_file` writes to until it is complete
READ_AT_ONCE = 1 << 22  # bytes


def one_line(text: str) -> str:
    """Return `text` with each line break of str.splitlines, and the blanks around it, replaced by one space."""
    return " ".join(filter(None, map(str.strip, text.splitlines())))


@contextmanager
def new_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a file to write, which at the end of the block is synced and gets the name `path`, or is deleted.

    Until then it has another name in the same folder, so of two processes that write the same `path` the last one
    wins, with a whole file. A killed process leaves it for `remove_partial`. After an OSError `path` is as before.
    """
    partial = path.with_name(f".{path.name}.{os.urandom(8).hex()}.partial")
    try:
        with partial.open("xb") as file:
            yield file
            sync_file(file)
        os.replace(partial, path)  # noqa: PTH105  tests replace this function
    except BaseException:
        with suppress(OSError):
            partial.unlink()
        raise
    sync_folder(path.parent)


def write_bytes(path: Path, data: bytes) -> None:
    """Write a small file, whole or not at all. Raises OSError."""
    with new_file(path) as file:
        file.write(data)


def remove_partial(folder: Path) -> None:
    """Delete what killed processes left of `new_file` in a folder. The caller has locked it."""
    for path in folder.glob(".*.partial"):
        if PARTIAL.fullmatch(path.name):
            path.unlink(missing_ok=True)


def unwritable(path: Path, error: BaseException, kept: str = "what was saved before is intact") -> InputError:
    """Make the error for a `path` that could not be written. kept: what the message says about earlier files."""
    cause: BaseException | None = error
    while cause and not isinstance(cause, OSError):  # torch.save reports a full disk as a RuntimeError
        cause = cause.__cause__ or cause.__context__
    codes = (errno.ENOSPC, getattr(errno, "EDQUOT", None))
    if (isinstance(cause, OSError) and cause.errno in codes) or os.strerror(errno.ENOSPC) in str(error):
        return InputError(f"{path}: the disk is full: free some space; {kept}")
    reason = cause.strerror or str(cause) if isinstance(cause, OSError) else " ".join(str(error).split())[:200]
    return InputError(f"{path}: cannot be written ({reason}); {kept}")


def checksum_of(parts: Iterable[Any]) -> str:
    """Return the xxh3_64 of bytes, or buffers of them, that come in parts, as 16 hexadecimal digits."""
    checksum = xxhash.xxh3_64()
    for part in parts:
        checksum.update(part)
    return checksum.hexdigest()


def file_checksum(path: Path, skip: int = 0) -> str:
    """Return the xxh3_64 of a file, without the first `skip` bytes. Raises OSError."""
    with path.open("rb", buffering=0) as file:
        file.seek(skip)
        return checksum_of(iter(lambda: file.read(READ_AT_ONCE), b""))


def sync_file(file: IO[bytes]) -> None:
    """Flush `file` to disk, so that its content survives a power failure."""
    file.flush()
    os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Flush a folder's entries to disk, so that they survive a power failure. Does nothing on Windows."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network file systems refuse it
            os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def locked(folder: Path, wait: bool = True) -> Iterator[bool]:
    """Keep `folder` locked in the block. Yields False if another process has locked it and `wait` is not given."""
    if fcntl is None:  # Windows opens no folders
        yield True
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        yield lock(handle, wait)
    finally:
        os.close(handle)


def lock(handle: int, wait: bool = False) -> bool:
    """Lock an open file or folder until it is closed; return False if another process has locked it."""
    try:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError:  # a network file system without locks
        pass
    return True
