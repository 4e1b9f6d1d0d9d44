"""What a run needs before its first step: the values of all options, index, rows, encoder, batches, fingerprint."""

from __future__ import annotations

import dataclasses
import warnings
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import torch
import xxhash
from transformers.utils.hub import cached_file

import una_fast
from train.config.run import SAME, Run, reading_arguments
from train.encoder.cpu import has_bf16
from train.encoder.encoder import SentenceEncoder, head_of, load_encoder, masking_of, weights_digest
from train.encoder.pooling import AUTO, OF_TRAINING, POOLINGS
from train.encoder.pretrained import (
    HIDDEN_DROPOUTS,
    check_embeddings,
    load_config,
    load_tokenizer,
    positions_of,
    read_modules,
)
from train.loop.data import CPU_PARTS, GPU_MULTIPLE, GPU_PARTS, BatchMaker, Rows, Source, Views, on_share, unchanged
from train.loop.distributed import Ranks
from train.loop.graphs import why_eager
from train.objective.registry import loss_row
from train.record.checkpoint import flags_of
from train.record.folder import INDEX
from train.record.metrics import machine, versions
from train.record.trackers import make_trackers
from train.signals import tell_user
from una_fast.augment.eda import open_synonyms
from una_fast.augment.radius import resolve_radius
from una_fast.augment.registry import WITH_SYNONYMS, load_augmentation, make_augmentation
from una_fast.augment.settings import KeptWords, read_words
from una_fast.corpus.source import Reading
from una_fast.corpus.sources import check_sources, open_sources, source_digests
from una_fast.errors import InputError, InputWarning, counted
from una_fast.index.index import KIND, Index
from una_fast.storage import check_own, is_saved
from una_fast.storage.files import file_checksum
from una_fast.tokens.ids import TokenIds

COMPILE_ON_GPU: Literal["off", "graphs"] = "off"  # the default of --compile for steps that can be captured
EVALUATIONS_A_SAVE = 10  # on a GPU, where an evaluation comes every second and a checkpoint of BERT-base has 1.3 GB


def device_of(run: Run) -> Literal["cpu", "cuda"]:
    """The device of a run; InputError if this machine lacks the GPUs that the options ask for."""
    device = ("cuda" if torch.cuda.is_available() else "cpu") if run.device == "auto" else run.device
    if device == "cuda" and run.nproc > torch.cuda.device_count():
        raise InputError(
            f"--nproc {run.nproc} is above the {counted(torch.cuda.device_count(), 'GPU')} of this machine: "
            "give as many ranks as GPUs at most, or --device cpu"
        )
    return device


def resolve_options(run: Run) -> Run:
    """`run` with a value for every option that was not given or is "auto".

    Raises:
        InputError: more ranks than GPUs, a missing model, dev file, evaluation data,
            synonyms or words to keep, an unknown task, no name or token to push with.
    """
    device, trust = device_of(run), run.trust_remote_code
    config = load_config(run.model, run.dropout, trust)
    roberta = "roberta" in config.model_type  # another preset than BERT's
    positions = positions_of(config)
    if positions and run.max_length > positions:
        raise InputError(f"--max-length {run.max_length} is above the {positions} positions of the model: shorten it")
    if run.compile == "graphs" and device == "cpu":
        raise InputError("--compile graphs needs a GPU, and none is used here: choose off or on")
    check_inputs(run)
    same_text = run.positives == SAME and not run.paraphrases
    if same_text and run.dropout and not any(hasattr(config, name) for name in HIDDEN_DROPOUTS):
        warnings.warn(
            f"--model {run.model}: {config.model_type} has no dropout in its hidden states, so a sentence and its "
            "positive are nearly the same vector: give --positives or --paraphrases",
            InputWarning,
            stacklevel=2,
        )
    layout = read_modules(run.model, OF_TRAINING.get(run.pooling, AUTO))
    changes = [layout.prompt and f"default prompt {layout.prompt!r}", layout.lower_case and "lower case"]
    for change in filter(None, changes):
        warnings.warn(
            f"--model {run.model}: its {change} is applied in dev scores and where best/ is used, but not in training",
            InputWarning,
            stacklevel=2,
        )
    has_half = torch.cuda.is_bf16_supported(False) if device == "cuda" else has_bf16()
    pooling = POOLINGS[layout.pooling].in_training
    return dataclasses.replace(
        run,
        device=device,
        compile=run.compile or (COMPILE_ON_GPU if device == "cuda" and not why_eager(run, run.nproc) else "off"),
        precision=("bf16" if has_half else "fp32") if run.precision == "auto" else run.precision,
        save_every=run.save_every or run.eval_every * (EVALUATIONS_A_SAVE if device == "cuda" else 1),
        augment=run.augment or ("una" if loss_row(run.loss).negative_views else "none"),
        learning_rate=run.learning_rate or (5e-6 if roberta else 3e-5),
        pooling=pooling,
        head=head_of(pooling, run.head),
        schedule=run.schedule or ("constant" if roberta else "linear"),
        index=run.index or str(Path(run.output) / INDEX),
    )


def check_inputs(run: Run) -> None:
    """Refuse what cannot be imported or read, and a push that would fail, before hours are spent on the corpus."""
    if not loss_row(run.loss).negative_views and run.augment not in (None, "none"):
        raise InputError(f"--loss {run.loss} has no place for negatives: choose --augment none, or another loss")
    for name in (run.augment, run.positives):
        if name and ":" in name:
            load_augmentation(name)
    make_trackers(run.report_to)
    read_words(run.keep_words)
    if run.dev:
        from train.evaluation.tasks.sts import load_dev

        load_dev(run.dev)
    if run.positives in WITH_SYNONYMS:
        open_synonyms(run.synonyms or None)
    if run.evaluate or run.push_to:
        from train.launch.finish import check_finish  # imports the evaluation tasks and the hub's client

        check_finish(run)


def make_index(run: Run) -> Index:
    """`open_index` for the first process of a machine, which makes a missing index and binds it to the tokenizer.

    Raises:
        InputError: as `open_index`, it is another corpus', or the corpus or the tokenizer cannot be used.
    """
    if run.demo:
        from train.demo import prepare_demo

        prepare_demo(run)
    tokenizer = load_tokenizer(run.model, run.trust_remote_code)
    check_embeddings(run.model, tokenizer, load_config(run.model, run.dropout, run.trust_remote_code))
    if is_saved(Path(run.index)):
        index = open_index(run)
        digests = source_digests(sources(run), run.column, run.quoting)
        check_sources(Path(run.index), index.sources[: len(digests)], digests)
    else:
        check_own(Path(run.index), KIND, unused=True)
        tell_user(f"indexing {', '.join(map(str, sources(run)))}")
        index = build_index_of(run)
        training_rows(run, index)  # raises InputError before anything is written
        index.save(run.index)
        index = open_index(run)
    TokenIds(index, tokenizer)  # kept in the index's folder, for all ranks
    rows, counts = training_rows(run, index)
    left_out = counts["sentences"] - len(rows)
    note = f", {left_out:,} left out as blank" if left_out else ""
    tell_user(f"{counted(len(rows), 'sentence')} to train on{note}; {counted(index.n_terms, 'term')}")
    return index


def open_index(run: Run) -> Index:
    """The saved index of a run: its first sources are those of the run, and further ones give words for negatives.

    Raises:
        InputError: it is damaged, or was made with other options.
    """
    index = una_fast.load_index(run.index, word_tokenizer=run.word_tokenizer)
    if index.lowercase != run.lowercase:
        raise InputError(
            f"--index {run.index}: was made with --{'' if index.lowercase else 'no-'}lowercase: give it here too, or "
            "name a new folder with --index"
        )
    return index


def build_index_of(run: Run) -> Index:
    """An index in memory of the sources of a run."""
    return una_fast.build_index(
        sources(run), run.word_tokenizer, run.lowercase, progress=True, **reading_arguments(vars(run))
    )


def sources(run: Run) -> list[Path]:
    """The files that the index is made from, paraphrases last."""
    # Path, not str: a str without a known extension counts as a sentence
    return [Path(path) for path in (*run.corpus, *filter(None, [run.paraphrases]))]


def n_files(run: Run, paths: list[Path]) -> int:
    """The number of files at `paths`: several for a folder or a glob."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)  # on files left out; building the index shows these warnings
        return len(open_sources(paths, Reading(run.column, run.quoting)))


def training_rows(run: Run, index: Index) -> tuple[Rows, dict[str, int]]:
    """The rows of the index to train on, ascending: those where sentence and paraphrase, if there are any, have words.

    Words that --keep-punctuation and --keep-words keep do not count.

    Returns:
        The rows, and what run.json says of them: "sentences", those "trained_on", "blank" ones and
        "blank_paraphrases", and "terms". Paraphrases follow the sentences in the index.

    Raises:
        InputError: paraphrases of another length than the corpus, or fewer sentences than a batch.
    """
    paths = sources(run)
    files = index.sources[: n_files(run, paths)]
    n_all = sum(file["n_documents"] for file in files)
    n = sum(file["n_documents"] for file in files[: n_files(run, paths[: len(run.corpus)])])
    if run.paraphrases and n_all != 2 * n:
        raise InputError(
            f"--paraphrases {run.paraphrases}: has {counted(n_all - n, 'sentence')} and the corpus {n:,}: "
            "line i of one must be a paraphrase of line i of the other"
        )
    blank = KeptWords.of(run.keep_punctuation, run.keep_words, index.lowercase).rows(index)
    blank, blank_paraphrases, _ = np.split(blank, np.searchsorted(blank, [n, n_all]))
    rows = np.delete(np.arange(n), np.union1d(blank, blank_paraphrases - n))
    if len(rows) < run.batch_size:
        raise InputError(
            f"the corpus has {counted(len(rows), 'sentence')} with words, fewer than --batch-size {run.batch_size}: "
            "give more text or a smaller batch"
        )
    counts = {"sentences": n, "trained_on": len(rows), "blank": len(blank)}
    return rows, {**counts, "blank_paraphrases": len(blank_paraphrases), "terms": index.n_terms}


def encoder_of(run: Run) -> SentenceEncoder:
    """The encoder that a run starts from; InputError if its weights are not finite. run: all options resolved."""
    trust, with_mlm = run.trust_remote_code, run.mlm_weight > 0
    encoder = load_encoder(run.model, run.dropout, run.seed, run.pooling, run.head, trust, run.device, with_mlm)
    if not all(torch.isfinite(weights).all() for weights in encoder.backbone.parameters()):
        raise InputError(f"model {run.model}: some of its weights are NaN or infinite: give another model")
    return encoder


def resume_fingerprint(
    run: Run, index: Index, n_sentences: int, encoder: SentenceEncoder, tokenizer: Any
) -> dict[str, Any]:
    """What --resume must find unchanged, by name; run.json holds it.

    run: with all options resolved. n_sentences: of the corpus; the index may hold more.
    """
    vocabulary = sorted(tokenizer.get_vocab().items())
    tokenizing = tokenizer.backend_tokenizer.to_str() if tokenizer.is_fast else repr(vocabulary)
    config = cast(str, cached_file(run.model, "config.json"))
    files = {"dev pairs": run.dev, "synonyms": run.synonyms, "words to keep": run.keep_words,
             "opposites": run.polarity}  # fmt: skip
    return {
        **flags_of(run.identity()),
        "corpus": index.fingerprint,
        "sentences": n_sentences,
        "model": weights_digest(encoder.backbone),
        "model's tokenizer": xxhash.xxh3_128_hexdigest(tokenizing.encode()),
        "model's config.json": file_checksum(Path(config)),
        **{f"model's {name}": value for name, value in dataclasses.asdict(encoder.layout).items()},
        **{name: file_checksum(Path(file)) if file else None for name, file in files.items()},
    }


def batch_maker(run: Run, ranks: Ranks, index: Index, tokenizer: Any, n_sentences: int) -> BatchMaker:
    """The BatchMaker of this rank: the sources of anchors, positives and negatives, and when a step has negatives.

    n_sentences: of the corpus; their paraphrases, if there are any, follow them in the index.
    """
    always = {"seed": run.seed, "tokenizer": tokenizer, "n_jobs": 1}
    tokens: TokenIds | None = None
    positive: Source | None = None  # a sentence is its own
    negative: Source | None = None
    if run.augment not in (None, "none"):
        augmentation = make_augmentation(run.augment, index, vars(run), **always)
        tokens, negative = augmentation.tokens, augmentation.token_ids
    tokens = tokens or TokenIds(index, tokenizer)
    if run.positives != SAME:
        offered = {"strength": run.positives_strength, "synonyms": run.synonyms or None}
        made = make_augmentation(run.positives, index, offered, **always).token_ids
        positive = on_share(made, unchanged(tokens), run.positives_share, run.seed)
    elif run.paraphrases:
        positive = unchanged(tokens, n_sentences)
    negative_views = loss_row(run.loss).negative_views
    on_gpu = ranks.device.type == "cuda"
    return BatchMaker(
        views=Views(unchanged(tokens), positive, negative, run.max_length, run.alpha, negative_views),
        rank=ranks.rank,
        world=ranks.world,
        rows_of_part=run.grad_cache,
        n_parts=GPU_PARTS if on_gpu else CPU_PARTS,
        multiple=GPU_MULTIPLE if on_gpu else 1,
        masking=masking_of(tokenizer, run.seed) if run.mlm_weight else None,
    )


def summary_of(run: Run, ranks: Ranks, index: Index, counts: Any, fingerprint: Any) -> dict[str, Any]:
    """What run.json holds of a run before its first step."""
    return {
        "settings": vars(run),
        "resolved": {"radius": resolve_radius(run.radius, index.n_terms)},
        "versions": versions(),
        "machine": machine(),
        "ranks": ranks.world,
        "corpus": {**counts, "sources": index.sources},
        "resume_fingerprint": fingerprint,
    }
