"""Time of a training step on this CPU, compared with the released code's and with sentence-transformers' trainer.

``python -m bench.training.train_cpu --corpus FILE --model FOLDER --released FOLDER``: the released settings (batch
64, two views, 32 tokens, dropout 0.1). Contenders take turns on the same sentences and threads; each figure is the
median of the turns. --released names a checkout of the authors' code, from which its model, tokenisation and loss
are imported.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from bench.training.contenders import MAX_LENGTH, Bench, measure
from bench.training.step_table import RESULTS, save, show, sizes, step_table, summarise
from train.config.command import run_command
from train.encoder.pretrained import quiet
from una_fast.parallel import n_cores


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--model", required=True, help="folder of a BERT encoder")
    parser.add_argument("--released", help="checkout of the authors' code")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", default=str(RESULTS / "train_cpu.json"), help="where the result goes")
    parser.add_argument("--processor-time", action="store_true", help="processor time of one thread, for busy machines")
    options = parser.parse_args(argv)
    quiet()
    torch.set_num_threads(1 if options.processor_time else n_cores(None))
    with tempfile.TemporaryDirectory() as folder:
        return run_command(lambda: run(options, folder), "train")


def run(options: argparse.Namespace, folder: str) -> None:
    """Measure and save."""
    clock = time.process_time if options.processor_time else time.perf_counter
    bench = Bench(options.corpus, options.model, folder, "cpu", options.batch_size, clock)
    contenders = [
        bench.ours("fp32"),
        bench.ours("bf16"),
        bench.batches_alone(),
        *([bench.released(options.released)] if options.released else []),
        bench.sentence_transformers("fp32"),
        bench.sentence_transformers("bf16"),
    ]
    kept = summarise(measure(contenders, options.rounds, plain=2, negatives=1), bench, contenders)
    how = "processor time of one thread" if options.processor_time else f"{n_cores(None)} threads"
    note = (
        f"{sizes(options.model)}, batch {options.batch_size}, two views of {MAX_LENGTH} tokens at most, "
        f"dropout 0.1; {how}; medians."
    )
    tables = [step_table("A training step on the CPU", kept, note)]
    save(Path(options.json), tables, kept)
    show(tables)


if __name__ == "__main__":
    sys.exit(main())
