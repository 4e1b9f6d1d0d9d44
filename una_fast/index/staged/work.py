"""The folder that a build works in, beside the folder of the index. The file MARK in it says that a build made it."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from una_fast.errors import InputError
from una_fast.index.layout import DTYPES
from una_fast.storage.files import PARTIAL, locked, read_bytes, unwritable, write_bytes
from una_fast.storage.packs import GO_ON

MARK, MARKED = "build", b"una_fast makes an index here, and deletes this folder at the end\n"
FILE = re.compile(
    r"(segment|(read|digest|rows|runs(-all)?|ranked-all|written-rows|(merge|label|rank)-(terms|chunks)(-\d+)?)-\d+"
    rf"|checksum-[a-z0-9]+-0)-[0-9a-f]{{16}}|{PARTIAL.pattern}"
)
FOLDER = re.compile("arrays-[0-9a-f]{16}|gone-[0-9a-f]{32}")
ARRAYS = frozenset(f"{name}.npy" for name in DTYPES)
NOTABLE = re.compile("segment|rows|written|label")  # the files of tasks that take long


def work_folder(folder: Path) -> Path:
    """The folder beside `folder` for the files of its build."""
    return folder.parent / f".{folder.name}.building"


@contextmanager
def open_work(folder: Path) -> Iterator[Path]:
    """The work folder, made if it is not there, and locked while this process works.

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
        raise unwritable(work, error, GO_ON) from error
    with locked(work, wait=False) as held:
        if not held:
            is_folder = work.is_dir() and not work.is_symlink()
            about = "another process is building there; wait for its end" if is_folder else "no folder; move it"
            raise InputError(f"{work}: {about}, or give another folder")
        _claim(work)
        try:
            yield work
        except InputError:
            if not any(NOTABLE.match(path.name) for path in work.iterdir()):
                end_work(work)  # the input was refused
            raise


def _claim(work: Path) -> None:
    """Put the mark into an empty work folder.

    Raises:
        InputError: it holds something, and no mark; or what a build would read or write there leads out of it.
    """
    try:
        names = sorted(path.name for path in work.iterdir() if not PARTIAL.fullmatch(path.name))
        if not names:
            write_bytes(work / MARK, MARKED)
        is_own = not names or (MARK in names and read_bytes(work / MARK) == MARKED)
        found = [path for path in work.rglob("*") if _is_own(path)]
        odd = [path for path in found if path.is_symlink() or (path.suffix == ".npy" and not path.is_file())]
    except OSError as error:
        raise unwritable(work, error, GO_ON) from error
    if not is_own:
        raise InputError(f"{work}: holds {names[0]!r}, and no build made it; move it, or delete it to build anew")
    if odd:
        raise InputError(f"{odd[0]}: is a link, or no file, so no build made it; move it, and delete {work}")


def _is_own(path: Path) -> bool:
    """True for the name of a file or folder of a build."""
    is_array = path.name in ARRAYS and FOLDER.fullmatch(path.parent.name)
    return bool(is_array or FILE.fullmatch(path.name) or FOLDER.fullmatch(path.name))


def delete_work(work: Path, keep: Callable[[str], bool] = lambda name: name == MARK) -> None:
    """Delete the files of a build, except names for which `keep` is true. What others put there stays."""
    for path in sorted(work.iterdir(), key=lambda path: path.name in ARRAYS):  # after what is said of them
        if keep(path.name) or not _is_own(path):
            continue
        if not path.is_dir():
            path.unlink(missing_ok=True)
        elif FOLDER.fullmatch(path.name):
            if all(map(_is_own, path.iterdir())):
                # the arrays and what is said of them go in one step, so that no build finds a part of that
                path = path.rename(path.with_name(f"gone-{uuid.uuid4().hex}"))
            delete_work(path, lambda _: False)
            with suppress(OSError):
                path.rmdir()


def end_work(work: Path) -> None:
    """Delete the work folder, the mark last: what a kill leaves is deleted by the next build.

    Files of others stay, and the mark with them, so that the next build of this index can work there.
    """
    with suppress(OSError):
        delete_work(work)
        if [path.name for path in work.iterdir()] == [MARK]:
            (work / MARK).unlink()
            work.rmdir()
