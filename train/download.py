"""`python -m train.download --to FOLDER`: SimCSE's Wikipedia sentences and SentEval's files, checked.

FOLDER then holds corpora/wiki1m_for_simcse.txt and senteval/downstream/, the layout that UNA_FAST_DATA names.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tarfile
import tempfile
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from train.config.command import Parser, run_command
from train.evaluation.senteval_files import downstream_folder
from train.evaluation.tasks.registry import TASKS, read_task, suite
from una_fast.errors import InputError, counted

REPOSITORY = "princeton-nlp/datasets-for-simcse"
WIKI = "wiki1m_for_simcse.txt"
WIKI_LINES = 1_000_000
SENTEVAL = "senteval.tar"
PARTS = ("wiki", "senteval")
BLOCK = 1 << 20  # bytes


def build_parser(prog: str = "python -m train.download") -> Parser:
    """The command line."""
    parser = Parser(prog=prog, description=__doc__)
    parser.add_argument("--to", type=Path, required=True, metavar="FOLDER", help="where to lay the data out")
    parser.add_argument("--only", choices=PARTS, help="fetch one of the two (default: both)")
    parser.add_argument("--repository", default=REPOSITORY, help=f"dataset on the hub (default: {REPOSITORY})")
    parser.add_argument("--revision", default="main", help="commit, tag or branch (default: main)")
    return parser


def main(arguments: Sequence[str] | None = None, prog: str = "python -m train.download") -> int:
    """Run the command and return its exit code: 2 if something is missing or not as expected."""
    return run_command(lambda: _run(build_parser(prog).parse_args(arguments)), "train")


def _run(options: Namespace) -> int:
    parts = [options.only] if options.only else list(PARTS)
    for part in parts:
        fetch(part, options.to, options.repository, options.revision)
    wrong = [problem for part in parts for problem in check(part, options.to)]
    for problem in wrong:
        print(f"error: {problem}", file=sys.stderr)
    if not wrong:
        print(f"{options.to}: {' and '.join(parts)} complete; UNA_FAST_DATA={options.to.resolve()}")
    return 2 if wrong else 0


def fetch(part: str, folder: Path, repository: str = REPOSITORY, revision: str = "main") -> None:
    """Fetch "wiki" or "senteval" into `folder`, unless it is there. An interrupted download goes on where it ended."""
    if part == "wiki":
        target = folder / "corpora" / WIKI
        if not target.is_file():
            download(WIKI, target.parent, repository, revision)
        return
    target = folder / "senteval" / "downstream"
    if not target.is_dir():
        archive = download(SENTEVAL, folder, repository, revision)
        unpack(archive, target)
        archive.unlink()


def download(name: str, folder: Path, repository: str, revision: str) -> Path:
    """Download one file of the dataset into `folder` and return its path.

    Raises:
        InputError: the hub cannot be reached or lacks the file, or the checksum differs from the hub's.
    """
    # imported late: --help should not wait for it
    from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url

    endpoint = os.environ.get("HF_ENDPOINT")
    partial = folder / f".{name}.download"  # the file gets its own name once its checksum has been compared
    try:
        url = hf_hub_url(repository, name, repo_type="dataset", revision=revision, endpoint=endpoint)
        expected = get_hf_file_metadata(url).etag
        file = hf_hub_download(
            repository,
            name,
            repo_type="dataset",
            revision=revision,
            local_dir=partial,
            endpoint=endpoint,
        )
    except Exception as error:  # the hub, the network and the disk raise exceptions of different types
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise InputError(f"{repository}/{name}: {reason}; call again and the download goes on") from error
    if not has_checksum(Path(file), expected):
        shutil.rmtree(partial)
        raise InputError(f"{repository}/{name}: the downloaded file does not have the checksum {expected}; call again")
    target = folder / name
    Path(file).replace(target)
    shutil.rmtree(partial)
    return target


def has_checksum(path: Path, expected: str | None) -> bool:
    """True if a file has the hub's checksum: SHA-256 for a large file, git's SHA-1 for a small one."""
    if expected is None or len(expected) not in (40, 64):
        raise InputError(f"{path.name}: the hub names no checksum ({expected!r})")
    digest = hashlib.sha256() if len(expected) == 64 else hashlib.sha1(b"blob %d\0" % path.stat().st_size)
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return digest.hexdigest() == expected


def unpack(archive: Path, downstream: Path) -> None:
    """Unpack SentEval's archive as the folder `downstream`, whole or not at all; its top folder may have any name."""
    downstream.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=downstream.parent, prefix=".unpack.") as name:
        try:
            with tarfile.open(archive) as tar:
                tar.extractall(name, filter="data")
        except (tarfile.TarError, OSError) as error:
            raise InputError(f"{archive}: cannot be unpacked ({error})") from error
        found = [path.parent for path in Path(name).rglob("STS") if path.is_dir()]
        if not found:
            raise InputError(f"{archive}: holds no STS folder, so it is not SentEval's archive")
        min(found, key=lambda path: len(path.parts)).rename(downstream)


def check(part: str, folder: Path) -> list[str]:
    """A sentence for each problem of "wiki" or "senteval" in `folder`: a missing task, a size not as published."""
    if part == "wiki":
        with (folder / "corpora" / WIKI).open("rb") as file:
            lines = sum(1 for _ in file)
        return (
            [] if lines == WIKI_LINES else [f"{WIKI}: has {counted(lines, 'line')}, and {WIKI_LINES:,} were expected"]
        )
    return [problem for name in suite("full") for problem in _check_task(folder, name)]


def _check_task(folder: Path, name: str) -> list[str]:
    try:
        sizes = read_task(downstream_folder(folder), name).sizes
    except InputError as error:
        return [f"{name}: {error}"]
    return [
        f"{name} {split}: {sizes[split]:,} examples, {n:,} expected"
        for split, n in TASKS[name].sizes.items()
        if sizes[split] != n
    ]


if __name__ == "__main__":
    sys.exit(main())
