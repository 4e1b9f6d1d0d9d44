"""The files that a job writes while it runs: the folder OUTPUT.parts, with a file of records per rank.

A record is a line of JSON, [row, text, notes], appended with its batch and synced. So a rank that ends for any reason,
kill -9 included, loses its present batch alone: a line that is cut short does not count, and its row is done again.
Each record names its row, so a job may be resumed with another number of ranks, which write files of their own.
"""

from __future__ import annotations

import contextlib
import filecmp
import json
import os
import re
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from train.record.folder import GENERATION, OutputFolder, is_own, read_mark, read_sealed, write_json
from una_fast.errors import InputError
from una_fast.storage.files import new_file, sync_file, unwritable

Record = tuple[int, str, tuple[str, ...]]  # row of the corpus, text, notes
NOTES = {
    "cut": "longer than --max-source-length and cut",
    "folded": "with line breaks in the text, now spaces",
    "empty": "with an empty text, so the sentence itself stands there",
}
PART = re.compile(r"part-[0-9a-f]{32}")  # only the job knows names with such random digits


class Part:
    """A new file of one rank, to be used in a with statement."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / f"part-{uuid.uuid4().hex}"

    def __enter__(self) -> Part:
        try:
            self._file = self._path.open("xb")
        except OSError as error:
            raise unwritable(self._path, error) from error
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def append(self, records: Iterable[Record]) -> None:
        """Write records, on the disk when this returns. InputError if the disk is full."""
        lines = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
        try:
            self._file.write(lines.encode("utf-8"))
            sync_file(self._file)
        except OSError as error:
            raise unwritable(self._path, error) from error


class Parts:
    """The folder of a job, locked against other jobs.

    identity: all that determines the text, as JSON values; n: number of lines of the corpus.
    """

    def __init__(self, output: Path, identity: dict[str, Any], n: int) -> None:
        self.output, self.folder = output, folder_of(output)
        self._summary, self._identity, self._n = summary_of(output), identity, n
        self._lock: OutputFolder | None = None

    def begin(self, resume: bool) -> bool:
        """Lock the folder and check what is there; False if the job is finished already.

        Raises:
            InputError: without --resume, there are files of an earlier job; with it, there are none or another job's.
        """
        if resume and not is_own(self.folder, GENERATION) and self._finished():
            return False
        if not resume:
            for path in (self.output, self._summary):
                if os.path.lexists(path):
                    raise InputError(f"--output {self.output}: {path} exists: choose another name, or delete it")
        with contextlib.ExitStack() as stack:
            lock = stack.enter_context(OutputFolder(self.folder, GENERATION, resume, self._identity))
            if resume:
                self._check_resumed()
            stack.pop_all()
        self._lock = lock
        return True

    def _finished(self) -> bool:
        if not (self.output.exists() and self._summary.exists()):
            raise InputError(f"--resume: {self.folder} does not exist, so there is nothing to go on with: leave it out")
        self._compare(self._summary, read_sealed(self._summary))
        return True

    def _check_resumed(self) -> None:
        self._compare(self.folder, read_mark(self.folder)["settings"])
        if self.output.exists() and not self._summary.exists():
            raise InputError(f"--output {self.output}: exists, and is not of this job: move it away")

    def _compare(self, path: Path, saved: dict[str, Any]) -> None:
        """Refuse an identity that is not the `saved` one of `path`; the first difference is named."""
        if not saved:
            raise InputError(f"--resume: {path} cannot be read, or was changed: start anew with another --output")
        advice = "give the same to go on, or start anew with another --output"
        settings = saved["settings"]
        for name in sorted(self._identity["settings"].keys() | settings.keys()):
            was, now = settings.get(name), self._identity["settings"].get(name)
            if was != now:
                raise InputError(f"--resume: {name.replace('_', ' ')} was {was!r} and is now {now!r}: {advice}")
        for name in ("corpus", "models"):
            if saved.get(name) != self._identity[name]:
                raise InputError(f"--resume: {path} is of other {name} (their content differs): {advice}")

    def _files(self) -> list[Path]:
        return sorted(path for path in self.folder.iterdir() if PART.fullmatch(path.name))

    def _records(self) -> Iterator[tuple[Path, int, Record]]:
        """(file, byte offset in it, record) of each record; one that a damaged disk made unreadable is left out."""
        for path in self._files():
            place = 0
            with path.open("rb") as file:
                for line in file:
                    record = _parse(line, self._n)
                    if record:
                        yield path, place, record
                    place += len(line)

    def done(self) -> NDArray[np.bool_]:
        """Which lines have a record, bool (n,)."""
        done = np.zeros(self._n, dtype=np.bool_)
        for _, _, (row, _, _) in self._records():
            done[row] = True
        return done

    def merge(self) -> Counter[str]:
        """Write OUTPUT, a line for each line of the corpus, and OUTPUT.manifest; returns how many lines have each note.

        A line without a record is blank. The files of the parts are removed at the end.
        """
        notes: Counter[str] = Counter()
        files = self._files()
        number_of = {path: number for number, path in enumerate(files)}
        where = np.full((self._n, 2), -1, dtype=np.int64)  # number of the file, byte offset
        for path, place, (row, _, record_notes) in self._records():
            if where[row, 0] < 0:
                notes.update(record_notes)
                where[row] = number_of[path], place
        summary = self._identity | {"notes": {name: notes[name] for name in NOTES}}
        write_json(self._summary, summary)
        try:
            with new_file(self.output, replace=False) as file:
                file.writelines(_lines(files, where))
                file.flush()
                is_there = self.output.is_file() and filecmp.cmp(file.name, self.output, shallow=False)
        except FileExistsError as error:
            if not is_there:  # as it is after a job that was killed before it removed its parts
                raise InputError(f"--output {self.output}: exists, and is not of this job: move it away") from error
        except OSError as error:
            raise unwritable(self.output, error) from error
        self.remove()
        return notes

    def remove(self) -> None:
        """Remove what the job wrote in the folder, and the folder if nothing else is there."""
        for path in self._files():
            path.unlink()
        if self._lock:
            self._lock.remove()
        self.release()

    def release(self) -> None:
        """Release the lock of the folder."""
        if self._lock:
            self._lock.close()


def _lines(files: list[Path], where: NDArray[np.int64]) -> Iterator[bytes]:
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(part.open("rb")) for part in files]
        for number, place in where.tolist():
            if number >= 0:
                opened[number].seek(place)
                yield json.loads(opened[number].readline())[1].encode()
            yield b"\n"


def folder_of(output: Path) -> Path:
    """The folder of the parts of an output."""
    return output.with_name(f"{output.name}.parts")


def summary_of(output: Path) -> Path:
    """The file that says what a finished output was made from and how."""
    return output.with_name(f"{output.name}.manifest")


def _parse(line: bytes, n: int) -> Record | None:
    try:
        row, text, notes = json.loads(line)
    except (ValueError, TypeError):
        return None
    whole = isinstance(row, int) and 0 <= row < n and isinstance(text, str) and isinstance(notes, list)
    return (row, text, tuple(notes)) if whole and line.endswith(b"\n") else None
