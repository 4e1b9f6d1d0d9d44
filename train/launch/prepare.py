"""The files and objects that a run needs before its first step, each opened or made once."""

from __future__ import annotations

import dataclasses
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import torch
import xxhash
from transformers.utils.hub import cached_file

from train.config import SAME, Run
from train.demo import prepare_demo
from train.distributed import Ranks
from train.encoder.encoder import SentenceEncoder, load_encoder, weights_digest
from train.encoder.pooling import AUTO, OF_TRAINING
from train.encoder.pretrained import load_config, load_tokenizer, read_modules
from train.evaluation.model import DevScorer
from train.evaluation.tasks.reading import read_dev
from train.launch.resolve import check_late_inputs, resolve_options, warn_of_ignored
from train.loop.data import PARTS, BatchMaker, Plan, Rows, ViewMaker, Views, on_share, original_text
from train.losses import loss_spec
from train.messages import tell_user
from train.neighbours import Neighbours, load_neighbours
from train.record.environment import machine, versions
from train.record.trackers import make_trackers
from una_fast.augment.kept_words import KeptWords, read_words
from una_fast.augment.registry import make_augmentation
from una_fast.augment.sampler import resolve_radius
from una_fast.command import settings_of
from una_fast.corpus.documents import Reading
from una_fast.corpus.sources import Source, check_sources, open_sources
from una_fast.errors import InputError, counted
from una_fast.index.build import build_index
from una_fast.index.index import KIND, Index, load_index, warn_of_few_terms
from una_fast.options import Files
from una_fast.parallel import RowThreads
from una_fast.storage.array_folder import check_array_folder, find_manifest
from una_fast.storage.files import checksum_of, file_checksum
from una_fast.tokens.ids import TokenIds


class TrainingRows(NamedTuple):
    """The rows of an index that a run trains on. Blank texts, which contain no replaceable word, are left out."""

    rows: Rows  # ascending; neither the sentence nor its paraphrase is blank
    n_sentences: int  # of the corpus; row i + n_sentences of the index is the paraphrase of row i
    n_blank: int
    n_blank_paraphrases: int


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
        self.kept_words = read_words(run.keep_words)
        self.dev = read_dev(run.dev) if run.dev else None
        check_late_inputs(self.run)
        self.trackers = make_trackers(run.report_to)
        self.tokenizer = load_tokenizer(run.model, run.trust_remote_code, self.config)
        vocabulary = sorted(self.tokenizer.get_vocab().items())
        content = self.tokenizer.backend_tokenizer.to_str() if self.tokenizer.is_fast else repr(vocabulary)
        self._tokenizer_digest = xxhash.xxh3_128_hexdigest(content.encode())  # the first use would add padding to it

    @cached_property
    def sources(self) -> tuple[list[Source], list[Source]]:
        """The sources of --corpus and those of --paraphrases. A new index contains both, in this order."""
        reading = Reading(**settings_of(self.run, Files))
        # Path, not str: a str without a known extension counts as a sentence
        corpus = open_sources([*map(Path, self.run.corpus)], reading)
        return [*corpus], [*open_sources(Path(self.run.paraphrases), reading)] if self.run.paraphrases else []

    @cached_property
    def index(self) -> Index:
        """The index of `sources`. An existing index may contain more sentences, whose words can be replacements."""
        return open_index(self.run)

    def make_index(self) -> None:
        """Build and save the index, or check that an existing one matches the corpus. Store the index's token ids."""
        run, folder = self.run, Path(self.run.index)
        if run.demo:
            prepare_demo(run)
        sources = [*self.sources[0], *self.sources[1]]
        if find_manifest(folder):
            check_sources(folder, self.index.sources[: len(sources)], sources)
        else:
            check_array_folder(folder, KIND, unused=True)
            tell_user(f"indexing {', '.join(filter(None, [*run.corpus, run.paraphrases]))}")
            self.index = build_index(sources, run.word_tokenizer, run.lowercase, progress=True)
            _ = self.training  # raises InputError before anything is written
            self.index.save(folder)
            del self.index  # from now on the saved one, which is memory-mapped
        _ = self.tokens  # stores them with the index, for the other ranks
        n, left_out = len(self.training.rows), self.training.n_sentences - len(self.training.rows)
        note = f", {left_out:,} left out as blank" if left_out else ""
        if run.augment == "una":
            warn_of_few_terms(self.index)
        tell_user(f"{counted(n, 'sentence')} to train on{note}; {counted(self.index.n_terms, 'term')}")

    @cached_property
    def training(self) -> TrainingRows:
        """The rows to train on. Raises InputError for too few rows, or if --paraphrases and corpus differ in size."""
        run, index = self.run, self.index
        sizes, n_files = [source["n_documents"] for source in index.sources], len(self.sources[0])
        n, n_paraphrases = sum(sizes[:n_files]), sum(sizes[n_files : n_files + len(self.sources[1])])
        if run.paraphrases and n_paraphrases != n:
            raise InputError(
                f"--paraphrases {run.paraphrases}: has {counted(n_paraphrases, 'sentence')} and the corpus {n:,}: "
                "line i of one must be a paraphrase of line i of the other"
            )
        blank = KeptWords.of(run.keep_punctuation, self.kept_words, index.lowercase).unchangeable_rows(index)
        blank, blank_paraphrases, _ = np.split(blank, np.searchsorted(blank, [n, n + n_paraphrases]))
        rows = np.delete(np.arange(n), np.union1d(blank, blank_paraphrases - n))
        if len(rows) < run.batch_size:
            raise InputError(
                f"the corpus has {counted(len(rows), 'sentence')} with words, fewer than --batch-size "
                f"{run.batch_size}: give more text or a smaller batch"
            )
        return TrainingRows(rows, n, len(blank), len(blank_paraphrases))

    @cached_property
    def tokens(self) -> TokenIds:
        """The token ids of the index."""
        tokens = TokenIds(self.index, self.tokenizer)  # computed on all cores
        tokens.threads = RowThreads(1)  # to make batches, because the training steps need the other cores
        return tokens

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
        corpus, rows, device = self.index.fingerprint, self.training.rows, torch.device(self.run.device)
        return load_neighbours(self.run, corpus, self.tokens, rows, self.encoder, device)

    @cached_property
    def fingerprint(self) -> dict[str, Any]:
        """The values that must not change when --resume continues the run, by name. run.json stores them."""
        run, encoder = self.run, self.encoder
        files = {"dev texts": run.dev, "synonyms": run.synonyms, "words to keep": run.keep_words}
        return {
            **run.identity(),
            "corpus": self.index.fingerprint,
            "sentences": self.training.n_sentences,
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
        rows, nearest = self.neighbours or (self.training.rows, None)
        return Plan(rows, run.batch_size, run.seed, run.epochs, run.max_steps, nearest)

    def batch_maker(self, ranks: Ranks) -> BatchMaker:
        """Make this rank's `BatchMaker`. A batch has anchors, positives and, in every --alpha-th step, negatives."""
        run, tokens = self.run, self.tokens
        always = {"seed": run.seed, "tokenizer": tokens, "n_jobs": 1}
        positive: ViewMaker | None = None  # None: a sentence is its own positive
        negative: ViewMaker | None = None
        if run.augment != "none":
            offered = {**vars(run), "keep_words": self.kept_words}
            negative = make_augmentation(run.augment, self.index, offered, **always).token_ids
        if run.positives != SAME:
            offered = {"strength": run.positives_strength, "synonyms": run.synonyms or None}
            edited = make_augmentation(run.positives, self.index, offered, **always).token_ids
            positive = on_share(edited, original_text(tokens), run.positives_share, run.seed)
        elif run.paraphrases:
            positive = original_text(tokens, self.training.n_sentences)
        negative_views = loss_spec(run.loss).negative_views
        views = Views(original_text(tokens), positive, negative, run.max_length, run.alpha, negative_views)
        return BatchMaker(views, ranks.rank, ranks.world, run.grad_cache, **PARTS[ranks.device.type])

    def scorer(self, device: torch.device) -> DevScorer | None:
        """Make the `DevScorer` of --dev, or return None without it."""
        if self.dev is None:
            return None
        limit = self.layout.longest(self.tokenizer, self.encoder.backbone.config)
        return DevScorer(self.dev, self.tokenizer, limit, device, self.layout.prepare)

    def summary(self, n_ranks: int) -> dict[str, Any]:
        """Return the content of run.json before the first step."""
        rows, n, n_blank, n_blank_paraphrases = self.training
        counts = {"sentences": n, "trained_on": len(rows), "blank": n_blank, "blank_paraphrases": n_blank_paraphrases}
        return {
            "settings": vars(self.run),
            "resolved": {"radius": resolve_radius(self.run.radius, self.index.n_terms)},
            "versions": versions(),
            "machine": machine(),
            "ranks": n_ranks,
            "corpus": {**counts, "terms": self.index.n_terms, "sources": self.index.sources},
            "resume_fingerprint": self.fingerprint,
        }


def _checksum(path: Path) -> str:
    """Return the checksum of a file, or one of all .jsonl and .tsv files in a folder."""
    if not path.is_dir():
        return file_checksum(path)
    files = sorted(file for suffix in ("jsonl", "tsv") for file in path.rglob(f"*.{suffix}"))
    return checksum_of(f"{file.relative_to(path)} {file_checksum(file)}".encode() for file in files)


def open_index(run: Run) -> Index:
    """Open the index of a run. Raises InputError if it was made with other options."""
    index = load_index(run.index, word_tokenizer=run.word_tokenizer)
    if index.lowercase != run.lowercase:
        raise InputError(
            f"--index {run.index}: was made with --{'' if index.lowercase else 'no-'}lowercase: give it here too, or "
            "name a new folder with --index"
        )
    return index
