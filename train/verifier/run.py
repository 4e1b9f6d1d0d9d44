"""Trains a verifier: makes the pairs, encodes their texts, takes the steps, and writes the folder."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from train.distributed import Ranks, StopConsensus
from train.encoder.pretrained import quiet
from train.evaluation.model import pick_device
from train.loop.telemetry import trim_metrics
from train.messages import STDERR, progress_bar, tell_user
from train.record.checkpoint import Progress, load_run, write_checkpoint
from train.record.environment import machine, peak_memory, versions
from train.record.folder import METRICS, SUMMARY, VERIFIER, is_finished, output_folder, resume_advice
from train.signals import Stopped, leave_at_once, raise_stopped, signals_handled, stop_then_end
from train.verifier.data import Pairs, make_pairs
from train.verifier.options import VerifierOptions
from una_fast.command import options_of
from una_fast.errors import InputError, counted
from una_fast.pair_scores import PairScores
from una_fast.storage.files import write_json
from una_fast.verify.encoder import TokenEncoder, open_encoder
from una_fast.verify.model import make_batch
from una_fast.verify.verifier import Verifier, VerifierSettings, write_folder

WARM_UP = 50  # steps
SMOOTHING = 0.03  # of labels, because some of the made pairs are wrong
WEIGHT_DECAY, LARGEST_GRADIENT = 0.01, 1.0
LOWEST_RATE = 0.02  # share of the learning rate at the last step
LEAST_SHARED = 0.35  # of the distinct tokens; pairs with less in common are left to the cosine
MOST_REJECTED = 0.04  # share of the held-back pairs of the same meaning that the threshold rejects


def train_verifier(options: VerifierOptions) -> int:
    """Train with these options, and return the exit code. Tell the user why a run ends early."""
    output = Path(options.output)
    if options.width % 4:
        raise InputError(f"--width {options.width}: must be a multiple of 4")
    try:
        with signals_handled(raise_stopped), output_folder(output, VERIFIER, options.resume, vars(options)):
            return _train(options, output)
    except Stopped as stopped:
        tell_user(f"stopped by {stopped}: {resume_advice(output)}")
        return 128 + stopped.number


def _train(options: VerifierOptions, output: Path) -> int:
    quiet()
    if options.resume and is_finished(output):
        tell_user(f"{output}: already finished")
        return 0
    device = pick_device(options.device)
    encoder = open_encoder(options.model)
    encoder.network.to(device)
    pairs = make_pairs(options, encoder)
    summary = _summary(options, encoder, pairs)
    progress, state = Progress(), None
    if options.resume:
        progress, state = load_run(output, summary["resume_fingerprint"])
    pairs.encode(encoder)
    settings = VerifierSettings(
        encoder.digest, encoder.width, scripts=pairs.scripts, least_shared=0.0 if options.pairs else LEAST_SHARED,
        width=options.width, layers=options.layers,
        note={"corpus": [Path(name).name for name in options.corpus], "seed": options.seed},
    )  # fmt: skip
    steps = Steps(options, settings, pairs, encoder, device)
    status, started = "failed", time.perf_counter()
    try:
        status = "finished" if steps.take(output, progress, state, summary) else "stopped"
    finally:
        done = {"progress": vars(steps.progress), "this_process": {"seconds": time.perf_counter() - started}}
        done["this_process"]["peak_memory"] = peak_memory()
        scores = steps.write(output) if status == "finished" else {}
        write_json(output / SUMMARY, {"status": status, **summary, **done, "scores": scores})
    steps.stop.check()
    tell_user(f"finished after {counted(options.max_steps, 'step')}: {output}; {scores['said']}")
    return 0


def _summary(options: VerifierOptions, encoder: TokenEncoder, pairs: Pairs) -> dict[str, Any]:
    """Return what run.json records from the start."""
    known = options_of(VerifierOptions).values()
    results = {option.flag: getattr(options, option.name) for option in known if option.role == "result"}
    fingerprint = {**results, "training pairs": pairs.digest, "encoder": encoder.digest}
    about = {"settings": vars(options), "resume_fingerprint": fingerprint, "pairs": pairs.counts()}
    return {"command": VERIFIER, **about, "versions": versions(), "machine": machine()}


class Steps:
    """The optimiser steps of a run. Each depends only on the seed and its number, so a stop costs nothing."""

    def __init__(
        self,
        options: VerifierOptions,
        settings: VerifierSettings,
        pairs: Pairs,
        encoder: TokenEncoder,
        device: torch.device,
    ):
        self._options, self._settings, self._pairs = options, settings, pairs
        self._encoder, self._device = encoder, device
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(options.seed % 2**64)
            self.model = settings.model().to(device)
        self.model.dropout = options.dropout
        weights = self.model.parameters()
        self._optimizer = torch.optim.AdamW(weights, lr=options.learning_rate, weight_decay=WEIGHT_DECAY)
        self.progress, self.stop = Progress(), StopConsensus(Ranks(0, 1, 0, device))

    def take(self, output: Path, start: Progress, state: dict[str, Any] | None, summary: Mapping[str, Any]) -> bool:
        """Take all steps from `start` on. Return False if a signal stopped the run, after saving a checkpoint."""
        if state:
            self.model.load_state_dict(state["model"])
            self._optimizer.load_state_dict(state["optimizer"])
        self.progress = start
        n, every = self._options.max_steps, self._options.save_every
        write_json(output / SUMMARY, {"status": "running", **summary, "progress": vars(start)})
        trim_metrics(output, start)
        words = self._encoder.words
        with (
            signals_handled(stop_then_end(self.stop.note, leave_at_once)),
            (output / METRICS).open("a", encoding="utf-8", buffering=1) as metrics,
            closing(progress_bar(start.step, n, "step")) as bar,
        ):
            bar.write(f"training on {self._device.type}: steps {start.step:,} to {n:,}", file=STDERR)
            for step in range(start.step, n):
                loss = self._step(step, words)
                metrics.write(json.dumps({"step": step, "loss": loss}) + "\n")
                bar.set_postfix({"loss": f"{loss:.4g}"}, refresh=False)
                bar.update()
                self.progress = replace(self.progress, step=step + 1)
                try:
                    self.stop.check()
                except Stopped:
                    self._save(output)
                    return False
                if (step + 1) % every == 0 and step + 1 < n:
                    self._save(output)
        return True

    def _step(self, step: int, words: torch.Tensor) -> float:
        rate = min(1.0, (step + 1) / WARM_UP) * max(LOWEST_RATE, 1 - step / self._options.max_steps)
        for group in self._optimizer.param_groups:
            group["lr"] = self._options.learning_rate * rate
        chosen, labels = self._pairs.batch(step, self._options.batch_size, self._options.seed)
        batch = make_batch(chosen, words).to(self._device)
        target = torch.from_numpy(labels).to(self._device) * (1 - 2 * SMOOTHING) + SMOOTHING
        devices = [self._device] if self._device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices):
            torch.manual_seed((self._options.seed * 1_000_003 + step) % 2**64)  # of the dropout
            logits = self.model.train()(batch)
        loss = functional.binary_cross_entropy_with_logits(logits, target)
        if not math.isfinite(value := loss.item()):
            raise InputError(f"step {step}: the loss is {value}: try a lower --learning-rate")
        self._optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), LARGEST_GRADIENT)
        self._optimizer.step()
        return value

    def _save(self, output: Path) -> None:
        state = {"model": self.model.state_dict(), "optimizer": self._optimizer.state_dict()}
        write_checkpoint(output, self.progress, state)

    def write(self, output: Path) -> dict[str, Any]:
        """Write the verifier, and return its scores on the pairs that were held back from the training."""
        self._encoder.network.cpu()
        with TemporaryDirectory() as folder:  # which rounds the weights to fp16
            write_folder(Path(folder), self._settings, self.model, self._encoder.name)
            verifier = Verifier(folder, encoder=self._encoder)
        pairs, labels = self._pairs.held_back()
        found = verifier.near_miss(pairs)
        verifier.calibrate([(*pair, 1 - label) for pair, label in zip(pairs, labels, strict=True)], MOST_REJECTED)
        verifier.save(output)
        scores = PairScores.of(-found[labels == 0], -found[labels == 1])
        rejected = float(np.mean(found[labels == 1] > verifier.threshold))
        said = (
            f"of the {len(labels):,} pairs held back, AUC {scores.auc:.1%}, {rejected:.1%} of the near-misses rejected"
        )
        return {"auc": scores.auc, "rejected": rejected, "threshold": verifier.threshold, "said": said}
