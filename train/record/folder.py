"""The output folder of a command: its owner, its lock, and its small files.

A command starts in a folder that is missing or empty, and continues only in a folder that it owns. The file
`.una_fast.json`, called the mark, stores the owning command and its settings, and is locked while the command writes.
docs/files.md lists the files of a run.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from una_fast.command import options_of
from una_fast.errors import InputError
from una_fast.storage.files import encoded_json, lock, read_object, remove_partial, sync_file

MARK = ".una_fast.json"
SUMMARY, METRICS, EVALUATION, SEEDS = "run.json", "metrics.jsonl", "evaluation.json", "seeds.json"
BEST, LAST, TENSORBOARD, INDEX = "best", "last", "tensorboard", "index"
POINTER = f"{LAST}/checkpoint.json"
RUN, RUNS, COMPARISON, VERIFIER = "train.ddp", "train.ddp --seeds", "train.compare", "train.verifier"  # owners
DEV, DEV_LAST, DEV_START = "dev/", "dev_last/", "dev_start/"  # prefixes of dev scores of best/, last/ and the start


@contextmanager
def output_folder(path: Path, command: str, resume: bool, settings: Mapping[str, Any] | None = None) -> Iterator[None]:
    """Make `path` the output folder of `command`, and lock it for the with block.

    With `resume`, `command` must own the folder. Without it, the folder may contain no file except `.una_fast.json`.
    """
    check = check_owner if resume else check_new
    try:
        check(path, command)
        path.mkdir(parents=True, exist_ok=True)
        mark = (path / MARK).open("a+b")
    except OSError as error:
        raise InputError(f"--output {path}: cannot be made or written: {error.strerror}") from error
    with mark:
        if not lock(mark.fileno()):
            raise InputError(f"--output {path}: in use by another run: wait for it, stop it, or choose another folder")
        check(path, command)  # another command may have started and ended there meanwhile
        with suppress(OSError):
            for folder in (path, path / BEST, path / LAST):
                remove_partial(folder)
        if not resume:
            mark.truncate(0)
            mark.write(encoded_json({"command": command, "settings": settings or {}}))
            sync_file(mark)
        yield


def read_mark(path: Path) -> dict[str, Any]:
    """Return {"command": the owner of the folder, "settings": its options}, or {} for a folder without an owner."""
    # a run that was copied without hidden files has only its run.json
    mark = read_object(path / MARK) or {"command": RUN, **read_object(path / SUMMARY)}
    return mark if isinstance(mark.get("settings"), dict) else {}


def saved_options(path: Path, kind: type) -> dict[str, Any]:
    """Return the options, by field name, with which the run in the folder was started, except those for one call.

    kind: the dataclass of the command's options.
    """
    names = {name for name, option in options_of(kind).items() if option.role != "call"}
    return {name: value for name, value in read_mark(path).get("settings", {}).items() if name in names}


def is_own(path: Path, command: str) -> bool:
    """Return whether a run of `command` made the folder."""
    return read_mark(path).get("command") == command


def check_owner(path: Path, command: str) -> None:
    """Raise InputError unless a run of `command` made the folder."""
    if (owner := read_mark(path).get("command")) != command:
        what = f"contains a run of {owner}" if owner else f"contains no run of {command}"
        raise InputError(f"--resume: {path} {what}: start without --resume in a new --output")


def check_new(path: Path, command: str) -> None:
    """Raise InputError if the folder contains a file other than `.una_fast.json`. The message depends on `command`."""
    names = sorted(entry.name for entry in path.iterdir() if entry.name != MARK) if path.exists() else []
    if names and (owner := read_mark(path).get("command")):
        advice = "give --resume to continue it, " if owner == command else ""
        raise InputError(f"--output {path}: contains a run of {owner}: {advice}choose another folder, or delete it")
    if names:
        raise InputError(f"--output {path}: contains {names[0]}: give a folder that is new or empty")


def saved_step(output: Path) -> int:
    """Return the step of the checkpoint in `output`, or 0 without a checkpoint."""
    progress = read_object(output / POINTER).get("progress")
    return int(progress.get("step") or 0) if isinstance(progress, dict) else 0


def resume_advice(output: Path) -> str:
    """Return advice on how to continue the run in `output`, which ended before its last step."""
    if not (step := saved_step(output)):
        return "no checkpoint was saved yet"
    best = f"; {output / BEST} contains the encoder so far" if (output / BEST / "config.json").is_file() else ""
    return f"continue from step {step} with --resume{best}"


def is_finished(output: Path) -> bool:
    """Return whether the run in `output` has taken its last step."""
    return read_object(output / SUMMARY).get("status") == "finished"


@contextmanager
def partial_folder(path: Path) -> Iterator[Path]:
    """Make a temporary folder next to `path` for the with block, and delete it afterwards."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as partial:
        yield Path(partial)


def dev_name(file: str | None) -> str:
    """Return the name of a dev file in score names: "sts-dev" for "data/sts-dev.csv", and "dev" without a file."""
    return Path(file or "dev").name.split(".")[0]
