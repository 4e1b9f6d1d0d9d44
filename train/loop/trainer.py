"""Takes the optimiser steps of one rank: batch -> embeddings -> loss of the whole step -> gradients -> new weights.

Letters in shapes: V views, B sentences of a step on all ranks together, b on this rank, D width of an embedding.
"""

from __future__ import annotations

import contextlib
import copy
import math
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from train.config import ResolvedRun, Run
from train.distributed import GradientSum, Ranks, gather, rank_share, set_numerics
from train.encoder.encoder import SentenceEncoder, compile_layers, part_of_ones
from train.encoder.pretrained import DTYPES
from train.loop.data import Batch, Plan
from train.loop.graphs import DEVICE, Graphs
from train.losses import loss_spec
from train.messages import tell_user
from una_fast.errors import InputError
from una_fast.losses import negative_distillation, neighbour_distillation, similarity_distillation


class Step(NamedTuple):
    """The results of an optimiser step, on the rank's device."""

    loss: Tensor  # a scalar, for the whole step
    cosines: Tensor  # (1 or 2, B): of each anchor with its positive and, if the step has negatives, with its negative


class Trainer:
    """One rank's encoder, loss and optimiser. state: read from a checkpoint; None for a new run."""

    def __init__(
        self, run: ResolvedRun, ranks: Ranks, encoder: SentenceEncoder, plan: Plan, state: dict[str, Any] | None = None
    ) -> None:
        set_numerics(ranks.device, run.precision, run.deterministic)
        self.run, self.ranks, self.plan = run, ranks, plan
        self.loss_spec = loss_spec(run.loss)
        options = {parameter: getattr(run, option) for parameter, option in self.loss_spec.options.items()}
        self.loss = partial(self.loss_spec.load(), **options)
        self.encoder = encoder.to(ranks.device)
        weights = {similarity_distillation: run.similarity_distillation}
        weights[negative_distillation] = run.negative_distillation
        weights[neighbour_distillation] = run.neighbour_distillation if run.neighbours else 0.0
        self.distillations = {term: weight for term, weight in weights.items() if weight}  # added to the loss
        self.initial_encoder: SentenceEncoder | None = None  # copied before a checkpoint is loaded
        if self.loss_spec.takes_start or self.distillations or run.blend < 1:
            self.initial_encoder = copy.deepcopy(encoder).eval().requires_grad_(False)
        self.optimizer = adamw(run, self.encoder)
        self.scaler = torch.amp.GradScaler(ranks.device.type, enabled=run.precision == "fp16")
        if state is not None:
            self.encoder.load_state_dict(state["model"])
            self.scaler.load_state_dict(state["scaler"])
            if "optimizer" in state:  # the checkpoint of a finished run, which takes no more steps, lacks it
                self.optimizer.load_state_dict(state["optimizer"])
        # graphs read the learning rate from GPU memory; eager steps on a GPU do too, so that it is rounded equally
        self.rate = torch.zeros((), device=ranks.device) if ranks.device.type == DEVICE else None
        self.sum_gradients = GradientSum(self.encoder, ranks)
        if run.compile == "on":
            compile_layers(self.encoder, self.largest_part(2), self.autocast())
        self.graphs: Graphs | None = None
        if run.compile != "off" and ranks.device.type == DEVICE and not run.grad_cache:
            self.graphs = Graphs(self.eager_step, self.optimizer)
        elif run.compile == "graphs":
            tell_user("--compile graphs: with --grad-cache, steps run eagerly")

    def state(self, with_optimizer: bool = True) -> dict[str, Any]:
        """Return the state for a checkpoint: weights, optimiser and gradient scaler."""
        optimizer = {"optimizer": self.optimizer.state_dict()} if with_optimizer else {}
        return {"model": self.encoder.state_dict(), **optimizer, "scaler": self.scaler.state_dict()}

    def close(self) -> None:
        """Free the graphs' memory."""
        if self.graphs:
            self.graphs.close()

    def largest_part(self, views: int) -> dict[str, Tensor]:
        """Make dummy token ids of the largest shape that the encoder can get at once, in a step with `views` views."""
        rows = views * -(-self.run.batch_size // self.ranks.world)
        return part_of_ones(min(rows, self.run.grad_cache or rows), self.run.max_length, self.ranks.device)

    def try_memory(self) -> None:
        """Tell the user if the GPU's memory is too small for a step in which all texts have --max-length tokens."""
        run = self.run
        part = self.largest_part(2 + (self.loss_spec.negative_views if run.alpha else 0))
        try:
            # the first step allocates AdamW's two moments per weight, unless they came with a checkpoint
            weights = [] if self.optimizer.state else self.encoder.parameters()
            moments = [torch.empty_like(weight) for weight in weights for _ in range(2)]
            with self.autocast():
                self.encoder.embed(part).sum().backward()
            del moments
        except torch.OutOfMemoryError:
            length = f"--max-length {run.max_length}"
            tell_user(f"GPU memory: too small for a step in which all texts have {length} tokens: {remedy(run)}")
        self.optimizer.zero_grad()

    def autocast(self) -> torch.autocast:
        """Make the autocast context for --precision."""
        dtype = DTYPES[self.run.precision]
        return torch.autocast(self.ranks.device.type, dtype, enabled=dtype is not torch.float32)

    def step(self, batch: Batch) -> Step:
        """Take one optimiser step on a batch that is on the device."""
        rate = learning_rate(self.run, batch.step, self.plan.n_steps)
        for group in self.optimizer.param_groups:
            group["lr"] = rate if self.rate is None else self.rate.fill_(rate)
        self._seed(batch.step)
        return self.graphs(batch) if self.graphs else self.eager_step(batch)

    def eager_step(self, batch: Batch) -> Step:
        """Take a step without replaying a CUDA graph, after `step` has set the learning rate and the seed."""
        step = self._backward_cached(batch) if self.run.grad_cache else self._backward(self._encode(batch.parts), batch)
        self.sum_gradients()
        if self.run.max_grad_norm:
            self.scaler.unscale_(self.optimizer)
            nn.utils.clip_grad_norm_(self.encoder.parameters(), self.run.max_grad_norm)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad()
        return step._replace(loss=step.loss.detach())  # a live autograd graph would prevent capturing the next step

    def _seed(self, step: int, part: int = 0) -> None:
        """Set the seed of the dropout masks for a step. part: with --grad-cache, the index of a part of the batch."""
        seeds = np.random.SeedSequence([self.run.seed, step, self.ranks.rank, part])
        torch.manual_seed(int(seeds.generate_state(1, np.uint64)[0]))

    def _backward(self, encoded: Tensor, batch: Batch) -> Step:
        """Compute the gradients of a step. encoded: this rank's embeddings (V b, D), in the order of `batch.parts`."""
        step = self._compare(encoded, batch)
        self.scaler.scale(step.loss).backward()
        return step

    def _backward_cached(self, batch: Batch) -> Step:
        """Compute the gradients of a step with the activations of only one part in memory at a time.

        First encode all parts without an autograd graph, and compute the gradient of the loss for every embedding. Then
        encode each part again, with the same dropout masks, to propagate these gradients into the weights.
        """

        def encode(number: int, part: dict[str, Tensor]) -> Tensor:
            self._seed(batch.step, number)
            return self._encode([part])

        # without gradients, a compiled layer would draw other dropout masks
        with torch.set_grad_enabled(self.encoder.compiled):
            parts = [encode(i, part).detach() for i, part in enumerate(batch.parts)]
        encoded = torch.cat(parts).requires_grad_()
        step = self._backward(encoded, batch)
        assert encoded.grad is not None
        gradients = encoded.grad.split([len(part) for part in parts])
        for i, (part, gradient) in enumerate(zip(batch.parts, gradients, strict=True)):
            encode(i, part).backward(gradient)
        return step

    def _encode(self, parts: list[dict[str, Tensor]]) -> Tensor:
        """Embed the texts of all parts for the loss. Return float32 (V b, D)."""
        with self.autocast():
            return self.encoder(parts).float()

    def _gathered(self, encoded: Tensor, batch: Batch) -> Tensor:
        """Return all ranks' embeddings (V, B, D). encoded: embeddings of this rank (V b, D), in `batch.parts` order."""
        own = encoded[batch.positions].unflatten(0, (batch.n_views, -1))  # (V, b, D)
        return gather(own.transpose(0, 1), len(batch.rows), self.ranks).transpose(0, 1)

    def _compare(self, encoded: Tensor, batch: Batch) -> Step:
        """Compute a step's loss and cosines. encoded: embeddings (V views of b sentences) in `batch.parts` order."""
        views = self._gathered(encoded, batch)
        cosines = functional.cosine_similarity(views[:1].detach(), views[1:3].detach(), dim=-1)
        start: Any = None  # the first and the last view, embedded by the initial encoder (2, B, D), if needed
        if self.initial_encoder and (self.loss_spec.takes_start or self.distillations):
            with torch.no_grad(), self.autocast():
                before = self._gathered(self.initial_encoder(batch.parts).float(), batch)
                start = torch.stack([before[0], before[-1]])  # indexing with a list would copy it from the CPU
        loss = self.loss(views, **({"start": start} if self.loss_spec.takes_start else {}))
        if not isinstance(loss, Tensor) or loss.ndim:
            made = f"a tensor of shape {tuple(loss.shape)}" if isinstance(loss, Tensor) else f"{loss!r:.80}"
            raise InputError(f"--loss: the function returned {made}: it must return a tensor with one number")
        for distillation, weight in self.distillations.items():
            loss = loss + weight * distillation(views, start)
        return Step(loss, cosines)

    @contextlib.contextmanager
    def evaluating(self) -> Iterator[None]:
        """Put the encoder in evaluation mode for the with block. Compiled layers run eagerly, without recompilation."""
        with torch.compiler.set_stance("force_eager") if self.encoder.compiled else contextlib.nullcontext():
            self.encoder.eval()
            yield
            self.encoder.train()

    @contextlib.contextmanager
    def blended(self) -> Iterator[None]:
        """Give the encoder the weights of best/ for the with block: --blend of the way from the initial weights."""
        if self.run.blend == 1 or self.initial_encoder is None:
            yield
            return
        weights = [*self.encoder.parameters()]
        with torch.no_grad():
            trained = [weight.clone() for weight in weights]
            for weight, initial in zip(weights, self.initial_encoder.parameters(), strict=True):
                weight.lerp_(initial, 1 - self.run.blend)
        try:
            yield
        finally:
            with torch.no_grad():
                for weight, own in zip(weights, trained, strict=True):
                    weight.copy_(own)

    def embed(self, batch: dict[str, Tensor]) -> Tensor:
        """Embed a batch of dev sentences without the head. Each rank embeds a share, and returns all embeddings."""
        n = len(batch["input_ids"])
        share = rank_share(n, self.ranks.rank, self.ranks.world)
        n_own = share.stop - share.start
        own = {name: ids[share] if n_own else ids[:1] for name, ids in batch.items()}
        with self.autocast():
            embeddings = self.encoder.embed(own)
        return gather(embeddings.float()[:n_own], n, self.ranks)


def remedy(run: Run) -> str:
    """Return advice for a GPU that is out of memory."""
    cache = f"--grad-cache {max(1, (run.grad_cache or run.batch_size) // 2)}"
    precision = ["--precision bf16"] if run.precision == "fp32" else []
    return f"give {', '.join([cache, *precision, 'a lower --batch-size'])} or a lower --max-length"


def adamw(run: ResolvedRun, model: nn.Module) -> torch.optim.AdamW:
    """Make AdamW for the weights that are not frozen. Biases and normalisation weights do not decay."""
    decayed: list[nn.Parameter] = []
    plain: list[nn.Parameter] = []
    for name, weight in model.named_parameters():
        if weight.requires_grad:
            (plain if weight.ndim < 2 or name.endswith("bias") else decayed).append(weight)
    groups = [{"params": decayed, "weight_decay": run.weight_decay}, {"params": plain, "weight_decay": 0.0}]
    return torch.optim.AdamW([group for group in groups if group["params"]], lr=run.learning_rate, fused=True)


def learning_rate(run: ResolvedRun, step: int, n_steps: int) -> float:
    """Compute the learning rate of a step, as transformers' `get_*_schedule_with_warmup` does."""
    warmup = math.ceil(run.warmup_steps * n_steps) if run.warmup_steps < 1 else int(run.warmup_steps)
    if step < warmup:
        return run.learning_rate * step / warmup
    f = (step - warmup) / max(1, n_steps - warmup)
    factor = {"constant": 1.0, "linear": 1 - f, "cosine": (1 + math.cos(math.pi * f)) / 2}
    return run.learning_rate * factor[run.schedule]
