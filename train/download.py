"""`python -m train.download --to FOLDER`: SimCSE's Wikipedia sentences, SentEval's files and SugarCrepe++, checked.

FOLDER then holds corpora/wiki1m_for_simcse.txt, senteval/downstream/ and near_miss/, the layout that UNA_FAST_DATA
names.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import sys
import tarfile
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from train.config.command import Command, option, options_of
from train.evaluation.tasks.registry import NEAR_MISSES, TASKS, downstream_folder, read_task, suite
from train.record.folder import partial_folder
from una_fast.errors import InputError, counted
from una_fast.storage.files import unwritable

REPOSITORY = "princeton-nlp/datasets-for-simcse"
WIKI = "wiki1m_for_simcse.txt"
WIKI_LINES = 1_000_000
SENTEVAL = "senteval.tar"
NEAR_MISS_ADDRESS = "https://raw.githubusercontent.com/Sri-Harsha/scpp/c083bbf039a5ca215acaf25e7ee736d2ea6f3864/data"
NEAR_MISS_CHECKSUMS = {  # as git names the files of that commit
    "replace_obj": "3b62823c003659737a68c3d78cfe721c57b44f5f",
    "replace_att": "be89e623f6fd54d015f6a437ba9a34ffa39cc465",
    "replace_rel": "69d447e3fcb33817b866bd5688741f42bad7c26a",
    "swap_obj": "8e9c3f66a2c2d3369146dec5324b1926b2fc1d40",
    "swap_att": "61ea987bbac7d8c99e6a88f3c1028609fbea6c73",
}
PARTS = ("wiki", "senteval", "near-miss")
TIMEOUT = 60  # seconds without an answer


@dataclass(frozen=True)
class Download:
    """What is fetched, and where to."""

    to: str = option("", required=True, metavar="FOLDER")
    """folder to lay the data out in"""
    only: str | None = option(None, choices=PARTS)
    """fetch one of the three; default: all"""


def _run(values: dict[str, Any]) -> int:
    """Fetch and check; the exit code: 2 if something is missing or not as expected."""
    folder, parts = Path(values["to"]), [values["only"]] if values["only"] else list(PARTS)
    for part in parts:
        fetch(part, folder)
    wrong = [problem for part in parts for problem in check(part, folder)]
    for problem in wrong:
        print(f"error: {problem}", file=sys.stderr)
    if not wrong:
        print(f"{folder}: {', '.join(parts)} complete; UNA_FAST_DATA={folder.resolve()}")
    return 2 if wrong else 0


def fetch(part: str, folder: Path) -> None:
    """Fetch a part into `folder`, each file whole or not at all; what is there stays.

    Raises:
        InputError: it cannot be fetched, is not as it was published, or cannot be written.
    """
    near_misses = [f"{NEAR_MISSES}/{name}.json" for name in NEAR_MISS_CHECKSUMS]
    whole = {"wiki": [f"corpora/{WIKI}"], "senteval": ["senteval/downstream"], "near-miss": near_misses}
    for target in (folder / name for name in whole[part] if not (folder / name).exists()):
        try:
            with partial_folder(target) as partial:
                if part == "near-miss":
                    path = _from_github(target.stem, partial)
                else:
                    path = _from_hub(WIKI, partial) if part == "wiki" else unpack(_from_hub(SENTEVAL, partial))
                path.rename(target)
        except OSError as error:
            raise unwritable(target, error) from error


def _from_github(name: str, folder: Path) -> Path:
    """Fetch one subset of SugarCrepe++ into `folder`; returns its path."""
    path, address = folder / f"{name}.json", f"{NEAR_MISS_ADDRESS}/{name}.json"
    try:
        with urllib.request.urlopen(address, timeout=TIMEOUT) as answer:
            path.write_bytes(answer.read())
    except (OSError, http.client.HTTPException) as error:
        raise InputError(f"{address}: {error}; call again") from error
    check_content(path, NEAR_MISS_CHECKSUMS[name], address)
    return path


def _from_hub(name: str, folder: Path) -> Path:
    """Fetch one file of the dataset into `folder`; returns its path."""
    # imported late: --help should not wait for it
    from huggingface_hub import hf_hub_download

    endpoint = os.environ.get("HF_ENDPOINT")
    try:
        return Path(hf_hub_download(REPOSITORY, name, repo_type="dataset", local_dir=folder, endpoint=endpoint))
    except Exception as error:  # the hub, the network and the disk raise exceptions of different types
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise InputError(f"{REPOSITORY}/{name}: {reason}; call again") from error


def check_content(path: Path, checksum: str, source: str) -> None:
    """Raise InputError for a file without its checksum, the SHA-1 by which git names it."""
    content = path.read_bytes()
    if hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest() != checksum:
        raise InputError(f"{source}: the file does not have the checksum {checksum}; call again")


def unpack(archive: Path) -> Path:
    """Unpack SentEval's archive beside it; returns the folder that holds STS. InputError if it is another archive."""
    unpacked = archive.with_name("unpacked")
    try:
        with tarfile.open(archive) as tar:
            for member in filter(tarfile.TarInfo.isfile, tar):  # extractall with a filter needs Python 3.11.4
                path = unpacked / member.name
                if not path.resolve().is_relative_to(unpacked.resolve()):
                    raise tarfile.TarError(f"{member.name} lies outside of it")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(cast("IO[bytes]", tar.extractfile(member)).read())
    except (tarfile.TarError, OSError) as error:
        raise InputError(f"{archive.name}: cannot be unpacked ({error})") from error
    folder = next((path.parent for path in sorted(unpacked.rglob("STS")) if path.is_dir()), None)
    if folder is None:
        raise InputError(f"{archive.name}: holds no STS folder, so it is not SentEval's archive")
    return folder


def check(part: str, folder: Path) -> list[str]:
    """A sentence for each problem of a part in `folder`: a missing task, a size or a checksum not as published."""
    if part == "wiki":
        with (folder / "corpora" / WIKI).open("rb") as file:
            n_lines = sum(1 for _ in file)
        wrong = f"{WIKI}: has {counted(n_lines, 'line')}, and {WIKI_LINES:,} were expected"
        return [wrong] if n_lines != WIKI_LINES else []
    problems = []
    for name in NEAR_MISS_CHECKSUMS if part == "near-miss" else suite("full"):
        try:
            if part == "near-miss":
                path = folder / NEAR_MISSES / f"{name}.json"
                check_content(path, NEAR_MISS_CHECKSUMS[name], f"{path} (delete it)")
            sizes = read_task(downstream_folder(folder), name).sizes
            wanted = TASKS[name].sizes
            problems += [
                f"{name} {split}: {sizes[split]:,} examples, {n:,} expected"
                for split, n in wanted.items()
                if sizes[split] != n
            ]
        except (InputError, OSError) as error:
            problems.append(f"{name}: {error}")
    return problems


ABOUT = "Fetch SimCSE's Wikipedia sentences, SentEval's files and SugarCrepe++."
main = Command("python -m train.download", ABOUT, options_of(Download), _run, "train")

if __name__ == "__main__":
    sys.exit(main())
