"""The work of one rank, from joining the group to its outcome; the same for ranks of `--nproc` and of torchrun.

A rank opens its `Job`: index, tokenizer, encoder, dev pairs, batches and, on --resume, last/. Before the first step the
ranks of all machines make sure that none has failed, and that all have one job and one starting point. Rank 0 writes
run.json when the run starts and when it ends.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
import torch
import torch.distributed as dist
import xxhash
from transformers.utils.hub import cached_file

from train.config.run import SAME, Run
from train.encoder.encoder import SentenceEncoder, load_encoder, weights_digest
from train.encoder.mlm import masking_of
from train.encoder.pretrained import load_tokenizer, quiet
from train.evaluation.embed import PairScorer
from train.evaluation.tasks.sts import load_dev
from train.launch.corpus import TrainingRows, make_index, open_indexes
from train.launch.memory import full_memory_named, warn_of_memory
from train.launch.ranks import end_with_launcher
from train.launch.resolve import resolve_options
from train.loop.data import CPU_PARTS, GPU_MULTIPLE, GPU_PARTS, BatchMaker, Ids, Rows, Source, Views, unchanged
from train.loop.distributed import Ranks, StopConsensus, join_group, of_all_ranks
from train.loop.loop import Loop, Outcome, Saves
from train.loop.telemetry import Telemetry
from train.loop.trainer import Trainer
from train.objective.registry import loss_row
from train.record.best import with_best
from train.record.checkpoint import Progress, first_difference, flags_of, has_checkpoint, load_checkpoint
from train.record.folder import RUN, SUMMARY, OutputFolder, is_own, write_json
from train.record.resources import machine, peak_memory, versions
from train.signals import handled
from una_fast.augment.radius import resolve_radius
from una_fast.augment.registry import make_augmentation
from una_fast.augment.text_augmentation import TextAugmentation
from una_fast.errors import InputError
from una_fast.index.index import Index
from una_fast.storage.files import file_checksum
from una_fast.tokens.ids import TokenIds, token_tensors

T = TypeVar("T")


def work(
    run: Run,
    checked: str | None = None,
    started: Callable[[], None] = lambda: None,
    prepare: Callable[[Ranks], str | None] = lambda ranks: None,
) -> Outcome:
    """Train as one rank of the group that the environment describes. run: all options resolved.

    checked: the fingerprint of the indexes that were compared with the corpus; a rank takes no others. prepare: checks
    them, and makes what is not on the disk yet, once rank 0 holds the output folder. started: called when this rank is
    ready to take steps; from then on it saves a checkpoint when a signal stops it.
    """
    quiet()
    try:
        ranks = join_group(run.device)
        with contextlib.ExitStack() as held:
            held.enter_context(full_memory_named(run))
            folder = (Path(run.output), RUN, run.resume, vars(run))  # which rank 0 alone writes
            run_on_all_ranks(ranks, lambda: ranks.first and held.enter_context(OutputFolder(*folder)))
            checked = prepare(ranks) or checked
            return _train(run, ranks, checked, started)
    except InputError as error:  # returned, not raised: the launcher shows it as the user's error, not a rank's death
        return Outcome("failed", Progress(), message=str(error))
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()


def work_under_torchrun(run: Run) -> tuple[Run, Outcome]:
    """`work` in a process that torchrun started; the first rank of each machine makes the index for its ranks.

    Returns the run with all options resolved, and its outcome.
    """
    end_with_launcher()
    again = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0  # torchrun starts all ranks again if one dies
    resume = run.resume or (again and is_own(Path(run.output), RUN))
    run = dataclasses.replace(resolve_options(run), nproc=int(os.environ["LOCAL_WORLD_SIZE"]), resume=resume)

    def prepare(ranks: Ranks) -> str | None:
        return run_on_all_ranks(ranks, lambda: None if ranks.local_rank else fingerprint_of(make_index(run)))

    return run, work(run, prepare=prepare)


def _train(run: Run, ranks: Ranks, checked: str | None, started: Callable[[], None]) -> Outcome:
    job = agreed(ranks, run_on_all_ranks(ranks, lambda: _open(run, ranks, checked)))
    trainer, maker = Trainer(run, ranks, job.encoder, job.rows.plan(run), job.state), batch_maker(job)
    if ranks.device.type == "cuda":
        warn_of_memory(trainer, torch.cuda.mem_get_info(ranks.device)[0])
    stop = StopConsensus(ranks)
    with handled(stop.note):
        telemetry = run_on_all_ranks(ranks, lambda: Telemetry(trainer, job.progress, stop))
        saves = Saves(trainer, job.tokenizer, job.fingerprint, stop)
        loop = Loop(trainer, maker, job.progress, job.scorer, saves, telemetry, stop)
        started()
        outcome = loop.run()
    if ranks.first:
        progress, used = outcome.progress, {**telemetry.times(), "peak_memory": peak_memory()}
        scores = {"stsb_dev": progress.best_score, "stsb_dev_last": progress.last_score}
        ended = {"progress": vars(progress), "scores": scores, "this_process": used}
        write_summary(job, outcome.status, **ended)
    return outcome


def _open(run: Run, ranks: Ranks, checked: str | None) -> Job:
    """Load the job of this rank; rank 0 then writes run.json with status "running"."""
    job, output = Job.load(run, ranks, checked), Path(run.output)
    if ranks.first:
        job = dataclasses.replace(job, progress=with_best(output, job.progress))
        write_summary(job, "running")
    return job


def run_on_all_ranks(ranks: Ranks, action: Callable[[], T]) -> T:
    """Run `action` on every rank; if one raises InputError, raise it on all, so that none waits for another."""
    result, error = None, None
    try:
        result = action()
    except InputError as caught:
        error = str(caught)
    for message in filter(None, of_all_ranks(ranks, error)):
        raise InputError(message)
    return cast(T, result)


def agreed(ranks: Ranks, job: Job) -> Job:
    """The job with the progress and state of rank 0: a machine whose --output is not shared has no checkpoint.

    Raises:
        InputError: machines would train on different sentences, from different weights, or with different settings.
    """
    found = of_all_ranks(ranks, (job.fingerprint, job.progress))
    first, start = found[0]
    for rank, (other, _) in enumerate(found):
        if different := first_difference(first, other):
            what, of_first, value = different
            raise InputError(
                f"rank {rank} has {what} {value}, and rank 0 {of_first}: give all machines the same options, the same "
                "model, and the same index: copy one folder, or build it on each from the same corpus"
            )
    if all(progress == start for _, progress in found):
        return job
    sent = [(job.progress, job.state) if ranks.first else None]
    dist.broadcast_object_list(sent, src=0)
    progress, state = cast(Any, sent[0])
    return dataclasses.replace(job, progress=progress, state=state)


def write_summary(job: Job, status: str, **ended: Any) -> None:
    """Write run.json. ended: what is known of a run that has ended: scores, where its time went, its peak memory."""
    content = {
        "settings": vars(job.run),
        "resolved": {"radius": resolve_radius(job.run.radius, (job.other_index or job.index).n_terms, job.run.window)},
        "versions": versions(),
        "machine": machine(),
        "ranks": job.ranks.world,
        "corpus": {**job.rows.counts, "sources": job.index.sources},
        **({"negatives_from": {"sources": job.other_index.sources}} if job.other_index else {}),
        "resume_fingerprint": job.fingerprint,
    }
    write_json(Path(job.run.output) / SUMMARY, {"status": status, **content, **ended})


def encoder_of(run: Run) -> SentenceEncoder:
    """The encoder that a run starts from; InputError if its weights are not finite. run: all options resolved."""
    trust, with_mlm = run.trust_remote_code, run.mlm_weight > 0
    encoder = load_encoder(run.model, run.dropout, run.seed, run.pooling, run.head, trust, run.device, with_mlm)
    if not all(torch.isfinite(weights).all() for weights in encoder.backbone.parameters()):
        raise InputError(f"model {run.model}: some of its weights are NaN or infinite: give another model")
    return encoder


def resume_fingerprint(
    run: Run, indexes: tuple[Index, Index | None], encoder: SentenceEncoder, tokenizer: Any
) -> dict[str, Any]:
    """What --resume must find unchanged, by name; a checkpoint stores it. run: a run with all options resolved."""
    vocabulary = sorted(tokenizer.get_vocab().items())
    tokenizing = tokenizer.backend_tokenizer.to_str() if tokenizer.is_fast else repr(vocabulary)
    config = cast(str, cached_file(run.model, "config.json"))
    return {
        **flags_of(run.identity()),
        "corpus": fingerprint_of(indexes),
        "model": weights_digest(encoder.backbone),
        "model's tokenizer": xxhash.xxh3_128_hexdigest(tokenizing.encode()),
        "model's config.json": file_checksum(Path(config)),
        **{f"model's {name}": value for name, value in dataclasses.asdict(encoder.layout).items()},
        "dev pairs": file_checksum(Path(run.dev)) if run.dev else None,
        "synonyms": file_checksum(Path(run.synonyms)) if run.synonyms else None,
    }


def fingerprint_of(indexes: tuple[Index, Index | None]) -> str:
    """The fingerprint of the index to train on, and of the one of the negatives if it is another."""
    return ", negatives from ".join(index.fingerprint for index in indexes if index)


@dataclass(frozen=True)
class Job:
    """All that one rank needs to train."""

    run: Run
    ranks: Ranks
    index: Index
    tokenizer: Any
    rows: TrainingRows
    encoder: SentenceEncoder
    scorer: PairScorer | None
    fingerprint: dict[str, Any]  # see `resume_fingerprint`
    progress: Progress
    state: dict[str, Any] | None  # of the checkpoint to go on from, if there is one
    other_index: Index | None = None  # the one of the negatives, if that is not `index`

    @classmethod
    def load(cls, run: Run, ranks: Ranks, checked: str | None = None) -> Job:
        """Open the index and load the model and, if the run goes on, the checkpoint. checked: see `work`.

        Raises:
            InputError: one of them is missing, damaged or does not fit the options.
        """
        index, other_index = indexes = open_indexes(run)
        if checked not in (None, fingerprint_of(indexes)):
            raise InputError(f"{run.index}: another index was saved there, or the corpus changed, while the run began")
        tokenizer = load_tokenizer(run.model, run.trust_remote_code)
        encoder = encoder_of(run)
        fingerprint = resume_fingerprint(run, indexes, encoder, tokenizer)
        rows = TrainingRows.of(run, index)
        scorer, layout = None, encoder.layout
        if run.dev:
            pairs = load_dev(run.dev)
            scorer = PairScorer(pairs, tokenizer, layout.max_length, device=ranks.device, prepared=layout.prepared)
        progress, state, output = Progress(), None, Path(run.output)
        # a run that was killed before its first step has no last/, and begins anew; on a machine without rank 0 last/
        # may be missing too, and rank 0 sends its own (`agreed`)
        if run.resume and has_checkpoint(output):
            progress, state = load_checkpoint(output, fingerprint)
        return cls(run, ranks, index, tokenizer, rows, encoder, scorer, fingerprint, progress, state, other_index)


def batch_maker(job: Job) -> BatchMaker:
    """The BatchMaker of the job's rank."""
    on_gpu = job.ranks.device.type == "cuda"
    return BatchMaker(
        views=_views(job),
        rank=job.ranks.rank,
        world=job.ranks.world,
        rows_of_part=job.run.grad_cache,
        n_parts=GPU_PARTS if on_gpu else CPU_PARTS,
        multiple=GPU_MULTIPLE if on_gpu else 1,
        masking=masking_of(job.tokenizer, job.run.seed) if job.run.mlm_weight else None,
    )


def _views(job: Job) -> Views:
    """The sources of anchors, positives and negatives, and when a step has negatives."""
    run, augmentation = job.run, None
    if run.augment not in (None, "none"):
        index, tokenizer = (job.other_index, None) if job.other_index else (job.index, job.tokenizer)
        augmentation = make_augmentation(run.augment, index, **vars(run), tokenizer=tokenizer, n_jobs=1)
    tokens = (augmentation and augmentation.tokens) or TokenIds(job.index, job.tokenizer)
    negative: Source | None = augmentation.token_ids if augmentation else None
    if augmentation and job.other_index:
        negative = _of_texts(augmentation, job.index, tokens)
    offset = job.rows.paraphrase_offset
    positive = unchanged(tokens, offset) if offset is not None else None  # a sentence is its own positive
    if run.positives != SAME:
        settings = {"strength": run.positives_strength, "seed": run.seed, "synonyms": run.synonyms or None}
        made = make_augmentation(run.positives, job.index, **settings, tokenizer=job.tokenizer, n_jobs=1)
        positive = made.token_ids
    return Views(
        anchor=unchanged(tokens),
        positive=positive,
        negative=negative,
        max_length=run.max_length,
        alpha=run.alpha,
        negative_views=loss_row(run.loss).negative_views,
    )


def _of_texts(augmentation: TextAugmentation, index: Index, tokens: TokenIds) -> Source:
    """Augmented sentences of `index`, drawn as text because the augmentation is of another index.

    A sentence takes some 100 us instead of 1, and its text stands for its row in the draws.
    """

    def source(rows: Rows, epoch: int, max_length: int) -> Ids:
        texts = augmentation.augment([index.sentence(row) for row in rows.tolist()], epoch)
        ids = token_tensors(len(rows), max_length, tokens)
        tokens.write_texts(texts, np.arange(len(rows)), ids)
        return ids

    return source
