"""Measure a staged build: seconds and disk by stage, and the memory of the whole process tree.

    python -m bench.scale.staged FOLDER_OF_SHARDS --output INDEX --memory 2GiB [--workers 2] [--in-memory]

--workers: number of single-threaded Dask processes that run the stages; without it, threads of one process run them.
Memory is the sum of the proportional set sizes of a process and all its children, sampled ten times per second.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from threading import Thread
from typing import Any

import psutil

import una_fast
import una_fast.index.build as build_module
from una_fast.index.executors import Runner
from una_fast.index.index import Index
from una_fast.index.stages import work_folder

INTERVAL = 0.1  # s


def tree_memory(process: psutil.Process) -> int:
    """Return the bytes of memory of a process and its children. A page that several of them share counts once."""
    total = 0
    for one in [process, *process.children(recursive=True)]:
        try:
            total += one.memory_full_info().pss
        except psutil.Error:  # the process has ended
            continue
    return total


def tree_work(process: psutil.Process) -> dict[str, float]:
    """Return seconds of processor time, and MiB read and written so far, of a process and its children."""
    done = {"cpu_seconds": 0.0, "read_mib": 0.0, "written_mib": 0.0}
    for one in [process, *process.children(recursive=True)]:
        try:
            times, moved = one.cpu_times(), one.io_counters()
        except psutil.Error:
            continue
        done["cpu_seconds"] += times.user + times.system
        done["read_mib"] += moved.read_chars / 2**20
        done["written_mib"] += moved.write_chars / 2**20
    return done


class Stages:
    """Measures seconds, peak memory and peak disk of each stage, inside the process that builds."""

    def __init__(self, folder: Path):
        self.by_stage: dict[str, dict[str, float]] = {}
        self._stage = "start"
        self._since = time.perf_counter()
        self._work = tree_work(psutil.Process())
        self._places = [work_folder(folder), folder]
        run = Runner.run

        def timed(runner: Runner, stage: str, *tasks: Any) -> list[Any]:
            self.enter(stage)
            return run(runner, stage, *tasks)

        Runner.run = timed
        opened: Any = vars(build_module)["load_index"]

        def opening(*arguments: Any, **named: Any) -> Index:
            self.enter("open")  # memory-mapped: pages that are read count as memory, but the system can drop them
            return opened(*arguments, **named)

        vars(build_module)["load_index"] = opening
        Thread(target=self._sample, daemon=True).start()

    def enter(self, stage: str) -> None:
        now = time.perf_counter()
        self._look(psutil.Process())  # a stage may be shorter than INTERVAL
        self._of(self._stage)["seconds"] = round(now - self._since, 2)
        work = tree_work(psutil.Process())
        self._of(self._stage).update({name: round(work[name] - self._work[name], 1) for name in work})
        self._work = work
        self._stage, self._since = stage, now

    def _of(self, stage: str) -> dict[str, float]:
        return self.by_stage.setdefault(stage, {"seconds": 0.0, "memory_mib": 0.0, "disk_mib": 0.0})

    def _sample(self) -> None:
        process = psutil.Process()
        while True:
            self._look(process)
            time.sleep(INTERVAL)

    def _look(self, process: psutil.Process) -> None:
        at = self._of(self._stage)
        at["memory_mib"] = max(at["memory_mib"], round(tree_memory(process) / 2**20))
        at["disk_mib"] = max(at["disk_mib"], round(self._disk() / 2**20))

    def _disk(self) -> int:
        files = [path for place in self._places if place.exists() for path in place.rglob("*")]
        sizes = {}  # by inode, so that a file with two names counts once
        for path in files:
            try:
                about = path.stat()
            except OSError:
                continue
            sizes[about.st_ino] = about.st_blocks * 512
        return sum(sizes.values())


def build(options: argparse.Namespace) -> dict[str, Any]:
    corpus = sorted(options.corpus.glob("*.txt")) if options.corpus.is_dir() else options.corpus
    stages = Stages(options.output)
    start = time.perf_counter()
    if options.in_memory:
        una_fast.build_index(corpus).save(options.output)
        seconds = time.perf_counter() - start
        index = una_fast.load_index(options.output)
    elif options.workers:
        from dask.distributed import Client, LocalCluster

        with LocalCluster(n_workers=options.workers, threads_per_worker=1, memory_limit=0) as cluster:
            with Client(cluster) as client:
                start = time.perf_counter()
                index = una_fast.build_index(corpus, folder=options.output, memory=options.memory, executor=client)
                seconds = time.perf_counter() - start
    else:
        index = una_fast.build_index(corpus, folder=options.output, memory=options.memory)
        seconds = time.perf_counter() - start
    stages.enter("end")
    return {
        "documents": index.n_documents,
        "terms": index.n_terms,
        "chunks": len(index.chunks),
        "words": len(index.word_ids.values),
        "fingerprint": index.fingerprint,
        "seconds": round(seconds, 1),
        "memory_mib": max(s["memory_mib"] for name, s in stages.by_stage.items() if name != "open"),
        "stages": stages.by_stage,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path, help="file of sentences, or folder of .txt files")
    parser.add_argument("--output", type=Path, required=True, help="folder of the index")
    parser.add_argument("--memory", default="2GiB", help="memory limit of the build [2GiB]")
    parser.add_argument("--workers", type=int, default=0, help="number of Dask processes [threads of one process]")
    parser.add_argument("--in-memory", action="store_true", help="build in memory instead of in stages, then save")
    options = parser.parse_args()
    print(json.dumps(build(options), indent=1))


if __name__ == "__main__":
    main()
