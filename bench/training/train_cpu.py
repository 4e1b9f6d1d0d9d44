"""Time a training step on this CPU, and compare it with sentence-transformers' trainer.

``python -m bench.training.train_cpu --corpus FILE --model FOLDER`` uses batches of 64, two views, 32 tokens and dropout
0.1. Contenders take turns on the same sentences and threads; each figure is the median of the turns. With
`--compile on`, the first compilation is timed too.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from bench.training.contenders import ALPHA, MAX_LENGTH, Bench, Contender, measure
from bench.training.step_table import described, save, shown
from train.encoder.pretrained import load_config, quiet
from una_fast.command import run_command
from una_fast.parallel import n_cores
from una_fast.text_table import aligned

RESULT = Path(__file__).parents[1] / "results" / "train_compiled.json"
COLUMNS = [
    "contender", "plain step, ms", "with negatives, ms", f"mean, negatives on every {ALPHA}th step, ms",
    "sentences/s, plain", "plain speed relative to sentence-transformers, fp32",
]  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", required=True, help="file of sentences")
    parser.add_argument("--model", required=True, help="folder of a BERT encoder")
    parser.add_argument("--batch-size", type=int, default=64, help="sentences per step [64]")
    parser.add_argument("--rounds", type=int, default=3, help="how often each contender is timed [3]")
    parser.add_argument("--json", type=Path, default=RESULT, help="file for the result")
    parser.add_argument("--processor-time", action="store_true", help="processor time of one thread, for busy machines")
    options = parser.parse_args(argv)
    quiet()
    torch.set_num_threads(1 if options.processor_time else n_cores(None))
    with tempfile.TemporaryDirectory() as folder:
        return run_command(lambda: run(options, folder), "train")


def run(options: argparse.Namespace, folder: str) -> None:
    """Measure all contenders, save the table and print it."""
    clock = time.process_time if options.processor_time else time.perf_counter
    bench = Bench(options.corpus, options.model, folder, "cpu", options.batch_size, clock)
    compiled = [compiled_step(bench, precision, folder) for precision in ("fp32", "bf16")]
    contenders = [*map(bench.ours, ("fp32", "bf16")), *(contender for contender, _ in compiled)]
    contenders += map(bench.sentence_transformers, ("fp32", "bf16"))
    found = measure(contenders, options.rounds, plain=2, negatives=1)
    base = statistics.median(found["sentence-transformers, fp32"]["plain"])
    rows, kept = [], {}
    for name, times in found.items():
        plain, negatives = (statistics.median(part) if part else None for part in times.values())
        assert plain is not None
        mean = None if negatives is None else plain + (negatives - plain) / ALPHA
        kept[name] = {"plain": plain, "negatives": negatives, "sentences": options.batch_size}
        cells = [shown(cell and 1000 * cell, 1) for cell in (plain, negatives, mean)]
        rows.append([name, *cells, shown(options.batch_size / plain, 0), shown(base / plain, 2)])
    config = load_config(options.model, 0.1)
    how = "the processor time of one thread" if options.processor_time else f"the time with {n_cores(None)} threads"
    first = " and ".join(f"{seconds:.0f} s for {contender.name}" for contender, seconds in compiled)
    note = (
        f"The model is {config.model_type.upper()} with {config.num_hidden_layers} layers of width "
        f"{config.hidden_size}. A batch has {options.batch_size} sentences in two views of up to {MAX_LENGTH} tokens, "
        f"or in four views with negatives. Dropout is 0.1. Times are medians of {how}. The first compilation takes "
        f"{first}."
    )
    title = "torch.compile of a training step on the CPU"
    save(options.json, [{"title": title, "columns": COLUMNS, "rows": rows, "machine": described(), "note": note}], kept)
    print(*aligned([COLUMNS, *rows], left=(0,)), "", note, sep="\n")


def compiled_step(bench: Bench, precision: str, folder: str) -> tuple[Contender, float]:
    """Return the compiled step, and the processor seconds of compiling it with an empty kernel cache."""
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = f"{folder}/kernels-{precision}"
    torch._inductor.config.compile_threads = 1  # in this process, whose time is measured
    begun = sum(os.times()[:4])  # of this process and of the C++ compiler
    contender = bench.ours(precision, "on")
    return contender, sum(os.times()[:4]) - begun


if __name__ == "__main__":
    sys.exit(main())
