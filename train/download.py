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
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from train.config.command import Parser, run_command
from train.config.options import option, options_of
from train.evaluation.files import NEAR_MISSES, downstream_folder
from train.evaluation.tasks.registry import TASKS, read_task, suite
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

    to: str = option("", "folder to lay the data out in", required=True, metavar="FOLDER")
    only: str | None = option(None, "fetch one of the three; default: all", choices=PARTS)


def main(arguments: Sequence[str] | None = None, prog: str = "python -m train.download") -> int:
    """Run the command and return its exit code: 2 if something is missing or not as expected."""
    about = "Fetch SimCSE's Wikipedia sentences, SentEval's files and SugarCrepe++."
    return run_command(lambda: _run(**Parser(prog, about, options_of(Download)).checked(arguments)), "train")


def _run(to: str, only: str | None) -> int:
    folder, parts = Path(to), [only] if only else list(PARTS)
    for part in parts:
        fetch(part, folder)
    wrong = [problem for part in parts for problem in check(part, folder)]
    for problem in wrong:
        print(f"error: {problem}", file=sys.stderr)
    if not wrong:
        print(f"{folder}: {', '.join(parts)} complete; UNA_FAST_DATA={folder.resolve()}")
    return 2 if wrong else 0


def fetch(part: str, folder: Path) -> None:
    """Fetch a part into `folder`, unless it is there; what is there stays.

    Raises:
        InputError: it cannot be fetched, is not as it was published, or cannot be written.
    """
    names = [f"{NEAR_MISSES}/{name}.json" for name in NEAR_MISS_CHECKSUMS]
    whole = {"wiki": [f"corpora/{WIKI}"], "senteval": ["senteval/downstream"], "near-miss": names}
    for target in (folder / name for name in whole[part] if not (folder / name).exists()):
        try:
            with partial_folder(target) as partial:
                if part == "senteval":
                    unpack(download(SENTEVAL, partial), target)
                else:
                    file = download(WIKI, partial) if part == "wiki" else fetch_near_misses(target.stem, partial)
                    file.replace(target)
        except OSError as error:
            if not target.exists():  # else another process was faster, and `check` reads what it wrote
                raise unwritable(target, error) from error


def fetch_near_misses(name: str, folder: Path) -> Path:
    """Fetch one subset of SugarCrepe++ into `folder`; returns its path. Raises InputError as `download` does."""
    path, address = folder / f"{name}.json", f"{NEAR_MISS_ADDRESS}/{name}.json"
    try:
        with urllib.request.urlopen(address, timeout=TIMEOUT) as answer:
            path.write_bytes(answer.read())
    except (OSError, http.client.HTTPException) as error:
        raise InputError(f"{address}: {error}; call again") from error
    check_content(path.read_bytes(), NEAR_MISS_CHECKSUMS[name], address)
    return path


def download(name: str, folder: Path) -> Path:
    """Download one file of the dataset into `folder`; returns its path.

    Raises:
        InputError: the hub cannot be reached or lacks the file, or the file does not have the hub's checksum.
    """
    # imported late: --help should not wait for it
    from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url

    try:
        endpoint = os.environ.get("HF_ENDPOINT")
        checksum = get_hf_file_metadata(hf_hub_url(REPOSITORY, name, repo_type="dataset", endpoint=endpoint)).etag
        path = Path(hf_hub_download(REPOSITORY, name, repo_type="dataset", local_dir=folder, endpoint=endpoint))
    except Exception as error:  # the hub, the network and the disk raise exceptions of different types
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise InputError(f"{REPOSITORY}/{name}: {reason}; call again") from error
    check_content(path.read_bytes(), checksum, f"{REPOSITORY}/{name}")
    return path


def check_content(content: bytes, checksum: str | None, source: str) -> None:
    """Refuse content from `source` without its checksum: SHA-256, or the SHA-1 by which git names a (small) file.

    Raises:
        InputError: the content has another checksum, or `checksum` is of neither kind.
    """
    if checksum is None or len(checksum) not in (40, 64):
        raise InputError(f"{source}: the hub names no checksum ({checksum!r})")
    found = hashlib.sha256(content) if len(checksum) == 64 else hashlib.sha1(b"blob %d\0" % len(content) + content)
    if found.hexdigest() != checksum:
        raise InputError(f"{source}: the file does not have the checksum {checksum}; call again")


def unpack(archive: Path, downstream: Path) -> None:
    """Unpack SentEval's archive, and put it there as the folder `downstream`; its top folder may have any name."""
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
    found = [path.parent for path in unpacked.rglob("STS") if path.is_dir()]
    if not found:
        raise InputError(f"{archive.name}: holds no STS folder, so it is not SentEval's archive")
    min(found, key=lambda path: len(path.parts)).rename(downstream)


def check(part: str, folder: Path) -> list[str]:
    """A sentence for each problem of a part in `folder`: a missing task, a size or a checksum not as published."""
    if part == "wiki":
        try:
            with (folder / "corpora" / WIKI).open("rb") as file:
                lines = sum(1 for _ in file)
        except OSError as error:
            return [f"{WIKI}: cannot be read ({error.strerror or error})"]
        wrong = f"{WIKI}: has {counted(lines, 'line')}, and {WIKI_LINES:,} were expected"
        return [wrong] if lines != WIKI_LINES else []
    problems = []
    for name in NEAR_MISS_CHECKSUMS if part == "near-miss" else suite("full"):
        try:
            if part == "near-miss":
                path = folder / NEAR_MISSES / f"{name}.json"
                check_content(path.read_bytes(), NEAR_MISS_CHECKSUMS[name], f"{path} (delete it)")
            sizes = read_task(downstream_folder(folder), name).sizes
        except (InputError, OSError) as error:
            problems.append(f"{name}: {error}")
            continue
        published = TASKS[name].sizes.items()
        problems += [
            f"{name} {one}: {sizes[one]:,} examples, {n:,} expected" for one, n in published if sizes[one] != n
        ]
    return problems


if __name__ == "__main__":
    sys.exit(main())
