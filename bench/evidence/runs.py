"""Make the runs of the comparison with `train.ddp`, several at a time. Finished runs are skipped."""

from __future__ import annotations

import os
import queue
import re
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import una_fast
from bench.evidence.bases import base_folder
from bench.evidence.conditions import BASES, Condition
from bench.evidence.corpora import write_lines, write_pairs
from train.config import OPTIONS
from train.record.environment import machine, versions
from train.record.folder import RUN, is_finished, is_own
from train.report.runs import STS_AVERAGE, read_run, read_scores
from una_fast.errors import InputError
from una_fast.storage.array_folder import find_manifest
from una_fast.storage.files import read_json, read_object

DIGITS = 6  # of a score, which is a fraction
Command = tuple[str, list[str]]  # a module and its arguments


class Workplace:
    """The files that the runs share, and the cores of each run.

    data: the folder with corpora/ and senteval/.
    folder: the folder of the runs.
    source: the file of training sentences.
    jobs: how many runs are made at the same time, each on an equal share of the cores.
    """

    def __init__(self, data: Path, folder: Path, source: Path, jobs: int):
        self.data, self.folder, self.source = data, folder, source
        cores = sorted(os.sched_getaffinity(0))
        if not 1 <= jobs <= len(cores):
            raise InputError(f"--jobs {jobs}: give 1 to {len(cores)}, the number of cores")
        self.threads = len(cores) // jobs
        self.shares = [set(cores[i * self.threads : (i + 1) * self.threads]) for i in range(jobs)]

    def run_folder(self, condition: Condition, seed: int) -> Path:
        """Return the folder of a run."""
        return self.folder / "runs" / re.sub(r"[^a-z0-9.%]+", "-", condition.name) / f"seed-{seed}"

    def scores(self, condition: Condition, seed: int) -> Path:
        """Return the path of the JSON file with the scores of a run."""
        folder = self.run_folder(condition, seed)
        return folder.with_name(f"{folder.name}.json")

    def is_done(self, condition: Condition, seed: int, scored: bool = True) -> bool:
        """Return whether a run has taken its last step and, if `scored` is true, also has scores."""
        return is_finished(self.run_folder(condition, seed)) and (not scored or self.scores(condition, seed).is_file())

    def base(self, name: str) -> Path:
        """Return the folder of an encoder to start from."""
        return base_folder(name, self.source, self.folder)

    def sentences(self, condition: Condition) -> dict[str, Any]:
        """Return the options of `train.ddp` that name the training sentences of a condition and their index.

        The files and the index are made if they do not exist.
        """
        base = BASES[condition.base]
        if base.pairs:
            first, second = write_pairs(self.data, self.folder)
            return {"corpus": [str(first)], "paraphrases": str(second)}
        n = condition.n_sentences()
        name = "-".join(map(str, (Path(base.corpus).stem or n, *(base.words or ()))))
        corpus = self.data / base.corpus
        if not base.corpus:
            corpus = write_lines(self.source, self.folder / f"corpus-{name}.txt", 0, n, base.words)
        index = self.folder / f"index-{name}"
        if not find_manifest(index):
            una_fast.build_index(corpus).save(index)
        return {"corpus": [str(corpus)], "index": index}

    def command(self, condition: Condition, seed: int) -> Command:
        """Return the command that starts or continues a run."""
        base, output = BASES[condition.base], self.run_folder(condition, seed)
        dev = self.data / "senteval/downstream/STS/STSBenchmark/sts-dev.csv"
        values = {  # without dev pairs, best/ is the encoder after the last step
            **self.sentences(condition),
            "model": self.base(condition.base),
            "dev": None if base.untrained or base.pairs else dev,
            "output": output,
            "seed": seed,
            "report_to": "none",
            **condition.settings(),
        }
        resume = ["--resume"] if is_own(output, RUN) else []
        return "train.ddp", resume + [word for name, value in values.items() for word in OPTIONS[name].arguments(value)]

    def evaluate(self, base: str, model: Path, scores: Path, pooling: str = "auto") -> Command:
        """Return the command that scores the encoder `model` on the tasks of a base, and writes the file `scores`.

        Images on which settings were chosen are left out.
        """
        values = {"model": model, "data": self.data, "pooling": pooling, "tasks": BASES[base].tasks, "json": scores}
        return "train.evaluate", [f"--{name}={value}" for name, value in values.items()] + ["--held-out"]


def run_all(
    place: Workplace, wanted: Iterable[tuple[Condition, int]], scored: bool, done: Callable[[Condition, int, str], None]
) -> None:
    """Make the runs that are not done, in the order of `wanted`. Ctrl-C stops all of them.

    Args:
        place: the files that the runs share.
        wanted: the condition and the seed of each run.
        scored: whether the encoders are scored on the tasks.
        done: called after each run, with a message if it failed.
    """
    todo = [(one, seed) for one, seed in wanted if not place.is_done(one, seed, scored)]
    shares: queue.Queue[set[int]] = queue.Queue()
    for share in place.shares:
        shares.put(share)
    stopped = threading.Event()

    def run(condition: Condition, seed: int) -> str:
        if stopped.is_set():
            return "stopped"
        folder, scores = place.run_folder(condition, seed), place.scores(condition, seed)
        log = folder.with_name(f"{folder.name}-{uuid.uuid4().hex[:8]}.log")
        commands = [place.command(condition, seed)]
        if scored:
            commands.append(place.evaluate(condition.base, folder / "best", scores))
        share = shares.get()
        try:
            code = on_cores(commands, share, log)
        finally:
            shares.put(share)
        return f"exit code {code}; see {log}" if code else ""

    with ThreadPoolExecutor(len(place.shares)) as pool:
        try:
            futures = {pool.submit(run, *one): one for one in todo}
            for future in as_completed(futures):
                done(*futures[future], future.result())
        except KeyboardInterrupt:  # the runs receive the same signal: each saves a checkpoint and exits
            stopped.set()
            raise


def on_cores(commands: Sequence[Command], cores: set[int], log: Path) -> int:
    """Run commands on some cores, one after the other, until one fails. Return the exit code of the last one.

    log: the file to which the commands' output is appended.
    """
    code = 0
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as file:
        for module, words in commands:
            line = [sys.executable, "-m", module, *words]
            process = subprocess.Popen(line, stdout=file, stderr=file)
            os.sched_setaffinity(process.pid, cores)
            if code := process.wait():
                break
    return code


def scores_before(place: Workplace, name: str) -> dict[str, float]:
    """Return the scores of a base before training, by task and as "average". They are measured only once."""
    kept = place.folder / "before" / f"{name}.json"
    if not kept.is_file():
        command, log = place.evaluate(name, place.base(name), kept, BASES[name].before), kept.with_suffix(".log")
        if on_cores([command], {core for share in place.shares for core in share}, log):
            raise InputError(f"{name} could not be scored before training: see {log}")
    return scores_in(kept)


def result_of(place: Workplace, condition: Condition, seed: int) -> dict[str, Any] | None:
    """Return what evidence.json stores of a run: "dev" by step and "scores" by task. None without a finished run."""
    if not place.is_done(condition, seed, scored=False):
        return None
    record, scores = read_run(place.run_folder(condition, seed)), place.scores(condition, seed)
    found = {"dev": rounded({str(step): score for step, score in record.curves.get("dev", {}).items()})}
    return found | ({"scores": scores_in(scores)} if scores.is_file() else {})


def scores_in(file: Path) -> dict[str, float]:
    """Return the scores in a file of `train.evaluate` by task, with the STS average, if there is one, as "average"."""
    found = {"average" if name == STS_AVERAGE else name: value for name, value in read_scores(read_json(file)).items()}
    return rounded(found | of_pairs(file))


def of_pairs(file: Path) -> dict[str, float]:
    """Return, from a file of scores, the recall on each set of labelled pairs and the AUC of each group of pairs."""
    found = {}
    for name, of in read_object(file)["near-miss"].items():
        if isinstance(of, dict):
            found[f"{name} recall"] = of["recall"]
            found |= {f"{name} {group}": one["auc"] for group, one in of["groups"].items()}
    return found


def machine_of(place: Workplace) -> dict[str, Any]:
    """Return a description of this machine, the versions of packages, and the number of threads per run."""
    return {"threads": place.threads, **machine(), **versions()}


def rounded(scores: dict[str, float]) -> dict[str, float]:
    """Round scores to DIGITS digits, as evidence.json stores them."""
    return {name: round(score, DIGITS) for name, score in scores.items()}
