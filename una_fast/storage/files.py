"""Writes files completely or not at all, reads and writes JSON, computes checksums, and locks folders."""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import xxhash

from una_fast.errors import InputError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

PARTIAL = re.compile(r"\..+\.[0-9a-f]{16}\.partial", re.DOTALL)  # the name of a file that `new_file` has not completed
READ_AT_ONCE = 1 << 22  # bytes


@contextmanager
def new_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a temporary file next to `path` for writing. After the `with` block, sync it and rename it to `path`.

    If the block raises an exception, the temporary file is deleted and `path` is unchanged. A killed process leaves the
    temporary file, which `remove_partial` deletes.
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
    """Write a small file, completely or not at all."""
    with new_file(path) as file:
        file.write(data)


def remove_partial(folder: Path) -> None:
    """Delete the incomplete files of killed processes in a folder. The caller must have locked the folder."""
    for path in folder.glob(".*.partial"):
        if PARTIAL.fullmatch(path.name):
            path.unlink(missing_ok=True)


def unwritable(path: Path, error: BaseException, kept: str = "what was saved before is intact") -> InputError:
    """Make the error for a `path` that could not be written. kept: the end of the message, on what is intact."""
    cause: BaseException | None = error
    while cause and not isinstance(cause, OSError):  # torch.save reports a full disk as a RuntimeError
        cause = cause.__cause__ or cause.__context__
    codes = (errno.ENOSPC, getattr(errno, "EDQUOT", None))
    if (isinstance(cause, OSError) and cause.errno in codes) or os.strerror(errno.ENOSPC) in str(error):
        return InputError(f"{path}: the disk is full: free some space; {kept}")
    reason = cause.strerror or str(cause) if isinstance(cause, OSError) else " ".join(str(error).split())[:200]
    return InputError(f"{path}: cannot be written ({reason}); {kept}")


def checksum_of(parts: Iterable[Any]) -> str:
    """Return the xxh3_64 of the joined `parts` (bytes or buffers), as 16 hexadecimal digits."""
    checksum = xxhash.xxh3_64()
    for part in parts:
        checksum.update(part)
    return checksum.hexdigest()


def file_checksum(path: Path, skip: int = 0) -> str:
    """Return the xxh3_64 of a file without its first `skip` bytes, as 16 hexadecimal digits."""
    with path.open("rb", buffering=0) as file:
        file.seek(skip)
        return checksum_of(iter(lambda: file.read(READ_AT_ONCE), b""))


def sync_file(file: IO[bytes]) -> None:
    """Flush `file` to disk, so that its content survives a power failure."""
    file.flush()
    os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Flush a folder to disk, so that its new file names survive a power failure. Does nothing on Windows."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network file systems refuse it
            os.fsync(handle)
    finally:
        os.close(handle)


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object. Raises InputError if the file is missing, damaged, or contains something else."""
    try:
        return dict(json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"{path}: cannot be read: {error!r:.200}") from error


def read_object(path: Path) -> dict[str, Any]:
    """Read a JSON object; return {} where `read_json` raises InputError."""
    with suppress(InputError):
        return read_json(path)
    return {}


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write an indented JSON file, completely or not at all."""
    write_file(path, encoded_json(content))


def write_file(path: Path, content: bytes | str) -> None:
    """Write a file, completely or not at all."""
    if isinstance(content, str):
        content = content.encode("utf-8", "xmlcharrefreplace")  # JSON may contain surrogates, which are not UTF-8
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, content)
    except OSError as error:
        raise unwritable(path, error) from error


def encoded_json(content: Mapping[str, Any]) -> bytes:
    """Return an indented JSON object as UTF-8. Values of other types become texts."""
    return (json.dumps(content, indent=2, default=str) + "\n").encode()


def numbered_lines(setting: str, file: str | Path, what: str) -> list[tuple[int, str]]:
    """Return (line number, line) for each non-blank line of a UTF-8 file. The first line has number 1.

    setting, what: the argument that names the file, and a description of the expected file, for error messages.
    """
    try:
        lines = Path(file).read_bytes().decode("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror or error if isinstance(error, OSError) else "not UTF-8"
        raise InputError(f"{setting}: {file}: {reason}: give {what}") from error
    return [(number, line) for number, line in enumerate(lines, 1) if line.strip()]


@contextmanager
def locked(folder: Path, wait: bool = True) -> Iterator[bool]:
    """Lock `folder` for a `with` block. With `wait=False`, yield False if another process has locked it."""
    if fcntl is None:  # Windows cannot open a folder
        yield True
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        yield lock(handle, wait)
    finally:
        os.close(handle)


def lock(handle: int, wait: bool = False) -> bool:
    """Lock an open file or folder until it is closed. With `wait=False`, return False if another process locked it."""
    try:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError:  # a network file system without locks
        pass
    return True
