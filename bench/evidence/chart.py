"""evidence.json -> the chart of docs/will-it-help.md: the difference of each pair, with its interval and its seeds."""

from __future__ import annotations

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
        for row, (_, condition, reference) in enumerate(reversed(pairs)):
            without, with_it = (seed_scores(content, one, "average") for one in (reference, condition))
            if reference.is_untrained:
                before = content["bases"][reference.base]["before"]["average"]
                without = dict.fromkeys(with_it, 100 * before)
            each = [with_it[seed] - without[seed] for seed in with_it if seed in without]
            axes.scatter(each, [row] * len(each), s=12, color=SEED, zorder=2)
            found = difference(content, condition, reference)
            if found is not None and found.n > 1:
                axes.plot([found.low, found.high], [row, row], color=MEAN, linewidth=6, alpha=0.35)
                axes.plot([found.difference], [row], "|", color=MEAN, markersize=13, markeredgewidth=2)
        axes.axvline(0, color="black", linewidth=0.8)
        axes.set_yticks(range(len(pairs)), [shown for shown, *_ in reversed(pairs)])
        axes.set(title="with UNA minus without", xlabel="STS average x 100; dots: seeds, bar: 95 % interval")
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None})
