"""Groups of runs -> their figures: a chart, a sentence about it, and its values as a table."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from train.report.baseline import Difference
from train.report.charts import Chart, Line, Marks, columns_chart, histograms, line_chart, scatter, with_level
from train.report.curves import binned_means, mean_and_band, smooth
from train.report.records import Point, RunRecord
from train.report.runs import Group, title
from train.report.tables import table

DEV_SCORES = ("stsb_dev", "stsb_dev_last")
TABLE_ROWS = 10  # at most, in the table of a figure's curves
STEPS = "optimiser step"
NOTHING = "<p class='none'>nothing recorded</p>"
THIN = " Thin lines are runs, a thick line is the mean over the runs of a group, its band one standard deviation."


def figure(name: str, chart: Chart | None, caption: str, values: str = "", whole: bool = False) -> str:
    """A figure with its caption and its values; half as wide as the page, or with `whole` as wide."""
    kind = " class='whole'" if whole else ""
    body = NOTHING
    if chart is not None:
        spec = json.dumps(chart, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
        label = html.escape(name, quote=True)
        body = (
            f"<div class='chart' role='img' aria-label='{label}'></div><script type='application/json'>{spec}</script>"
        )
    more = f"<details><summary>Values as a table</summary>{values}</details>" if values else ""
    below = f"<figcaption>{html.escape(caption)}</figcaption>{more}"
    return f"<figure{kind}><h3>{html.escape(name)}</h3>{body}{below}</figure>"


def score_names(groups: Sequence[Group]) -> list[str]:
    """Names of all scores, in order of appearance."""
    return list(dict.fromkeys(name for group in groups for name in group.spreads()))


def scores_figure(groups: Sequence[Group]) -> str:
    """Every score of every run, one column per task; the dev score has a figure of its own."""
    names = [name for name in score_names(groups) if name not in DEV_SCORES]
    if not names:
        return ""
    marks = [
        Marks(
            group.label,
            i,
            {name: [100 * run.scores[name] for run in group.runs if name in run.scores] for name in names},
        )
        for i, group in enumerate(groups)
    ]
    chart = columns_chart(marks, {name: title(name) for name in names}, "score × 100")
    note = "A symbol is a run. A bar is the mean over the runs of a group, its whiskers one standard deviation."
    return figure("Scores by task", chart, note, whole=True)


def differences_figure(groups: Sequence[Group], found: Sequence[Mapping[str, Difference]]) -> str:
    """Every paired difference to the baseline, one column per score."""
    names = list(dict.fromkeys(name for by_name in found for name in by_name))
    marks = [
        Marks(group.label, i, {name: [100 * value for value in one.values] for name, one in found[i].items()})
        for i, group in enumerate(groups)
        if any(one.values for one in found[i].values())
    ]
    chart = columns_chart(marks, {name: title(name) for name in names}, "difference of scores × 100")
    if chart is None:
        return ""
    note = (
        "A symbol is the score of one seed minus the baseline's score of the same seed. "
        "A bar is the mean, its whiskers one standard deviation of the differences."
    )
    return figure("Differences to the baseline", with_level(chart, 0, "baseline"), note, whole=True)


def dev_figure(groups: Sequence[Group]) -> str:
    """Dev score over steps, with a horizontal line at the score before training."""
    lines = _lines(groups, lambda run: [(step, 100 * score) for step, score in run.dev])
    chart = line_chart(lines, STEPS, "Spearman correlation × 100")
    starts = {f"{100 * group.start:.2f}" for group in groups if group.start is not None}
    for start in sorted(starts):
        chart = chart and with_level(chart, float(start), f"before training {start}")
    return figure("Dev score", chart, "Spearman correlation on the dev pairs, × 100." + _of_runs(lines), _values(lines))


def loss_figures(groups: Sequence[Group]) -> str:
    """Loss over steps; steps with negatives have a figure of their own, since they have twice as many candidates."""
    figures = []
    for negatives, name in ((False, "without negatives"), (True, "with negatives")):

        def points(run: RunRecord, negatives: bool = negatives) -> list[Point]:
            return smooth([(step.step, step.loss) for step in run.steps if step.negatives == negatives])

        lines = _lines(groups, points)
        if lines:
            chart = line_chart(lines, STEPS, "loss (nats, log scale)", log=True)
            note = "Mean in a window of steps centred on each step." + _of_runs(lines)
            figures.append(figure(f"Loss of the steps {name}", chart, note, _values(lines)))
    return "".join(figures)


def cosine_figures(groups: Sequence[Group]) -> str:
    """Cosine of anchor and positive, and of anchor and negative, over training."""

    def of(name: str) -> Callable[[RunRecord], list[Point]]:
        return lambda run: smooth([(step.step, getattr(step, name)) for step in run.steps])

    positive = _lines(groups, of("cosine_positive"), ": positive")
    negative = _lines(groups, of("cosine_negative"), ": negative", second=True)
    lines = [*positive, *negative]
    chart = line_chart(lines, STEPS, "cosine similarity (batch mean)")
    if chart is None:
        return ""
    note = (
        "Solid: anchor and positive. Dashed: anchor and negative. "
        "A negative far below the positive is easy to tell apart." + _of_runs(lines)
    )
    return figure("Similarity over training", chart, note, _values(lines))


def histogram_figures(groups: Sequence[Group]) -> str:
    """Histograms of the cosines of anchor with positive and with negative, late in training, one per group."""
    found = [
        (group, positive, negative) for group in groups for positive, negative in [late_cosines(group)] if negative
    ]
    every = [value for _, positive, negative in found for value in (*positive, *negative)]
    plots = []
    for group, positive, negative in found:
        kinds = {"anchor and positive": positive, "anchor and negative": negative}
        chart = histograms(kinds, "cosine similarity", (min(every), max(every)))
        below = sum(n < p for n, p in zip(negative, positive, strict=True)) / len(negative)
        note = (
            f"{len(negative):,} sentences of the second half of training, under the weights of their steps. The "
            f"negative is less similar than the positive in {100 * below:.1f} % of them."
        )
        plots.append(figure(f"Similarities of {group.label}", chart, note))
    return "".join(plots)


def late_cosines(group: Group) -> tuple[list[float], list[float]]:
    """The sampled cosines of anchor with positive and with negative in the second half of each run's steps."""
    positive: list[float] = []
    negative: list[float] = []
    for run in group.runs:
        half = run.steps[-1].step / 2 if run.steps else 0
        for step in run.steps:
            if step.step >= half and len(step.sample_positive) == len(step.sample_negative):
                positive += step.sample_positive
                negative += step.sample_negative
    return positive, negative


def scatter_figures(groups: Sequence[Group]) -> str:
    """Cosine against gold score of one task's pairs, one plot per group, for its first run with such pairs."""
    found = [(i, run, *run.pairs) for i, group in enumerate(groups) for run in _first_with_pairs(group) if run.pairs]
    cosines = [y for *_, points in found for _, y in points]
    plots = []
    for i, run, task, points in found:
        labels = (f"gold score of {title(task)}", "cosine similarity")
        chart = scatter(points, binned_means(points), i, labels, (min(cosines), max(cosines)))
        score = f", Spearman correlation × 100: {100 * run.scores[task]:.2f}" if task in run.scores else ""
        note = f"{len(points):,} pairs of {title(task)}{score}. The line is the mean by gold score."
        plots.append(figure(f"{title(task)}: {run.name}", chart, note))
    return "".join(plots)


def _first_with_pairs(group: Group) -> list[RunRecord]:
    return [run for run in group.runs if run.pairs][:1]


def _lines(
    groups: Sequence[Group], points_of: Callable[[RunRecord], list[Point]], kind: str = "", second: bool = False
) -> list[Line]:
    """For a group of several runs its mean with a band and a thin line per run; for a single run its line."""
    lines = []
    for i, group in enumerate(groups):
        curves = [(run.name, points_of(run)) for run in group.runs]
        curves = [(name, points) for name, points in curves if points]
        if len(curves) > 1:
            lines += [Line(name + kind, i, points, thin=True, second=second) for name, points in curves]
            mean, band = mean_and_band([points for _, points in curves])
            lines.append(Line(f"{group.label}, mean of {len(curves)}{kind}", i, mean, band, second=second))
        else:
            lines += [Line(group.label + kind, i, points, second=second) for _, points in curves]
    return lines


def _of_runs(lines: Sequence[Line]) -> str:
    """The sentence that explains thin lines and bands, or "" if there are none."""
    return THIN if any(line.thin for line in lines) else ""


def _values(lines: Sequence[Line]) -> str:
    """The thick lines as a table of TABLE_ROWS steps at most, with each line's value at its nearest step."""
    shown = [line for line in lines if not line.thin and line.points]
    steps = sorted({x for line in shown for x, _ in line.points})
    rows = [[f"{step:,.0f}", *(_nearest(line.points, step) for line in shown)] for step in _some(steps)]
    return table([STEPS, *(line.name for line in shown)], rows) if shown else ""


def _some(steps: Sequence[float]) -> Iterable[float]:
    last = len(steps) - 1
    return [steps[round(i * last / (TABLE_ROWS - 1))] for i in range(TABLE_ROWS)] if last >= TABLE_ROWS else steps


def _nearest(points: Sequence[Point], step: float) -> str:
    value = min(points, key=lambda point: abs(point[0] - step))[1]
    return f"{value:.4g}" if math.isfinite(value) else "-"
