"""Opening a folder of arrays, while other processes may be saving there.

Every byte is read when a user opens a large folder for the first time on a machine. Then the folder has a mark, a file
in the user's own cache folder, and later processes only map it. The mark is never in the folder itself, where it could
come with data that somebody else made. Its name is a hash of the content's seal and of the device, inode, size, mtime
and ctime of every file, so a file that was changed, replaced, copied or restored is read again.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Callable, Collection
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xxhash

from una_fast.errors import InputError
from una_fast.storage.files import Mapped, checked_path, identity_of, locked, map_file, mapped_array, verify_checksum
from una_fast.storage.manifest import Manifest, array_file, read_manifest, read_seal

CHECKS = 1  # version of the checks: after a new one all is read again
SMALLEST = 1 << 26  # bytes; a smaller folder is verified each time, which takes 10 ms
SETTLED = 2 * 10**9  # ns; a younger file may still change at the same mtime, because file systems have coarse clocks
MARK = re.compile("[0-9a-f]{32}")
MOST_MARKS = 1_000

Check = Callable[[dict[str, Any], dict[str, np.ndarray]], None]


class Saved(NamedTuple):
    """What a folder holds: its `meta`, its arrays by name, and the seal, a hash of all its content."""

    meta: dict[str, Any]
    arrays: dict[str, np.ndarray]
    seal: str


def load_arrays(
    folder: Path, kind: str, version: int, check: Check | None = None, part_of: str | None = None, verify: bool = False
) -> Saved:
    """The `meta` and the read-only, memory-mapped arrays of a folder that `save_arrays` wrote.

    Args:
        folder: where it was saved.
        kind: as given to `save_arrays`.
        version: as given to `save_arrays`.
        check: called with `meta` and the arrays whenever every byte is read; it raises InputError for wrong content. It
            depends only on what the folder holds, and on what it is a part of.
        part_of: as given to `save_arrays`.
        verify: read every byte, even where this content has been verified on this machine before.

    Raises:
        InputError: no such folder, another kind or version, a part of another folder or with another name, a file
            missing, cut short or with a changed byte.

    """
    folder = checked_path(folder)
    while True:
        manifest = read_manifest(folder, kind, version)
        try:
            if part_of and manifest.part_of != f"{part_of}/{folder.name}":
                raise InputError(
                    f"{folder}: made under another name, or for another index; delete it, it is made again"
                )
            return _load(folder, manifest, check, verify)
        except InputError:
            if read_seal(folder) == manifest.seal:  # else another content was saved there meanwhile
                raise


def _load(folder: Path, manifest: Manifest, check: Check | None, verify: bool) -> Saved:
    files = {name: map_file(folder / array_file(name, checksum)) for name, checksum in manifest.checksums.items()}
    mark = _mark_of(files.values(), f"{manifest.seal} {check is not None}")

    def is_verified() -> bool:
        return not verify and mark is not None and mark.is_file()

    # one process of the user verifies at a time, and then a process that started at the same time finds the mark
    with nullcontext() if mark is None or is_verified() else locked(mark.parent):
        is_new = not is_verified()
        for name, checksum in manifest.checksums.items() if is_new else ():
            verify_checksum(files[name], checksum)
        arrays = {name: mapped_array(file) for name, file in files.items()}
        if is_new and check is not None:
            check(manifest.meta, arrays)
        if is_new and mark is not None:
            _set(mark, files.values())
        return Saved(manifest.meta, arrays, manifest.seal)


def _mark_of(files: Collection[Mapped], content: str) -> Path | None:
    """The mark of `files` that hold `content`; None for small files, and for files written just now."""
    size = sum(len(file.data) for file in files)
    newest = max((max(file.identity[-2:]) for file in files), default=0)
    if size < SMALLEST or newest > time.time_ns() - SETTLED or (folder := marks_folder()) is None:
        return None
    made_of = repr((CHECKS, content, [(file.path.name, file.identity) for file in files]))
    return folder / xxhash.xxh3_128_hexdigest(made_of.encode())


def marks_folder() -> Path | None:
    """The user's folder of marks: ``verified`` in ``$XDG_CACHE_HOME/una_fast`` or ``~/.cache/una_fast``.

    None on Windows, where it cannot be made, and where one of the two is not as it is made here: a link, another
    user's, one that others may write to, or a folder ``una_fast`` that holds something, and no ``verified``.
    """
    if os.name == "nt":
        return None
    try:
        home = os.environ.get("XDG_CACHE_HOME", "")
        cache = Path(home) if Path(home).is_absolute() else Path.home() / ".cache"
        cache.mkdir(parents=True, exist_ok=True)
        folder = cache / "una_fast" / "verified"
        # in this order: another process may make it between the two questions
        may_be_made = _is_private(folder.parent) and (not any(folder.parent.iterdir()) or folder.is_dir())
        is_own = may_be_made and _is_private(folder)
    except (OSError, RuntimeError, ValueError):  # RuntimeError: a user without a home
        return None
    return folder if is_own else None


def _is_private(folder: Path) -> bool:
    """Whether a folder, which is made if nothing is there, is the user's, and nobody else may write to it."""
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    about = folder.lstat()
    return stat.S_ISDIR(about.st_mode) and about.st_uid == os.getuid() and not stat.S_IMODE(about.st_mode) & 0o022


def _set(mark: Path, files: Collection[Mapped]) -> None:
    """Note that the files were verified, if they have not changed since they were mapped; forget the oldest marks."""
    with suppress(OSError):
        if all(identity_of(file.path.stat()) == file.identity for file in files):
            mark.touch(exist_ok=False)
            marks = [path for path in mark.parent.iterdir() if MARK.fullmatch(path.name)]
            marks.sort(key=lambda path: path.stat().st_mtime_ns)
            for path in marks[: MOST_MARKS // 2] if len(marks) > MOST_MARKS else ():
                path.unlink(missing_ok=True)
