"""The chart of docs/will-it-help.md: differences with their intervals and seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
from matplotlib.figure import Figure

from train.report.runs import Comparison

COLOURS = ("#3f51b5", "#c2571a", "#00796b", "#8e24aa", "#616161")  # one per base
FIXED = {"svg.hashsalt": "una_fast", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 9}


class Row(NamedTuple):
    """A row of the chart."""

    base: str  # its title, which determines the colour
    name: str
    each: list[float]  # the difference for each seed
    found: Comparison


def draw(rows: Sequence[Row], path: Path) -> None:
    """Write an SVG of the rows, the first row at the top. The same rows give the same bytes."""
    colours = dict(zip(dict.fromkeys(row.base for row in rows), COLOURS * len(rows), strict=False))
    with mpl.rc_context(FIXED):
        figure = Figure(figsize=(9, 1.6 + 0.3 * len(rows)), layout="constrained")
        axes = figure.subplots()
        for place, row in enumerate(reversed(rows)):
            colour, at, found = colours[row.base], [place, place], row.found
            axes.scatter(row.each, [place] * len(row.each), s=12, color=colour, zorder=2)
            label = None if row.base in axes.get_legend_handles_labels()[1] else row.base
            axes.plot([found.low, found.high], at, color=colour, linewidth=6, alpha=0.35, label=label)
            mean = found.difference if found.n > 1 else math.nan  # one seed has its dot only
            axes.plot([mean], [place], "|", color=colour, markersize=13, markeredgewidth=2)
        axes.axvline(0, color="black", linewidth=0.8)
        axes.set_yticks(range(len(rows)), [row.name for row in reversed(rows)])
        axes.set(title="with minus without", xlabel="STS average x 100; dots: seeds, bar: 95% interval; (sentences)")
        figure.legend(loc="outside lower center", ncols=2, reverse=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None})  # without the date, the bytes do not change
