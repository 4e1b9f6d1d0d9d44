"""`una-fast probe`: measures how well an encoder separates near-misses, on your own text or labelled pairs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from una_fast.command import Command, option, options_of
from una_fast.errors import InputError, counted, first_line
from una_fast.imports import import_extra
from una_fast.options import FILES, Files, Words
from una_fast.text_table import aligned

if TYPE_CHECKING:
    from una_fast.pair_scores import PairScores
    from una_fast.probing import Probe

COLOURS = ("#0072b2", "#d55e00")  # of the curves: Okabe and Ito's, which readers with any colour vision can distinguish
CHANGE = ("change", "95% interval")  # columns of a comparison
SHARES = (0.1, 0.2)  # of near-misses that may pass, in addition to --share
FEW = 10  # pairs: no interval is printed for a smaller group
DISTANCE = (
    "Distance of near-misses: their mean 1 - cosine, divided by that of two sentences. A higher distance is better."
)
HELD_OUT = (
    "Hits on held-out pairs: each half of the pairs chooses the threshold for the other half, such that the allowed "
    "share of its near-misses passes."
)
PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>una-fast probe</title>
<style>body {{ font: 15px/1.5 system-ui, sans-serif; margin: 2rem }} text {{ font-size: 2.8px }}</style>
<h1>una-fast probe</h1>
{figure}
<pre>{text}</pre></html>
"""
FIGURE = """<p>Each point of a curve is a threshold. A higher curve is a better encoder; the dotted line is chance.</p>
<ul>{names}</ul>
<svg width="520" viewBox="-14 -2 116 116" role="img">
<rect width="100" height="100" fill="none" stroke="#bbb" stroke-width="0.3"/>
<line x1="0" y1="100" x2="100" y2="0" stroke="#bbb" stroke-width="0.3" stroke-dasharray="1"/>
{ticks}
<text x="50" y="111" text-anchor="middle">near-misses above the threshold</text>
<text transform="translate(-10 50) rotate(-90)" text-anchor="middle">pairs with the same meaning above it</text>
{curves}
</svg>"""


@dataclass(frozen=True)
class ProbeOptions:
    """Encoder and text."""

    model: tuple[str, ...] = option(
        "encoder that sentence-transformers loads; give two to compare them, such as before and after training",
        (), required=True, metavar="NAME_OR_FOLDER",
    )  # fmt: skip
    corpus: str = option("file of your text, from which near-misses are made", "", metavar="FILE")
    pairs: str = option(
        "file of your labelled pairs, .csv or .tsv, with the columns sentence1, sentence2, label (1: same "
        "meaning, 0: near-miss) and, optionally, group",
        "", metavar="FILE",
    )  # fmt: skip
    n: int = option("number of sentences of --corpus to sample", 2000, least=2)
    share: float = option("share of near-misses that the printed threshold may let pass", 0.05, above=0, below=1)
    edits: str = option(
        "edits of --corpus to report one by one, next to the replacement of an important word",
        "polarity,number,name,swap", metavar="NAME,...",
    )  # fmt: skip
    seed: int = option("seed of the sample and of the near-misses", 42, least=0)
    json: str = option("file for all figures", "", metavar="FILE")
    html: str = option("HTML file for the printed figures and the curve of --pairs", "", metavar="FILE")


def _probe(values: dict[str, Any]) -> None:
    import una_fast  # imported here, so that --help and errors of the command line do not wait for torch
    from train.record.folder import write_file, write_json
    from una_fast.pair_scores import read_pairs

    figures = _checked(values)
    # text and pairs are read before encoders are loaded, which takes seconds
    pairs = read_pairs(values["pairs"]) if values["pairs"] else None
    index = None
    if values["corpus"]:
        settings = {name: values[name] for name in ("word_tokenizer", "lowercase", *FILES)}
        index = una_fast.build_index(Path(values["corpus"]), **settings)
    names = [*dict.fromkeys(values["model"])]
    encoders, labels = [load_encode(name) for name in names], shortened(names)
    printed: list[str] = []
    figure = ""

    def show(text: str) -> None:
        printed.append(text)
        sys.stdout.write(text)

    if pairs is not None:
        scores = [una_fast.score_pairs(encode, pairs, values["share"]) for encode in encoders]
        show(_pairs_text(values["pairs"], labels, scores))
        figure = _figure(labels, scores)
        figures["pairs_scores"] = {name: one.to_dict() for name, one in zip(names, scores, strict=True)}
        if len(scores) == 2:
            figures["pairs_change"] = _change("auc", *scores)
        try:
            figures["held_out"] = _held_out(scores, values["share"])
            show(_held_out_text(labels, figures["held_out"]))
        except InputError as error:
            show(f"\nno hits on held-out pairs: {error}\n")
    if index:
        settings = {name: values[name] for name in ("n", "share", "seed", "edits")}
        probes = [una_fast.probe(encode, index, **settings) for encode in encoders]
        show(_probes_text(values["corpus"], labels, probes))
        figures["probes"] = {name: probe.to_dict() for name, probe in zip(names, probes, strict=True)}
        if len(probes) == 2:
            figures["probes_change"] = {
                after.name: _change("distance", before, after) for before, after in _by_edit(probes)
            }
    if values["html"]:
        write_file(Path(values["html"]), PAGE.format(figure=figure, text=escape("\n".join(printed))))
    if values["json"]:
        write_json(Path(values["json"]), figures)


def _checked(values: dict[str, Any]) -> dict[str, Any]:
    """Return the encoders and files for --json. Raises InputError for options that do not fit each other."""
    from train.record.folder import read_object
    from una_fast.augment.near_misses import parse_edits

    if len(values["model"]) > len(COLOURS):
        raise InputError(f"--model: {len(values['model'])} encoders: give one, or two to compare")
    if not values["corpus"] and not values["pairs"]:
        raise InputError("--corpus or --pairs is missing: give the file of your text, or of your labelled pairs")
    parse_edits(values["edits"])
    measured = {"model": list(values["model"]), **{name: values[name] for name in ("corpus", "pairs") if values[name]}}
    file = values["json"] and Path(values["json"])
    if file and file.exists() and not measured.items() <= read_object(file).items():
        raise InputError(f"--json {file}: contains something other than figures of this text: choose another name")
    return measured


def _pairs_text(path: str, labels: Sequence[str], scores: Sequence[PairScores]) -> str:
    """Return the scores of pairs as text, for one encoder, or for two with their difference."""
    first, groups = scores[0], [{"all": one, **one.by_group()} for one in scores]
    rows = [["group", "same", "near-misses", *(f"AUC of {label}" for label in labels), *CHANGE * (len(scores) == 2)]]
    for name in groups[0]:
        own = first.same if name == "all" else first.same[first.groups == name]
        of = [group[name] for group in groups]
        if name != "all" and len(of[0].same) == len(first.same):
            continue  # it contains all pairs of one label, so its figures are those of all pairs
        rows.append([name, f"{own.sum():,}", f"{(~own).sum():,}", *(f"{one.auc:.1%}" for one in of)])
        if len(of) == 2:
            change, low, high = (100 * share for share in _change("auc", *of).values())
            rows[-1] += [f"{change:+.1f}", f"{low:+.1f} to {high:+.1f}" if len(own) >= FEW else "too few"]
    return "\n".join(
        [
            f"{counted(len(first.same), 'pair')} of {path}, {first.same.sum():,} with the same meaning",
            *(f"{label}: {one}" for label, one in zip(labels, scores, strict=True)),
            "",
            *aligned(rows, left=(0,)),
            *["A group with only one label is compared with all pairs of the other label."] * (len(groups[0]) > 1),
            "",
        ]
    )


def _held_out(scores: Sequence[PairScores], share: float) -> list[dict[str, Any]]:
    """Return the share of hits for each allowed share and label, and with two encoders the change and its interval.

    A hit is a pair above the threshold that the other half of the pairs chooses.
    """
    from una_fast.pair_scores import paired_change

    figures = []
    for allowed, same in product(sorted({share, *SHARES}), (True, False)):
        hits = [one.held_out_hits(allowed)[one.same == same] for one in scores]
        figures.append({"share": allowed, "same": same, "hits": [float(each.mean()) for each in hits]})
        if len(hits) == 2:
            figures[-1] |= dict(zip(("change", "low", "high"), paired_change(*hits), strict=True))
    return figures


def _held_out_text(labels: Sequence[str], held_out: Sequence[dict[str, Any]]) -> str:
    """Lay out the figures of `_held_out` as a table."""
    rows = [["allowed", "pairs", *(f"hits of {label}" for label in labels), *CHANGE * (len(labels) == 2)]]
    for figures in held_out:
        rows.append([f"{100 * figures['share']:g}%", "same" if figures["same"] else "near-misses"])
        rows[-1] += [f"{hits:.1%}" for hits in figures["hits"]]
        if len(labels) == 2:
            change, low, high = (100 * figures[name] for name in ("change", "low", "high"))
            rows[-1] += [f"{change:+.1f}", f"{low:+.1f} to {high:+.1f}"]
    return "\n".join(["", HELD_OUT, "", *aligned(rows, left=(0, 1)), "", ""])


def _probes_text(path: str, labels: Sequence[str], probes: Sequence[Probe]) -> str:
    """Return the probes of a text as text, for one encoder, or for two with their difference."""
    texts = [
        f"{label}, {counted(len(probe.usual), 'sentence')} of {path}\n{probe}\n"
        for label, probe in zip(labels, probes, strict=True)
    ]
    if len(probes) == 2:
        rows = [["edit", *(f"distance of {label}" for label in labels), *CHANGE]]
        for before, after in _by_edit(probes):
            change, low, high = _change("distance", before, after).values()
            row = [f"{before.distance:.3f}", f"{after.distance:.3f}", f"{change:+.3f}", f"{low:+.3f} to {high:+.3f}"]
            rows.append([after.name, *row])
        texts.append("\n".join([DISTANCE, "", *aligned(rows, left=(0,)), ""]))
    return "\n".join(texts)


def _by_edit(probes: Sequence[Probe]) -> list[tuple[Probe, ...]]:
    """Return the probes of all encoders for each edit. All encoders have the same edits of the same sentences."""
    return [*zip(*((probe, *probe.edits) for probe in probes), strict=True)]


def _change(figure: str, before: Any, after: Any) -> dict[str, float]:
    """Return the change of a figure, "auc" or "distance", and its 95% interval, by their names in --json."""
    low, high = after.interval(before)
    return {figure: getattr(after, figure) - getattr(before, figure), f"{figure}_low": low, f"{figure}_high": high}


def shortened(names: Sequence[str]) -> list[str]:
    """Shorten paths to their last two parts, or to as many as distinguish them."""
    paths = [*map(Path, names)]
    lengths = range(2, max(len(path.parts) for path in paths) + 1)
    candidates = ([str(Path(*path.parts[-n:])) for path in paths] for n in lengths)
    return next((labels for labels in candidates if len({*labels}) == len(paths)), [*map(str, paths)])


def _figure(labels: Sequence[str], scores: Sequence[PairScores]) -> str:
    """Return the curves of the encoders as SVG, in a square of 100 x 100 units."""
    names, curves = "", ""
    for label, one, colour in zip(labels, scores, COLOURS, strict=False):
        names += f'<li style="color: {colour}">{escape(label)}</li>'
        points = " ".join(f"{100 * x:.2f},{100 - 100 * y:.2f}" for x, y in zip(*one.curve(), strict=True))
        curves += f'<polyline fill="none" stroke="{colour}" stroke-width="0.4" points="0,100 {points}"/>'
    ticks = [
        f'<text x="{share}" y="104.5" text-anchor="middle">{share}%</text>'
        f'<text x="-1.5" y="{101 - share}" text-anchor="end">{share}%</text>'
        for share in (0, 25, 50, 75, 100)
    ]
    return FIGURE.format(names=names, ticks="".join(ticks), curves=curves)


def load_encode(name: str) -> Callable[[list[str]], Any]:
    """Load an encoder with sentence-transformers. Return its function from texts to embeddings."""
    kind = import_extra("sentence_transformers").SentenceTransformer
    from transformers import PreTrainedModel

    from train.encoder.pretrained import load_pretrained, quiet, refuse_run

    quiet()
    refuse_run(name)
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
    "Show how similar an encoder finds near-misses: edited sentences of your text, or your own labelled pairs.",
    options_of(ProbeOptions) | options_of(Files) | options_of(Words),
    _probe,
    page="near-misses",
)
