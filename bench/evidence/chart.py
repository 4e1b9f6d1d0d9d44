"""evidence.json -> the charts of docs/will-it-help.md: differences with their intervals and their seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from bench.evidence.page import Evidence, Pair, difference, seed_scores

SEED, MEAN = "#767676", "#3f51b5"
FIXED = {"svg.hashsalt": "una_fast", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 9}


def draw(content: Evidence, pairs: Sequence[Pair], path: Path) -> None:
    """Write an SVG of the pairs, the first one on top. The same results give the same bytes."""
    with mpl.rc_context(FIXED):
        figure = Figure(figsize=(9, 1.1 + 0.42 * len(pairs)), layout="constrained")
        axes = figure.subplots()
        for row, pair in enumerate(reversed(pairs)):
            each, (low, mean, high) = differences(content, pair)
            axes.scatter(each, [row] * len(each), s=12, color=SEED, zorder=2)
            axes.plot([low, high], [row, row], color=MEAN, linewidth=6, alpha=0.35)
            axes.plot([mean], [row], "|", color=MEAN, markersize=13, markeredgewidth=2)
        axes.axvline(0, color="black", linewidth=0.8)
        axes.set_yticks(range(len(pairs)), [shown for shown, *_ in reversed(pairs)])
        axes.set(title="with UNA minus without", xlabel="STS average x 100; dots: seeds, bar: 95 % interval")
        save(figure, path)


def draw_scale(content: Evidence, pairs: Sequence[Pair], path: Path) -> None:
    """Write an SVG of the difference over the number of sentences, on a logarithmic axis."""
    with mpl.rc_context(FIXED):
        figure = Figure(figsize=(6, 3.2), layout="constrained")
        axes = figure.subplots()
        for pair in pairs:
            n = pair[1].n_sentences()
            each, (low, mean, high) = differences(content, pair)
            axes.scatter([n] * len(each), each, s=12, color=SEED, zorder=2)
            axes.plot([n, n], [low, high], color=MEAN, linewidth=6, alpha=0.35)
            axes.plot([n], [mean], "_", color=MEAN, markersize=13, markeredgewidth=2)
        axes.axhline(0, color="black", linewidth=0.8)
        axes.set_xscale("log")
        axes.set_xticks([pair[1].n_sentences() for pair in pairs], [pair[0].split()[0] for pair in pairs], minor=False)
        axes.minorticks_off()
        axes.set(xlabel="sentences", ylabel="with UNA minus without,\nSTS average x 100")
        save(figure, path)


def differences(content: Evidence, pair: Pair) -> tuple[list[float], tuple[float, float, float]]:
    """The difference of each seed, and the ends of their interval with the mean between; NaN for one seed."""
    _, condition, reference = pair
    without, with_it = (seed_scores(content, one, "average") for one in (reference, condition))
    if reference.is_untrained:
        without = dict.fromkeys(with_it, 100 * content["bases"][reference.base]["before"]["average"])
    each = [with_it[seed] - without[seed] for seed in with_it if seed in without]
    all_seeds = difference(content, condition, reference)
    if all_seeds is None or all_seeds.n < 2:
        return each, (math.nan, math.nan, math.nan)
    return each, (all_seeds.low, all_seeds.difference, all_seeds.high)


def save(figure: Figure, path: Path) -> None:
    """Write the SVG without its date."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
