"""The output folder of a command: whose it is, that one command at a time writes there, and its small files.

A command begins in a folder that is missing or empty, and goes on in its own alone. `.una_fast.json`, the mark, says
whose a folder is and with which settings it was begun; it is locked while a command writes there. A run whose mark was
not copied with it, because hidden files often are not, is known by its run.json or its checkpoint. Every other file
appears whole or not at all. docs/files.md lists the files of a run.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from una_fast.errors import InputError
from una_fast.storage.files import lock, new_file, sync_file, unwritable

MARK = ".una_fast.json"
SUMMARY, METRICS, EVALUATION, SEEDS = "run.json", "metrics.jsonl", "evaluation.json", "seeds.json"
BEST, LAST, TENSORBOARD, INDEX = "best", "last", "tensorboard", "index"
POINTER = f"{LAST}/checkpoint.json"
RUN, RUNS, COMPARISON = "train.ddp", "train.ddp --seeds", "train.compare"  # as marks name them
PARTS = ("settings", "resolved", "corpus", "resume_fingerprint", "progress", "scores")  # of run.json


class OutputFolder:
    """The output folder of `command`, locked by this process until the end of the with block.

    If the block ends with an error, and a new folder holds nothing but its mark, the folder is removed.

    Args:
        path: the folder.
        command: the command that writes there, such as RUN.
        resume: whether to go on in the command's folder instead of beginning in a new one.
        settings: what the mark keeps of a command that begins.

    Raises:
        InputError: without `resume` the folder holds something; with it, it is not the command's; another process
            writes there; or it cannot be made or written.
    """

    def __init__(self, path: Path, command: str, resume: bool, settings: Mapping[str, Any] | None = None) -> None:
        check = check_own if resume else check_new
        check(path, command)
        self._path, self._is_new = path, not resume
        self._made = [path] if resume else [folder for folder in (path, *path.parents) if not folder.exists()]
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._mark = (path / MARK).open("a+b")
            if not lock(self._mark.fileno()):
                raise InputError(
                    f"--output {path}: in use by another run: wait for it, stop it, or choose another folder"
                )
            check(path, command)  # another command may have begun and ended there meanwhile
            if not read_mark(path):
                self._mark.truncate(0)
                self._mark.write(_encoded({"command": command, "settings": settings or {}}))
                sync_file(self._mark)
        except OSError as error:
            self.remove()
            raise InputError(f"--output {path}: cannot be made or written: {error.strerror}") from error

    def __enter__(self) -> OutputFolder:
        return self

    def __exit__(self, error: object, *_: object) -> None:
        if error and self._is_new:
            self.remove()
        self.close()

    def remove(self) -> None:
        """Remove the mark, and the folders that were made for it, if nothing else is there."""
        with suppress(OSError):
            if {*self._path.iterdir()} <= {self._path / MARK}:
                (self._path / MARK).unlink(missing_ok=True)
                for folder in self._made:
                    folder.rmdir()

    def close(self) -> None:
        """Unlock the folder."""
        self._mark.close()


def read_mark(path: Path) -> dict[str, Any]:
    """The "command" that owns a folder, and its "settings" when it began; {} without a mark."""
    mark = read_object(path / MARK)
    return mark if isinstance(mark.get("settings"), dict) else {}


def owner(path: Path) -> str | None:
    """The command that owns a folder; None for a folder of something else."""
    if command := read_mark(path).get("command"):
        return command
    return RUN if read_object(path / POINTER) or read_summary(path)["settings"] else None


def is_own(path: Path, command: str) -> bool:
    """True if the folder is the command's."""
    return owner(path) == command


def check_own(path: Path, command: str) -> None:
    """Refuse to go on with a folder that is not the command's."""
    if (other := owner(path)) != command:
        what = f"holds a run of {other}" if other else f"holds no run of {command}"
        raise InputError(f"--resume: {path} {what}: start without --resume in a new --output")


def check_new(path: Path, command: str) -> None:
    """Refuse to begin in a folder that holds something; an empty mark, which a killed start left, is nothing."""
    try:
        names = sorted(entry.name for entry in path.iterdir() if entry.name != MARK or entry.stat().st_size)
    except FileNotFoundError:
        return
    except OSError as error:
        raise InputError(f"--output {path}: cannot be read: {error.strerror}") from error
    if other := owner(path):
        advice = "give --resume to go on with it, " if other == command else ""
        raise InputError(f"--output {path}: holds a run of {other}: {advice}choose another folder, or delete it")
    if names:
        raise InputError(f"--output {path}: holds {names[0]}: give a folder that is new or empty")


def subfolder(output: Path, name: str) -> Path:
    """The folder `name` in an output folder, made if it is missing; a link to a folder elsewhere is one too."""
    folder = output / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(folder, error) from error
    return folder


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object. Raises InputError for a file that is missing, damaged, or holds something else."""
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: cannot be read: {error!r:.200}") from error
    if not isinstance(content, dict):
        raise InputError(f"{path}: cannot be read: it holds a {type(content).__name__} and no JSON object")
    return content


def read_object(path: Path) -> dict[str, Any]:
    """As `read_json`; {} where that raises an error."""
    with suppress(InputError):
        return read_json(path)
    return {}


def read_summary(output: Path) -> dict[str, Any]:
    """run.json, where there is one; each of PARTS is there in any case, as a dictionary."""
    summary = read_object(output / SUMMARY)
    return {**summary, **{name: part if isinstance(part := summary.get(name), dict) else {} for name in PARTS}}


def is_finished(output: Path) -> bool:
    """True if the run in `output` has taken its last step."""
    return read_summary(output).get("status") == "finished"


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write indented JSON, whole or not at all. Raises InputError as `write_file` does."""
    write_file(path, _encoded(content))


def write_page(path: Path, text: str) -> None:
    """Write HTML or Markdown that is not there yet, whole or not at all. Raises InputError as `write_file` does."""
    content = text.encode("utf-8", "xmlcharrefreplace")  # JSON may hold surrogates, which are no UTF-8
    if not has_content(path, content):
        write_file(path, content)


def write_file(path: Path, content: bytes) -> None:
    """Write a file, whole or not at all. Raises InputError if it cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with new_file(path) as file:
            file.write(content)
    except OSError as error:
        raise unwritable(path, error) from error


def write_once(path: Path, content: bytes) -> None:
    """Write a file that is not there. Raises InputError as `write_file` does, and for a file with other content."""
    if not path.exists():
        write_file(path, content)
    elif not has_content(path, content):
        raise InputError(f"{path}: was changed, or what it is made from: it stays, choose a new --output")


def has_content(path: Path, content: bytes) -> bool:
    """True for a file with this content."""
    with suppress(OSError):
        return path.read_bytes() == content
    return False


@contextmanager
def partial_folder(path: Path) -> Iterator[Path]:
    """A new folder beside `path`, for its content; what is left of it at the end is deleted. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as partial:
        yield Path(partial)


def _encoded(content: Mapping[str, Any]) -> bytes:
    return (json.dumps(content, indent=2, default=str) + "\n").encode()
