"""The folder of a run: its files, and which of them the run wrote itself.

run.json               settings, versions, machine, scores, status: "running", "finished", "stopped" or "failed"
metrics.jsonl          one line per step and per evaluation
best/                  the encoder for use, in the layout of transformers and of sentence-transformers
last/                  checkpoint.json and the state that it names: all that --resume needs
tensorboard/           events
evaluation.json        scores of best/ on the tasks of --evaluate
index/                 the index, unless --index names another folder
seed-N/, seeds.json    in the folder of --seeds: one run per seed, and the table of their scores
tables/, table.json    in the folder of train.paper: tables of the paper, and the last one; runs/NAME/seed-N/ its runs
.written.json          names and patterns of what the run wrote: nothing else is ever removed
"""

from __future__ import annotations

import glob
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from train.record.files import write_json

SUMMARY, METRICS, EVALUATION, SEEDS = "run.json", "metrics.jsonl", "evaluation.json", "seeds.json"
TABLES, PAPER_RUNS = "tables", "runs"
BEST, LAST, TENSORBOARD, INDEX = "best", "last", "tensorboard", "index"
POINTER = f"{LAST}/checkpoint.json"
STATES = (f"{LAST}/state-*.pt", f"{LAST}/weights-*.pt")
CUT_SHORT = f"{LAST}/.*.partial"  # partial files of a killed process
WRITTEN = ".written.json"


def folder_of_seed(output: Path, seed: int) -> Path:
    """The folder of one run of --seeds."""
    return output / f"seed-{seed}"


def read_object(path: Path) -> dict[str, Any]:
    """A JSON object; {} where the file is missing, damaged or something else."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def read_summary(output: Path) -> dict[str, Any]:
    """run.json, with "settings" as a dictionary in it; {} where there is none."""
    summary = read_object(output / SUMMARY)
    settings = summary.get("settings")
    return {**summary, "settings": settings if isinstance(settings, dict) else {}} if summary else {}


def is_finished(output: Path) -> bool:
    """True if the run in `output` has taken its last step."""
    return read_summary(output).get("status") == "finished"


def read_written(output: Path) -> list[str]:
    """The names and patterns of what the run wrote, relative to `output`; those that lead out of it are left out."""
    names = read_object(output / WRITTEN).get("files")
    inside = []
    for name in names if isinstance(names, list) else []:
        parts = PurePosixPath(name).parts if isinstance(name, str) and name else ("..",)
        if ".." not in parts and not PurePosixPath(name).is_absolute():
            inside.append(name)
    return inside


def note_written(output: Path, names: Iterable[str], instead_of: str = "") -> None:
    """Add names or patterns to the list of what the run wrote; instead_of: one that they replace."""
    before = read_written(output)
    after = sorted({*before, *names} - {instead_of})
    if after != before:
        write_json(output / WRITTEN, {"files": after})


@contextmanager
def writing_into(output: Path, folder: str) -> Iterator[None]:
    """Inside the with block the run adds files to `folder`; afterwards they are listed as its own, by name.

    Until then a pattern lists the whole folder, unless it held files of others before.
    """
    before, everything = files_in(output / folder), f"{folder}/**/*"
    if before <= own_files(output):
        note_written(output, [everything])
    yield
    new = files_in(output / folder) - before
    note_written(output, [glob.escape(path.relative_to(output).as_posix()) for path in new], instead_of=everything)


def files_in(folder: Path) -> set[Path]:
    """All files in a folder and below it."""
    return {path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir()}


def own_files(output: Path) -> set[Path]:
    """The files in `output` that its run wrote."""
    found = (path for name in read_written(output) for path in output.glob(name))
    return {path for path in found if path.is_symlink() or not path.is_dir()}


def foreign_file(output: Path) -> Path | None:
    """A file where a run would write that is not listed as written by a run, or None."""
    there = {path for name in (BEST, LAST, TENSORBOARD) for path in files_in(output / name)}
    there |= {path for name in (SUMMARY, METRICS, EVALUATION) if (path := output / name).exists() or path.is_symlink()}
    return min(there - own_files(output), default=None)


def remove_own_files(output: Path) -> None:
    """Remove what the run in `output` wrote, its index aside, and the folders that this leaves empty."""
    own = own_files(output)
    for path in own:
        path.unlink(missing_ok=True)
    for folder in sorted({parent for path in own for parent in path.parents if output in parent.parents}, reverse=True):
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
    (output / WRITTEN).unlink(missing_ok=True)
