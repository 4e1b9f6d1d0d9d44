"""`una-fast probe`: measures how well an encoder separates near-misses, on your own text or labelled pairs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from una_fast.command import Command, option, settings_of
from una_fast.errors import InputError, counted, first_line
from una_fast.imports import import_extra
from una_fast.options import Files, Words, parse_edits
from una_fast_cli.probe_report import COLOURS, GATE, VERIFIER, corpus_report, page, pairs_report, threshold_reports

if TYPE_CHECKING:
    from una_fast.pair_scores import Pair, PairScores


@dataclass(frozen=True)
class ProbeOptions(Files, Words):
    """The options of `una-fast probe`."""

    model: tuple[str, ...] = option(
        "encoder that sentence-transformers loads; give two to compare them, such as before and after training",
        (), "Encoder and text", required=True, metavar="NAME_OR_FOLDER",
    )  # fmt: skip
    corpus: str = option("file of your text, from which near-misses are made", "", metavar="FILE")
    pairs: str = option(
        "file of your labelled pairs, .csv, .tsv or .parquet, with the columns sentence1, sentence2, label (1: same "
        "meaning, 0: near-miss) and, optionally, group",
        "", metavar="FILE",
    )  # fmt: skip
    verifier: str = option(
        "folder of a verifier for the encoder, made by `una-fast verifier`, or `packaged`: score --pairs with it too",
        "", metavar="FOLDER",
    )  # fmt: skip
    n: int = option("number of sentences of --corpus to sample", 2000, least=2)
    share: float = option("share of near-misses that the printed threshold may let pass", 0.05, above=0, below=1)
    threshold: float | None = option("cosine above which your system accepts a pair: also show what passes it", None,
                                     least=-1, most=1)  # fmt: skip
    edits: str = option(
        "edits to make to --corpus and report one by one, in addition to the replacement of an important word",
        "polarity,number,name,swap", metavar="NAME,...",
    )  # fmt: skip
    seed: int = option("seed of the sample and of the near-misses", 42, least=0)
    json: str = option("file for all figures", "", metavar="FILE")
    html: str = option("HTML file for the printed figures and the curve of --pairs", "", metavar="FILE")


def _probe(options: ProbeOptions) -> None:
    import una_fast  # imported here, so that --help and errors of the command line do not wait for torch
    from train.messages import tell_user
    from una_fast.pair_scores import read_pairs, score_overlap
    from una_fast.storage.files import write_file, write_json

    figures = _checked(options)
    # text and pairs are read before encoders are loaded, which takes seconds
    pairs = read_pairs(options.pairs) if options.pairs else []
    if options.corpus:
        tell_user(f"indexing {options.corpus}")
        index = una_fast.build_index(Path(options.corpus), **settings_of(options, Files, Words))
    encoders = {name: load_encode(name) for name in options.model}
    scores: dict[str, PairScores] = {}
    probes, reports = {}, []
    for name, encode in encoders.items():
        if options.pairs:
            tell_user(f"{name}: encoding {counted(len(pairs), 'pair')}")
            scores |= _pair_scores(name, encode, pairs, options)
        if options.corpus:
            tell_user(f"{name}: encoding sentences and their near-misses")
            edits = parse_edits(options.edits)
            probes[name] = una_fast.probe(encode, index, options.n, edits=edits, share=options.share, seed=options.seed)
    if scores:
        reports.append(pairs_report(options.pairs, scores, score_overlap(pairs, options.share)))
    if probes:
        reports.append(corpus_report(options.corpus, probes))
    reports += threshold_reports(options.threshold, scores, probes)
    text = "\n\n".join(text for text, _ in reports) + "\n"
    sys.stdout.write(text)
    if options.html:
        write_file(Path(options.html), page(text, scores))
    if options.json:
        for _, more in reports:
            figures |= more
        write_json(Path(options.json), figures)


def _checked(options: ProbeOptions) -> dict[str, Any]:
    """Check the options. Return the values of --model, --corpus and --pairs, to store them in the --json file.

    Raises InputError if this file exists, but does not contain the same values.
    """
    from una_fast.storage.files import read_object

    if len(options.model) > len(COLOURS):
        raise InputError(f"--model: {len(options.model)} encoders: give one, or two to compare")
    if not options.corpus and not options.pairs:
        raise InputError("--corpus or --pairs is missing: give the file of your text, or of your labelled pairs")
    if options.verifier and (len(options.model) > 1 or not options.pairs):
        raise InputError("--verifier: needs --pairs and a single --model, the encoder of the verifier")
    if options.corpus:
        # imported here, because it imports the index and the tokens, which --pairs does not need
        from una_fast.augment.near_misses import check_edits

        check_edits(parse_edits(options.edits))
    measured = {"model": list(options.model), "corpus": options.corpus, "pairs": options.pairs}
    measured = {name: value for name, value in measured.items() if value}
    file = options.json and Path(options.json)
    if file and file.exists() and not measured.items() <= read_object(file).items():
        raise InputError(f"--json {file}: contains something other than figures of this text: choose another name")
    return measured


def _pair_scores(
    name: str, encode: Callable[[list[str]], Any], pairs: Sequence[Pair], options: ProbeOptions
) -> dict[str, PairScores]:
    """Return the scores of an encoder and, with --verifier, those of the verifier and of its gate, by name.

    A pair that the verifier accepts keeps its cosine in the gate; any other pair gets -1.
    """
    import una_fast

    cosines = una_fast.score_pairs(encode, pairs, options.share)
    if not (folder := options.verifier):
        return {name: cosines}
    verifier = una_fast.Verifier(None if folder == "packaged" else folder, encoder=name)
    found = verifier.near_miss([pair[:2] for pair in pairs])
    gate = np.where(found <= verifier.threshold, cosines.cosines, -1.0)
    return {
        name: cosines,
        VERIFIER: replace(cosines, cosines=-found.astype(float)),
        GATE: replace(cosines, cosines=gate),
    }


def load_encode(name: str) -> Callable[[list[str]], Any]:
    """Load an encoder with sentence-transformers, and return a function from texts to embeddings (n_texts, width)."""
    kind = import_extra("sentence_transformers").SentenceTransformer
    from transformers import PreTrainedModel

    from train.encoder.pretrained import load_pretrained, quiet, refuse_code, refuse_run

    quiet()
    refuse_run(name)
    try:
        refuse_code(name)
        model = kind(name)
        network = next((module for module in model.modules() if isinstance(module, PreTrainedModel)), None)
        if network and Path(name).is_dir() and not network.config.is_encoder_decoder:
            # sentence-transformers leaves a weight random if the checkpoint stores it under another name
            network.load_state_dict(load_pretrained(str(network.name_or_path))[0].state_dict(), strict=False)
        return partial(model.encode, show_progress_bar=sys.stderr.isatty())
    except InputError:
        raise
    except Exception as error:  # sentence-transformers raises many types for missing or damaged files
        found = "" if Path(name).is_dir() else "no such folder, and "
        raise InputError(f"model {name}: {found}sentence-transformers cannot load it: {first_line(error)}") from error


main = Command(
    "una-fast probe",
    "Show how similar an encoder finds near-misses: edited sentences of your text, or your own labelled pairs.",
    ProbeOptions,
    _probe,
    page="near-misses",
)
