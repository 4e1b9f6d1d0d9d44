"""All that a rank opens before its first step: index, tokenizer, encoder, dev pairs, batches; on --resume, last/."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from train.config.run import SAME, Run
from train.encoder.encoder import SentenceEncoder, load_encoder, weights_digest
from train.encoder.pretrained import load_config, load_tokenizer
from train.evaluation.pair_scorer import PairScorer
from train.evaluation.tasks.sts import load_dev
from train.launch.corpus import TrainingRows, open_indexes
from train.loop.data import CPU_PARTS, GPU_PARTS, BatchMaker, Ids, Rows, Source, Views, gpu_column_multiple, unchanged
from train.loop.distributed import Ranks
from train.objective.masking import masking_of
from train.objective.registry import loss_row
from train.record.best import is_trained
from train.record.checkpoint import load_checkpoint
from train.record.pointer import Progress, has_checkpoint
from una_fast.augment.registry import make_augmentation
from una_fast.augment.text_augmentation import TextAugmentation
from una_fast.errors import InputError
from una_fast.index.index import Index
from una_fast.tokens.ids import TokenIds, token_tensors


def encoder_of(run: Run) -> SentenceEncoder:
    """The encoder that a run starts from; InputError if its weights are not finite. run: all options resolved."""
    trust = run.trust_remote_code
    config = load_config(run.model, run.dropout, trust)
    with_mlm = run.mlm_weight > 0
    encoder = load_encoder(run.model, config, run.seed, run.pooling, run.head, trust, run.device, with_mlm)
    if not all(torch.isfinite(weights).all() for weights in encoder.backbone.parameters()):
        raise InputError(f"model {run.model}: some of its weights are NaN or infinite: give another model")
    return encoder


def identify(run: Run, indexes: tuple[Index, Index | None], encoder: SentenceEncoder) -> dict[str, Any]:
    """The identity of a run, which its checkpoints store. run: a run with all options resolved."""
    fingerprints = [index.fingerprint for index in indexes if index]
    return {
        "settings": run.identity(),
        "corpus": {"fingerprint": ", negatives from ".join(fingerprints)},
        "model": {"xxh3_128 of its weights": weights_digest(encoder.backbone)},
    }


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
    identity: dict[str, Any]  # of the run, see `identify`
    progress: Progress
    state: dict[str, Any] | None  # of the checkpoint to go on from, if there is one
    other_index: Index | None = None  # the one of the negatives, if that is not `index`

    @classmethod
    def load(cls, run: Run, ranks: Ranks) -> Job:
        """Open the index and load the model and, if the run goes on, the checkpoint.

        Raises:
            InputError: one of them is missing, damaged or does not fit the options.
        """
        index, other_index = indexes = open_indexes(run)
        tokenizer = load_tokenizer(run.model, run.trust_remote_code)
        encoder = encoder_of(run)
        identity = identify(run, indexes, encoder)
        rows = TrainingRows.of(run, index)
        scorer = None
        if run.dev:
            layout = encoder.layout
            scorer = PairScorer(
                [load_dev(run.dev)], tokenizer, layout.max_length, device=ranks.device, prepared=layout.prepared
            )
        start = _starting_point(run, ranks, identity)
        return cls(run, ranks, index, tokenizer, rows, encoder, scorer, identity, *start, other_index)


def _starting_point(run: Run, ranks: Ranks, identity: dict[str, Any]) -> tuple[Progress, dict[str, Any] | None]:
    """The progress and the state in last/ on --resume; those of a new run without it.

    A run that was killed before its first step has no last/, and begins anew. On other machines than that of rank 0
    last/ may be missing too; rank 0 then sends its own (`with_start_of_rank_0`).
    """
    output = Path(run.output)
    if run.resume and (has_checkpoint(output) or (ranks.first and is_trained(output))):
        return load_checkpoint(output, identity)
    return Progress(), None


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
    run, offset = job.run, job.rows.paraphrase_offset
    if run.positives != SAME:
        settings = {"strength": run.positives_strength, "seed": run.seed, "synonyms": run.synonyms or None}
        augmentation = make_augmentation(run.positives, job.index, **settings, tokenizer=job.tokenizer, n_jobs=1)
        return augmentation.token_ids
    return unchanged(tokens, offset) if offset is not None else None
