"""Builds a rank's BatchMaker, which turns rows of the index into batches, from the options of a run."""

from __future__ import annotations

import numpy as np

from train.config.run import SAME
from train.job.load import Job
from train.loop.data import CPU_PARTS, GPU_PARTS, BatchMaker, Ids, Rows, Source, Views, gpu_column_multiple, unchanged
from train.objective.masking import masking_of
from train.objective.registry import loss_row
from una_fast.augment.registry import make_augmentation
from una_fast.augment.text_augmentation import TextAugmentation
from una_fast.index.index import Index
from una_fast.tokens.ids import TokenIds, token_tensors


def batch_maker(job: Job) -> BatchMaker:
    """The BatchMaker of the job's rank."""
    on_gpu = job.ranks.device.type == "cuda"
    return BatchMaker(
        views=_views(job),
        rank=job.ranks.rank,
        world=job.ranks.world,
        rows_of_part=job.run.grad_cache,
        n_parts=GPU_PARTS if on_gpu else CPU_PARTS,
        multiple=gpu_column_multiple(job.run.max_length) if on_gpu else 1,
        masking=masking_of(job.tokenizer, job.run.seed) if job.run.mlm_weight else None,
    )


def _views(job: Job) -> Views:
    """The sources of anchors, positives and negatives, and when a step has negatives."""
    run, augmentation = job.run, None
    if run.augment not in (None, "none"):
        own = vars(run).keys() - {"index", "tokenizer"}  # as settings they are names of folders
        settings = {name: getattr(run, name) for name in own}
        index, tokenizer = (job.other_index, None) if job.other_index else (job.index, job.tokenizer)
        augmentation = make_augmentation(run.augment, index, **settings, tokenizer=tokenizer, n_jobs=1)
    tokens = (augmentation and augmentation.tokens) or TokenIds(job.index, job.tokenizer)
    negative: Source | None = augmentation.token_ids if augmentation else None
    if augmentation and job.other_index:
        negative = _of_texts(augmentation, job.index, tokens)
    return Views(
        anchor=unchanged(tokens),
        positive=_positives(job, tokens),
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


def _positives(job: Job, tokens: TokenIds) -> Source | None:
    """The source of the positives, or None if each sentence is its own positive."""
    run, offset = job.run, job.material.paraphrase_offset
    if run.positives != SAME:
        settings = {"strength": run.positives_strength, "seed": run.seed, "synonyms": run.synonyms or None}
        augmentation = make_augmentation(run.positives, job.index, **settings, tokenizer=job.tokenizer, n_jobs=1)
        return augmentation.token_ids
    return unchanged(tokens, offset) if offset is not None else None
