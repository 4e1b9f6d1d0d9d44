"""Groups of runs -> their charts: scores by task, dev score, loss, similarity against gold score."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Sequence

from train.record.folder import EVALUATION
from train.report.charts import Line, Marks, Point, colour, columns_chart, legend, line_chart, scatter
from train.report.runs import Group, RunRecord, Spread, title

SMOOTH = 0.9  # weight of the past in the loss curves' moving mean
GOLD_BINS = 5  # of the scatter plots' means


def scores_figure(groups: Sequence[Group]) -> str:
    """Every score of every run, a column a task."""
    names = [name for name in score_names(groups) if name not in ("stsb_dev", "stsb_dev_last")]
    if not names:  # the dev score has a figure of its own
        return ""
    columns = {
        title(name): [
            Marks(group.label, colour(i), [100 * run.scores[name] for run in group.runs if name in run.scores])
            for i, group in enumerate(groups)
        ]
        for name in names
    }
    chart = columns_chart(columns, "score × 100")
    note = "A disc is a run; the bar is the mean over seeds, the whiskers one standard deviation of the sample."
    return group_legend(groups) + figure(f"<div class='wide'>{chart}</div>", note, whole=True)


def score_names(groups: Sequence[Group]) -> list[str]:
    """Names of all scores, in order of appearance."""
    return list(dict.fromkeys(name for group in groups for name in group.spreads()))


def dev_figure(groups: Sequence[Group]) -> str:
    """Dev score over steps: each run thin, each group's mean with a band of one deviation."""
    lines = _lines(groups, lambda run: [(step, 100 * score) for step, score in run.dev])
    chart = line_chart(lines, "optimiser steps", "dev Spearman × 100")
    return figure(chart, "Dev score. Thin: a run; thick: the mean over seeds; band: one deviation.")


def loss_figures(groups: Sequence[Group]) -> str:
    """Loss over steps, plain ones and those with negatives apart: their candidates are twice as many."""
    figures = []
    for negatives, name in ((False, "plain steps"), (True, "steps with negatives")):

        def points(run: RunRecord, negatives: bool = negatives) -> list[Point]:
            return smooth([(step.step, step.loss) for step in run.steps if step.negatives == negatives])

        lines = _lines(groups, points)
        if any(line.points for line in lines):
            chart = line_chart(lines, "optimiser steps", "loss (log scale)", log=True)
            figures.append(figure(chart, f"Loss of {name}, moving mean (weight {SMOOTH} on the past)."))
    return "".join(figures)


def scatter_figures(groups: Sequence[Group]) -> str:
    """Cosine against gold score of one task's pairs, a plot a group, for its first run that kept them."""
    found = [(i, run, pairs) for i, group in enumerate(groups) if (first := _first_with_pairs(group))
             for run, pairs in [first]]  # fmt: skip
    if not found:
        command = f"python -m train.evaluate --model RUN/best --data FOLDER --pairs --json RUN/{EVALUATION}"
        return (
            "<p class='none'>no run kept its pairs: <code>python -m train.ddp --evaluate FOLDER</code> does, "
            f"and so does <code>{command}</code></p>"
        )
    cosines = [y for _, _, (_, points) in found for _, y in points if math.isfinite(y)]
    y_range = (min(cosines), max(cosines))
    plots = []
    for i, run, (task, points) in found:
        labels = (f"gold score of {title(task)}", "cosine similarity")
        plot = scatter(points, binned_means(points), colour(i), labels, y_range)
        score = f", Spearman × 100: {100 * run.scores[task]:.2f}" if task in run.scores else ""
        plots.append(figure(plot, f"{run.name}: {len(points):,} pairs{score}. Line: mean by gold score."))
    return "".join(plots)


def _first_with_pairs(group: Group) -> tuple[RunRecord, tuple[str, list[Point]]] | None:
    return next(((run, pairs) for run in group.runs if (pairs := pairs_of(run))), None)


def pairs_of(run: RunRecord) -> tuple[str, list[Point]] | None:
    """The task and its (gold score, cosine) pairs that a run's evaluation kept: STS-B's, or else the first task's."""
    tasks = (run.evaluation or {}).get("sts", {})
    for name in ("STSBenchmark", *tasks):
        if "similarity" in tasks.get(name, {}):
            return name, list(zip(tasks[name]["gold"], tasks[name]["similarity"], strict=True))
    return None


def binned_means(points: Sequence[Point], bins: int = GOLD_BINS) -> list[Point]:
    """Means of the points of each of `bins` equal parts of the range of x that has any."""
    low, high = min(x for x, _ in points), max(x for x, _ in points)
    width = (high - low) / bins or 1.0
    parts: dict[int, list[Point]] = {}
    for x, y in points:
        if math.isfinite(y):
            parts.setdefault(min(int((x - low) / width), bins - 1), []).append((x, y))
    return [
        (sum(x for x, _ in part) / len(part), sum(y for _, y in part) / len(part)) for _, part in sorted(parts.items())
    ]


def _lines(groups: Sequence[Group], points_of: Callable[[RunRecord], list[Point]]) -> list[Line]:
    """For each group its mean with a band, and each run thin; of one run alone its own line."""
    lines = []
    for i, group in enumerate(groups):
        curves = [(run.name, points_of(run)) for run in group.runs]
        curves = [(name, points) for name, points in curves if points]
        if len(curves) > 1:
            lines += [Line(name, colour(i), points, thin=True) for name, points in curves]
            mean, band = mean_and_band([points for _, points in curves])
            lines.append(Line(f"{group.label}, mean of {len(curves)}", colour(i), mean, band))
        lines += [Line(name, colour(i), points) for name, points in curves if len(curves) == 1]
    return lines


def mean_and_band(curves: Sequence[Sequence[Point]]) -> tuple[list[Point], list[tuple[float, float, float]]]:
    """Mean and mean ± deviation of several curves, at the x that all of them have."""
    by_x = [dict(curve) for curve in curves]
    common = sorted(set(by_x[0]).intersection(*by_x[1:]))
    spreads = [(x, Spread.of([curve[x] for curve in by_x])) for x in common]
    return (
        [(x, spread.mean) for x, spread in spreads],
        [(x, spread.mean - spread.deviation, spread.mean + spread.deviation) for x, spread in spreads],
    )


def smooth(points: Sequence[Point], weight: float = SMOOTH) -> list[Point]:
    """Exponential moving mean of finite values, without the pull of a first value of 0."""
    result = []
    total = norm = 0.0
    for x, y in points:
        if math.isfinite(y):
            total, norm = weight * total + y, weight * norm + 1
            result.append((x, total / norm))
    return result


def group_legend(groups: Sequence[Group]) -> str:
    """The groups by their colour."""
    return legend([(f"{group.label} ({_seeds(group)})", colour(i)) for i, group in enumerate(groups)])


def _seeds(group: Group) -> str:
    seeds = [str(run.seed) for run in group.runs]
    return f"seed{'s' if len(seeds) > 1 else ''} {', '.join(seeds)}"


def figure(body: str, caption: str, whole: bool = False) -> str:
    """A figure with its caption, half the page wide or all of it."""
    kind = " class='whole'" if whole else ""
    return f"<figure{kind}>{body}<figcaption>{html.escape(caption)}</figcaption></figure>"
