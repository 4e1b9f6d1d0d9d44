"""What `una-fast probe` reports about one encoder or two: text, an HTML page, and figures for --json."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from una_fast.errors import InputError, counted
from una_fast.text_table import aligned

if TYPE_CHECKING:
    from una_fast.pair_scores import PairScores
    from una_fast.probing import Probe

COLOURS = ("#0072b2", "#d55e00")  # of the curves: Okabe and Ito's, which readers with any colour vision can distinguish
OVERLAP, VERIFIER, GATE = "1 - overlap", "verifier", "gate"
CHANGE = ("change", "95% interval")  # columns of a comparison
SHARES = (0.1, 0.2)  # of near-misses that may pass, in addition to --share
FEW = 10  # a group with fewer pairs gets no interval
PASSING = {
    "same": "pairs with the same meaning", "near_misses": "near-misses of --pairs",
    "corpus_near_misses": "near-misses of --corpus",
}  # fmt: skip
DISTANCE = "Distance of near-misses: their mean 1 - cosine, relative to random sentences. A higher distance is better."
BEATEN = (
    "warning: 1 - word overlap, without any model, has a higher AUC on these pairs, so they do not show whether an "
    "encoder knows what differs"
)
HELD_OUT = (
    "Hits on held-out pairs: the threshold for each half of the pairs is chosen on the other half, where the allowed "
    "share of near-misses passes."
)
PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>una-fast probe</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>body {{ font: 15px/1.5 system-ui, sans-serif; margin: 2rem }} text {{ font-size: 2.8px }}
svg {{ width: 100%; max-width: 36rem }} pre {{ white-space: pre-wrap }}
@media (max-width: 32rem) {{ body {{ margin: 1rem }} text {{ font-size: 4px }}
pre {{ font-size: 11px; white-space: pre; overflow-x: auto }} }}</style>
<h1>una-fast probe</h1>
{figure}
<pre>{text}</pre></html>
"""
FIGURE = """<p>Each point of a curve is a threshold. A higher curve is a better encoder; the dotted line is chance.
A dot marks the printed threshold.</p>
<ul>{names}</ul>
<svg viewBox="-18 -4 126 120" role="img">
<rect width="100" height="100" fill="none" stroke="#bbb" stroke-width="0.3"/>
<line x1="0" y1="100" x2="100" y2="0" stroke="#bbb" stroke-width="0.3" stroke-dasharray="1"/>
{ticks}
<text x="50" y="111" text-anchor="middle">near-misses above the threshold</text>
<text transform="translate(-13.5 50) rotate(-90)" text-anchor="middle">pairs with the same meaning above it</text>
{curves}
</svg>"""


def pairs_report(path: str, scores: Mapping[str, PairScores], overlap: PairScores) -> tuple[str, dict[str, Any]]:
    """Report how well each encoder separates the pairs in the file `path`, as a text and as figures for --json.

    scores: by name of the encoder, or VERIFIER or GATE. overlap: the scores of the baseline without a model.
    """
    labels, encoders = shortened([*scores]), [*scores.values()]
    figures: dict[str, Any] = {"pairs_scores": {name: one.to_dict() for name, one in scores.items()}}
    figures["overlap"] = overlap.to_dict()
    if len(encoders) == 2:
        figures["pairs_change"] = _change("auc", *encoders)
    # None: all pairs, whatever the groups are called
    groups = [{None: one, **one.by_group()} for one in (overlap, *encoders)]
    all_same, group_of_pair = overlap.same, overlap.groups
    columns = [f"AUC of {label}" for label in (OVERLAP, *labels)]
    rows = [["group", "same", "near-misses", *columns, *CHANGE * (len(encoders) == 2)]]
    for name in groups[0]:
        same = all_same if name is None else all_same[group_of_pair == name]
        scored = [group[name] for group in groups]
        if name is not None and len(scored[0].same) == len(all_same):
            continue  # the group contains all pairs of one label, so its figures are the same as for all pairs
        counts = [f"{same.sum():,}", f"{(~same).sum():,}"]
        rows.append(["all" if name is None else name, *counts, *(f"{one.auc:.1%}" for one in scored)])
        if len(encoders) == 2:
            middle, interval = _cells(100 * figure for figure in _change("auc", *scored[1:]).values())
            rows[-1] += [middle, interval if len(same) >= FEW else "too few"]
    lines = [f"{counted(len(all_same), 'pair')} of {path}, {all_same.sum():,} with the same meaning"]
    lines += [f"{label}: {one}" for label, one in zip(labels, encoders, strict=True)]
    lines += [f"{label}: {BEATEN}" for label, one in zip(labels, encoders, strict=True) if overlap.auc > one.auc]
    lines += ["", *aligned(rows, left=(0,))]
    if len(groups[0]) > 1:
        lines.append("A group with only one label is compared with all pairs of the other label.")
    try:
        held_out, figures["held_out"] = _held_out(labels, encoders)
    except InputError as error:
        held_out = f"no hits on held-out pairs: {error}"
    return "\n".join([*lines, "", held_out]), figures


def _held_out(labels: Sequence[str], scores: Sequence[PairScores]) -> tuple[str, list[dict[str, Any]]]:
    """Return the table of held-out pairs, as text and for --json.

    A share of the near-misses may pass: --share, 10% or 20%. For each of these three shares, a threshold is chosen on
    other pairs. The table shows how many pairs with the same meaning are above the threshold, and how many near-misses.
    """
    from una_fast.pair_scores import paired_change

    figures: list[dict[str, Any]] = []
    rows = [["allowed", "pairs", *(f"hits of {label}" for label in labels), *CHANGE * (len(labels) == 2)]]
    for allowed, same in product(sorted({scores[0].share, *SHARES}), (True, False)):
        hits = [one.held_out_hits(allowed)[one.same == same] for one in scores]
        shares = [float(each.mean()) for each in hits]
        figures.append({"share": allowed, "same": same, "hits": shares})
        rows.append([f"{100 * allowed:g}%", "same" if same else "near-misses", *(f"{share:.1%}" for share in shares)])
        if len(hits) == 2:
            change = paired_change(*hits)
            figures[-1] |= dict(zip(("change", "low", "high"), change, strict=True))
            rows[-1] += _cells(100 * figure for figure in change)
    return "\n".join([HELD_OUT, "", *aligned(rows, left=(0, 1))]), figures


def corpus_report(path: str, probes: Mapping[str, Probe]) -> tuple[str, dict[str, Any]]:
    """Report how far encoders separate sentences of `path` from near-misses, as a text and as figures for --json."""
    labels = shortened([*probes])
    figures: dict[str, Any] = {"probes": {name: probe.to_dict() for name, probe in probes.items()}}
    texts = [
        f"{label}, {counted(len(probe.usual), 'sentence')} of {path}\n{probe}"
        for label, probe in zip(labels, probes.values(), strict=True)
    ]
    if len(probes) == 2:
        rows = [["edit", *(f"distance of {label}" for label in labels), *CHANGE]]
        changes = figures["probes_change"] = {}
        for before, after in zip(*((probe, *probe.edits) for probe in probes.values()), strict=True):
            changes[after.name] = _change("distance", before, after)
            cells = _cells(changes[after.name].values(), digits=3)
            rows.append([after.name, f"{before.distance:.3f}", f"{after.distance:.3f}", *cells])
        texts.append("\n".join([DISTANCE, "", *aligned(rows, left=(0,))]))
    return "\n\n".join(texts), figures


def threshold_reports(
    threshold: float | None, scores: Mapping[str, PairScores], probes: Mapping[str, Probe]
) -> list[tuple[str, dict[str, Any]]]:
    """Report which shares of the pairs, and of the near-misses of the corpus, have a cosine above `threshold`."""
    if threshold is None:
        return []
    figures: dict[str, Any] = {}
    for name, pairs in scores.items():
        if name != VERIFIER:  # its score is not a cosine
            figures[name] = dict(zip(("same", "near_misses"), pairs.passing(threshold), strict=True))
    for name, probe in probes.items():
        figures.setdefault(name, {})["corpus_near_misses"] = probe.passing(threshold)
    columns = [*dict.fromkeys(column for of in figures.values() for column in of)]
    rows = [["encoder", *(PASSING[column] for column in columns)]]
    for label, of in zip(shortened([*figures]), figures.values(), strict=True):
        rows.append([label, *(f"{of[column]:.1%}" if column in of else "-" for column in columns)])
    text = "\n".join([f"Share above the threshold {threshold:g}:", "", *aligned(rows, left=(0,))])
    return [(text, {"at_threshold": {"threshold": threshold, **figures}})]


def _change(attribute: str, before: Any, after: Any) -> dict[str, float]:
    """Return the change of a score and its 95% interval: {"auc": 0.02, "auc_low": 0.01, "auc_high": 0.03}."""
    low, high = after.interval(before)
    change = getattr(after, attribute) - getattr(before, attribute)
    return {attribute: change, f"{attribute}_low": low, f"{attribute}_high": high}


def _cells(change: Iterable[float], digits: int = 1) -> list[str]:
    """Format a change and its interval as two cells of a table: (1, -2, 4) -> ["+1.0", "-2.0 to +4.0"]."""
    middle, low, high = (f"{figure:+.{digits}f}" for figure in change)
    return [middle, f"{low} to {high}"]


def page(text: str, scores: Mapping[str, PairScores]) -> str:
    """Return an HTML page that contains `text` and, if pairs were scored, the ROC curve of each encoder."""
    return PAGE.format(figure=_figure(scores) if scores else "", text=escape(text))


def _figure(scores: Mapping[str, PairScores]) -> str:
    """Return HTML with the names of the encoders, and an SVG image of their ROC curves. One unit of the SVG is 1%."""
    names, curves = "", ""
    for label, one, colour in zip(shortened([*scores]), scores.values(), COLOURS, strict=False):
        names += f'<li style="color: {colour}">{escape(label)}</li>'
        points = " ".join(f"{100 * x:.2f},{100 - 100 * y:.2f}" for x, y in zip(*one.curve(), strict=True))
        curves += f'<polyline fill="none" stroke="{colour}" stroke-width="0.4" points="0,100 {points}"/>'
        recall, passing = one.passing(one.threshold)
        curves += f'<circle cx="{100 * passing:.2f}" cy="{100 - 100 * recall:.2f}" r="1.2" fill="{colour}"/>'
    ticks = "".join(
        f'<text x="{share}" y="104.5" text-anchor="middle">{share}%</text>'
        f'<text x="-1.5" y="{101 - share}" text-anchor="end">{share}%</text>'
        for share in (0, 25, 50, 75, 100)
    )
    return FIGURE.format(names=names, ticks=ticks, curves=curves)


def shortened(names: Sequence[str]) -> list[str]:
    """Shorten paths to their last two parts, or more if needed to tell them apart: "runs/a/model" to "a/model"."""
    paths = [*map(Path, names)]
    for length in range(2, max(len(path.parts) for path in paths)):
        labels = [str(Path(*path.parts[-length:])) for path in paths]
        if len({*labels}) == len(paths):
            return labels
    return [*map(str, paths)]
