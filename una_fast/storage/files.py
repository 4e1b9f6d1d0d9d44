"""Files that appear whole or not at all; an array in a .npy file: written, memory-mapped and verified; locks."""

from __future__ import annotations

import errno
import io
import math
import mmap
import os
import re
import stat
import sys
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import xxhash

from una_fast.errors import InputError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

REBUILD = "delete the folder and build it again"
GIVE_READABLE = "give a folder that can be read"
READ_AT_ONCE = 1 << 22  # bytes
KEPT = "what was saved before is intact"
PARTIAL = re.compile(
    r"\..+\.[0-9a-f]{32}\.partial", re.DOTALL
)  # the names of `partial_of`; a killed process leaves them
HEADER = re.compile(rb"\{'descr': '([<>|][a-z][0-9]+)', 'fortran_order': False, 'shape': \(([0-9, ]*)\), \}")
BLOCK = 1 << 26  # bytes that are verified at a time: no more of a file, however large, is in memory


def checked_path(path: str | Path) -> Path:
    """`path` as a Path. Raises `InputError` for a value that cannot be the name of a file or folder."""
    try:
        checked = Path(path)
        with suppress(OSError):
            checked.lstat()
    except (TypeError, ValueError) as error:  # ValueError: a null character
        raise InputError(f"{path!r}: is no name of a folder ({error})") from error
    return checked


@contextmanager
def new_file(path: Path, replace: bool = True) -> Iterator[IO[bytes]]:
    """A file to write to; when the block ends it is synced and gets the name `path`, after an error it is deleted.

    Its path is `file.name`, beside `path`, unpredictable, and made exclusively: nobody's file and no link is there. Of
    two processes that write the same `path`, each leaves a whole file, and the last one wins. A link at `path` is
    replaced, and what it leads to stays. replace: False to keep what is at `path`, also what comes meanwhile.

    Raises:
        FileExistsError: without `replace`, something is at `path` when the block ends.
        OSError: the file cannot be written, or another one has taken its name.
    """
    partial = partial_of(path)
    with partial.open("xb") as file:
        made = os.fstat(file.fileno())
        lock(file.fileno())  # so that `remove_left` knows that it is being written
        try:
            yield file
            sync_file(file)
            file.close()  # Windows renames closed files only
            if not os.path.samestat(made, partial.lstat()):
                raise OSError(f"{partial.name} was replaced by another file")
            if replace:
                os.replace(partial, path)  # noqa: PTH105  tests replace this function
            else:
                link(partial, path)
                partial.unlink(missing_ok=True)
        except BaseException:
            with suppress(OSError):
                if os.path.samestat(made, partial.lstat()):
                    partial.unlink()
            raise
    sync_folder(path.parent)


def partial_of(path: Path) -> Path:
    """A name beside `path` for what is not complete: unpredictable, so nobody's file is there."""
    return path.with_name(f".{path.name}.{uuid.uuid4().hex}.partial")


def left_in(folder: Path, of: str = "*") -> set[Path]:
    """The temporary files and folders of the file `of`, or of all: only a process knows names with such digits."""
    return {left for left in folder.glob(f".{of}.*.partial") if PARTIAL.fullmatch(left.name)}


def remove_left(folder: Path) -> None:
    """Delete the temporary files that killed processes left in a folder; one that is being written stays."""
    for left in left_in(folder):
        with suppress(OSError):
            with left.open("r+b") as file:
                is_free = lock(file.fileno())
            if is_free:
                left.unlink()


def link(file: Path, name: Path) -> None:
    """Give a file a second name, which must not exist; on a file system without hard links it is moved there."""
    try:
        os.link(file, name)
    except FileExistsError:
        raise
    except OSError:
        if os.path.lexists(name):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(name)) from None
        file.rename(name)


def unwritable(path: Path, error: BaseException, kept: str = KEPT) -> InputError:
    """The InputError for a `path` that could not be written because of `error`. kept: what it says of earlier files."""
    cause: BaseException | None = error
    while cause and not isinstance(cause, OSError):  # torch.save reports a full disk as a RuntimeError
        cause = cause.__cause__ or cause.__context__
    if isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", None)):
        return InputError(f"{path}: the disk is full: free some space; {kept}")
    reason = cause.strerror or str(cause) if isinstance(cause, OSError) else " ".join(str(error).split())[:200]
    return InputError(f"{path}: cannot be written ({reason}); {kept}")


def array_parts(array: np.ndarray) -> tuple[bytes, memoryview]:
    """The bytes of the file that ``np.save`` would write, in two parts: the header and the values.

    np.save itself writes with `ndarray.tofile`, whose error on a full disk does not name the cause.
    """
    array = np.ascontiguousarray(array)
    return array_header(array.dtype, array.shape), array.reshape(-1).view(np.uint8).data


def write_bytes(path: Path, data: bytes, replace: bool = True) -> None:
    """Write a small file, whole or not at all. Raises OSError; without `replace`, FileExistsError too."""
    with new_file(path, replace) as file:
        file.write(data)


def sync_folder(folder: Path) -> None:
    """Make the names in `folder` survive a power cut. Does nothing on Windows, where a folder cannot be opened."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network file systems refuse it
            os.fsync(handle)
    finally:
        os.close(handle)


def read_bytes(path: Path) -> bytes:
    """All bytes of a regular file. Raises OSError."""
    with open_regular(path) as file:
        return file.read()


def open_regular(path: Path, buffering: int = -1) -> IO[bytes]:
    """Open a regular file to be read. Raises OSError; for a folder, a pipe or a device too, without waiting for it."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    file = os.fdopen(handle, "rb", buffering)
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError("not a regular file")
    return file


def own_file(path: str, flags: int) -> int:
    """An opener for `open`: what is written is in no other folder, so a link, or a file of two names, is refused."""
    handle = os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)
    if os.fstat(handle).st_nlink > 1:
        os.close(handle)
        raise OSError("it is a hard link, and the content has another name too")
    return handle


def parts_of(file: IO[bytes], n: int) -> Iterator[bytes]:
    """The next `n` bytes of a file, or what is left of it, READ_AT_ONCE at a time."""
    while part := file.read(min(READ_AT_ONCE, n)):
        n -= len(part)
        yield part


class Mapped(NamedTuple):
    """A memory-mapped file. identity: by `identity_of`; it is another one once the file was replaced or changed."""

    path: Path
    data: mmap.mmap | bytes
    identity: tuple[int, ...]


def identity_of(about: os.stat_result) -> tuple[int, ...]:
    """Device, inode, size and times of a file; a user can set mtime back after a change, but not ctime."""
    return about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns


def map_file(path: Path) -> Mapped:
    """Map a file, read-only. It is opened once, so bytes and identity belong to the same file.

    Raises:
        InputError: a file that is missing or cannot be read.
    """
    try:
        with open_regular(path) as file:
            about = os.fstat(file.fileno())
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if about.st_size else b""
            return Mapped(path, data, identity_of(about))
    except FileNotFoundError as error:
        raise InputError(f"{path}: missing; {REBUILD}") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error}); {GIVE_READABLE}") from error


def verify_checksum(file: Mapped, checksum: str) -> None:
    """Read every byte. Raises `InputError` for a file with another xxh3_64 than `checksum`."""
    found, view = xxhash.xxh3_64(), memoryview(file.data)
    for start in range(0, len(view), BLOCK):
        found.update(view[start : start + BLOCK])
        forget_pages(file.data)
    if found.hexdigest() != checksum:
        raise InputError(f"{file.path}: damaged (cut short or changed), its checksum differs; {REBUILD}")


def forget_pages(data: Any) -> None:
    """Release a mapping's pages from this process's memory; they stay in the system's cache while that has room."""
    if isinstance(data, mmap.mmap) and hasattr(data, "madvise"):
        data.madvise(mmap.MADV_DONTNEED)


def mapped_array(file: Mapped) -> np.ndarray:
    """The array of a file that `array_parts` made, over the mapping. Raises `InputError` for a file of other bytes."""
    data = file.data
    try:
        fields = HEADER.match(data, 10)  # ast.literal_eval fails now and then when several threads load (Python 3.11)
        if fields is None:
            raise ValueError("no header")
        dtype, shape = np.dtype(fields[1].decode()), tuple(int(n) for n in fields[2].split(b",") if n.strip())
        header, count = array_header(dtype, shape), math.prod(shape)
        if dtype.kind not in "biuf" or not dtype.isnative or data[: len(header)] != header:
            raise ValueError("another header")
        if len(header) + count * dtype.itemsize != len(data):
            raise ValueError(f"{dtype} of shape {shape} in {len(data):,} bytes")
        return np.frombuffer(data, dtype=dtype, count=count, offset=len(header)).reshape(shape)
    except (ValueError, TypeError) as error:
        raise InputError(f"{file.path}: damaged, it holds no array that una_fast wrote; {REBUILD}") from error


def checksum_of(parts: Iterable[bytes | memoryview]) -> str:
    """xxh3_64 of bytes that come in parts."""
    checksum = xxhash.xxh3_64()
    for part in parts:
        checksum.update(part)
    return checksum.hexdigest()


def file_checksum(path: Path) -> str:
    """xxh3_64 of a file."""
    with open_regular(path, buffering=0) as file:
        return checksum_of(parts_of(file, sys.maxsize))


def array_header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """The header of a .npy file."""
    header = io.BytesIO()
    fields = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(header, fields)
    return header.getvalue()


def sync_file(file: IO[bytes]) -> None:
    """Make what was written to `file` survive a power cut."""
    file.flush()
    os.fsync(file.fileno())


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
