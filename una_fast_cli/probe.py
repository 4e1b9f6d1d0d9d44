"""`una-fast probe`: how near an encoder puts near-misses, of a user's own text or of a user's own labelled pairs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from una_fast.command import Command, option, options_of
from una_fast.errors import InputError, counted, first_line
from una_fast.imports import import_extra
from una_fast.options import Files, Words, reading_arguments
from una_fast.text_table import aligned

if TYPE_CHECKING:
    from una_fast.index.index import Index
    from una_fast.pair_scores import PairScores

MOST_MODELS = 2  # before and after a training


@dataclass(frozen=True)
class Probe:
    """Encoder and text."""

    model: tuple[str, ...] = option(
        "encoder that sentence-transformers loads; two: before and after a training",
        (),
        required=True,
        metavar="NAME_OR_FOLDER",
    )
    corpus: str = option(
        "file of your text, one sentence per line or row, from which near-misses are made", "", metavar="FILE"
    )
    pairs: str = option(
        "file of your labelled pairs, .csv or .tsv, with the columns sentence1, sentence2, label (1: same "
        "meaning, 0: near-miss) and, if you like, group",
        "",
        metavar="FILE",
    )
    n: int = option("number of sentences of --corpus to sample", 2000, least=2)
    share: float = option("share of near-misses that the printed threshold may let pass", 0.05, above=0, below=1)
    edits: str = option(
        "edits of --corpus to report one by one, next to the replacement of an important word",
        "polarity,number,name,swap",
        metavar="NAME,...",
    )
    seed: int = option("seed of the sample and of the near-misses", 42, least=0)
    json: str = option("file for all figures", "", metavar="FILE")
    html: str = option("file for a page with what is printed, and the curve of --pairs", "", metavar="FILE")


def _probe(values: dict[str, Any]) -> None:
    import una_fast  # these here, so that --help and errors of the command line do not wait for torch
    from train.record.folder import read_object, write_file, write_json
    from una_fast.augment.near_misses import parse_edits
    from una_fast.pair_scores import read_pairs
    from una_fast_cli.probe_page import page

    source = {name: values[name] for name in ("model", "corpus", "pairs") if values[name]}
    source["model"] = list(values["model"])
    file = values["json"] and Path(values["json"])
    check(values)
    parse_edits(values["edits"])
    if file and file.exists() and not source.items() <= read_object(file).items():
        raise InputError(f"--json {file}: holds something else than figures of this text: choose another name")
    index = read_corpus(values) if values["corpus"] else None  # before encoders are loaded, which takes seconds
    pairs = read_pairs(values["pairs"]) if values["pairs"] else None
    encoders = {name: load_encode(name) for name in values["model"]}
    figures: dict[str, Any] = {}
    scores: dict[str, PairScores] = {}
    said: list[str] = []

    def say(text: str) -> None:
        said.append(text)
        sys.stdout.write(text)

    if pairs is not None:
        scores |= {name: una_fast.score_pairs(encode, pairs, values["share"]) for name, encode in encoders.items()}
        say(describe(values["pairs"], scores))
        figures["pairs_scores"] = {name: one.to_dict() for name, one in scores.items()}
    if index:
        settings = {name: values[name] for name in ("n", "share", "seed", "edits")}
        probes = {name: una_fast.probe(encode, index, **settings) for name, encode in encoders.items()}
        for name, probe in probes.items():
            say(f"{name}, {counted(len(probe.usual), 'sentence')} of {values['corpus']}\n{probe}\n")
        figures["probes"] = {name: probe.to_dict() for name, probe in probes.items()}
    if values["html"]:
        write_file(Path(values["html"]), page(scores, "\n".join(said)))
    if file:
        write_json(file, source | figures)


def check(values: Mapping[str, Any]) -> None:
    """Refuse options that do not fit each other."""
    if len(values["model"]) > MOST_MODELS:
        raise InputError(f"--model: {len(values['model'])} encoders: give one, or two to compare")
    if not values["corpus"] and not values["pairs"]:
        raise InputError("--corpus or --pairs is missing: give the file of your text, or of your labelled pairs")


def describe(path: str, scores: Mapping[str, PairScores]) -> str:
    """The figures of one encoder, or of two and their difference, in lines of text."""
    (_, first), *others = scores.items()
    n_same = int(first.same.sum())
    lines = [f"{counted(len(first.same), 'pair')} of {path}, {n_same:,} with the same meaning"]
    lines += [f"{name}: {one}" for name, one in scores.items()]
    rows = [["group", "same", "near-misses", *(f"AUC of model {i + 1}" for i in range(len(scores)))]]
    rows[0] += ["change", "95% interval"] * len(others)
    for name in ("all", *first.by_group()):
        of = [one if name == "all" else one.by_group()[name] for one in scores.values()]
        own = first.groups == name if name != "all" else slice(None)
        n_same = int(first.same[own].sum())
        row = [name, f"{n_same:,}", f"{len(first.same[own]) - n_same:,}", *(f"{one.auc:.1%}" for one in of)]
        if others:
            low, high = of[1].interval(of[0])
            row += [f"{100 * (of[1].auc - of[0].auc):+.1f}", f"{100 * low:+.1f} to {100 * high:+.1f}"]
        rows.append(row)
    table = aligned(rows, left=(0,))
    note = "A group with one label only is compared with all pairs of the other label."
    return "\n".join([*lines, "", *table, *([note] if first.by_group() else []), ""])


def read_corpus(values: Mapping[str, Any]) -> Index:
    """The index of --corpus."""
    import una_fast

    words = {"word_tokenizer": values["word_tokenizer"], "lowercase": values["lowercase"]}
    return una_fast.build_index(Path(values["corpus"]), **words, **reading_arguments(values))


def load_encode(name: str) -> Callable[[list[str]], Any]:
    """The function from texts to embeddings of an encoder that sentence-transformers loads; it shows a progress bar.

    Raises:
        InputError: sentence-transformers is not installed, or cannot load the encoder.
    """
    kind = import_extra("sentence_transformers").SentenceTransformer
    from transformers import PreTrainedModel

    from train.encoder.pretrained import load_pretrained, quiet

    quiet()
    try:
        model = kind(name)
        network = next((module for module in model.modules() if isinstance(module, PreTrainedModel)), None)
        if network and Path(name).is_dir() and not network.config.is_encoder_decoder:
            # sentence-transformers fills in random weights where a checkpoint has other names
            network.load_state_dict(load_pretrained(str(network.name_or_path))[0].state_dict(), strict=False)
        return partial(model.encode, show_progress_bar=sys.stderr.isatty())
    except InputError:
        raise
    except Exception as error:  # it raises exceptions of many types for files that are missing or damaged
        raise InputError(f"model {name}: sentence-transformers cannot load it: {first_line(error)}") from error


main = Command(
    "una-fast probe",
    "Show how near an encoder puts near-misses: your sentences with one important word replaced, or your own pairs.",
    options_of(Probe) | options_of(Files) | options_of(Words),
    _probe,
    page="near-misses",
)
