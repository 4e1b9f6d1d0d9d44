"""One rank's model and optimiser: a batch -> embeddings -> loss of the whole step -> gradients -> new weights."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from train.config.run import Run
from train.encoder.encoder import SentenceEncoder
from train.encoder.graphs import Graphs
from train.encoder.ready_mask import takes_ready_mask
from train.objective.cosines import cosines
from train.objective.masking import Masked
from train.objective.registry import loss_row
from train.record.timing import Stopwatch
from train.steps.batches import Batch
from train.steps.plan import Plan, rank_share
from train.steps.ranks import Ranks, averaging_gradients, gather, gather_rows
from train.steps.views import StepNoise

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def step_seed(seed: int, step: int, rank: int, part: int = 0) -> int:
    """Seed of the dropout masks of one rank in one step (and of one part, if parts are encoded twice)."""
    return int(np.random.SeedSequence([seed, step, rank, part]).generate_state(1, np.uint64)[0])


def learning_rate(run: Run, step: int, n_steps: int) -> float:
    """The learning rate of optimiser step `step`, counted from 0: constant, or falling linearly to 0 after the last."""
    assert run.learning_rate is not None
    return run.learning_rate * (1 - step / n_steps if run.schedule == "linear" else 1)


class Trainer:
    """One rank's model and optimiser. state: that of the checkpoint from which they go on, or None."""

    def __init__(
        self,
        run: Run,
        ranks: Ranks,
        encoder: SentenceEncoder,
        plan: Plan,
        state: dict | None = None,
        noise: StepNoise | None = None,
    ) -> None:
        self.run, self.ranks, self.plan, self.noise = run, ranks, plan, noise
        self.loss = loss_row(run.loss).load()
        self.encoder = encoder.to(ranks.device)
        if ranks.device.type == "cuda":
            self.encoder.ready_mask = takes_ready_mask(self.encoder.backbone)
        trained = [parameter for parameter in self.encoder.parameters() if parameter.requires_grad]
        self.optimizer = torch.optim.AdamW(
            trained, lr=learning_rate(run, 0, plan.n_steps), weight_decay=0.0, fused=True
        )
        self.scaler = torch.amp.GradScaler(ranks.device.type, enabled=run.precision == "fp16")
        if state is not None:
            self.encoder.load_state_dict(state["model"])
            if "optimizer" in state:  # the checkpoint of a finished run has none, because no step follows
                self.optimizer.load_state_dict(state["optimizer"])
            self.scaler.load_state_dict(state["scaler"])
        self.model = averaging_gradients(self.encoder, ranks)
        self.watch = Stopwatch(ranks.device)
        self.cosines = torch.empty(0, 0)  # of the last step, see `train.objective.cosines`
        self._warm_up()
        if run.compile == "graphs":
            self.encoder.graphs = Graphs(self.encoder.backbone, self.encoder.embed, ranks.device, self.autocast)

    def state(self) -> dict[str, Any]:
        """The state for a checkpoint: weights, optimiser and gradient scaler."""
        return {
            "model": self.encoder.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scaler": self.scaler.state_dict(),
        }

    def _warm_up(self) -> None:
        """Run one backward pass and discard its gradients.

        DDP orders its buckets by its first pass, and the order decides how sums over ranks are rounded: without this
        the first step after --resume would be rounded unlike the same step of an uninterrupted run.
        """
        if self.ranks.world > 1:
            ids = torch.ones(1, 4, dtype=torch.int64, device=self.ranks.device)
            part = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
            masked = Masked(part, ids[0, :0], ids[0, :0]) if self.encoder.mlm else None
            rows, loss = self._split_output(self.model([part], masked))
            (rows.sum() + loss).backward()
            self.optimizer.zero_grad()

    def autocast(self) -> torch.autocast:
        """The autocast context for the encoder's --precision."""
        dtype = DTYPES[self.run.precision]
        # the cache saves casting a weight for every part; a GPU has one part, and a captured graph allows no cache
        on_cpu = self.ranks.device.type == "cpu"
        return torch.autocast(self.ranks.device.type, dtype, enabled=dtype is not torch.float32, cache_enabled=on_cpu)

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
            torch.manual_seed(step_seed(self.run.seed, batch.step, self.ranks.rank))
            with self.autocast():
                encoded, masked_loss = self._split_output(self.model(batch.parts, batch.masked))
            loss = self._loss(encoded.float(), batch)
        if batch.masked is None:
            with self.watch.phase("backward"):
                self.scaler.scale(loss).backward()
            return loss
        n_masked, whole = self._sums_over_ranks(batch.masked, masked_loss)
        share = self.run.mlm_weight / n_masked
        with self.watch.phase("backward"):
            # DDP averages gradients over the ranks; times their number, they belong to the mean over all masked tokens
            self.scaler.scale(loss + self.ranks.world * share * masked_loss).backward()
        return loss + share * whole

    @staticmethod
    def _split_output(output: Tensor | tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor | float]:
        """The embeddings in an encoder's output, and the sum of the masked tokens' losses, 0 if it has none."""
        return output if isinstance(output, tuple) else (output, 0.0)

    def _sums_over_ranks(self, masked: Masked, loss: Tensor | float) -> tuple[Tensor, Tensor]:
        """The number of masked tokens of all ranks, at least 1, and the sum of their losses: scalars on the device."""
        assert isinstance(loss, Tensor)
        sums = torch.stack([torch.full_like(loss.detach(), len(masked.targets)), loss.detach()])
        if self.ranks.world > 1:
            dist.all_reduce(sums)
        return sums[0].clamp(min=1), sums[1]

    def _encode(self, step: int, parts: list[dict[str, Tensor]], part: int = 0) -> Tensor:
        torch.manual_seed(step_seed(self.run.seed, step, self.ranks.rank, part))
        with self.autocast():
            return self.model(parts).float()

    def _loss(self, encoded: Tensor, batch: Batch) -> Tensor:
        """The loss of the whole step from this rank's encoded rows (rows, D)."""
        own = encoded[batch.place].unflatten(0, (batch.n_views, batch.sizes[self.ranks.rank]))  # (V, b, D)
        views = gather(own, batch.sizes, self.ranks.rank)  # (V, B, D)
        self.cosines = cosines(views.detach())
        if self.noise:
            views = self.noise(views, batch.epoch, batch.rows)
        return self.loss(views, self.run.temperature)

    def _backward_cached(self, batch: Batch) -> Tensor:
        """`_backward` with the activations of only one part at a time in memory; the gradient is the same.

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
        """Embeddings (B, D), without the head, for the dev evaluation; the ranks divide the rows of the batch."""
        n = len(batch["input_ids"])
        sizes = [len(range(n)[rank_share(n, rank, self.ranks.world)]) for rank in range(self.ranks.world)]
        own = rank_share(n, self.ranks.rank, self.ranks.world)
        mine = {name: ids[own] if sizes[self.ranks.rank] else ids[:1] for name, ids in batch.items()}
        with self.autocast():
            embeddings = self.encoder.embed(mine)
        return gather_rows(embeddings.float()[: sizes[self.ranks.rank]], sizes, self.ranks.rank)
