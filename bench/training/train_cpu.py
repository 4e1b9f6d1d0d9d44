"""Time a training step on this CPU, and compare it with the released code and sentence-transformers' trainer.

``python -m bench.training.train_cpu --corpus FILE --model FOLDER --released FOLDER`` uses the released settings (batch
64, two views, 32 tokens, dropout 0.1). Contenders take turns on the same sentences and threads; each figure is the
median of the turns. --released names a checkout of the authors' code, from which its model, tokenisation and loss are
imported. --compiled compares `--compile on` with the eager step and sentence-transformers, and times the first
compilation.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from bench.training.contenders import MAX_LENGTH, Bench, Contender, measure
from bench.training.step_table import COLUMNS, RESULTS, save, show, shown, sizes, step_table, summarise
from train.encoder.pretrained import quiet
from una_fast.command import run_command
from una_fast.parallel import n_cores


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", required=True, help="file of sentences")
    parser.add_argument("--model", required=True, help="folder of a BERT encoder")
    parser.add_argument("--released", help="checkout of the authors' code")
    parser.add_argument("--compiled", action="store_true", help="also measure the compiled step")
    parser.add_argument("--batch-size", type=int, default=64, help="sentences per step [64]")
    parser.add_argument("--rounds", type=int, default=3, help="how often each contender is timed [3]")
    parser.add_argument("--json", help="file for the result")
    parser.add_argument("--processor-time", action="store_true", help="processor time of one thread, for busy machines")
    options = parser.parse_args(argv)
    options.json = options.json or str(RESULTS / ("train_compiled.json" if options.compiled else "train_cpu.json"))
    quiet()
    torch.set_num_threads(1 if options.processor_time else n_cores(None))
    with tempfile.TemporaryDirectory() as folder:
        return run_command(lambda: run(options, folder), "train")


def run(options: argparse.Namespace, folder: str) -> None:
    """Measure all contenders, save the table and print it."""
    clock = time.process_time if options.processor_time else time.perf_counter
    bench = Bench(options.corpus, options.model, folder, "cpu", options.batch_size, clock)
    compiled = [compiled_step(bench, precision, folder) for precision in ("fp32", "bf16") if options.compiled]
    contenders = [
        bench.ours("fp32"),
        bench.ours("bf16"),
        *(contender for contender, _ in compiled),
        *([] if options.compiled else [bench.batches_alone()]),
        *([bench.released(options.released)] if options.released else []),
        bench.sentence_transformers("fp32"),
        bench.sentence_transformers("bf16"),
    ]
    kept = summarise(measure(contenders, options.rounds, plain=2, negatives=1), bench, contenders)
    how = "the processor time of one thread" if options.processor_time else f"the time with {n_cores(None)} threads"
    note = (
        f"The model is {sizes(options.model)}. A batch has {options.batch_size} sentences in two views of up to "
        f"{MAX_LENGTH} tokens, or in four views with negatives. Dropout is 0.1. Times are medians of {how}."
    )
    table = step_table("A training step on the CPU", kept, note)
    if options.compiled:  # only ratios, which are also meaningful on a busy machine
        kept = {name: {part: row[part] for part in ("plain", "negatives", "sentences")} for name, row in kept.items()}
        base = kept["sentence-transformers, fp32"]["plain"]
        first = " and ".join(f"{taken:.0f} s in {contender.precision}" for contender, taken in compiled)
        table |= {
            "title": "torch.compile of a training step on the CPU",
            "columns": [*COLUMNS[:5], "plain speed relative to sentence-transformers, fp32"],
            "rows": [[*row[:5], shown(base / kept[row[0]]["plain"], 2)] for row in table["rows"]],
            "note": f"{note} The first compilation takes {first}.",
        }
    save(Path(options.json), [table], kept)
    show([table])


def compiled_step(bench: Bench, precision: str, folder: str) -> tuple[Contender, float]:
    """Return the compiled step, and the processor seconds of compiling it with an empty kernel cache."""
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = f"{folder}/kernels-{precision}"
    torch._inductor.config.compile_threads = 1  # in this process, whose time is measured
    begun = sum(os.times()[:4])  # of this process and of the C++ compiler
    contender = bench.ours(precision, "on")
    return contender, sum(os.times()[:4]) - begun


if __name__ == "__main__":
    sys.exit(main())
