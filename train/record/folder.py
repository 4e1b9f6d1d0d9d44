"""The output folder of a command: whose it is, and how its files appear.

A command writes into a folder that is missing or empty, or that is its own and resumed: then it holds .una_fast.json,
the mark, which is made with the folder, never rewritten, and locked while a process writes there. Anything else is
refused before a byte is written. A file that a command replaces holds a seal, the checksum of its content: one that the
user changed, or wrote, stays. The mark has a random id, which is in the folder's other files too, so that a file of
another folder is noticed; a folder that is moved or copied as a whole keeps it. Before every write `check_inside` makes
sure that the locked mark still lies there. docs/files.md lists the files of a run.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import xxhash

from train.record.old_files import MARK, find_manifests, left_in, new_file, remove_left
from una_fast.errors import InputError
from una_fast.storage.files import lock, read_bytes, unwritable

SUMMARY, METRICS, EVALUATION, SEEDS = "run.json", "metrics.jsonl", "evaluation.json", "seeds.json"
BEST, LAST, TENSORBOARD, INDEX = "best", "last", "tensorboard", "index"
POINTER = f"{LAST}/checkpoint.json"
RUN, RUNS, GENERATION = "train.ddp", "train.ddp --seeds", "train.generate"  # as marks name them
COMPARISON = "train.compare"
SCORES, PROBED = "scores", "probe"  # what files of JSON that a user names are about
PARTS = ("settings", "resolved", "corpus", "identity", "progress", "scores")  # of run.json


class OutputFolder:
    """The output folder of `command`, locked by this process until the end of the with block.

    If the block ends with an error, and a new folder holds nothing but its mark, the folder is removed.

    Raises:
        InputError: without `resume` the folder holds something; with it, it is not the command's; another process
            writes there; or it cannot be made or written.
    """

    def __init__(self, path: Path, command: str, resume: bool, settings: Mapping[str, Any] | None = None) -> None:
        check_inside(path)
        (check_own if resume else check_new)(path, command)
        self._path, self._place, self._new = path, _above(path / MARK)[0], not resume
        self._made = [path] if resume else [folder for folder in (path, *path.parents) if not folder.exists()]
        try:
            if not resume:
                path.mkdir(parents=True, exist_ok=True)
                with new_file(path / MARK, replace=False) as file:
                    file.write(_sealed({"command": command, "settings": settings or {}, "id": uuid.uuid4().hex}))
            self._mark = (path / MARK).open("r+b")
            if not (lock(self._mark.fileno()) and self._is_there()):  # perhaps another mark lies there by now
                raise _in_use(path)
            if resume:
                _remove_left(path)
        except OSError as error:
            self._remove_empty()
            if os.path.lexists(path / MARK) and isinstance(error, FileExistsError):
                raise _in_use(path) from None
            raise InputError(f"--output {path}: cannot be made or written: {error.strerror}") from error
        _HELD.append(self)

    def __enter__(self) -> OutputFolder:
        return self

    def __exit__(self, error: object, *_: object) -> None:
        if error and self._new:
            self.remove()
        self.close()

    def remove(self) -> None:
        """Remove the mark, and the folders that were made for it, if nothing else is there."""
        with suppress(OSError):
            ours = {self._path / MARK, *left_in(self._path, MARK)}
            if self._is_there() and {*self._path.iterdir()} == ours:
                for file in ours:
                    file.unlink()
                self._remove_empty()

    def _remove_empty(self) -> None:
        with suppress(OSError):
            for folder in self._made:
                folder.rmdir()

    def close(self) -> None:
        """Unlock the folder."""
        _HELD.remove(self)
        self._mark.close()

    def check(self, above: Sequence[Path]) -> None:
        """Refuse to write below the folder's name, by the folders `above` a file, once another folder has that name."""
        if self._place in above and not self._is_there():
            raise InputError(
                f"--output {self._path}: is no longer the folder that this command began to write: where it was moved "
                "to, go on with --resume"
            )

    def _is_there(self) -> bool:
        with suppress(OSError):
            return os.path.samestat(os.fstat(self._mark.fileno()), (self._path / MARK).lstat())
        return False


_HELD: list[OutputFolder] = []  # by this process


def read_mark(path: Path) -> dict[str, Any]:
    """The "command" that owns a folder, its "settings" when it began, and its "id"; {} without a whole mark."""
    mark = read_sealed(path / MARK)
    return mark if isinstance(mark.get("settings"), dict) else {}


def folder_id(path: Path) -> str | None:
    """The id in the mark of the folder that holds a file, or of the one above; None without a mark that has an id."""
    return next((mark.get("id") for mark in map(read_mark, _above(path)[:2]) if mark), None)


def _above(path: Path) -> Sequence[Path]:
    """The folders above a file, nearest first. Links are followed up to the last ".." alone."""
    parts = path.absolute().parts
    end = len(parts) - parts[::-1].index("..") if ".." in parts else 0
    return Path(os.path.realpath(Path(*parts[:end])), *parts[end:]).parents


def is_own(path: Path, command: str) -> bool:
    """True if the folder is the command's."""
    return read_mark(path).get("command") == command


def check_own(path: Path, command: str) -> None:
    """Refuse to go on with a folder that is not the command's."""
    if not is_own(path, command):
        other = read_mark(path).get("command")
        what = f"holds a run of {other}" if other else f"holds no run of {command} (no whole {MARK})"
        raise InputError(f"--resume: {path} {what}: start without --resume in a new --output")


def check_new(path: Path, command: str) -> None:
    """Refuse to begin in a folder that holds something, or that has a name that TensorBoard cannot write."""
    try:
        str(path).encode()
        names = sorted(entry.name for entry in {*path.iterdir()} - left_in(path, MARK))
    except FileNotFoundError:
        return
    except UnicodeEncodeError:
        raise InputError(f"--output {str(path)!r}: is no name in UTF-8: choose another folder") from None
    except OSError as error:
        raise InputError(f"--output {path}: cannot be read: {error.strerror}") from error
    if owner := read_mark(path).get("command"):
        advice = "give --resume to go on with it, " if owner == command else ""
        raise InputError(f"--output {path}: holds a run of {owner}: {advice}choose another folder, or delete it")
    if names:
        raise InputError(f"--output {path}: holds {names[0]}: give a folder that is new or empty")


def subfolder(output: Path, name: str) -> Path:
    """The folder `name` in an own folder, made if it is missing. Raises InputError as `check_inside` does."""
    folder = output / name
    check_inside(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(folder, error) from error
    return folder


def check_inside(folder: Path) -> None:
    """Refuse to write into a folder to which a link in a folder with a mark leads, so that it is not inside.

    Nor into what lies where a folder of this process was moved away.
    """
    above = _above(folder / "file")
    for own in _HELD:
        own.check(above)
    for link in above:
        if os.path.islink(link) and any(map(read_mark, link.parents)):  # noqa: PTH114  which raises for a long name
            raise InputError(f"{link}: is a link, and a run writes into its own folder alone: put a folder there")


def read_json(path: Path, about: str = "", must_be_sealed: bool = False) -> dict[str, Any]:
    """A JSON object as `write_json` wrote it, or one without a seal, as earlier versions and other software write it.

    Raises:
        InputError: the file is missing or damaged, is something else, about something else, or of another folder.
    """
    try:
        content = json.loads(read_bytes(path))
        seal = content.pop("seal", None)
        intact = seal == _seal(content, about) or (seal is None and not must_be_sealed)
        folder = content.pop("folder", None)
    except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"{path}: cannot be read: {error!r:.200}") from error
    if not intact:
        raise InputError(f"{path}: was changed since it was written: move it away")
    if seal and path.name != MARK and folder_id(path) not in (None, folder):
        raise InputError(f"{path}: was written in another folder: move it away")
    return content


def read_object(path: Path, about: str = "", must_be_sealed: bool = False) -> dict[str, Any]:
    """As `read_json`; {} where that raises an error."""
    with suppress(InputError):
        return read_json(path, about, must_be_sealed)
    return {}


def read_sealed(path: Path, about: str = "") -> dict[str, Any]:
    """What `write_json` wrote; {} where the file is missing, was changed, or is about something else."""
    return read_object(path, about, must_be_sealed=True)


def read_summary(output: Path) -> dict[str, Any]:
    """run.json, where there is a whole one; each of PARTS is there in any case, as a dictionary."""
    summary = read_object(output / SUMMARY)
    return {**summary, **{name: one if isinstance(one := summary.get(name), dict) else {} for name in PARTS}}


def is_finished(output: Path) -> bool:
    """True if the run in `output` has taken its last step."""
    return read_summary(output).get("status") == "finished"


def write_json(path: Path, content: Mapping[str, Any], about: str = "") -> None:
    """Write indented JSON with its seal, whole or not at all. Raises InputError as `check_json` and `write_file` do.

    about: what the file is, if a user names it: a file about something else is not replaced.
    """
    own = {"folder": found} if (found := folder_id(path)) else {}
    write_file(path, _sealed({**content, **own}, about), replace=check_json(path, about))


def check_json(path: Path, about: str = "") -> bool:
    """True for a file as `write_json` wrote it, False where there is none. Raises InputError for any other one."""
    if not os.path.lexists(path):
        return False
    if not read_sealed(path, about):
        raise _changed(path)
    return True


def write_page(path: Path, text: str) -> None:
    """Write HTML or Markdown that is not there yet, whole or not at all. Raises InputError as `write_file` does."""
    content = text.encode("utf-8", "xmlcharrefreplace")  # JSON may hold surrogates, which are no UTF-8
    if not path.is_file() or read_bytes(path) != content:
        write_file(path, content)


@contextmanager
def partial_folder(path: Path) -> Iterator[Path]:
    """A new folder beside `path`, for its content; what is left of it at the end is deleted.

    Raises OSError, and InputError as `check_inside` does.
    """
    check_inside(path)
    partial = path.with_name(f".{path.name}.{uuid.uuid4().hex}.partial")
    partial.mkdir(parents=True)
    try:
        yield partial
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def write_file(path: Path, content: bytes, replace: bool = True) -> None:
    """Write a file, whole or not at all. Raises InputError if it cannot be written, or is there without `replace`."""
    check_inside(path.parent)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with new_file(path, replace) as file:
            file.write(content)
    except OSError as error:
        raise unwritable(path, error) from error


def write_once(path: Path, content: bytes) -> None:
    """Write a file that is not there. Raises InputError as `write_file` does, and for a file with other content."""
    if not os.path.lexists(path):
        write_file(path, content, replace=False)
    elif not has_content(path, content):
        raise InputError(f"{path}: was changed, or what it is made from: it stays, choose a new --output")


def has_content(path: Path, content: bytes) -> bool:
    """True for a file with this content."""
    with suppress(OSError):
        return read_bytes(path) == content
    return False


def _in_use(path: Path) -> InputError:
    return InputError(f"--output {path}: in use by another run: wait for it, stop it, or choose another folder")


def _changed(path: Path) -> InputError:
    return InputError(f"{path}: is not as this program wrote it, and stays: move it away, or choose another name")


def _remove_left(path: Path) -> None:
    """Remove the temporary files and folders that killed processes left in an own folder and in its folders.

    Folders with a mark of their own, and those of an index, are cleaned by the commands that write them.
    """
    inner = [one for one in path.iterdir() if one.is_dir() and not one.is_symlink()]
    for folder in (path, *(one for one in inner if not (read_mark(one) or find_manifests(one)))):
        remove_left(folder)
        for left in left_in(folder):
            if left.is_dir() and not left.is_symlink():
                shutil.rmtree(left)


def _sealed(content: Mapping[str, Any], about: str = "") -> bytes:
    plain = json.loads(json.dumps(content, default=str))
    return (json.dumps({**plain, "seal": _seal(plain, about)}, indent=2) + "\n").encode()


def _seal(content: Mapping[str, Any], about: str) -> str:
    """The checksum of a JSON object, which does not depend on the order of its keys or on spaces."""
    return _checksum(f"{about}{json.dumps(content, sort_keys=True, separators=(',', ':'))}".encode()).decode()


def _checksum(content: bytes) -> bytes:
    return xxhash.xxh3_128(content).hexdigest().encode()
