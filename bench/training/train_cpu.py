"""Time a training step on this CPU, and compare it with sentence-transformers' trainer.

``python -m bench.training.train_cpu --corpus FILE --model FOLDER`` uses batches of 64, two views, 32 tokens and dropout
0.1. Contenders take turns on the same sentences and threads; each figure is the median of the turns. The first
compilation of this project's step is timed too.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import torch

from bench import script
from bench.report import described, save_tables, shown
from bench.training.contenders import ALPHA, MAX_LENGTH, Bench, Contender
from train.encoder.pretrained import load_config, quiet
from una_fast.parallel import n_cores
from una_fast.text_table import aligned

COLUMNS = [
    "contender", "plain step, ms", "with negatives, ms", f"mean, negatives on every {ALPHA}th step, ms",
    "sentences/s, plain", "plain speed relative to sentence-transformers, fp32",
]  # fmt: skip


def compiled_step(bench: Bench, precision: str, folder: str) -> tuple[Contender, float]:
    """Return the compiled step, and the processor seconds of compiling it with an empty kernel cache."""
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = f"{folder}/kernels-{precision}"
    torch._inductor.config.compile_threads = 1  # in this process, whose time is measured
    begun = sum(os.times()[:4])  # of this process and of the C++ compiler
    contender = bench.ours(precision, "on")
    return contender, sum(os.times()[:4]) - begun


def measure(corpus: Path, model: Path, batch_size: int, rounds: int, json: Path, processor_time: bool) -> None:
    """Measure all contenders, save the table and print it."""
    quiet()
    torch.set_num_threads(1 if processor_time else n_cores(None))
    clock = time.process_time if processor_time else time.perf_counter
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(str(corpus), str(model), folder, "cpu", batch_size, clock)
        compiled = [compiled_step(bench, precision, folder) for precision in ("fp32", "bf16")]
        contenders = [*map(bench.ours, ("fp32", "bf16")), *(contender for contender, _ in compiled)]
        contenders += map(bench.sentence_transformers, ("fp32", "bf16"))
        for contender in contenders:
            contender.take([1])
        turns = [[one.measure(turn, 2, 1) for one in contenders] for turn in range(rounds)]
    found = {
        contender.name: {part: statistics.median(turn[part] for turn in its) for part in its[0]}
        for contender, *its in zip(contenders, *turns, strict=True)
    }
    base, rows = found["sentence-transformers, fp32"]["plain"], []
    for name, times in found.items():
        plain, negatives = times["plain"], times.get("negatives")
        mean = None if negatives is None else plain + (negatives - plain) / ALPHA
        cells = [shown(cell and 1000 * cell, 1) for cell in (plain, negatives, mean)]
        rows.append([name, *cells, shown(batch_size / plain, 0), shown(base / plain, 2)])
    config = load_config(str(model), 0.1)
    how = "the processor time of one thread" if processor_time else f"the time with {n_cores(None)} threads"
    first = " and ".join(f"{seconds:.0f} s for {contender.name}" for contender, seconds in compiled)
    note = (
        f"The model is {config.model_type.upper()} with {config.num_hidden_layers} layers of width "
        f"{config.hidden_size}. A batch has {batch_size} sentences in two views of up to {MAX_LENGTH} tokens, "
        f"or in four views with negatives. Dropout is 0.1. Times are medians of {how}. The first compilation takes "
        f"{first}."
    )
    title = "torch.compile of a training step on the CPU"
    table = {"title": title, "columns": COLUMNS, "rows": rows, "machine": described(), "note": note}
    save_tables(json, [table], {name: {**times, "sentences": batch_size} for name, times in found.items()})
    print(*aligned([COLUMNS, *rows], left=(0,)), "", note, sep="\n")


if __name__ == "__main__":
    sys.exit(
        script.run(
            __doc__,
            measure,
            corpus={"help": "file of sentences", "type": Path},
            model={"help": "folder of a BERT encoder", "type": Path},
            batch_size={"type": int, "default": 64, "help": "sentences per step [64]"},
            rounds={"type": int, "default": 3, "help": "how often each contender is timed [3]"},
            json={"type": Path, "default": script.RESULTS / "train_compiled.json", "help": "file for the result"},
            processor_time={"action": "store_true", "help": "processor time of one thread, for busy machines"},
        )
    )
