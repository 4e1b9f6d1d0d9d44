"""sentence-transformers' trainer with negatives of each kind, and without: seconds a step and preparation time.

``python -m bench.training.trainers --corpus FILE --model FOLDER``: MultipleNegativesRankingLoss, 32 tokens. The data
loader has no workers: in the process of training, the time of a batch adds to that of the step and can be seen. The
ways take turns of the same number of steps; each figure is the median of the turns. Shares of a step are shares of
processor time, which other programs disturb less: the time of a batch, made on one thread, divided by the time of a
step over its threads. The share of negatives is the time of a batch beyond that of a batch with the same columns from a
file, at least 0.
"""

from __future__ import annotations

import argparse
import logging
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import torch
from datasets import Dataset, disable_progress_bars
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from sentence_transformers.util import mine_hard_negatives
from transformers import PrinterCallback, TrainerCallback

import una_fast
from bench.training.contenders import MAX_LENGTH
from bench.training.step_table import RESULTS, described, save, show, sizes
from train.config.command import run_command
from train.encoder.pretrained import quiet
from una_fast.errors import InputError
from una_fast.integrations import Negatives
from una_fast.integrations.sentence_transformers import RowCollator, row_dataset

COLUMNS = [
    "way", "preparation, s", "a batch, ms", "a step, ms", "sentences/s", "batch, of a step", "negatives, of a step"
]  # fmt: skip
WARM_UP = 2  # steps of a turn that are not counted
Moment: TypeAlias = tuple[float, float]
FROZEN = "UNA's negatives of one epoch, in a file"


@dataclass
class Seconds:
    """Seconds of each turn."""

    wall: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)  # processor time of all threads together

    def add(self, begun: Moment, ended: Moment, n: int) -> None:
        """Add the seconds of one of `n` steps or batches that were made between two moments."""
        self.wall.append((ended[0] - begun[0]) / n)
        self.processor.append((ended[1] - begun[1]) / n)

    def medians(self) -> Moment:
        """(wall, processor)."""
        return statistics.median(self.wall), statistics.median(self.processor)


@dataclass
class Way:
    """A way to train, and its measured seconds. prepare: returns the dataset and the collator for the trainer."""

    name: str
    prepare: Callable[[], tuple[Dataset, RowCollator | None]]
    columns: int
    preparation: float = 0.0
    batches: Seconds = field(default_factory=Seconds)
    steps: Seconds = field(default_factory=Seconds)


class Bench:
    """The sentences and the encoder, on which each way is measured."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self.options, self.folder = options, folder
        self.texts = list(islice(una_fast.build_index(options.corpus), options.sentences))
        self.model = SentenceTransformer(options.model, device=options.device)
        self.model.max_seq_length = MAX_LENGTH
        needed = (options.steps + WARM_UP) * options.batch_size
        if len(self.texts) < needed:
            raise InputError(
                f"--corpus {options.corpus}: {len(self.texts)} sentences, and {needed} are needed: --steps"
            )

    def ways(self) -> list[Way]:
        """All ways."""
        return [
            Way("no negatives", self.no_negatives, 2),
            Way(FROZEN, self.frozen, 3),
            Way("UNA by text", self.by_text, 3),
            Way("UNA by rows", self.by_rows, 3),
            Way("mine_hard_negatives", self.mined, 3),
        ]

    def no_negatives(self) -> tuple[Dataset, None]:
        """Each sentence as anchor and as positive."""
        return Dataset.from_dict({"anchor": self.texts, "positive": self.texts}), None

    def by_text(self) -> tuple[Dataset, None]:
        """Negatives are drawn as text, and tokenized by the trainer's collator."""
        negatives = Negatives(una_fast.Augmenter(self.index("text"), n_jobs=1))
        return negatives.select(Dataset.from_dict({"text": self.texts})).with_transform(negatives), None

    def by_rows(self) -> tuple[Dataset, RowCollator]:
        """Negatives are drawn as token ids."""
        una = una_fast.Augmenter(self.index("rows"), tokenizer=self.model.tokenizer, n_jobs=1)
        return row_dataset(una), RowCollator(una, MAX_LENGTH)

    def frozen(self) -> tuple[Dataset, None]:
        """The columns of `by_text`, drawn once before training."""
        columns, _ = self.by_text()
        return Dataset.from_dict(columns[:]), None

    def mined(self) -> tuple[Dataset, None]:
        """Negatives that sentence-transformers finds for each sentence with the encoder itself."""
        pairs, _ = self.no_negatives()
        return mine_hard_negatives(
            pairs, self.model, num_negatives=1, range_min=1, batch_size=self.options.batch_size, verbose=False
        ), None

    def index(self, name: str) -> una_fast.Index:
        """A new index of the sentences, saved."""
        index = una_fast.build_index(self.texts, n_jobs=1)
        index.save(self.folder / name)
        return index

    def turn(self, way: Way, dataset: Dataset, collator: RowCollator | None) -> None:
        """Measure some batches without training, then the same number of steps."""
        options, ends = self.options, list[Moment]()
        trainer = SentenceTransformerTrainer(
            self.model, self._arguments(), dataset, loss=MultipleNegativesRankingLoss(self.model),
            data_collator=collator, callbacks=[_Clock(ends)],
        )  # fmt: skip
        trainer.remove_callback(PrinterCallback)
        batches = iter(trainer.get_train_dataloader())
        next(batches)
        begun = now()
        made = sum(1 for _ in islice(batches, options.steps))
        way.batches.add(begun, now(), made)
        trainer.train()
        way.steps.add(ends[WARM_UP - 1], ends[-1], options.steps)

    def _arguments(self) -> SentenceTransformerTrainingArguments:
        options = self.options
        return SentenceTransformerTrainingArguments(
            output_dir=str(self.folder / "output"), per_device_train_batch_size=options.batch_size,
            max_steps=options.steps + WARM_UP, learning_rate=1e-6, use_cpu=options.device == "cpu",
            bf16=options.precision == "bf16", report_to="none", save_strategy="no", logging_strategy="no",
            disable_tqdm=True,
        )  # fmt: skip


class _Clock(TrainerCallback):
    """Records the moment when each step has ended, on the device too."""

    def __init__(self, ends: list[Moment]) -> None:
        self.ends = ends

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        self.ends.append(now())


def now() -> Moment:
    """Wall-clock seconds, and processor seconds of all threads of this process."""
    return time.perf_counter(), time.process_time()


def run(options: argparse.Namespace, folder: Path) -> None:
    """Measure and save."""
    bench = Bench(options, folder)
    ways, read = bench.ways(), {}
    for way in ways:
        begun = time.perf_counter()
        read[way.name] = way.prepare()
        way.preparation = time.perf_counter() - begun
    for _ in range(options.rounds):
        for way in ways:
            bench.turn(way, *read[way.name])
    tables = [table(ways, bench)]
    measured = {
        way.name: {"preparation": way.preparation, "batches": vars(way.batches), "steps": vars(way.steps)}
        for way in ways
    }
    save(Path(options.json), tables, measured)
    show(tables)


def table(ways: Sequence[Way], bench: Bench) -> dict[str, Any]:
    """A table in the form that bench/report.py reads."""
    _, frozen = next(way.batches.medians() for way in ways if way.name == FROZEN)
    rows, options = [], bench.options
    for way in ways:
        (batch, busy), (step, used) = way.batches.medians(), way.steps.medians()
        alone = used / torch.get_num_threads() if options.device == "cpu" else step  # time of a step without other load
        added = f"{100 * max(0, busy - frozen) / alone:.2f} %" if way.name.startswith("UNA by") else ""
        times = [f"{way.preparation:,.1f}", f"{1e3 * batch:.2f}", f"{1e3 * step:,.1f}"]
        rows.append([way.name, *times, f"{options.batch_size / step:,.0f}", f"{100 * busy / alone:.2f} %", added])
    return {
        "title": "sentence-transformers' trainer with negatives of each kind",
        "columns": COLUMNS,
        "rows": rows,
        "machine": described(),
        "note": f"{sizes(options.model)}, {len(bench.texts):,} sentences, batch {options.batch_size}, "
        f"{options.precision} on {options.device}; MultipleNegativesRankingLoss; no workers; medians of "
        f"{options.rounds} turns of {options.steps} steps; shares are of processor time.",
    }


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--model", required=True, help="folder or name of an encoder")
    parser.add_argument("--sentences", type=int, default=10_000, help="of the corpus, all of which are prepared")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--steps", type=int, default=10, help="of a turn")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--json", default=str(RESULTS / "trainers.json"), help="where the result goes")
    options = parser.parse_args(argv)
    quiet()
    logging.getLogger("sentence_transformers").setLevel(logging.ERROR)
    disable_progress_bars()
    with tempfile.TemporaryDirectory() as folder:
        return run_command(lambda: run(options, Path(folder)), "train")


if __name__ == "__main__":
    sys.exit(main())
