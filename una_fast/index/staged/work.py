"""The folder that a build works in, beside the folder of the index: only una_fast's files in it are ever deleted."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from una_fast.errors import InputError
from una_fast.index.layout import DTYPES
from una_fast.storage.files import unwritable
from una_fast.storage.packs import GO_ON, Pack, write_pack
from una_fast.storage.place import lock_folder

STAGES = "segment|read|digest|rows|runs|written|merge|rank|label|created|checksum|corpus|check"
OWN_FILE = re.compile(rf"({STAGES})(-[a-z0-9-]*)?|\.({STAGES})[a-z0-9-]*\.[0-9a-f]{{32}}\.partial")
OWN_FOLDER = re.compile(r"arrays-[0-9a-f]{16}")
OWN_ARRAY = re.compile(rf"({'|'.join(DTYPES)})\.npy|\.({'|'.join(DTYPES)})\.npy\.[0-9a-f]{{32}}\.partial")


def work_folder(folder: Path, doing: str = "building") -> Path:
    """The folder beside `folder` for the files of a build, or of the work that `doing` names."""
    return folder.with_name(f".{folder.name}.{doing}")


@contextmanager
def open_work(folder: Path, doing: str = "building") -> Iterator[Path]:
    """The work folder, made if it is not there, and locked while this process works."""
    work = work_folder(folder, doing)
    try:
        work.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(work, error, GO_ON) from error
    handle = lock_folder(work, wait=False)
    if handle is None:
        raise InputError(f"{folder}: another process is {doing} there; wait for its end, or give another folder")
    try:
        yield work
    finally:
        if handle >= 0:
            os.close(handle)


def check_corpus(work: Path, folder: Path, files: list[Any], settings: Any) -> None:
    """Raise InputError if the work folder is of a build of other files or with other settings; else record these.

    A build that ended before its first task was done, for example at a wrong column, is replaced without an error.

    files: of each source its path, size and time of change, None if it is no file; settings: anything JSON can hold.
    """
    path = work / "corpus"
    if not path.exists() or not _has_results(work):
        return write_pack(path, {"files": files, "settings": settings}, {})
    with Pack(path) as pack:
        begun = pack.meta
    advice = f"put the old back to go on, or delete {work} to build anew"
    for old, new in zip(begun["files"], files, strict=False):
        if old and new and old != new and old[0] == new[0]:
            raise InputError(f"{old[0]}: changed since the build of {folder} was started (size or time): {advice}")
    if begun["files"] != files:
        raise InputError(f"{folder}: a build of another corpus was started there: {advice}")
    if begun["settings"] != settings:
        raise InputError(f"{folder}: a build with another word tokenizer or other settings was started there: {advice}")
    return None


def _has_results(work: Path) -> bool:
    """True if a task of a build has been done."""
    names = (path.name for path in work.iterdir())
    return any(OWN_FILE.fullmatch(name) and name.split("-")[0] not in ("corpus", "check") for name in names)


def delete_work(work: Path, keep: Callable[[str], bool] = lambda name: False) -> None:
    """Delete the files of a build, except names for which `keep` is true, and the folder if it is then empty."""
    with suppress(OSError):
        for path in list(work.iterdir()):
            if keep(path.name):
                continue
            if OWN_FILE.fullmatch(path.name):
                path.unlink(missing_ok=True)
            elif OWN_FOLDER.fullmatch(path.name) and path.is_dir():
                _delete_arrays(path)
        work.rmdir()


def _delete_arrays(folder: Path) -> None:
    with suppress(OSError):
        for path in list(folder.iterdir()):
            if OWN_ARRAY.fullmatch(path.name):
                path.unlink(missing_ok=True)
        folder.rmdir()
