"""Marks of folders that were verified on this machine, so that they are not read again at every start of a process.

The mark of a folder is a file in the user's own cache folder. It is never in the folder itself, where it could come
with data that somebody else made. Its name is a hash of the content's seal and of the device, inode, size, mtime and
ctime of every file, so a file that was changed, replaced, copied or restored is read again.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import xxhash

from una_fast._kernels.one_process import one_process_at_a_time, private_folder
from una_fast.storage.files import Mapped, identity_of

CHECKS = 1  # version of the checks: after a new one all is read again
SMALLEST = 1 << 26  # bytes; a smaller folder is verified each time, which takes 10 ms
SETTLED = 2 * 10**9  # ns; a younger file may still change at the same mtime, because file systems have coarse clocks
MOST_MARKS = 1_000
LONGEST_WAIT = 3_600.0  # s, for another process that verifies; 200 GB take some minutes


@dataclass(frozen=True)
class Mark:
    """The mark of files as they are now. path: of the mark; None if no mark is kept for these files."""

    path: Path | None
    files: tuple[Mapped, ...]

    def is_set(self) -> bool:
        """True if these files were verified before and have not changed since."""
        return self.path is not None and self.path.is_file()

    def set(self) -> None:
        """Note that the files were verified, if they are still those that were mapped."""
        if self.path is None:
            return
        with suppress(OSError):
            if all(identity_of(file.path.stat()) == file.identity for file in self.files):
                self.path.parent.mkdir(exist_ok=True)
                self.path.write_text(f"{self.files[0].path.parent}\n", encoding="utf-8", errors="surrogateescape")
                _forget_oldest(self.path.parent)

    @contextmanager
    def one_process(self) -> Iterator[None]:
        """A lock around `is_set`, the verification and `set`: other processes wait, and then find the mark set."""
        if self.path is None or self.is_set():
            yield
            return
        with one_process_at_a_time("verify", LONGEST_WAIT):
            yield


def mark_of(files: Iterable[Mapped], content: str) -> Mark:
    """The mark of `files` that hold `content`. It is never set for small files, or for files written just now."""
    files = tuple(files)
    folder = private_folder()
    size = sum(len(file.data) for file in files)
    newest = max((max(file.identity[-2:]) for file in files), default=0)
    if folder is None or size < SMALLEST or newest > time.time_ns() - SETTLED:
        return Mark(None, files)
    made_of = repr((CHECKS, content, [(file.path.name, file.identity) for file in files]))
    return Mark(folder / "verified" / xxhash.xxh3_128_hexdigest(made_of.encode()), files)


def _forget_oldest(folder: Path) -> None:
    marks = list(folder.iterdir())
    if len(marks) > MOST_MARKS:
        for path in sorted(marks, key=lambda mark: mark.stat().st_mtime_ns)[: MOST_MARKS // 2]:
            path.unlink(missing_ok=True)
