"""Download and check SimCSE's Wikipedia sentences, SentEval's files and SugarCrepe++.

`python -m train.download --to FOLDER` fills FOLDER with corpora/wiki1m_for_simcse.txt, senteval/downstream/ and
near_miss/. Set the environment variable UNA_FAST_DATA to FOLDER, so that `train.evaluate` finds the data.
"""

from __future__ import annotations

import sys
import tarfile
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from train.evaluation.tasks.registry import NEAR_MISSES, SUGARCREPE, TASKS, downstream_folder, read_task, suite
from train.record.folder import partial_folder
from una_fast.command import Command, option, options_of
from una_fast.errors import InputError, counted, first_line

REPOSITORY = "princeton-nlp/datasets-for-simcse"
WIKI = "wiki1m_for_simcse.txt"
WIKI_LINES = 1_000_000
NEAR_MISS_ADDRESS = "https://raw.githubusercontent.com/Sri-Harsha/scpp/c083bbf039a5ca215acaf25e7ee736d2ea6f3864/data"
FILES = {  # value of --only -> {path in FOLDER: its source in REPOSITORY or at NEAR_MISS_ADDRESS}
    "wiki": {f"corpora/{WIKI}": WIKI},
    "senteval": {"senteval/downstream": "senteval.tar"},
    "near-miss": {f"{NEAR_MISSES}/{name}.json": f"{name}.json" for name in SUGARCREPE},
}
TIMEOUT = 60  # seconds to wait for a response


@dataclass(frozen=True)
class DownloadOptions:
    """The options of `python -m train.download`."""

    to: str = option("folder for the data", "", "Data", required=True, metavar="FOLDER")
    only: str | None = option("part to fetch; default: all three", None, choices=tuple(FILES))


def _run(values: dict[str, Any]) -> int:
    """Fetch data and check it. Return the exit code: 2 if data is missing or has an unexpected size, else 0."""
    folder, parts = Path(values["to"]), [values["only"]] if values["only"] else list(FILES)
    for part in parts:
        fetch(part, folder)
    wrong = [problem for part in parts for problem in check(part, folder)]
    for problem in wrong:
        print(f"error: {problem}", file=sys.stderr)
    if not wrong:
        print(f"{folder}: {', '.join(parts)} complete; UNA_FAST_DATA={folder.resolve()}")
    return 2 if wrong else 0


def fetch(part: str, folder: Path) -> None:
    """Download the missing files of a part of FILES. A file gets its final name only when it is complete."""
    for name, source in FILES[part].items():
        if (target := folder / name).exists():
            continue
        try:
            with partial_folder(target) as partial:
                path = _file(part, source, partial)
                (unpack(path) if part == "senteval" else path).rename(target)
        except ModuleNotFoundError:
            raise  # huggingface_hub is not installed: the command names its extra
        except Exception as error:  # the Hugging Face hub, the network and the disk raise exceptions of different types
            raise InputError(f"{source}: cannot be fetched into {target} ({first_line(error)}): try again") from error


def _file(part: str, name: str, folder: Path) -> Path:
    """Download a file into `folder`, from GitHub for the part "near-miss", else from the Hugging Face hub."""
    if part == "near-miss":
        with urllib.request.urlopen(f"{NEAR_MISS_ADDRESS}/{name}", timeout=TIMEOUT) as answer:
            (folder / name).write_bytes(answer.read())
        return folder / name
    from huggingface_hub import hf_hub_download  # imported late: --help should not wait for it

    return Path(hf_hub_download(REPOSITORY, name, repo_type="dataset", local_dir=folder))


def unpack(archive: Path) -> Path:
    """Unpack SentEval's archive next to it, and return the folder that contains STS."""
    unpacked = archive.with_name("unpacked")
    with tarfile.open(archive) as tar:
        tar.extractall(unpacked, filter="data")  # "data": nothing outside the folder; in Python since 3.10.12, 3.11.4
    folder = next((path.parent for path in sorted(unpacked.rglob("STS")) if path.is_dir()), None)
    if folder is None:
        raise tarfile.TarError("it contains no STS folder, so it is not SentEval's archive")
    return folder


def check(part: str, folder: Path) -> list[str]:
    """Check a part of the data, such as "senteval"; return a message for each unreadable task or unexpected size."""
    if part == "wiki":
        with (folder / "corpora" / WIKI).open("rb") as file:
            n_lines = sum(1 for _ in file)
        return [] if n_lines == WIKI_LINES else [f"{WIKI}: {counted(n_lines, 'line')}, {WIKI_LINES:,} expected"]
    problems = []
    for name in SUGARCREPE if part == "near-miss" else suite("full"):
        try:
            sizes = read_task(downstream_folder(folder), name).sizes
        except InputError as error:
            problems.append(f"{name}: {error}")
            continue
        for split, n in TASKS[name].sizes.items():
            if sizes[split] != n:
                problems.append(f"{name} {split}: {sizes[split]:,} examples, {n:,} expected")
    return problems


ABOUT = "Fetch SimCSE's Wikipedia sentences, SentEval's files and SugarCrepe++."
main = Command("python -m train.download", ABOUT, options_of(DownloadOptions), _run, "train", page="paper-tables")

if __name__ == "__main__":
    sys.exit(main())
