"""Measure training on a GPU in five minutes, for docs/gpu.md and docs/benchmarks.md.

    python -m bench.training.gpu --output FOLDER [--corpus FILE] [--phases "batch 64" runs]

Steps of BERT-base with random weights are timed with each value of --compile, and whole runs of `train.ddp`, most
important first. After each measurement, the results so far are written to FOLDER/train_gpu.json, from which
bench.report makes tables. If a measurement fails, its error is noted there and the next one follows.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import torch
from transformers import AutoTokenizer, BertConfig, BertModel

from bench import script
from bench.report import described, save_tables
from bench.training.contenders import ALPHA, Bench, Contender
from bench.training.gpu_tables import tables
from train.demo import PAIRS, packaged_encoder, write_corpus
from train.encoder.pretrained import quiet

STEPS = {"batch 64": 64, "batch 512": 512}  # phases that time steps, and their batch sizes
ROUNDS, PLAIN, NEGATIVES, PROFILED = 3, 20, 5, 5  # of one variant: rounds, steps of a round, and profiled steps
RUN_STEPS = 300  # of a whole run
RESULT = "train_gpu.json"


class Session:
    """Where measurements are made and their results are kept.

    output: the folder of the results; folder: for temporary files; share: divides all batches and the steps of a run,
    for tests on a CPU.
    """

    def __init__(self, output: Path, folder: Path, corpus: str, model: str, device: str = "cuda", share: int = 1):
        self.output, self.folder, self.corpus, self.model = output, folder, corpus, model
        self.device, self.share = device, share
        self.measured: dict[str, dict[str, Any]] = {"setup": {"machine": described()}}
        output.mkdir(parents=True, exist_ok=True)
        os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(folder / "inductor"))
        quiet()

    def bench(self, batch: int = 64) -> Bench:
        """Return the bench of a batch size."""
        folder = str(self.folder / "run")
        return Bench(self.corpus, self.model, folder, self.device, batch // self.share, time.perf_counter)

    def note(self, phase: str, name: str, measure: Callable[[], dict[str, Any]]) -> None:
        """Keep the result of `measure`, or its error, under a name of a phase, and write all results."""
        try:
            found = measure()
        except Exception as error:
            found = {"error": f"{type(error).__name__}: {error}"[:500]}
        self.measured.setdefault(phase, {})[name] = found
        save_tables(self.output / RESULT, tables(self.measured), self.measured)
        print(phase, name, {key: value for key, value in found.items() if key != "profile"}, flush=True)
        gc.collect()  # the memory of this variant
        torch.cuda.empty_cache()


def steps(session: Session, phase: str) -> None:
    """Time and profile steps with each value of --compile."""
    bench = session.bench(STEPS[phase])
    for compile in ("off", "graphs", "on"):

        def measure(compile: str = compile) -> dict[str, Any]:
            contender = bench.ours("bf16", compile)
            return {**timed(contender), "profile": profiled(contender)}

        session.note(phase, f"una_fast, --compile {compile}", measure)


def others(session: Session, phase: str) -> None:
    """Time sentence-transformers on the same machine."""
    bench = session.bench()
    session.note(phase, "sentence-transformers", lambda: timed(bench.sentence_transformers("bf16")))


def whole_runs(session: Session, phase: str) -> None:
    """Run `train.ddp` with four dev evaluations, and measure the time of the process and of its steps."""
    for compile in ("off",) if session.device == "cpu" else ("graphs", "off"):
        session.note(phase, compile, partial(whole_run, session, compile))


PHASES = {**dict.fromkeys(STEPS, steps), "others": others, "runs": whole_runs}  # most important first


def timed(contender: Contender) -> dict[str, Any]:
    """Return the ms of a step without and with negatives in each round, the memory, and the time of the first steps."""
    on_gpu = torch.cuda.is_available()
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    begun = time.perf_counter()
    contender.take(range(2 * ALPHA))  # captures and compiles every shape
    first = time.perf_counter() - begun
    turns = [contender.measure(turn, PLAIN, NEGATIVES) for turn in range(ROUNDS)]
    parts = {part: [round(1000 * turn[part], 3) for turn in turns if part in turn] for part in ("plain", "negatives")}
    memory = {"reserved_gib": round(torch.cuda.max_memory_reserved() / 2**30, 3)} if on_gpu else {}
    return {"first_steps_s": round(first, 2), **{f"{part}_ms": times for part, times in parts.items()}, **memory}


def profiled(contender: Contender) -> dict[str, Any]:
    """Profile plain steps: the number and the time of kernels, and the 25 longest by name, in µs per step."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU, *[ProfilerActivity.CUDA] * torch.cuda.is_available()]) as seen:
        contender.measure(0, PROFILED, 0)
    kernels = [
        (event.key[:120], event.count / PROFILED, event.self_device_time_total / PROFILED)
        for event in seen.key_averages()  # an annotation "Optimizer..." has the time of kernels counted separately
        if event.device_type == torch.autograd.DeviceType.CUDA and not event.key.startswith("Optimizer.")
    ]
    kernels.sort(key=lambda row: -row[2])
    number, busy = (sum(row[i] for row in kernels) for i in (1, 2))
    return {"kernels": number, "busy_us": busy, "longest": kernels[:25]}


def whole_run(session: Session, compile: str) -> dict[str, Any]:
    """Return what run.json says about the process of a run, and the seconds of its steps."""
    output, n_steps, batch = session.folder / f"ddp-{compile}", RUN_STEPS // session.share, 64 // session.share
    words = [
        "--corpus", session.corpus, "--model", session.model, "--output", output, "--dev", PAIRS, "--eval-every",
        n_steps // 3, "--max-steps", n_steps, "--epochs", 50, "--device", session.device, "--compile", compile,
        "--batch-size", batch,
    ]  # fmt: skip
    command = [sys.executable, "-m", "train.ddp", *map(str, words)]
    done = subprocess.run(command, cwd=script.ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"exit_code": done.returncode, "said": done.stderr[-1500:]}
    lines = [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()]
    times = [batch / line["sentences_per_second"] for line in lines if "loss" in line]
    about = json.loads((output / "run.json").read_text())["this_process"]
    return {"exit_code": 0, **about, "steps_s": sum(times), "median_step_ms": 1000 * median(times)}


def random_bert(folder: Path) -> Path:
    """Save a BERT-base with random weights and the packaged vocabulary. It is as fast as a trained encoder."""
    tokenizer = AutoTokenizer.from_pretrained(packaged_encoder())
    torch.manual_seed(0)
    BertModel(BertConfig(vocab_size=len(tokenizer)), add_pooling_layer=False).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def measure(output: Path, corpus: str, phases: Sequence[str]) -> None:
    """Run some phases."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        corpus = corpus or str(write_corpus(folder))
        session = Session(output, folder, corpus, str(random_bert(folder / "model")))
        for phase in phases:
            PHASES[phase](session, phase)


if __name__ == "__main__":
    sys.exit(
        script.run(
            __doc__,
            measure,
            output=script.FOLDER | {"help": "folder for the results"},
            corpus={"default": "", "help": "text, one sentence per line [the demo's sentences]"},
            phases={"nargs": "+", "choices": PHASES, "default": PHASES, "help": "measurements to make [all]"},
        )
    )
