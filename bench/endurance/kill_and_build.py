"""Kill builds in stages at random moments until they end: each must end with the bits of a build without a kill.

    python -m bench.endurance.kill_and_build CORPUS [--kills 60] [--json FILE]

One build after the other is killed in three ways in turn: the whole process tree of a build by two processes, one of
these two processes, or one of the two worker processes of a Dask cluster. A build that was stopped is started again
until it ends; then its arrays are compared with those of the build in memory. Kills are counted by the stage in which
they happened.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import psutil

import una_fast
from una_fast.index.staged.work import work_folder

BUILDER = """
import sys
from concurrent.futures import ProcessPoolExecutor
import una_fast
from una_fast.index.staged.plan import Budget
from una_fast.index.staged.tasks import Runner

run = Runner.run
def said(runner, stage, tasks):
    print(stage, flush=True)
    run(runner, stage, tasks)
Runner.run = said
Budget.split_bytes = lambda self: 1 << 18
Budget.n_partitions = Budget.n_ranges = lambda self, n_bytes: 3
kind, corpus, folder = sys.argv[1:]
if __name__ == "__main__":
    try:
        if kind == "dask":
            from distributed import Client, LocalCluster
            with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:
                una_fast.build_index(corpus, folder=folder, memory="2GB", executor=Client(cluster))
        else:
            with ProcessPoolExecutor(2) as pool:
                una_fast.build_index(corpus, folder=folder, memory="2GB", executor=pool)
    except una_fast.InputError as error:
        print("error:", error, flush=True)
        sys.exit(2)
"""
KINDS = ("tree", "worker", "dask")
MOST_FILES = 12  # files that a build may finish before it is killed, of some seventy


def start(kind: str, corpus: Path, folder: Path) -> subprocess.Popen[str]:
    """Start a build in a process of its own, which prints the name of each stage when the stage begins."""
    script = folder.parent / "builder.py"
    script.write_text(BUILDER)
    command = [sys.executable, str(script), kind, str(corpus), str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(Path(una_fast.__file__).parents[1])}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, start_new_session=True)


def wait_for_files(folder: Path, n: int, builder: subprocess.Popen[str]) -> None:
    """Wait until a build has finished `n` tasks, or has ended."""
    work = work_folder(folder)
    known = names_in(work)
    while builder.poll() is None and len(names_in(work) - known) < n:
        time.sleep(0.005)


def names_in(work: Path) -> set[str]:
    """The files that are complete."""
    try:
        return {path.name for path in work.iterdir() if not path.name.startswith(".")}
    except FileNotFoundError:
        return set()


def workers_of(builder: subprocess.Popen[str]) -> list[psutil.Process]:
    """The processes that run tasks: those without children, except the resource tracker."""
    children = psutil.Process(builder.pid).children(recursive=True)
    return [c for c in children if not c.children() and "tracker" not in " ".join(c.cmdline())]


def kill(kind: str, builder: subprocess.Popen[str], moments: random.Random) -> bool:
    """Kill the tree or a worker; False if the build had already ended."""
    if builder.poll() is not None:
        return False
    try:
        if kind == "tree":
            os.killpg(builder.pid, signal.SIGKILL)
            return True
        workers = workers_of(builder)
        moments.choice(workers).kill()
    except (psutil.Error, ProcessLookupError, IndexError):
        return False
    return True


def build_with_kills(kind: str, corpus: Path, folder: Path, moments: random.Random, counts: Counter[str]) -> None:
    """Start and kill builds of `folder` until the folder exists."""
    while not folder.exists():
        builder = start(kind, corpus, folder)
        assert builder.stdout is not None
        stages = [builder.stdout.readline().strip()]
        wait_for_files(folder, moments.randint(0, MOST_FILES), builder)
        time.sleep(moments.uniform(0, 0.1))
        done = kill(kind, builder, moments)
        stages += builder.stdout.read().split("\n")
        builder.wait()
        if done:
            known = [
                stage for stage in stages if stage in ("read", "scan", "merge", "rank", "label", "write", "finish")
            ]
            counts[f"{kind} in {stage_at_kill(folder, known)}"] += 1
        if builder.returncode not in (0, 2, -signal.SIGKILL):
            raise SystemExit(f"a build ended with {builder.returncode}: {stages}")


def stage_at_kill(folder: Path, stages: list[str]) -> str:
    """The last stage that had begun if the build did not end; "any" if it ended in spite of the kill."""
    return "any" if folder.exists() else (stages or ["start"])[-1]


def check(folder: Path, expected: Path) -> None:
    """The arrays and the manifest of the two folders are equal, and nothing else is left."""
    contents = [{path.name: path.read_bytes() for path in each.iterdir()} for each in (folder, expected)]
    if contents[0] != contents[1]:
        raise SystemExit(f"{folder} differs from {expected}")
    if work_folder(folder).exists():
        raise SystemExit(f"{work_folder(folder)} was left")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    moments, counts, n_builds = random.Random(options.seed), Counter[str](), 0
    with tempfile.TemporaryDirectory() as temporary:
        expected = Path(temporary) / "expected"
        una_fast.build_index(options.corpus).save(expected)
        while counts.total() < options.kills:
            folder = Path(temporary) / f"index-{n_builds}"
            build_with_kills(KINDS[n_builds % len(KINDS)], options.corpus, folder, moments, counts)
            check(folder, expected)
            n_builds += 1
            print(f"{n_builds} builds, {counts.total()} kills, all equal: {dict(counts)}", flush=True)
    if options.json:
        found = {"builds": n_builds, "kills": counts.total(), "by_stage": dict(sorted(counts.items()))}
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
