"""Kill builds of an index at random moments: each must end bit-identical to an uninterrupted build.

    python -m bench.endurance.stop_builds [CORPUS] [--stops 200] [--kinds alone processes worker dask] [--seed 0]

There are four kinds of builds, which differ in what is killed:

    alone        a process with threads
    processes    a process and its two worker processes
    worker       one of the two worker processes
    dask         one worker of a Dask cluster

After each kill the build is started again. Its result must be bit-identical; any other outcome ends the script. Prints
how many builds were stopped, by kind and stage.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import psutil

import una_fast
from una_fast.index.executors import Runner
from una_fast.index.stages import work_folder
from una_fast.storage.array_folder import find_manifest

KINDS = ("alone", "processes", "worker", "dask")
SPLITS = 12  # of the corpus
MOST_FILES = (4, 40, 120)  # that a build may finish before it is stopped; it writes about a hundred
STAGES = ("scan", "merge", "rank", "label", "write")


def build(kind: str, corpus: Path, folder: Path) -> None:
    """Build the index in `folder`, and print the name of each stage when it begins."""
    run = Runner.run

    def print_and_run(runner: Runner, stage: str, *tasks: Any) -> list[Any]:
        print(stage, flush=True)
        return run(runner, stage, *tasks)

    Runner.run = print_and_run
    if kind == "alone":
        una_fast.build_index(corpus, folder=folder, memory="2GB", n_jobs=2)
    elif kind == "dask":
        from distributed import Client, LocalCluster

        with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:
            una_fast.build_index(corpus, folder=folder, memory="2GB", executor=Client(cluster))
    else:
        with ProcessPoolExecutor(2) as pool:
            una_fast.build_index(corpus, folder=folder, memory="2GB", executor=pool)


def use_small_tasks(split_bytes: int) -> None:
    """Make builds split the corpus into parts of `split_bytes`. Turns fsync off, because a kill is not a power cut."""
    os.fsync = lambda handle: None
    Runner.split_bytes = lambda self: split_bytes
    Runner.n_partitions = lambda self, text_bytes: 3


def start(kind: str, corpus: Path, folder: Path) -> int:
    """Start a build in a new process group, and return its process id. Its output goes to the file `log_of(folder)`."""
    log_of(folder).write_text("")
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        os.setsid()
        handle = os.open(log_of(folder), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(handle, 1)
        os.dup2(handle, 2)
        build(kind, corpus, folder)
        code = 0
    except una_fast.InputError as error:
        print("error:", error, flush=True)
        code = 2
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def log_of(folder: Path) -> Path:
    """Return the path of the file that contains the output of a build."""
    return folder.with_name(f"{folder.name}.log")


def stop(kind: str, pid: int, folder: Path, moments: random.Random) -> bool:
    """Kill the build or one of its workers after a random number of tasks.

    Returns False if the build had already ended, or had no worker.
    """
    known, n = names_in(folder), moments.randint(0, moments.choice(MOST_FILES))
    process = psutil.Process(pid)
    while process.status() != psutil.STATUS_ZOMBIE and len(names_in(folder) - known) < n:
        time.sleep(0.001)
    time.sleep(moments.uniform(0, 0.02))
    # If the index is complete, only the pool still has to end. It would hang if a worker died with the queue's lock.
    if process.status() == psutil.STATUS_ZOMBIE or find_manifest(folder):
        return False
    try:
        if kind in ("alone", "processes"):
            os.killpg(pid, signal.SIGKILL)
        else:
            workers = [c for c in process.children(recursive=True) if not c.children()]
            moments.choice([c for c in workers if "resource_tracker" not in " ".join(c.cmdline())]).kill()
    except (psutil.Error, ProcessLookupError, IndexError):
        return False
    return True


def names_in(folder: Path) -> set[str]:
    """Return the names of the files that finished tasks wrote."""
    try:
        return {path.name for path in work_folder(folder).iterdir() if not path.name.startswith(".")}
    except FileNotFoundError:
        return set()


def build_with_stops(kind: str, corpus: Path, folder: Path, moments: random.Random, most: int) -> Counter[str]:
    """Start and stop a build of `folder` until the index is complete, with at most `most` stops.

    Returns the number of stops, by kind and stage. moments: draws the moments of the stops.
    """
    stops = Counter[str]()
    while not (find_manifest(folder) and not work_folder(folder).exists()):
        pid = start(kind, corpus, folder)
        done = most > stops.total() and stop(kind, pid, folder, moments)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        words = log_of(folder).read_text()
        if code not in (0, 2, -signal.SIGKILL) or (code == 2 and not done):
            raise SystemExit(f"a build ended with {code}:\n{words}")
        if done:
            begun = [line for line in words.splitlines() if line in STAGES]
            stops[f"{kind} in {'no stage: it ended' if find_manifest(folder) else (begun or ['start'])[-1]}"] += 1
    return stops


def check(folder: Path, expected: Path) -> None:
    """Check that two folders contain the same files, and that the work folder is gone."""
    contents = [{path.name: path.read_bytes() for path in each.iterdir()} for each in (folder, expected)]
    if contents[0] != contents[1]:
        raise SystemExit(f"{folder} differs from {expected}")
    if work_folder(folder).exists():
        raise SystemExit(f"{work_folder(folder)} was not deleted")


def small_corpus(folder: Path, moments: random.Random) -> Path:
    """Write a corpus of random words: one text file and one compressed file."""
    import gzip

    folder.mkdir()
    lines = [" ".join(f"w{moments.randrange(400)}" for _ in range(moments.randrange(1, 9))) for _ in range(900)]
    (folder / "a.txt").write_text("\n".join(lines[:600]))
    (folder / "b.txt.gz").write_bytes(gzip.compress("\n".join(lines[600:]).encode()))
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path, nargs="?", help="file or folder; a small one is made by default")
    parser.add_argument("--stops", type=int, default=200, help="total number of kills [200]")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=["alone"], help="kinds of builds [alone]")
    parser.add_argument("--seed", type=int, default=0, help="seed of the moments of the kills [0]")
    options = parser.parse_args()
    moments, stops, n_builds = random.Random(options.seed), Counter[str](), 0
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary).resolve()
        corpus = options.corpus or small_corpus(place / "corpus", moments)
        size = sum(path.stat().st_size for path in (corpus.rglob("*") if corpus.is_dir() else [corpus]))
        use_small_tasks(size // SPLITS)
        expected = place / "expected"
        os.waitpid(start("alone", corpus, expected), 0)
        while stops.total() < options.stops:
            folder = place / f"index-{n_builds}"
            kind, left = options.kinds[n_builds % len(options.kinds)], options.stops - stops.total()
            stops += build_with_stops(kind, corpus, folder, moments, left)
            check(folder, expected)
            shutil.rmtree(folder)
            n_builds += 1
            print(f"{n_builds} builds, {stops.total()} stops", flush=True)
    counts = {"builds": n_builds, "stops": dict(sorted(stops.items()))}
    print(json.dumps(counts, indent=1))


if __name__ == "__main__":
    main()
