"""One rank, from joining the others to its outcome; the same whether `--nproc` or torchrun started it."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeVar, cast

import torch.distributed as dist

import una_fast
from train.config.run import Run, arguments_of
from train.encoder.encoder import SentenceEncoder, encoder_of, load_tokenizer, quiet, weights_digest
from train.evaluation.pair_scorer import PairScorer
from train.evaluation.tasks.sts import load_dev
from train.job.prepare import Material, check_output, make_index, open_index, settle
from train.objective.losses import NEGATIVE_VIEWS
from train.objective.noise.registry import noise_of
from train.record.checkpoint import load_checkpoint
from train.record.files import FolderLock, write_json
from train.record.folder import SUMMARY, note_written, remove_own_files
from train.record.machine import machine, peak_memory, versions
from train.record.pointer import Progress, has_checkpoint
from train.record.timing import profile_table
from train.steps.batches import CPU_PARTS, GPU_PARTS, BatchMaker, gpu_column_multiple
from train.steps.loop import Loop, Outcome
from train.steps.ranks import Ranks, end_with_launcher, join, leave
from train.steps.trainer import Trainer
from train.steps.views import Altered, Sentences, Source, Views
from una_fast.augment.radius import resolve_radius
from una_fast.augment.registry import make_augmentation
from una_fast.errors import InputError
from una_fast.index.index import Index
from una_fast.tokens.ids import TokenIds

T = TypeVar("T")
TRAINING = "training"  # what a rank tells its launcher when it begins to take steps


def work(run: Run, started: Callable[[], None] = lambda: None) -> Outcome:
    """Train as one rank of the group that the environment describes. run: settled, its index on the disk.

    started: called when this rank is ready to take steps, and from then on saves before it obeys a signal.
    """
    quiet()
    ranks = join(run.device)
    try:
        return _train(run, ranks, started)
    except InputError as error:  # returned, not raised: the launcher would start the ranks again
        return Outcome("failed", Progress(), message=str(error))
    finally:
        leave()


def rank_process(run: Run, environment: dict[str, str], reply: Connection) -> None:
    """`work` in a process of its own, which tells its launcher TRAINING, then the outcome or the error that ends it."""
    end_with_launcher()
    os.environ.update(environment)
    try:
        reply.send(work(run, lambda: reply.send(TRAINING)))
    except Exception as error:
        reply.send(f"{type(error).__name__}: {error}".strip().splitlines()[-1])
        raise


def work_under_torchrun(run: Run) -> tuple[Run, Outcome]:
    """The same where torchrun started this process: the first rank of each machine prepares what all then use.

    Returns the settled run beside its outcome.
    """
    quiet()
    end_with_launcher()
    run = dataclasses.replace(settle(run), nproc=int(os.environ["LOCAL_WORLD_SIZE"]))
    ranks = join(run.device)
    try:
        _together(ranks, lambda: _prepare(ranks, run))
        return run, _train(run, ranks, lambda: None)
    finally:
        leave()


def _together(ranks: Ranks, action: Callable[[], T]) -> T:
    """Do `action` on all ranks; if it fails on any, raise its InputError on all, so that none waits for another."""
    result, error = None, None
    try:
        result = action()
    except InputError as caught:
        error = str(caught)
    errors: list[str | None] = [None] * ranks.world
    dist.all_gather_object(errors, error)
    for message in filter(None, errors):
        raise InputError(message)
    return cast(T, result)


def _prepare(ranks: Ranks, run: Run) -> None:
    if ranks.first and not restarted():
        check_output(run)
    if ranks.local_rank == 0:
        make_index(run, print if ranks.first else lambda message: None)
    if ranks.first and not (run.resume or restarted()):
        remove_own_files(Path(run.output))


def restarted() -> bool:
    """True if the launcher started this rank again after one died."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0


def _train(run: Run, ranks: Ranks, started: Callable[[], None]) -> Outcome:
    job = _together(ranks, lambda: Job.load(run, ranks))
    try:
        plan = job.material.plan(run)
        trainer = Trainer(run, ranks, job.encoder, plan, job.progress, job.state, noise_of(run))
        loop = Loop(trainer, job.batch_maker(), job.scorer, job.tokenizer, job.identity)
        started()
        outcome = loop()
        if ranks.first:
            _summarise(loop, outcome, job.about())
        return outcome
    finally:
        if job.lock:
            job.lock.release()


def identify(run: Run, index: Index, encoder: SentenceEncoder) -> dict[str, Any]:
    """What a checkpoint knows its run by: settings, corpus and model. run: settled."""
    return {
        "settings": run.identity(),
        "corpus": {"fingerprint": index.fingerprint},
        "model": {"xxh3_128 of its weights": weights_digest(encoder.backbone)},
    }


@dataclasses.dataclass
class Job:
    """All that one rank needs before it meets the others; loading it finds what is wrong with it."""

    run: Run
    ranks: Ranks
    lock: FolderLock | None  # of the output folder; rank 0 holds it
    index: Index
    tokenizer: Any
    material: Material
    encoder: SentenceEncoder
    scorer: PairScorer | None
    identity: dict[str, Any]  # by which a checkpoint knows its run again
    progress: Progress
    state: dict[str, Any] | None  # of the checkpoint to go on from

    @classmethod
    def load(cls, run: Run, ranks: Ranks) -> Job:
        """Open the index and load the model and, to go on, the checkpoint."""
        lock = FolderLock(Path(run.output)) if ranks.first else None
        index = open_index(run)
        tokenizer = load_tokenizer(run.model, run.trust_remote_code)
        encoder = encoder_of(run)
        identity = identify(run, index, encoder)
        material = Material.of(run, index)
        scorer = None
        if run.dev:
            layout = encoder.layout
            scorer = PairScorer(
                [load_dev(run.dev)], tokenizer, layout.max_length, device=ranks.device, prepared=layout.prepared
            )
        start = _starting_point(run, identity)
        job = cls(run, ranks, lock, index, tokenizer, material, encoder, scorer, identity, *start)
        if ranks.first:
            note_written(Path(run.output), [SUMMARY])
            write_json(Path(run.output) / SUMMARY, {"status": "running", **job.about()})
        return job

    def about(self) -> dict[str, Any]:
        """What run.json says of the run, however it ends."""
        return {
            "settings": vars(self.run),
            "resolved": {"radius": resolve_radius(self.run.radius, self.index.n_terms, self.run.window)},
            "versions": versions(),
            "machine": machine(),
            "ranks": self.ranks.world,
            "corpus": {**self.material.counts(), "sources": self.index.sources},
            "identity": self.identity,
        }

    def batch_maker(self) -> BatchMaker:
        """What turns rows of the index into this rank's batches."""
        run, augmenter = self.run, None
        if run.augment == "una":
            law = arguments_of(una_fast.Augmenter, vars(run))
            augmenter = una_fast.Augmenter(self.index, **law, tokenizer=self.tokenizer, n_jobs=1)
        tokens = augmenter.tokens if augmenter else TokenIds(self.index, self.tokenizer)
        assert tokens is not None
        few_shapes = self.ranks.device.type == "cuda" or run.compile != "off"
        return BatchMaker(
            views=Views(
                anchor=Sentences(tokens),
                positive=self._positives(tokens),
                negative=Altered(augmenter) if augmenter else None,
                max_length=run.max_length,
                alpha=run.alpha,
                negative_views=NEGATIVE_VIEWS[run.loss],
            ),
            rank=self.ranks.rank,
            world=self.ranks.world,
            rows_of_part=run.grad_cache,
            n_parts=GPU_PARTS if few_shapes else CPU_PARTS,
            multiple=gpu_column_multiple(run.max_length) if few_shapes else 1,
        )

    def _positives(self, tokens: TokenIds) -> Source | None:
        """The positives of the sentences, or None where a sentence is its own."""
        run, offset = self.run, self.material.paraphrase_offset
        if run.positives != "same":
            settings = {"strength": run.positives_strength, "seed": run.seed, "synonyms": run.synonyms or None}
            augmentation = make_augmentation(run.positives, self.index, **settings, tokenizer=self.tokenizer, n_jobs=1)
            return Altered(augmentation)
        return Sentences(tokens, offset) if offset is not None else None


def _starting_point(run: Run, identity: dict[str, Any]) -> tuple[Progress, dict[str, Any] | None]:
    """last/ for --resume and for ranks that the launcher started again; else the beginning."""
    output = Path(run.output)
    if run.resume or (restarted() and has_checkpoint(output)):
        return load_checkpoint(output, identity)
    return Progress(), None


def _summarise(loop: Loop, outcome: Outcome, about: dict[str, Any]) -> None:
    """Write run.json, and say where the time went if asked to."""
    watch = loop.trainer.watch
    watch.finish()
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
                "idle_share": watch.idle_share(loop.seconds),
                "share_of_time_making_batches_beside": loop.batches_busy / loop.seconds,
                "peak_memory": peak_memory(),
            },
        },
    )
    if loop.run.profile:
        loop.recorder.say(f"the device waited for the host {100 * watch.idle_share(loop.seconds):.1f} % of the time")
        loop.recorder.say(profile_table(dict(watch.seconds), loop.seconds, loop.steps_here, loop.batches_busy))
        peak = ", ".join(f"{name} {size / 2**20:.0f} MiB" for name, size in peak_memory().items())
        loop.recorder.say(f"peak memory of rank 0: {peak}")
