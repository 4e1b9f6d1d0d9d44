"""What the folder of a run needs until it is written anew on `una_fast.storage.files`."""

from __future__ import annotations

import errno
import os
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from una_fast.storage.files import lock, sync_file, sync_folder
from una_fast.storage.folder import find_manifest

MARK = ".una_fast.json"
PARTIAL = re.compile(r"\..+\.[0-9a-f]{16,32}\.partial", re.DOTALL)


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


def own_file(path: str, flags: int) -> int:
    """An opener for `open`: what is written is in no other folder, so a link, or a file of two names, is refused."""
    handle = os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)
    if os.fstat(handle).st_nlink > 1:
        os.close(handle)
        raise OSError("it is a hard link, and the content has another name too")
    return handle


def find_manifests(folder: Path) -> list[Any]:
    """The manifest of a folder of arrays, if it is one."""
    manifest = find_manifest(folder)
    return [manifest] if manifest else []
