"""What one rank needs to train: corpus, index, tokenizer, encoder, dev pairs, batches and, on --resume, last/."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import torch
import xxhash
from numpy.typing import NDArray
from transformers.utils.hub import cached_file

import una_fast
from train.config.run import SAME, Run, reading_arguments
from train.demo import prepare_demo
from train.encoder.encoder import SentenceEncoder, load_encoder, masking_of, weights_digest
from train.encoder.pretrained import check_embeddings, load_tokenizer
from train.evaluation.model import PairScorer
from train.evaluation.tasks.sts import load_dev
from train.loop.data import (
    CPU_PARTS,
    GPU_MULTIPLE,
    GPU_PARTS,
    BatchMaker,
    Ids,
    Plan,
    Rows,
    Source,
    Views,
    unchanged,
    usable_rows,
)
from train.loop.distributed import Ranks
from train.objective.registry import loss_row
from train.record.checkpoint import Progress, flags_of, has_checkpoint, load_checkpoint
from train.record.folder import INDEX, SUMMARY, write_json
from train.record.metrics import machine, versions
from train.signals import tell_user
from una_fast.augment.base import TextAugmentation
from una_fast.augment.kept_words import KeptWords
from una_fast.augment.radius import resolve_radius
from una_fast.augment.registry import make_augmentation
from una_fast.corpus.source import Reading
from una_fast.corpus.source import Source as CorpusSource
from una_fast.corpus.sources import check_sources, open_sources
from una_fast.corpus.word_tokenizers import tokenizer_name
from una_fast.errors import InputError, InputWarning, counted
from una_fast.index.index import KIND, Index
from una_fast.storage import check_own, is_saved
from una_fast.storage.files import file_checksum
from una_fast.tokens.ids import TokenIds, token_tensors


class Indexes(NamedTuple):
    """The index of the sentences to train on, and the one that the negatives' words come from if it is another."""

    sentences: Index
    words: Index | None = None

    @property
    def fingerprint(self) -> str:
        """The fingerprint of both."""
        return ", negatives from ".join(index.fingerprint for index in self if index)


def sources(run: Run) -> list[Path]:
    """The files that the index is made from, paraphrases last."""
    # Path, not str: a str without a known extension counts as a sentence
    return [Path(path) for path in (*run.corpus, *filter(None, [run.paraphrases]))]


def opened(run: Run, paths: Path | list[Path]) -> Sequence[CorpusSource]:
    """The sources at `paths`: several for a folder or a glob."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)  # on files left out; building the index shows these warnings
        return open_sources(paths, Reading(run.column, run.quoting))


def open_index(run: Run) -> Index:
    """Load the saved index of a run. Raises InputError if it is damaged, or was made with other options."""
    tokenizer = run.word_tokenizer if ":" in run.word_tokenizer else None  # load_index needs an import path again
    index = una_fast.load_index(run.index, word_tokenizer=tokenizer)
    if (tokenizer is None and index.word_tokenizer != run.word_tokenizer) or index.lowercase != run.lowercase:
        raise InputError(
            f"--index {run.index}: its words were made by {tokenizer_name(index.word_tokenizer)!r} with "
            f"--{'' if index.lowercase else 'no-'}lowercase, and the run asks for {run.word_tokenizer!r} with "
            f"--{'' if run.lowercase else 'no-'}lowercase: name a new folder with --index, or give the same options"
        )
    return index


def open_indexes(run: Run, checked: bool = True) -> Indexes:
    """The saved indexes of a run. An --index of other text gives the words of the negatives alone.

    checked: whether another process of this machine has compared the index with the corpus.

    Raises:
        InputError: as `open_index`, or the index was made from files of the corpus' names with other content.
    """
    index, given = open_index(run), opened(run, sources(run))
    is_of_run = Path(run.index) == Path(run.output) / INDEX
    if is_of_run or [source.name for source in given] == [source["name"] for source in index.sources]:
        if not checked:
            digests = [{"name": source.name, "xxh3_128": source.digest()} for source in given]
            check_sources(Path(run.index), index.sources, digests)
        return Indexes(index)
    if [source.digest() for source in given] == [source["xxh3_128"] for source in index.sources]:
        return Indexes(index)
    return Indexes(build_index_of(run), index)


def build_index_of(run: Run) -> Index:
    """An index in memory of the sources of a run."""
    return una_fast.build_index(
        sources(run),
        word_tokenizer=run.word_tokenizer,
        lowercase=run.lowercase,
        progress=True,
        **reading_arguments(vars(run)),
    )


def make_indexes(run: Run) -> Indexes:
    """`open_indexes`, bound to the model's tokenizer; run.index and a demo's corpus are made if they are missing.

    Raises:
        InputError: as `open_indexes`, or the corpus or the tokenizer cannot be used.
    """
    prepare_demo(run)
    tokenizer = load_tokenizer(run.model, run.trust_remote_code)
    check_embeddings(run.model, tokenizer, run.trust_remote_code)
    if not is_saved(Path(run.index)):
        check_own(Path(run.index), KIND, unused=True)
        tell_user(f"indexing {', '.join(map(str, sources(run)))}")
        index = build_index_of(run)
        TrainingRows.of(run, index)  # raises InputError before anything is written
        index.save(run.index)
    indexes = open_indexes(run, checked=False)
    index, words = indexes
    if words:
        warnings.warn(
            f"--index {run.index} was made from other text than --corpus: the words of the negatives come from its "
            f"{counted(words.n_documents, 'sentence')}; without --index they come from the corpus itself",
            InputWarning,
            stacklevel=2,
        )
    TokenIds(index, tokenizer)  # kept in the index's folder, for all ranks
    rows = TrainingRows.of(run, index)
    left_out = rows.counts["sentences"] - len(rows.rows)
    note = f", {left_out:,} left out as blank" if left_out else ""
    tell_user(f"{counted(len(rows.rows), 'sentence')} to train on{note}; {counted(index.n_terms, 'term')}")
    return indexes


@dataclass(frozen=True)
class TrainingRows:
    """The sentences to train on.

    Attributes:
        rows: int64, the usable rows of the index.
        paraphrase_offset: row of the first paraphrase, or None.
        counts: as in run.json: "sentences", those "trained_on", "blank" ones and "blank_paraphrases", which have no
            words but those that --keep-punctuation and --keep-words keep, and "terms".
    """

    rows: NDArray[np.int64]
    paraphrase_offset: int | None
    counts: dict[str, int]

    @classmethod
    def of(cls, run: Run, index: Index) -> TrainingRows:
        """Count and check the rows of an index against the options.

        Raises:
            InputError: paraphrases of another length than the corpus, or fewer sentences than a batch.
        """
        n_anchors, offset = index.n_documents, None
        if run.paraphrases:
            last = index.sources[-len(opened(run, Path(run.paraphrases))) :]
            n_paraphrases = sum(source["n_documents"] for source in last)
            n_anchors = offset = index.n_documents - n_paraphrases
            if n_anchors != n_paraphrases:
                raise InputError(
                    f"--paraphrases {run.paraphrases}: has {counted(n_paraphrases, 'sentence')} and the corpus "
                    f"{n_anchors:,}: line i of one must be a paraphrase of line i of the other"
                )
        kept = KeptWords.of(run.keep_punctuation, run.keep_words, index.lowercase)
        rows, blank, blank_paraphrases = usable_rows(kept.rows(index), n_anchors)
        if len(rows) < run.batch_size:
            raise InputError(
                f"the corpus has {counted(len(rows), 'sentence')} with words, fewer than --batch-size "
                f"{run.batch_size}: give more text or a smaller batch"
            )
        about = {"sentences": n_anchors, "trained_on": len(rows), "blank": blank}
        return cls(rows, offset, about | {"blank_paraphrases": blank_paraphrases, "terms": index.n_terms})

    def plan(self, run: Run) -> Plan:
        """Which rows each step of the run takes."""
        return Plan(self.rows, run.batch_size, run.seed, run.epochs, run.max_steps)


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
