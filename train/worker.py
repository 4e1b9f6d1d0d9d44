"""One rank, from joining the others to its outcome; the same whether `--nproc` or torchrun started it."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

import torch.distributed as dist

import una_fast
from train.checkpoint import Progress, has_checkpoint, load_checkpoint
from train.config import Run
from train.data import BatchMaker
from train.distributed import Ranks, join, leave
from train.encoder import load_config, load_encoder, load_tokenizer, quiet, weights_digest
from train.files import FolderLock, write_json
from train.loop import Loop, Outcome, Trainer
from train.losses import NEGATIVE_VIEWS
from train.prepare import SUMMARY, Material, check_output, make_index, settle
from train.sts import PairScorer, load_dev
from train.telemetry import machine, peak_memory, profile_table, versions
from una_fast.errors import InputError
from una_fast.index import Index
from una_fast.tokens import TokenIds

# options that may change when a run goes on: where and how it runs, not what it computes
MAY_CHANGE = frozenset(
    {"corpus", "model", "output", "nproc", "device", "index", "paraphrases", "dev", "save_every", "resume",
     "max_restarts", "profile", "demo"}
)  # fmt: skip


def work(run: Run) -> Outcome:
    """Train as one rank of the group that the environment describes. run: settled, its index on the disk."""
    quiet()
    ranks = join(run.device)
    try:
        return _train(run, ranks)
    finally:
        leave()


def work_under_torchrun(run: Run) -> Outcome:
    """The same where torchrun started this process: the first rank of each machine prepares what all then use."""
    quiet()
    run = dataclasses.replace(settle(run), nproc=int(os.environ["LOCAL_WORLD_SIZE"]))
    ranks = join(run.device)
    try:
        _in_turn(ranks, run)
        return _train(run, ranks)
    finally:
        leave()


def _in_turn(ranks: Ranks, run: Run) -> None:
    """Let rank 0 check the output and the first rank of each machine make the index; its InputError is everyone's."""
    error = None
    restarted = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0
    try:
        if ranks.first and not restarted:
            check_output(run)
        if ranks.local_rank == 0:
            make_index(run, print if ranks.first else lambda message: None)
    except InputError as caught:
        error = str(caught)
    errors: list[Any] = [None] * ranks.world
    dist.all_gather_object(errors, error)
    for message in filter(None, errors):
        raise InputError(message)


def _train(run: Run, ranks: Ranks) -> Outcome:
    lock = FolderLock(Path(run.output)) if ranks.first else None
    try:
        loop, about = _assemble(run, ranks)
        outcome = loop()
        if ranks.first:
            _summarise(loop, outcome, about)
        return outcome
    finally:
        if lock:
            lock.release()


def _assemble(run: Run, ranks: Ranks) -> tuple[Loop, dict[str, Any]]:
    """The loop of this rank, at the step where it starts; and what run.json says of the run."""
    index = una_fast.load_index(run.index)
    tokenizer = load_tokenizer(run.model)
    material = Material.of(run, index)
    encoder = load_encoder(run.model, load_config(run.model, run.dropout), run.seed)
    identity = {
        "settings": {name: value for name, value in vars(run).items() if name not in MAY_CHANGE},
        "corpus": {"fingerprint": index.fingerprint},
        "model": {"xxh3_128 of its weights": weights_digest(encoder.backbone)},
    }
    progress, state = _starting_point(run, identity)
    about = {
        "settings": vars(run),
        "versions": versions(),
        "machine": machine(),
        "ranks": ranks.world,
        "corpus": {**material.counts(), "sources": index.sources},
        "identity": identity,
    }
    if ranks.first:
        write_json(Path(run.output) / SUMMARY, {"status": "running", **about})
    trainer = Trainer(run, ranks, encoder, material.plan(run), progress, state)
    scorer = PairScorer([load_dev(run.dev)], tokenizer, device=ranks.device) if run.dev else None
    return Loop(trainer, _batch_maker(run, ranks, index, tokenizer, material), scorer, tokenizer, identity), about


def _starting_point(run: Run, identity: dict[str, Any]) -> tuple[Progress, dict[str, Any] | None]:
    """last/ for --resume and for ranks that the launcher started again; else the beginning."""
    output = Path(run.output)
    restarted = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0
    if run.resume or (restarted and has_checkpoint(output)):
        return load_checkpoint(output, identity)
    return Progress(), None


def _batch_maker(run: Run, ranks: Ranks, index: Index, tokenizer: Any, material: Material) -> BatchMaker:
    augmenter = None
    if run.augment == "una":
        augmenter = una_fast.Augmenter(
            index, run.beta, run.radius, run.seed, run.select, run.replace, run.variant, tokenizer, n_jobs=1
        )
    on_gpu = ranks.device.type == "cuda"
    return BatchMaker(
        tokens=augmenter.tokens if augmenter else TokenIds(index, tokenizer),
        augmenter=augmenter,
        max_length=run.max_length,
        alpha=run.alpha,
        negative_views=NEGATIVE_VIEWS[run.loss],
        paraphrase_offset=material.paraphrase_offset,
        rank=ranks.rank,
        world=ranks.world,
        rows_of_part=run.grad_cache,
        by_length=not on_gpu,
        pin=on_gpu,
    )


def _summarise(loop: Loop, outcome: Outcome, about: dict[str, Any]) -> None:
    """Write run.json, and say where the time went if asked to."""
    watch = loop.trainer.watch
    shares = {name: seconds / loop.seconds for name, seconds in watch.seconds.items()}
    write_json(
        Path(loop.run.output) / SUMMARY,
        {
            "status": outcome.status,
            **about,
            "progress": vars(outcome.progress),
            "scores": {"stsb_dev": outcome.progress.best_score, "stsb_dev_last": outcome.progress.last_score},
            "this_process": {
                "steps": loop.steps_here,
                "seconds": loop.seconds,
                "share_of_time": shares,
                "share_of_time_making_batches_beside": loop.batches_busy / loop.seconds,
                "peak_memory": peak_memory(),
            },
        },
    )
    if loop.run.profile:
        loop.recorder.say(profile_table(dict(watch.seconds), loop.seconds, loop.steps_here, loop.batches_busy))
        peak = ", ".join(f"{name} {size / 2**20:.0f} MiB" for name, size in peak_memory().items())
        loop.recorder.say(f"peak memory of rank 0: {peak}")
