"""The runs of the comparison, one command of `train.ddp` each, several at a time; what is done is not done again."""

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
from train.config.run import OPTIONS
from train.record.folder import RUN, is_finished, is_own
from train.record.metrics import machine, versions
from train.report.runs import STS_AVERAGE, read_evaluation, read_run
from una_fast.errors import InputError
from una_fast.storage import is_saved

DIGITS = 6  # of a score, which is a fraction


class Workplace:
    """The files that the runs share, and how they are run.

    data: the folder with corpora/ and senteval/; folder: where runs lie; source: the file of the sentences to train on;
    jobs: runs at a time, each on its share of the cores; saved: a language model to start from, made before.
    """

    def __init__(self, data: Path, folder: Path, source: Path, jobs: int, saved: Path | None = None):
        self.data, self.folder, self.source, self.saved = data, folder, source, saved
        cores = sorted(os.sched_getaffinity(0))
        if not 1 <= jobs <= len(cores):
            raise InputError(f"--jobs {jobs}: give 1 to {len(cores)}, the number of cores")
        self.threads = len(cores) // jobs
        self.shares = [set(cores[i * self.threads : (i + 1) * self.threads]) for i in range(jobs)]

    def run_folder(self, condition: Condition, seed: int) -> Path:
        """Where a run lies."""
        return self.folder / "runs" / re.sub(r"[^a-z0-9.%]+", "-", condition.name) / f"seed-{seed}"

    def sentences(self, condition: Condition) -> dict[str, Any]:
        """The options of `train.ddp` that name the sentences."""
        if BASES[condition.base].pairs:
            first, second = write_pairs(self.data, self.folder)
            return {"corpus": [str(first)], "paraphrases": str(second)}
        return {"corpus": [str(self.corpus(condition))], "index": self.index(condition)}

    def corpus(self, condition: Condition) -> Path:
        """A file of the sentences that a condition trains on, written where it is not there yet."""
        words = BASES[condition.base].words
        path = self.folder / f"{self._sentences('corpus', condition)}.txt"
        return write_lines(self.source, path, 0, condition.n_sentences(), words)

    def index(self, condition: Condition) -> Path:
        """The index of these sentences, built where it is not there yet."""
        folder = self.folder / self._sentences("index", condition)
        if not is_saved(folder):
            una_fast.build_index(self.corpus(condition)).save(folder)
        return folder

    def _sentences(self, what: str, condition: Condition) -> str:
        words = BASES[condition.base].words
        return "-".join(map(str, (what, condition.n_sentences(), *(words or ()))))

    def base(self, name: str) -> Path:
        """The folder of an encoder to start from."""
        return self.saved if self.saved and BASES[name].mlm_steps else base_folder(name, self.source, self.folder)

    def scores(self, condition: Condition, seed: int) -> Path:
        """The file of a run's scores."""
        folder = self.run_folder(condition, seed)
        return folder.with_name(f"{folder.name}.json")

    def is_done(self, condition: Condition, seed: int, scored: bool = True) -> bool:
        """True for a run that has taken its last step and, if it is to be, is scored."""
        return is_finished(self.run_folder(condition, seed)) and (not scored or self.scores(condition, seed).is_file())

    def command(self, condition: Condition, seed: int) -> list[str]:
        """The command that makes or goes on with a run."""
        base, output = BASES[condition.base], self.run_folder(condition, seed)
        dev = self.data / "senteval/downstream/STS/STSBenchmark/sts-dev.csv"
        values = {  # without dev pairs best/ is the encoder after the last step
            **self.sentences(condition),
            "model": self.base(condition.base),
            "dev": None if base.untrained or base.pairs else dev,
            "output": output,
            "seed": seed,
            **condition.settings(),
        }
        words = [sys.executable, "-m", "train.ddp", *(["--resume"] if is_own(output, RUN) else [])]
        return words + [word for name, value in values.items() for word in OPTIONS[name].words(value)]

    def evaluate(self, base: str, model: Path, scores: Path, pooling: str = "auto") -> list[str]:
        """The command that scores an encoder; the images on which settings were chosen are left out."""
        values = {"model": model, "data": self.data, "pooling": pooling, "tasks": BASES[base].tasks, "json": scores}
        words = [word for name, value in values.items() for word in (f"--{name}", str(value))]
        return [sys.executable, "-m", "train.evaluate", *words, "--held-out"]


def run_all(
    place: Workplace, wanted: Iterable[tuple[Condition, int]], scored: bool, done: Callable[[Condition, int, str], None]
) -> None:
    """Carry out the runs that are not done, in their order. Ctrl-C stops them all.

    scored: whether the encoders are scored on the tasks; done: called after each run, with a sentence if it failed.
    """
    todo = [(one, seed) for one, seed in wanted if not place.is_done(one, seed, scored)]
    shares: queue.Queue[set[int]] = queue.Queue()
    for share in place.shares:
        shares.put(share)
    stopped = threading.Event()

    def run(condition: Condition, seed: int) -> str:
        if stopped.is_set():
            return "stopped"
        share = shares.get()
        try:
            folder, scores = place.run_folder(condition, seed), place.scores(condition, seed)
            folder.parent.mkdir(parents=True, exist_ok=True)
            log = folder.with_name(f"{folder.name}-{uuid.uuid4().hex[:8]}.log")
            code = _on_cores(place.command(condition, seed), share, log)
            if scored:
                code = code or _on_cores(place.evaluate(condition.base, folder / "best", scores), share, log)
        finally:
            shares.put(share)
        return f"exit code {code}; see {log}" if code else ""

    with ThreadPoolExecutor(len(place.shares)) as pool:
        try:
            futures = {pool.submit(run, *one): one for one in todo}
            for future in as_completed(futures):
                done(*futures[future], future.result())
        except KeyboardInterrupt:  # the runs got the same signal: each saves a checkpoint and ends
            stopped.set()
            raise


def _on_cores(command: Sequence[str], cores: set[int], path: Path) -> int:
    """Run a command on some cores alone; what it prints is added to the log at `path`."""
    taskset = ["taskset", "--cpu-list", ",".join(map(str, sorted(cores)))]
    with path.open("ab") as log:
        return subprocess.run([*taskset, *command], stdout=log, stderr=log, check=False).returncode


def scores_before(place: Workplace, name: str) -> dict[str, float]:
    """Scores of a base before training, by task and as "average"; measured once."""
    kept = place.folder / "before" / f"{name}.json"
    if not kept.is_file():
        kept.parent.mkdir(parents=True, exist_ok=True)
        command = place.evaluate(name, place.base(name), kept, BASES[name].before)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return with_average(read_evaluation(kept))


def result_of(place: Workplace, condition: Condition, seed: int) -> dict[str, Any] | None:
    """What is kept of a run: "dev", Spearman by step, and "scores" by task; None of one that is not done."""
    if not place.is_done(condition, seed, scored=False):
        return None
    record, scores = read_run(place.run_folder(condition, seed)), place.scores(condition, seed)
    found = {"dev": rounded({str(step): score for step, score in record.curves.get("dev", {}).items()})}
    if scores.is_file():
        found["scores"] = with_average(read_evaluation(scores))
    return found


def machine_of(place: Workplace) -> dict[str, Any]:
    """The machine of the runs, with the threads of a run."""
    return {"threads": place.threads, **machine(), **versions()}


def with_average(scores: dict[str, float]) -> dict[str, float]:
    """Scores by task, and their mean as "average" where all seven tasks are there."""
    return rounded({"average" if name == STS_AVERAGE else name: value for name, value in scores.items()})


def rounded(scores: dict[str, float]) -> dict[str, float]:
    """Scores as evidence.json keeps them."""
    return {name: round(score, DIGITS) for name, score in scores.items()}
