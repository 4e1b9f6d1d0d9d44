"""Files that appear whole or not at all, and the lock of an output folder."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from una_fast.errors import InputError

try:
    import fcntl
except ImportError:  # Windows has no fcntl; there the folder stays unlocked
    fcntl = None  # type: ignore[assignment]

LOCK = ".lock"


def sync(path: Path) -> None:
    """Wait until a file, or a folder's list of names, is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path to write to; on success it is synced and renamed to `path`, on failure removed.

    Raises:
        InputError: the disk is full or the folder cannot be written; what was at `path` is untouched.
    """
    partial = path.with_name(f".{path.name}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield partial
        sync(partial)
        partial.replace(path)
        sync(path.parent)
    except (OSError, RuntimeError) as error:  # torch.save reports a full disk as a RuntimeError
        partial.unlink(missing_ok=True)
        raise unwritable(path, error) from error


def unwritable(path: Path, error: BaseException) -> InputError:
    """The InputError for a `path` that could not be written because of `error`."""
    cause: BaseException | None = error
    while cause and not isinstance(cause, OSError):
        cause = cause.__cause__ or cause.__context__
    if isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT):
        return InputError(f"{path}: the disk is full: free some space; what was saved before is intact")
    reason = cause.strerror if isinstance(cause, OSError) else " ".join(str(error).split())[:200]
    return InputError(f"{path}: cannot be written ({reason}); what was saved before is intact")


def write_json(path: Path, content: Any) -> None:
    """Write indented JSON, whole or not at all."""
    with replacing(path) as partial:
        partial.write_text(json.dumps(content, indent=2, default=str) + "\n", encoding="utf-8")


class FolderLock:
    """Keeps a second run out of an output folder; the system frees it when the process ends, however it ends."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / LOCK
        self._made = [path for path in (self._path, folder, *folder.parents) if not path.exists()]
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = self._path.open("a+")
        except OSError as error:
            raise InputError(f"--output {folder}: cannot be made or written: {error.strerror}") from error
        try:
            if fcntl:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.seek(0)
            owner = self._file.read().strip() or "another process"
            self._file.close()
            raise InputError(
                f"--output {folder}: in use by another run ({owner}): wait for it, stop it, or choose another folder"
            ) from None
        try:
            self._file.truncate(0)
            self._file.write(f"process {os.getpid()} on {os.uname().nodename}" if fcntl else "")
            self._file.flush()
        except OSError as error:
            raise unwritable(self._path, error) from error

    def release(self) -> None:
        """Release the lock."""
        self._file.close()

    def abandon(self) -> None:
        """Remove the folders that the lock made, as far as they are empty, and release it."""
        for path in self._made:
            try:
                path.unlink() if path == self._path else path.rmdir()
            except OSError:
                break
        self.release()
