"""The contenders whose training step is measured, all on the same sentences and the same encoder.

They are this project's step and sentence-transformers' trainer. Steps are numbered from 0, and every ALPHA-th step uses
negatives, as in training.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import una_fast
from train.config import PAPER_SETTINGS, make_run
from train.distributed import Ranks, set_numerics
from train.launch.prepare import PreparedRun
from train.loop.data import PARTS, BatchMaker, Plan, Views, original_text, prefetched
from train.loop.trainer import Trainer
from train.losses import LOSSES
from una_fast.errors import InputError

MAX_LENGTH, ALPHA = 32, 5


@dataclass(frozen=True)
class Contender:
    """A training step to measure.

    take: takes the steps with these numbers, and returns the mean seconds per step.
    negatives: whether there are steps with negatives.
    """

    name: str
    take: Callable[[Sequence[int]], float]
    negatives: bool = True

    def measure(self, turn: int, plain: int, negatives: int) -> dict[str, float]:
        """Return the mean seconds of steps without and with negatives: {"plain": ..., "negatives": ...}.

        turn: how many measurements came before, whose steps are not repeated. plain, negatives: the numbers of steps.
        """
        n = ALPHA * (plain + negatives)
        numbers = range(turn * n, (turn + 1) * n)
        found = {}
        if self.negatives and negatives:
            found["negatives"] = self.take([number for number in numbers if number % ALPHA == 0][:negatives])
        return found | {"plain": self.take([number for number in numbers if number % ALPHA][:plain])}


class Bench:
    """The corpus, its batches, and the settings that all contenders share.

    corpus: file of sentences; model: folder of the encoder; folder: for the index and other files of a run; batch:
    sentences per batch; clock: returns the current time in seconds.
    """

    def __init__(
        self, corpus: str, model: str, folder: str, device: str, batch: int, clock: Callable[[], float]
    ) -> None:
        self.values: dict[str, Any] = {
            "corpus": (corpus,), "model": model, "output": folder, "device": device, "batch_size": batch,
            "max_length": MAX_LENGTH, "schedule": "constant", "precision": "fp32", **PAPER_SETTINGS,
        }  # fmt: skip
        prepared = PreparedRun(make_run(self.values))
        prepared.corpus.make_index()
        self.batch, self.device, self.clock = batch, torch.device(device), clock
        run, self.index = prepared.run, prepared.corpus.index
        self.una = una_fast.Augmenter(self.index, tokenizer=prepared.tokenizer, n_jobs=1)
        self.plan = Plan(prepared.corpus.rows, run.batch_size, run.seed, run.epochs, run.max_steps)
        self._rows = [rows for _, _, rows in self.plan.batches() if len(rows) == batch]

    def rows(self, number: int) -> NDArray[np.int64]:
        """Return the rows of step `number`, int64 (batch,). A short corpus is repeated."""
        return self._rows[number % len(self._rows)]

    def seconds(self, work: Callable[[], object], steps: int) -> float:
        """Return the seconds of `work`, including its work on the device, divided by `steps`."""
        self._wait()
        begun = self.clock()
        work()
        self._wait()
        return (self.clock() - begun) / steps

    def _wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    @contextmanager
    def _numerics(self, trainer: Trainer) -> Iterator[None]:
        """Use the numerical settings of a training in the with block; other contenders use PyTorch's defaults."""
        set_numerics(trainer.ranks.device, trainer.run.precision, trainer.run.deterministic)
        try:
            yield
        finally:
            torch.use_deterministic_algorithms(False)
            torch.set_float32_matmul_precision("highest")

    def ours(self, precision: str, compile: str = "off") -> Contender:
        """Return this project's step; a background thread makes its batches, as in training."""
        prepared = PreparedRun(make_run({**self.values, "precision": precision}))
        place = torch.device("cuda", 0) if self.device.type == "cuda" else self.device
        trainer = Trainer(replace(prepared.run, compile=compile), Ranks(0, 1, 0, place), prepared.encoder, self.plan)
        if compile == "on" and not trainer.encoder.compiled:
            raise InputError("--compile on: the encoder cannot be compiled on this machine; see the message above")
        n_views = LOSSES["pairs"].negative_views
        views = Views(original_text(self.una.tokens), None, self.una.token_ids, MAX_LENGTH, ALPHA, n_views)
        make = BatchMaker(views, 0, 1, **PARTS[self.device.type]).make

        def take(steps: Sequence[int]) -> float:
            batches = prefetched(((number, 0, self.rows(number)) for number in steps), make)
            with self._numerics(trainer):
                return self.seconds(lambda: [trainer.step(batch.to(place)) for batch in batches], len(steps))

        how = "" if compile == "off" else f", --compile {compile}"
        return Contender(f"una_fast, {precision}{how}", take)

    def sentence_transformers(self, precision: str) -> Contender:
        """Return sentence-transformers' trainer with MultipleNegativesRankingLoss, without hard negatives."""
        from sentence_transformers import SentenceTransformer

        model = SentenceTransformer(str(self.values["model"]), device=self.device.type)
        model.max_seq_length = MAX_LENGTH

        def take(steps: Sequence[int]) -> float:
            first = [steps[0]] * (2 if self.device.type == "cpu" else 5)  # not measured: they set up buffers
            return self._run_sentence_transformers(model, precision, [*first, *steps], len(steps))

        return Contender(f"sentence-transformers, {precision}", take, negatives=False)

    def _run_sentence_transformers(self, model: Any, precision: str, steps: list[int], measured: int) -> float:
        """Return the mean seconds per step over the last `measured` steps."""
        from datasets import Dataset
        from sentence_transformers import SentenceTransformerTrainer
        from sentence_transformers import SentenceTransformerTrainingArguments as Arguments
        from sentence_transformers.losses import MultipleNegativesRankingLoss
        from transformers import PrinterCallback, TrainerCallback

        ends: list[float] = []
        wait, clock = self._wait, self.clock

        class Clock(TrainerCallback):
            def on_step_end(self, *args: object, **kwargs: object) -> None:
                if len(ends) in (len(steps) - measured - 1, len(steps) - 1):
                    wait()
                ends.append(clock())

        texts = [self.index.sentence(row) for number in steps for row in self.rows(number)]
        with tempfile.TemporaryDirectory() as output:
            arguments = Arguments(
                output_dir=output, per_device_train_batch_size=self.batch, max_steps=len(steps), learning_rate=3e-5,
                use_cpu=self.device.type == "cpu", bf16=precision == "bf16", fp16=precision == "fp16",
                report_to="none", save_strategy="no", logging_strategy="no", disable_tqdm=True,
            )  # fmt: skip
            pairs = Dataset.from_dict({"anchor": texts, "positive": texts})
            loss = MultipleNegativesRankingLoss(model)
            trainer = SentenceTransformerTrainer(model, arguments, pairs, loss=loss, callbacks=[Clock()])
            trainer.remove_callback(PrinterCallback)
            trainer.train()
        return (ends[-1] - ends[-1 - measured]) / measured
