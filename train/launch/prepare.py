"""The files and objects that a run needs before its first step, each opened or made once."""

from __future__ import annotations

import dataclasses
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import torch
import xxhash
from transformers.utils.hub import cached_file

from train.config import Run
from train.corpus import TrainingCorpus
from train.distributed import Ranks
from train.encoder.encoder import SentenceEncoder, load_encoder, weights_digest
from train.encoder.pooling import AUTO, OF_TRAINING
from train.encoder.pretrained import load_config, load_tokenizer, read_modules
from train.evaluation.model import DevScorer
from train.evaluation.tasks.reading import read_dev
from train.launch.resolve import check_late_inputs, resolve_options, warn_of_ignored
from train.loop.data import PARTS, BatchMaker, Plan
from train.neighbours import Neighbours, load_neighbours
from train.record.environment import machine, versions
from train.record.trackers import make_trackers
from una_fast.augment.kept_words import read_words
from una_fast.augment.sampler import resolve_radius
from una_fast.errors import InputError
from una_fast.storage.files import checksum_of, file_checksum


class PreparedRun:
    """What a run needs before its first step.

    The constructor reads the small files and checks all options before anything is written. The corpus, the index and
    the weights are read when they are first used.
    """

    def __init__(self, run: Run) -> None:
        self.config = load_config(run.model, run.dropout, run.trust_remote_code)
        self.layout = read_modules(run.model, OF_TRAINING.get(run.pooling, AUTO))
        self.run = resolve_options(run, self.config, self.layout.pooling)
        warn_of_ignored(self.run, self.config, self.layout)
        kept_words = read_words(run.keep_words)
        self.dev = read_dev(run.dev) if run.dev else None
        check_late_inputs(self.run)
        self.trackers = make_trackers(run.report_to)
        self.tokenizer = load_tokenizer(run.model, run.trust_remote_code, self.config)
        vocabulary = sorted(self.tokenizer.get_vocab().items())
        content = self.tokenizer.backend_tokenizer.to_str() if self.tokenizer.is_fast else repr(vocabulary)
        self._tokenizer_digest = xxhash.xxh3_128_hexdigest(content.encode())  # the first use would add padding to it
        self.corpus = TrainingCorpus(self.run, kept_words, self.tokenizer)

    @cached_property
    def encoder(self) -> SentenceEncoder:
        """The initial encoder."""
        run = self.run
        encoder = load_encoder(
            run.model, run.dropout, run.seed, run.pooling, run.head, run.trust_remote_code,
            device=run.device, config=self.config, layout=self.layout,
        )  # fmt: skip
        if not all(torch.isfinite(weights).all() for weights in encoder.backbone.parameters()):
            raise InputError(f"--model {run.model}: some of its weights are NaN or infinite: give another model")
        return encoder

    @cached_property
    def neighbours(self) -> Neighbours | None:
        """The pairs for --neighbours, or None without it. Rank 0 finds the pairs and sends them to the other ranks."""
        if not self.run.neighbours:
            return None
        corpus, device = self.corpus, torch.device(self.run.device)
        digest, rows = corpus.index.fingerprint, corpus.rows
        return load_neighbours(self.run, digest, corpus.tokens, rows, self.encoder, device)

    @cached_property
    def fingerprint(self) -> dict[str, Any]:
        """The values that must not change when --resume continues the run, by name. run.json stores them."""
        run, encoder = self.run, self.encoder
        files = {"dev texts": run.dev, "synonyms": run.synonyms, "words to keep": run.keep_words}
        return {
            **run.identity(),
            "corpus": self.corpus.index.fingerprint,
            "sentences": self.corpus.n_sentences,
            "model": weights_digest(encoder.backbone),
            "model's tokenizer": self._tokenizer_digest,
            "model's config.json": file_checksum(Path(cast(str, cached_file(run.model, "config.json")))),
            **{f"model's {name}": value for name, value in dataclasses.asdict(encoder.layout).items()},
            **{name: _checksum(Path(file)) if file else None for name, file in files.items()},
            "word lists": [file_checksum(Path(file)) for file in run.word_lists],
            **({"neighbours": self.neighbours.digest()} if self.neighbours else {}),
        }

    def plan(self) -> Plan:
        """Make the `Plan`, which chooses the rows of every step."""
        run = self.run
        rows, nearest = self.neighbours or (self.corpus.rows, None)
        return Plan(rows, run.batch_size, run.seed, run.epochs, run.max_steps, nearest)

    def batch_maker(self, ranks: Ranks) -> BatchMaker:
        """Make this rank's `BatchMaker`."""
        parts = PARTS[ranks.device.type]
        return BatchMaker(self.corpus.views(), ranks.rank, ranks.world, self.run.grad_cache, **parts)

    def scorer(self, device: torch.device) -> DevScorer | None:
        """Make the `DevScorer` of --dev, or return None without it."""
        if self.dev is None:
            return None
        limit = self.layout.longest(self.tokenizer, self.encoder.backbone.config)
        return DevScorer(self.dev, self.tokenizer, limit, device, self.layout.prepare)

    def summary(self, n_ranks: int) -> dict[str, Any]:
        """Return the content of run.json before the first step."""
        return {
            "settings": vars(self.run),
            "resolved": {"radius": resolve_radius(self.run.radius, self.corpus.index.n_terms)},
            "versions": versions(),
            "machine": machine(),
            "ranks": n_ranks,
            "corpus": self.corpus.about(),
            "resume_fingerprint": self.fingerprint,
        }


def _checksum(path: Path) -> str:
    """Return the checksum of a file, or one of all .jsonl and .tsv files in a folder."""
    if not path.is_dir():
        return file_checksum(path)
    files = sorted(file for suffix in ("jsonl", "tsv") for file in path.rglob(f"*.{suffix}"))
    return checksum_of(f"{file.relative_to(path)} {file_checksum(file)}".encode() for file in files)
