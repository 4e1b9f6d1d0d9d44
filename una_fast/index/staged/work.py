"""The folder that a build works in, beside the folder of the index. The file MARK in it says that a build made it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from una_fast.errors import InputError
from una_fast.index.layout import DTYPES
from una_fast.storage.files import PARTIAL, locked, read_bytes, unwritable, write_bytes
from una_fast.storage.packs import KEPT

MARK, MARKED = "build", b"una_fast makes an index here, and deletes this folder at the end\n"
FILE = re.compile(
    r"(segment|(read|rows|runs|ids|ranked|(merge|label|rank)-(terms|chunks))(-\d+)*"
    rf"|(array|checksum)-({'|'.join(DTYPES)}))-[0-9a-f]{{16}}|{PARTIAL.pattern}"
)
NOTABLE = re.compile("segment|rows|label")  # the files of tasks that take long


def work_folder(folder: Path) -> Path:
    """The folder beside `folder` for the files of its build."""
    return folder.parent / f".{folder.name}.building"


@contextmanager
def open_work(folder: Path) -> Iterator[Path]:
    """The work folder, made if it is not there, and locked while this process works.

    After an InputError it stays if there are files in it of tasks that take long.

    Raises:
        InputError: the folder cannot be made, another process builds there, or no build made it.
    """
    work = work_folder(folder)
    try:
        with suppress(FileExistsError):
            work.mkdir(parents=True)
        if folder.exists() and folder.stat().st_dev != work.lstat().st_dev:
            raise InputError(f"{folder}: is the top of a file system; give a folder inside it")
    except OSError as error:
        raise unwritable(work, error, "nothing was changed") from error
    with locked(work, wait=False) as held:
        if not held:
            is_folder = work.is_dir() and not work.is_symlink()
            about = "another process is building there; wait for its end" if is_folder else "no folder; move it"
            raise InputError(f"{work}: {about}, or give another folder")
        _claim(work)
        try:
            yield work
        except InputError as error:
            if work.is_dir() and any(NOTABLE.match(path.name) for path in work.iterdir()):
                raise
            end_work(work)
            raise InputError(str(error).replace(KEPT, "")) from error


def _claim(work: Path) -> None:
    """Put the mark into an empty work folder.

    Raises:
        InputError: it holds something, and no mark.
    """
    try:
        names = sorted(path.name for path in work.iterdir() if not PARTIAL.fullmatch(path.name))
        if not names:
            write_bytes(work / MARK, MARKED)
        is_own = not names or (MARK in names and read_bytes(work / MARK) == MARKED)
    except OSError as error:
        with suppress(OSError):  # it holds something
            work.rmdir()
        raise unwritable(work, error, "nothing was changed") from error
    if not is_own:
        raise InputError(f"{work}: holds {names[0]!r}, and no build made it; move it, or delete it to build anew")


def delete_work(work: Path, keep: Callable[[str], bool]) -> None:
    """Delete the files of a build, except names for which `keep` is true. What others put there stays."""
    for path in [*work.iterdir()]:
        if FILE.fullmatch(path.name) and not keep(path.name) and not path.is_dir():
            path.unlink(missing_ok=True)


def end_work(work: Path) -> None:
    """Delete the work folder, the mark last: what a kill leaves is deleted by the next build.

    Files of others stay, and the mark with them, so that the next build of this index can work there.
    """
    with suppress(OSError):
        delete_work(work, lambda _: False)
        if [path.name for path in work.iterdir()] == [MARK] and read_bytes(work / MARK) == MARKED:
            (work / MARK).unlink()
            work.rmdir()
