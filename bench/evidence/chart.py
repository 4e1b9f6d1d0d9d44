"""evidence.json -> the chart of docs/will-it-help.md: differences by task, dev scores and cosines over the steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.evidence.conditions import BASES, Condition
from bench.evidence.page import Evidence, difference, seed_scores
from train.report.runs import title

COLOURS = {"without": "#767676", "with": "#3f51b5"}
FIXED = {"svg.hashsalt": "una_fast", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 8.5}


def draw(conditions: Evidence, condition: Condition, path: Path) -> None:
    """Write an SVG of a condition beside its reference. The same results give the same bytes."""
    with mpl.rc_context(FIXED):
        figure = Figure(figsize=(10, 3.4), layout="constrained")
        figure.suptitle(f"{BASES[condition.base].title}: {condition.variation} against none", fontsize=10)
        by_task, over_steps, cosines = figure.subplots(1, 3)
        _draw_differences(by_task, conditions, condition)
        _draw_dev(over_steps, conditions, condition)
        _draw_cosines(cosines, conditions[condition.name])
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None})


def _draw_differences(axes: Axes, conditions: Evidence, condition: Condition) -> None:
    """A dot for each seed's difference in a task, and the mean's interval."""
    tasks = [task for task in conditions[condition.name]["before"] if difference(conditions, condition, task)]
    for row, task in enumerate(reversed(tasks)):
        found = difference(conditions, condition, task)
        without, with_it = (seed_scores(conditions, one, task) for one in (condition.reference, condition))
        each = [with_it[seed] - without[seed] for seed in with_it if seed in without]
        axes.scatter(each, [row] * len(each), s=9, color=COLOURS["without"], zorder=2)
        if found is not None and found.n > 1:
            axes.plot([found.low, found.high], [row, row], color=COLOURS["with"], linewidth=5, alpha=0.35)
            axes.plot([found.difference], [row], "|", color=COLOURS["with"], markersize=11, markeredgewidth=2)
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_yticks(range(len(tasks)), [title(task) for task in reversed(tasks)])
    axes.set(title="with UNA minus without", xlabel="Spearman x 100; dots: seeds, bar: 95 %")


def _draw_dev(axes: Axes, conditions: Evidence, condition: Condition) -> None:
    """STS-B dev over the steps: a thin line a seed, a thick one for their mean."""
    for name, one in (("without", condition.reference), ("with", condition)):
        _draw_curves(axes, list(conditions[one.name]["dev"].values()), COLOURS[name], f"{name} UNA")
    axes.set(title="STS-B dev, a line each seed", xlabel="step", ylabel="Spearman x 100")
    axes.legend(frameon=False)


def _draw_curves(axes: Axes, curves: Sequence[Mapping[str, float]], colour: str, label: str) -> None:
    steps = sorted({int(step) for curve in curves for step in curve})
    values = np.array([[100 * curve.get(str(step), np.nan) for step in steps] for curve in curves])
    axes.plot(steps, values.T, color=colour, linewidth=0.7, alpha=0.5)
    axes.plot(steps, values.mean(axis=0), color=colour, linewidth=2.2, label=label)


def _draw_cosines(axes: Axes, result: Mapping[str, Any]) -> None:
    """Cosines of anchors with positives and with negatives over the run, mean of the seeds."""
    for name, style in (("positive", "--"), ("negative", "-")):
        curves = [cosines[name] for cosines in result["cosines"].values() if cosines[name]]
        if curves:
            parts = len(curves[0])
            at = 100 * (np.arange(parts) + 0.5) / parts
            axes.plot(at, np.mean(curves, axis=0), style, color=COLOURS["with"], label=f"anchor and {name}")
    axes.set(title="cosines with UNA, mean of the seeds", xlabel="per cent of the steps", ylim=(None, 1))
    axes.legend(frameon=False)
