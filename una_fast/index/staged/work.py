"""The folder that a build works in, beside the folder of the index, and how far the build has come."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from una_fast.errors import InputError
from una_fast.index.staged.packs import is_whole, read_meta, write_pack
from una_fast.storage.files import locked, remove_partial, unwritable

STATE = "build.pack"


def work_folder(folder: Path) -> Path:
    """The folder beside `folder` for the files of its build."""
    return folder.parent / f".{folder.name}.building"


@contextmanager
def open_work(folder: Path) -> Iterator[Path]:
    """The work folder, made if it is not there, and locked while this process works. At the end it is deleted.

    After an error it stays if it holds more than what was read of each source.

    Raises:
        InputError: the folder cannot be made, or another process builds there.
    """
    work = work_folder(folder)
    try:
        work.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(work, error, "nothing was changed") from error
    with locked(work, wait=False) as is_free:
        if not is_free:
            raise InputError(f"{work}: another process is building there; wait for its end, or give another folder")
        remove_partial(work)
        try:
            yield work
            delete_files(work, STATE, "*.pack", "*.npy")
        finally:
            with suppress(OSError):
                if all(path.name == STATE or path.name.startswith("read-") for path in work.iterdir()):
                    delete_files(work, STATE, "read-*.pack")
                    work.rmdir()


class State:
    """How far a build has come: the result of each finished stage, in the file STATE.

    It begins anew if the file is of another build, or if a file of a task is damaged; then these are deleted.
    """

    def __init__(self, work: Path, key: str, given: Collection[Path]):
        """key: a hash of the corpus and the settings; given: files that are of this build in any case."""
        self._work, self._finished = work, {"key": key}
        old = [path for path in work.glob("*.pack") if path not in given]
        with ThreadPoolExecutor() as threads:
            goes_on = work / STATE in old and all(threads.map(is_whole, old)) and read_meta(work / STATE)["key"] == key
        if goes_on:
            self._finished = read_meta(work / STATE)
        else:
            delete_files(work, STATE, *(path.name for path in old))
            write_pack(work / STATE, self._finished, {})

    def __contains__(self, stage: str) -> bool:
        return stage in self._finished

    def __getitem__(self, stage: str) -> Any:
        return self._finished[stage]

    def finish(self, stage: str, result: Any, *outdated: str) -> None:
        """Note the result of a finished stage, and delete the files of the patterns `outdated`."""
        self._finished[stage] = result
        write_pack(self._work / STATE, self._finished, {})
        delete_files(self._work, *outdated)


def delete_files(work: Path, *patterns: str) -> None:
    """Delete the files of a work folder whose names match one of the patterns."""
    for pattern in patterns:
        for path in [*work.glob(pattern)]:
            path.unlink(missing_ok=True)
