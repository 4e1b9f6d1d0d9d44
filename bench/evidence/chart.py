"""The chart of docs/will-it-help.md: differences with their intervals and seeds, drawn from evidence.json."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from bench.evidence.conditions import BASES
from bench.evidence.page import Evidence, Pair, difference, seed_scores

COLOURS = ("#3f51b5", "#c2571a", "#00796b", "#8e24aa", "#616161")  # one per base
FIXED = {"svg.hashsalt": "una_fast", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 9}


def draw(content: Evidence, pairs: Sequence[Pair], path: Path) -> None:
    """Write an SVG of the differences of the pairs, the first pair at the top. The same results give the same bytes."""
    bases = [*dict.fromkeys(BASES[condition.base].title for _, condition, _ in pairs)]
    with mpl.rc_context(FIXED):
        figure = Figure(figsize=(9, 1.6 + 0.3 * len(pairs)), layout="constrained")
        axes, names = figure.subplots(), []
        for row, (shown, condition, reference) in enumerate(reversed(pairs)):
            base = BASES[condition.base].title
            colour = COLOURS[bases.index(base) % len(COLOURS)]
            each, (low, mean, high) = differences(content, (shown, condition, reference))
            axes.scatter(each, [row] * len(each), s=12, color=colour, zorder=2)
            label = None if base in axes.get_legend_handles_labels()[1] else base
            axes.plot([low, high], [row, row], color=colour, linewidth=6, alpha=0.35, label=label)
            axes.plot([mean], [row], "|", color=colour, markersize=13, markeredgewidth=2)
            names.append(f"{shown} ({condition.n_sentences():,})")
        axes.axvline(0, color="black", linewidth=0.8)
        axes.set_yticks(range(len(pairs)), names)
        axes.set(title="with minus without", xlabel="STS average x 100; dots: seeds, bar: 95% interval; (sentences)")
        figure.legend(loc="outside lower center", ncols=2, reverse=True)
        save(figure, path)


def differences(content: Evidence, pair: Pair) -> tuple[list[float], tuple[float, float, float]]:
    """Return the difference for each seed, and (low, mean, high) of their 95% interval, all NaN for one seed."""
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
    """Write a figure as SVG without the date, so that the bytes do not change."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
