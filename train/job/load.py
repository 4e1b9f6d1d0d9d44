"""All that a rank opens before its first step: index, tokenizer, encoder, dev pairs and, on --resume, a checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from train.config.run import Run
from train.encoder.encoder import SentenceEncoder, load_encoder, weights_digest
from train.encoder.pretrained import load_config, load_tokenizer
from train.evaluation.pair_scorer import PairScorer
from train.evaluation.tasks.sts import load_dev
from train.job.material import Material, open_indexes
from train.loop.distributed import Ranks
from train.record.best import is_trained
from train.record.checkpoint import load_checkpoint
from train.record.pointer import Progress, has_checkpoint
from una_fast.errors import InputError
from una_fast.index.index import Index


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
    material: Material
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
        material = Material.of(run, index)
        scorer = None
        if run.dev:
            layout = encoder.layout
            scorer = PairScorer(
                [load_dev(run.dev)], tokenizer, layout.max_length, device=ranks.device, prepared=layout.prepared
            )
        start = _starting_point(run, ranks, identity)
        return cls(run, ranks, index, tokenizer, material, encoder, scorer, identity, *start, other_index)


def _starting_point(run: Run, ranks: Ranks, identity: dict[str, Any]) -> tuple[Progress, dict[str, Any] | None]:
    """The progress and the state in last/ on --resume; those of a new run without it.

    A run that was killed before its first step has no last/, and begins anew. On other machines than that of rank 0
    last/ may be missing too; rank 0 then sends its own (`with_start_of_rank_0`).
    """
    output = Path(run.output)
    if run.resume and (has_checkpoint(output) or (ranks.first and is_trained(output))):
        return load_checkpoint(output, identity)
    return Progress(), None
