"""Measure training on a GPU: a step, compared with the released code and sentence-transformers, and a whole epoch.

``python -m bench.training.train_gpu [--corpus FILE] [--dev FILE] [--released FOLDER] [--model FOLDER]``: batch 64, two
views of 32 tokens at most, dropout 0.1. Without --model the encoder is a BERT-base of random weights, which takes the
same time as a trained one. ``--only steps`` or ``--only epoch`` measures one part; the file keeps the results of the
other part if machine, model and corpus are the same.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from transformers import AutoTokenizer, BertConfig, BertModel

from bench.training.contenders import ALPHA, MAX_LENGTH, Bench, Contender, measure
from bench.training.step_table import (
    BASE,
    RESULTS,
    described,
    mean_step,
    save,
    show,
    shown,
    sizes,
    step_table,
    summarise,
)
from train.config.command import run_command
from train.demo import PAIRS, packaged_encoder, write_corpus
from train.encoder.pretrained import quiet
from una_fast.errors import InputError

ROOT = Path(__file__).parents[2]
VARIANTS = (  # precision, --compile, parts of a step by length
    ("fp32", "off", None),
    ("fp16", "off", None),
    ("bf16", "off", None),
    ("bf16", "off", 2),
    ("bf16", "on", None),
    ("bf16", "graphs", None),
)
EPOCH_COLUMNS = ["epoch", "sentences", "steps", "seconds", "seconds, start included", "ms a step", "sentences/s",
                 "utilisation", "GPU GiB", "host GiB"]  # fmt: skip
PHASES = ("data", "other")


def main(argv: Sequence[str] | None = None) -> int:
    options = parse(argv)
    quiet()
    with tempfile.TemporaryDirectory(prefix="train_gpu") as folder:
        return run_command(lambda: run(options, Path(folder)), "train")


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", help="text, a sentence a line [the demo's sentences]")
    parser.add_argument("--dev", default=str(PAIRS), help="scored pairs, such as STS-B's dev file [the demo's pairs]")
    parser.add_argument("--model", help="folder of a BERT encoder [BERT-base of random weights]")
    parser.add_argument("--tokenizer", help="folder of the tokenizer of the random BERT-base [the packaged MiniLM's]")
    parser.add_argument("--released", help="checkout of the authors' code")
    parser.add_argument("--only", choices=("steps", "epoch"), nargs="+", default=("steps", "epoch"))
    parser.add_argument("--contenders", help="measure only contenders whose name contains this")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=40, help="plain steps a turn; a quarter as many with negatives")
    parser.add_argument("--epoch-compile", nargs="+", default=["off"], help="values of --compile to train by")
    parser.add_argument("--max-steps", type=int, help="end the epoch early")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--json", default=str(RESULTS / "train_gpu.json"), help="where the result goes")
    return parser.parse_args(argv)


def run(options: argparse.Namespace, folder: Path) -> None:
    """Measure the parts of --only, and save them with the results of earlier calls."""
    if options.device == "cuda" and not torch.cuda.is_available():
        raise InputError("no GPU that PyTorch can use is here: give --device cpu to try the script out")
    corpus = options.corpus or str(write_corpus(folder))
    model = options.model or str(random_bert(folder / "bert-base", options.tokenizer))
    about = {
        "machine": described(),
        "device": "a GPU" if options.device == "cuda" else "the CPU, to try the script out",
        "model": sizes(model),
        "corpus": Path(corpus).name,
        "batch": options.batch_size,
    }
    kept = earlier(Path(options.json), about)
    if "steps" in options.only:
        kept["steps"].update(measure_steps(options, corpus, model, folder))
        save(Path(options.json), tables(kept), kept)
        gc.collect()  # free the contenders' memory before the epoch
        torch.cuda.empty_cache()
    if "epoch" in options.only:
        for compile in options.epoch_compile:
            kept["epochs"][compile] = measure_epoch(options, corpus, model, compile)
            save(Path(options.json), tables(kept), kept)
    show(tables(kept))
    if options.device == "cuda":
        print(f"\nPlease send us {options.json}: few cards have been measured so far")


def earlier(path: Path, about: dict[str, Any]) -> dict[str, Any]:
    """The saved results of the same machine, model and corpus; empty ones if there are none."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))["measured"]
    except (OSError, ValueError, KeyError):
        kept = {}
    return kept if kept.get("about") == about else {"about": about, "steps": {}, "epochs": {}}


def random_bert(folder: Path, tokenizer_folder: str | None) -> Path:
    """A BERT-base with random weights and the vocabulary of the given or the packaged tokenizer."""
    tokenizer = AutoTokenizer.from_pretrained(tokenizer_folder or packaged_encoder())
    torch.manual_seed(0)
    BertModel(BertConfig(vocab_size=len(tokenizer)), add_pooling_layer=False).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def measure_steps(options: argparse.Namespace, corpus: str, model: str, folder: Path) -> dict[str, Any]:
    """The step of every contender."""
    bench = Bench(corpus, model, str(folder / "run"), options.device, options.batch_size, time.perf_counter)
    plain = options.steps
    warm_up = range(2 * ALPHA) if plain > 2 * ALPHA else range(2)  # every shape is captured and compiled here
    contenders = []
    for name, make in all_contenders(bench, options):
        try:
            contenders.append(make())
            contenders[-1].take(warm_up)
        except (torch.OutOfMemoryError, RuntimeError) as error:  # a small card, or one that lacks a kernel
            contenders = [contender for contender in contenders if contender.name != name]
            print(f"{name} is left out: {str(error).partition(chr(10))[0]}", file=sys.stderr)
    if not contenders:
        raise InputError(f"--contenders {options.contenders}: no contender has that in its name, or none runs here")
    found = measure(contenders, options.rounds, plain, max(1, plain // 4), warm_up=())
    return summarise(found, bench, contenders)


def all_contenders(bench: Bench, options: argparse.Namespace) -> Iterator[tuple[str, Callable[[], Contender]]]:
    """The names that contain --contenders, of packages that are installed, and what makes these contenders."""

    def wanted(name: str) -> bool:
        return (options.contenders or "") in name

    on_gpu = options.device == "cuda"
    for precision, compile, n_parts in VARIANTS:
        name = f"una_fast, {precision}{'' if compile == 'off' else f', --compile {compile}'}"
        if on_gpu and precision == "bf16" and not torch.cuda.is_bf16_supported(False):
            continue
        if (on_gpu or compile == "off") and wanted(name):
            yield f"{name}{f', {n_parts} parts' if n_parts else ''}", partial(bench.ours, precision, compile, n_parts)
    if wanted("(batches alone)"):
        yield "(batches alone)", bench.batches_alone
    if options.released and wanted("released code, fp32"):
        yield "released code, fp32", partial(bench.released, options.released)
    missing = [
        name for name in ("sentence_transformers", "datasets", "accelerate") if not importlib.util.find_spec(name)
    ]
    if missing:
        print(f"sentence-transformers is left out: {', '.join(missing)} not installed", file=sys.stderr)
        return
    for precision in ("fp32", "bf16"):
        if wanted(name := f"sentence-transformers, {precision}"):
            yield name, partial(bench.sentence_transformers, precision)


def measure_epoch(options: argparse.Namespace, corpus: str, model: str, compile: str) -> dict[str, Any]:
    """Run one epoch by the command that a user types; returns the times of its run.json."""
    with tempfile.TemporaryDirectory(prefix="epoch") as output:
        command = [
            sys.executable, "-m", "train.ddp", "--nproc", "1", "--corpus", corpus, "--model", model, "--output", output,
            "--precision", "auto", "--paper", "--dev", options.dev, "--eval-every", "100",
            "--batch-size", str(options.batch_size), "--device", options.device, "--compile",
            compile if options.device == "cuda" else "off",
            *(["--max-steps", str(options.max_steps)] if options.max_steps else []),
        ]  # fmt: skip
        begun = time.perf_counter()
        done = subprocess.run(command, cwd=ROOT, stderr=subprocess.PIPE, text=True, check=False)
        seconds = time.perf_counter() - begun
        if done.returncode:
            raise InputError(f"the epoch ended with exit code {done.returncode}: {done.stderr.strip()[-2000:]}")
        summary = json.loads((Path(output) / "run.json").read_text(encoding="utf-8"))
    return {**summary["this_process"], "seconds_from_start": seconds, "sentences_of_step": options.batch_size}


def tables(kept: dict[str, Any]) -> list[dict[str, Any]]:
    """The tables of steps, of epochs, and of the shares of an epoch's time."""
    about = kept["about"]
    setting = (
        f"{about['model']}, {about['corpus']}, batch {about['batch']}, two views of {MAX_LENGTH} tokens at most, "
        "dropout 0.1"
    )
    found = []
    if kept["steps"]:
        note = f"{setting}; medians. Negatives of the released code are made beforehand."
        found.append(step_table(f"A training step on {about['device']}", kept["steps"], note))
    if kept["epochs"]:
        note = f"{setting}; alpha {ALPHA}, dev every 100 steps; on {about['device']}."
        found += epoch_tables(kept["epochs"], kept["steps"], note)
    for table in found:
        table["machine"] = about["machine"]
    return found


def epoch_tables(epochs: dict[str, Any], steps: dict[str, Any], note: str) -> list[dict[str, Any]]:
    """The tables of an epoch's time and of the shares of its phases."""
    lines, shares = [], []
    for compile, one in epochs.items():
        taken = one["steps"]
        sentences = taken * one["sentences_of_step"]
        step = steps.get(f"una_fast, bf16{'' if compile == 'off' else f', --compile {compile}'}")
        flops = step and step["flops"] * taken * (1 + 1 / ALPHA)  # a step with negatives has twice the rows
        used = f"{100 * flops / one['seconds'] / step['peak']:.1f} %" if step else ""
        memory = [one["peak_memory"].get(name) for name in ("gpu_reserved_bytes", "resident_bytes")]
        lines.append([
            compile, f"{sentences:,}", f"{taken:,}", shown(one["seconds"], 1), shown(one["seconds_from_start"], 1),
            shown(1000 * one["seconds"] / taken, 2), shown(sentences / one["seconds"], 0), used,
            *(shown(size and size / 2**30, 2) for size in memory),
        ])  # fmt: skip
        share = {**one["share_of_time"], "other": 1 - sum(one["share_of_time"].values())}
        shares.append([compile, *(f"{100 * share.get(phase, 0):.1f} %" for phase in PHASES)])
    if base := steps.get(BASE):
        seconds = taken * mean_step(base["plain"], base["negatives"])
        speed = [shown(1000 * seconds / taken, 2), shown(sentences / seconds, 0)]
        lines.append([f"{BASE}, its steps alone", *lines[-1][1:3], shown(seconds, 1), "", *speed, "", "", ""])
    return [
        {"title": "An epoch of training", "columns": EPOCH_COLUMNS, "rows": lines, "note": note},
        {"title": "Where an epoch's time goes", "columns": ["epoch", *PHASES], "rows": shares, "note": note},
    ]


if __name__ == "__main__":
    sys.exit(main())
