"""What one rank needs to train: index, tokenizer, encoder, dev pairs, batches and, on --resume, last/."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
import xxhash
from transformers.utils.hub import cached_file

from train.config.run import SAME, Run
from train.encoder.encoder import SentenceEncoder, load_encoder, masking_of, weights_digest
from train.encoder.pretrained import load_tokenizer
from train.evaluation.model import PairScorer
from train.evaluation.tasks.sts import load_dev
from train.launch.corpus import Indexes, TrainingRows, open_indexes
from train.loop.data import CPU_PARTS, GPU_MULTIPLE, GPU_PARTS, BatchMaker, Ids, Rows, Source, Views, unchanged
from train.loop.distributed import Ranks
from train.objective.registry import loss_row
from train.record.best import with_best
from train.record.checkpoint import Progress, flags_of, has_checkpoint, load_checkpoint
from train.record.folder import SUMMARY, write_json
from train.record.resources import machine, versions
from una_fast.augment.base import TextAugmentation
from una_fast.augment.radius import resolve_radius
from una_fast.augment.registry import make_augmentation
from una_fast.errors import InputError
from una_fast.index.index import Index
from una_fast.storage.files import file_checksum
from una_fast.tokens.ids import TokenIds, token_tensors


@dataclass(frozen=True)
class Job:
    """All that one rank needs to train.

    Attributes:
        run: all options resolved.
        fingerprint: see `resume_fingerprint`.
        progress: where the run begins.
        state: of the checkpoint to go on from, if there is one.
    """

    run: Run
    ranks: Ranks
    indexes: Indexes
    tokenizer: Any
    rows: TrainingRows
    encoder: SentenceEncoder
    scorer: PairScorer | None
    fingerprint: dict[str, Any]
    progress: Progress = Progress()  # noqa: RUF009  it is frozen
    state: dict[str, Any] | None = None

    @classmethod
    def load(cls, run: Run, ranks: Ranks, indexes: Indexes | None = None) -> Job:
        """Open what is on the disk; rank 0 then writes run.json with status "running".

        Args:
            run: all options resolved.
            ranks: this rank among the others.
            indexes: None to open them: another process has made and checked them.

        Raises:
            InputError: a part is missing, damaged or does not fit the options.
        """
        indexes = indexes or open_indexes(run)
        tokenizer, encoder = load_tokenizer(run.model, run.trust_remote_code), encoder_of(run)
        fingerprint = resume_fingerprint(run, indexes, encoder, tokenizer)  # before a use sets the tokenizer's padding
        scorer, layout, output = None, encoder.layout, Path(run.output)
        if run.dev:
            pairs = load_dev(run.dev)
            scorer = PairScorer(pairs, tokenizer, layout.max_length, device=ranks.device, prepared=layout.prepared)
        rows = TrainingRows.of(run, indexes.sentences)
        progress, state = Progress(), None
        # a run that was killed before its first step has no last/, and begins anew; on a machine without rank 0 last/
        # may be missing too, and rank 0 sends its own
        if run.resume and has_checkpoint(output):
            progress, state = load_checkpoint(output, fingerprint)
        if ranks.first:
            progress = with_best(output, progress)
        job = cls(run, ranks, indexes, tokenizer, rows, encoder, scorer, fingerprint, progress, state)
        if ranks.first:
            job.write_summary("running")
        return job

    def write_summary(self, status: str, **ended: Any) -> None:
        """Write run.json. ended: what is known once the run has ended: scores, where its time went, peak memory."""
        run, (sentences, words) = self.run, self.indexes
        content = {
            "settings": vars(run),
            "resolved": {"radius": resolve_radius(run.radius, (words or sentences).n_terms)},
            "versions": versions(),
            "machine": machine(),
            "ranks": self.ranks.world,
            "corpus": {**self.rows.counts, "sources": sentences.sources},
            **({"negatives_from": {"sources": words.sources}} if words else {}),
            "resume_fingerprint": self.fingerprint,
        }
        write_json(Path(run.output) / SUMMARY, {"status": status, **content, **ended})

    def batch_maker(self) -> BatchMaker:
        """The BatchMaker of this rank."""
        on_gpu = self.ranks.device.type == "cuda"
        return BatchMaker(
            views=self._views(),
            rank=self.ranks.rank,
            world=self.ranks.world,
            rows_of_part=self.run.grad_cache,
            n_parts=GPU_PARTS if on_gpu else CPU_PARTS,
            multiple=GPU_MULTIPLE if on_gpu else 1,
            masking=masking_of(self.tokenizer, self.run.seed) if self.run.mlm_weight else None,
        )

    def _views(self) -> Views:
        """The sources of anchors, positives and negatives, and when a step has negatives."""
        run, (sentences, words), augmentation = self.run, self.indexes, None
        if run.augment not in (None, "none"):
            index, tokenizer = (words, None) if words else (sentences, self.tokenizer)
            always = {"seed": run.seed, "tokenizer": tokenizer, "n_jobs": 1}
            augmentation = make_augmentation(run.augment, index, vars(run), **always)
        tokens = (augmentation and augmentation.tokens) or TokenIds(sentences, self.tokenizer)
        negative: Source | None = augmentation.token_ids if augmentation else None
        if augmentation and words:
            negative = _of_texts(augmentation, sentences, tokens)
        offset = self.rows.paraphrase_offset
        positive = unchanged(tokens, offset) if offset is not None else None  # a sentence is its own positive
        if run.positives != SAME:
            offered = {"strength": run.positives_strength, "synonyms": run.synonyms or None}
            always = {"seed": run.seed, "tokenizer": self.tokenizer, "n_jobs": 1}
            positive = make_augmentation(run.positives, sentences, offered, **always).token_ids
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


def encoder_of(run: Run) -> SentenceEncoder:
    """The encoder that a run starts from; InputError if its weights are not finite. run: all options resolved."""
    trust, with_mlm = run.trust_remote_code, run.mlm_weight > 0
    encoder = load_encoder(run.model, run.dropout, run.seed, run.pooling, run.head, trust, run.device, with_mlm)
    if not all(torch.isfinite(weights).all() for weights in encoder.backbone.parameters()):
        raise InputError(f"model {run.model}: some of its weights are NaN or infinite: give another model")
    return encoder


def resume_fingerprint(run: Run, indexes: Indexes, encoder: SentenceEncoder, tokenizer: Any) -> dict[str, Any]:
    """What --resume must find unchanged, by name; a checkpoint stores it. run: a run with all options resolved."""
    vocabulary = sorted(tokenizer.get_vocab().items())
    tokenizing = tokenizer.backend_tokenizer.to_str() if tokenizer.is_fast else repr(vocabulary)
    config = cast(str, cached_file(run.model, "config.json"))
    return {
        **flags_of(run.identity()),
        "corpus": indexes.fingerprint,
        "model": weights_digest(encoder.backbone),
        "model's tokenizer": xxhash.xxh3_128_hexdigest(tokenizing.encode()),
        "model's config.json": file_checksum(Path(config)),
        **{f"model's {name}": value for name, value in dataclasses.asdict(encoder.layout).items()},
        "dev pairs": file_checksum(Path(run.dev)) if run.dev else None,
        "synonyms": file_checksum(Path(run.synonyms)) if run.synonyms else None,
        "words to keep": file_checksum(Path(run.keep_words)) if run.keep_words else None,
    }
