"""Download and check SimCSE's Wikipedia sentences, SentEval's files, SugarCrepe++ and retrieval sets.

`python -m train.download --to FOLDER` fills FOLDER with corpora/wiki1m_for_simcse.txt, senteval/downstream/,
near_miss/ and retrieval/. Set the environment variable UNA_FAST_DATA to FOLDER, so that `train.evaluate` finds the
data.
"""

from __future__ import annotations

import json
import sys
import tarfile
import urllib.request
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from train.evaluation.tasks.registry import NEAR_MISSES, SUGARCREPE, TASKS, downstream_folder, read_task, suite
from train.evaluation.tasks.retrieval import read_folder
from train.record.folder import partial_folder
from una_fast.command import Command, option
from una_fast.errors import InputError, counted, first_line

REPOSITORY = "princeton-nlp/datasets-for-simcse"
WIKI = "wiki1m_for_simcse.txt"
WIKI_LINES = 1_000_000
NEAR_MISS_ADDRESS = "https://raw.githubusercontent.com/Sri-Harsha/scpp/c083bbf039a5ca215acaf25e7ee736d2ea6f3864/data"
BEIR_ADDRESS = "https://public.ukp.informatik.tu-darmstadt.de/thakur/BEIR/datasets"
BEIR = {"scifact": 300, "nfcorpus": 323, "arguana": 1406}  # its small sets -> number of test queries
NANO_OWNER = (
    "zeta-alpha-ai"  # of NanoBEIR on the Hugging Face hub: 50 queries of each set, with a few thousand documents
)
NANO = (
    *("ArguAna", "ClimateFEVER", "DBPedia", "FEVER", "FiQA2018", "HotpotQA", "MSMARCO", "NFCorpus", "NQ"),
    *("QuoraRetrieval", "SCIDOCS", "SciFact", "Touche2020"),
)
QUERIES = {**BEIR, **{f"Nano{name}": 50 - (name == "Touche2020") for name in NANO}}  # by name of the retrieval set
FILES = {  # value of --only -> {path in FOLDER: its source in REPOSITORY or at NEAR_MISS_ADDRESS}
    "wiki": {f"corpora/{WIKI}": WIKI},
    "senteval": {"senteval/downstream": "senteval.tar"},
    "near-miss": {f"{NEAR_MISSES}/{name}.json": f"{name}.json" for name in SUGARCREPE},
    "retrieval": {f"retrieval/{name}": f"{name}.zip" if name in BEIR else f"{NANO_OWNER}/{name}" for name in QUERIES},
}
TIMEOUT = 60  # seconds to wait for a response


@dataclass(frozen=True)
class DownloadOptions:
    """The options of `python -m train.download`."""

    to: str = option("folder for the data", "", "Data", required=True, metavar="FOLDER")
    only: str | None = option("part to fetch; default: all", None, choices=tuple(FILES))


def _run(options: DownloadOptions) -> int:
    """Fetch data and check it. Return the exit code: 2 if data is missing or has an unexpected size, else 0."""
    folder, parts = Path(options.to), [options.only] if options.only else list(FILES)
    for part in parts:
        fetch(part, folder)
    wrong = [problem for part in parts for problem in check(part, folder)]
    for problem in wrong:
        print(f"error: {problem}", file=sys.stderr)
    if not wrong:
        print(f"{folder}: {', '.join(parts)} complete; UNA_FAST_DATA={folder.resolve()}")
    return 2 if wrong else 0


def fetch(part: str, folder: Path) -> None:
    """Download the missing files of a part of FILES."""
    for name, source in FILES[part].items():
        fetch_file(folder / name, source, SOURCES[part])


def fetch_file(target: Path, source: str, download: Callable[[str, Path], Path]) -> None:
    """Download a missing file or folder. It gets its final name only when it is complete.

    Args:
        target: path of the file.
        source: what to download, such as its address.
        download: a function that downloads a source into a folder, checks it and returns its path there.

    Raises:
        InputError: the download or its check fails.
    """
    if target.exists():
        return
    try:
        with partial_folder(target) as partial:
            download(source, partial).rename(target)
    except ModuleNotFoundError:
        raise  # huggingface_hub is not installed: the command names its extra
    except Exception as error:  # the Hugging Face hub, the network and the disk raise exceptions of different types
        raise InputError(f"{source}: cannot be fetched into {target} ({first_line(error)}): try again") from error


def from_address(address: str, folder: Path) -> Path:
    """Download a file into `folder`."""
    path = folder / address.rpartition("/")[2]
    with urllib.request.urlopen(address, timeout=TIMEOUT) as answer:
        path.write_bytes(answer.read())
    return path


def _from_hub(name: str, folder: Path, repository: str = REPOSITORY) -> Path:
    """Download a file of a dataset from the Hugging Face hub into `folder`."""
    from huggingface_hub import hf_hub_download  # imported late: --help should not wait for it

    return Path(hf_hub_download(repository, name, repo_type="dataset", local_dir=folder))


def _retrieval_set(source: str, folder: Path) -> Path:
    """Download a retrieval set into a folder in BEIR's format. source: NAME.zip of BEIR, or a dataset of NanoBEIR."""
    if source.endswith(".zip"):
        with zipfile.ZipFile(from_address(f"{BEIR_ADDRESS}/{source}", folder)) as archive:
            archive.extractall(folder)  # zipfile removes ".." and leading slashes from names
        return folder / source.removesuffix(".zip")
    from huggingface_hub import HfApi

    files = [name for name in HfApi().list_repo_files(source, repo_type="dataset") if name.endswith(".parquet")]
    rows = {
        part: [row for name in files if name.startswith(f"{part}/") for row in _rows(_from_hub(name, folder, source))]
        for part in ("corpus", "queries", "qrels")
    }
    made = folder / "set"
    (made / "qrels").mkdir(parents=True)
    for part in ("corpus", "queries"):
        lines = (json.dumps({"_id": row["_id"], "text": row["text"]}) + "\n" for row in rows[part])
        (made / f"{part}.jsonl").write_text("".join(lines), encoding="utf-8")
    relevant = (f"{row['query-id']}\t{row['corpus-id']}\t1\n" for row in rows["qrels"])
    (made / "qrels" / "test.tsv").write_text("".join(["query-id\tcorpus-id\tscore\n", *relevant]), encoding="utf-8")
    return made


def _rows(path: Path) -> list[dict[str, Any]]:
    import pyarrow.parquet  # takes 0.1 s

    return pyarrow.parquet.read_table(path).to_pylist()


def unpack(archive: Path) -> Path:
    """Unpack SentEval's archive next to it, and return the folder that contains STS."""
    unpacked = archive.with_name("unpacked")
    with tarfile.open(archive) as tar:
        tar.extractall(unpacked, filter="data")  # "data": nothing outside the folder; in Python since 3.10.12, 3.11.4
    folder = next((path.parent for path in sorted(unpacked.rglob("STS")) if path.is_dir()), None)
    if folder is None:
        raise tarfile.TarError("it contains no STS folder, so it is not SentEval's archive")
    return folder


SOURCES = {  # part -> a function that downloads a source of FILES into a folder
    "wiki": _from_hub,
    "senteval": lambda name, folder: unpack(_from_hub(name, folder)),
    "near-miss": lambda name, folder: from_address(f"{NEAR_MISS_ADDRESS}/{name}", folder),
    "retrieval": _retrieval_set,
}


def check(part: str, folder: Path) -> list[str]:
    """Check a part of the data, such as "senteval"; return a message for each unreadable task or unexpected size."""
    if part == "wiki":
        with (folder / "corpora" / WIKI).open("rb") as file:
            n_lines = sum(1 for _ in file)
        return [] if n_lines == WIKI_LINES else [f"{WIKI}: {counted(n_lines, 'line')}, {WIKI_LINES:,} expected"]
    if part == "retrieval":
        sizes = {one.name: len(one.queries) for one in read_folder(folder / part, split="test").sets}
        return [
            f"{name}: {sizes.get(name, 0):,} test queries, {n:,} expected"
            for name, n in QUERIES.items()
            if sizes.get(name) != n
        ]
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


ABOUT = "Fetch SimCSE's Wikipedia sentences, SentEval's files, SugarCrepe++ and retrieval sets."
main = Command("python -m train.download", ABOUT, DownloadOptions, _run, extra="train", page="paper-tables")

if __name__ == "__main__":
    sys.exit(main())
