"""The training loop of one rank: batches -> embeddings -> loss -> optimiser; evaluation, checkpoints, leaving."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from train.checkpoint import CheckpointWriter, Progress, save_best
from train.config import Run
from train.data import Batch, BatchMaker, Plan, Prefetcher, share
from train.distributed import FAILED, Ranks, StopAgreement, gather, gather_rows, parallel
from train.encoder import SentenceEncoder
from train.evaluation.first_token import first_token_only
from train.evaluation.linear import packed_linears
from train.losses import LOSSES
from train.sts import PairScorer
from train.telemetry import LateLosses, Recorder, Stopwatch
from una_fast.errors import InputError

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
WAIT_WARNING = 0.05  # share of the time waiting for data that a user should hear of
WAIT_STEPS = 20  # steps before that share means anything


def step_seed(seed: int, step: int, rank: int, part: int = 0) -> int:
    """Seed of the dropout masks of one rank in one step (and part, where parts are encoded twice)."""
    return int(np.random.SeedSequence([seed, step, rank, part]).generate_state(1, np.uint64)[0])


def learning_rate(run: Run, step: int, n_steps: int) -> float:
    """The rate of optimiser step `step`, counted from 0: constant, or falling on a line that ends at 0."""
    assert run.learning_rate is not None
    return run.learning_rate * (1 - step / n_steps if run.schedule == "linear" else 1)


@dataclass(frozen=True)
class Outcome:
    """How the loop ended: "finished", "stopped" by signal `code`, or "failed" with a message."""

    status: str
    progress: Progress
    code: int = 0
    message: str = ""


class Trainer:
    """One rank's model, optimiser and place in the run."""

    def __init__(
        self,
        run: Run,
        ranks: Ranks,
        encoder: SentenceEncoder,
        plan: Plan,
        progress: Progress,
        state: dict | None,
    ) -> None:
        self.run, self.ranks, self.plan, self.progress = run, ranks, plan, progress
        self.encoder = encoder.to(ranks.device)
        trained = [parameter for parameter in self.encoder.parameters() if parameter.requires_grad]
        self.optimizer = torch.optim.AdamW(
            trained, lr=learning_rate(run, 0, plan.n_steps), weight_decay=0.0, fused=True
        )
        self.scaler = torch.amp.GradScaler(ranks.device.type, enabled=run.precision == "fp16")
        if state is not None:
            self.encoder.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.scaler.load_state_dict(state["scaler"])
        self.model = parallel(self.encoder, ranks)
        self.watch = Stopwatch(wait=run.profile)
        self._warm_up()

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps besides the progress."""
        return {
            "model": self.encoder.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scaler": self.scaler.state_dict(),
        }

    def _warm_up(self) -> None:
        """One backward pass whose gradients are thrown away.

        DDP orders its buckets by the first pass it sees, and the order decides how sums over ranks round: without
        this the first step after --resume would round unlike the same step of an uninterrupted run.
        """
        if self.ranks.world > 1:
            ids = torch.ones(1, 4, dtype=torch.int64, device=self.ranks.device)
            self.model([{"input_ids": ids, "attention_mask": torch.ones_like(ids)}]).sum().backward()
            self.optimizer.zero_grad()

    def autocast(self) -> torch.autocast:
        """The arithmetic of the encoder."""
        dtype = DTYPES[self.run.precision]
        return torch.autocast(self.ranks.device.type, dtype, enabled=dtype is not torch.float32)

    def step(self, batch: Batch) -> Tensor:
        """One optimiser step; returns the loss of the whole step, a scalar on the device."""
        rate = learning_rate(self.run, batch.step, self.plan.n_steps)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        loss = self._backward_cached(batch) if self.run.grad_cache else self._backward(batch)
        with self.watch.phase("optimiser"):
            self.scaler.step(self.optimizer)
            self.scaler.update()
            self.optimizer.zero_grad()
        return loss

    def _backward(self, batch: Batch) -> Tensor:
        with self.watch.phase("forward"):
            loss = self._loss(self._encode(batch.step, batch.parts), batch)
        with self.watch.phase("backward"):
            self.scaler.scale(loss).backward()
        return loss

    def _encode(self, step: int, parts: list[dict[str, Tensor]], part: int = 0) -> Tensor:
        torch.manual_seed(step_seed(self.run.seed, step, self.ranks.rank, part))
        with self.autocast():
            return self.model(parts).float()

    def _loss(self, encoded: Tensor, batch: Batch) -> Tensor:
        """The loss of the whole step from this rank's encoded rows (rows, D)."""
        own = encoded[batch.place].unflatten(0, (batch.n_views, batch.sizes[self.ranks.rank]))  # (V, b, D)
        views = gather(own, batch.sizes, self.ranks.rank)  # (V, B, D)
        return LOSSES[self.run.loss](views, self.run.temperature)

    def _backward_cached(self, batch: Batch) -> Tensor:
        """The same gradient with the activations of one part at a time in memory.

        All parts are encoded without a graph, the loss gives the gradient of every embedding, and each part is
        encoded once more, under the same dropout masks, to carry its gradient on into the weights.
        """
        with self.watch.phase("forward"):
            with torch.no_grad():
                encoded = torch.cat([self._encode(batch.step, [part], i) for i, part in enumerate(batch.parts)])
            encoded.requires_grad_()
            loss = self._loss(encoded, batch)
        with self.watch.phase("backward"):
            self.scaler.scale(loss).backward()
            assert encoded.grad is not None
            gradients = encoded.grad.split([len(part["input_ids"]) for part in batch.parts])
            for i, (part, gradient) in enumerate(zip(batch.parts, gradients, strict=True)):
                last = i == len(batch.parts) - 1
                with contextlib.nullcontext() if last else self._no_sync():
                    self._encode(batch.step, [part], i).backward(gradient)
        return loss

    def _no_sync(self) -> contextlib.AbstractContextManager:
        return self.model.no_sync() if self.ranks.world > 1 else contextlib.nullcontext()  # type: ignore[operator]

    def embed(self, batch: dict[str, Tensor]) -> Tensor:
        """Raw [CLS] embeddings (B, D) of a batch whose rows all ranks share out; for the dev evaluation."""
        n = len(batch["input_ids"])
        sizes = [len(range(n)[share(n, rank, self.ranks.world)]) for rank in range(self.ranks.world)]
        own = share(n, self.ranks.rank, self.ranks.world)
        mine = {name: ids[own] if sizes[self.ranks.rank] else ids[:1] for name, ids in batch.items()}
        with self.autocast():
            cls = self.encoder.backbone(**mine).last_hidden_state[:, 0]
        return gather_rows(cls.float()[: sizes[self.ranks.rank]], sizes, self.ranks.rank)


class Loop:
    """Drives a Trainer through its steps, and keeps what the steps leave behind."""

    def __init__(
        self,
        trainer: Trainer,
        make: BatchMaker,
        scorer: PairScorer | None,
        tokenizer: Any,
        identity: dict[str, Any],
    ) -> None:
        self.trainer, self.make, self.scorer, self.tokenizer = trainer, make, scorer, tokenizer
        self.run, self.progress = trainer.run, trainer.progress
        self.output = Path(self.run.output)
        first = trainer.ranks.first
        self.writer = CheckpointWriter(self.output, identity) if first else None
        self.recorder = Recorder(self.output, first, self.progress.step, trainer.plan.n_steps)
        self.losses = LateLosses(trainer.ranks.device)
        self.stop = StopAgreement(trainer.ranks)
        self.error: InputError | None = None
        self.seconds = 0.0  # of the loop, in this process
        self.steps_here = 0  # steps taken by this process
        self.batches_busy = 0.0  # seconds the background thread worked

    def __call__(self) -> Outcome:
        """Train to the end, a signal or an error."""
        begun = time.perf_counter()
        try:
            return self._train()
        except InputError as error:  # a NaN loss: every rank sees it at the same step
            return Outcome("failed", self.progress, message=str(error))
        finally:
            self.seconds = time.perf_counter() - begun
            if self.writer:
                self._guarded(self.writer.wait)
            self._guarded(self.recorder.close)
            self.stop.close()

    def _train(self) -> Outcome:
        batches = Prefetcher(self.trainer.plan, self.make, self.progress.step)
        try:
            code = self._steps(batches)
        finally:
            batches.close()
            self.batches_busy = batches.busy
        if not code and self.scorer and self.progress.evaluated_step != self.progress.step:
            self._evaluate()
        if code != FAILED:
            self._save()
        if self.writer:
            self._guarded(self.writer.wait)
        if self.error or code == FAILED or self.stop.now() == FAILED:
            return Outcome("failed", self.progress, message=str(self.error or ""))
        return Outcome("stopped" if code else "finished", self.progress, code)

    def _steps(self, batches: Prefetcher) -> int:
        """Take steps until the end (0), or the code by which all ranks agreed to stop."""
        warned = False
        ended = time.perf_counter()
        for batch in self._timed(batches):
            loss = self.trainer.step(batch.to(self.trainer.ranks.device))
            self.progress.step = batch.step + 1
            self.steps_here += 1
            now = time.perf_counter()
            rate = learning_rate(self.run, batch.step, self.trainer.plan.n_steps)
            about = {"step": batch.step, "lr": rate, "negatives": batch.negatives}
            self.losses.push(loss, {**about, "sentences_per_second": sum(batch.sizes) / (now - ended)})
            self._record_losses()
            if not warned and self.steps_here >= WAIT_STEPS:
                warned = self._warn_of_waiting(batches.waited)
            if self._evaluation_due():
                self._evaluate()
            if self._save_due():
                self._save()
            if self.writer and self.writer.failed():
                self._guarded(self.writer.wait)
            if code := self.stop.after_step():
                return code
            ended = time.perf_counter()
        return 0

    def _timed(self, batches: Prefetcher) -> Any:
        iterator = iter(batches)
        while True:
            with self.trainer.watch.phase("data"):
                batch = next(iterator, None)
            if batch is None:
                return
            yield batch

    def _record_losses(self, all_of_them: bool = False) -> None:
        for record in self.losses.due(all_of_them):
            self._guarded(partial(self.recorder.step, **record))

    def _warn_of_waiting(self, waited: float) -> bool:
        spent = sum(self.trainer.watch.seconds.values())
        if waited < WAIT_WARNING * spent:
            return False
        self.recorder.say(
            f"warning: steps wait for data {100 * waited / spent:.0f} % of the time: the index may lie on a slow disk, "
            "or other programs use the processor"
        )
        return True

    def _evaluation_due(self) -> bool:
        return self.scorer is not None and self.progress.step % self.run.eval_every == 0

    def _save_due(self) -> bool:
        return self.progress.step % (self.run.save_every or self.run.eval_every) == 0

    def _evaluate(self) -> None:
        """Score the dev pairs on all ranks, and keep the encoder if it is the best so far."""
        self._record_losses(all_of_them=True)
        assert self.scorer is not None
        encoder = self.trainer.encoder
        with (
            self.trainer.watch.phase("evaluation"),
            packed_linears(encoder),
            first_token_only(encoder.backbone),
        ):
            self.trainer.encoder.eval()
            # ranks that gather rows must take the batches in one order; one rank alone may take several at once
            threads = 1 if self.trainer.ranks.world > 1 else None
            (score,) = self.scorer(self.trainer.embed, threads).values()
            self.trainer.encoder.train()
        progress = self.progress
        progress.last_score, progress.evaluated_step = score, progress.step
        best = math.isfinite(score) and (progress.best_score is None or score > progress.best_score)
        if best:
            progress.best_score, progress.best_step = score, progress.step
            self._keep_best({"step": progress.step, "stsb_dev": score})
        self._guarded(lambda: self.recorder.evaluation(progress.step, score, best))

    def _keep_best(self, note: dict[str, Any]) -> None:
        if self.trainer.ranks.first:
            with self.trainer.watch.phase("saving"):
                self._guarded(lambda: save_best(self.output, self.trainer.encoder.backbone, self.tokenizer, note))

    def _save(self) -> None:
        """Write last/; without dev pairs the newest encoder also counts as the best."""
        self._record_losses(all_of_them=True)
        if self.scorer is None:
            self._keep_best({"step": self.progress.step})
        if self.writer:
            with self.trainer.watch.phase("saving"):
                self._guarded(self.recorder.flush)
                self._guarded(lambda: self.writer.save(self.progress, self.trainer.state()))  # type: ignore[union-attr]

    def _guarded(self, action: Callable[[], None]) -> None:
        """Do what only rank 0 does; if that fails, all ranks are asked to stop, so that none waits for it."""
        try:
            action()
        except (InputError, OSError) as error:
            self.error = self.error or InputError(str(error))
            self.stop.fail()
