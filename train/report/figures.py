"""Groups of runs -> the figures of the page, drawn by plotly: dev score, cosines and loss over the steps.

A colour is a variable of page.css, "var(--c0)": page.js puts in its value in light or dark mode. Names are escaped,
because plotly reads texts as HTML.
"""

from __future__ import annotations

import html
import itertools
import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from train.report.records import Point, RunRecord
from train.report.runs import Group

N_COLOURS = 7  # page.css has --c0 to --c6
DASHES = ("solid", "dash", "dot", "dashdot")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star")
MOST_MARKED = 40  # a line of at most so many points shows them as marks
MOST_POINTS = 300  # of a line: more cannot be seen, and would enlarge the page by megabytes
DIGITS = 6  # significant digits of a number, for the same reason
WINDOW_SHARE = 1 / 25  # share of a curve's points that are averaged for a smoothed point
LEAST_WINDOW = 5
THIN = " Thin lines are runs, a thick line is the mean over the runs of a group."
AXIS = {"gridcolor": "var(--rule)", "linecolor": "var(--soft)", "zeroline": False, "automargin": True}
LOOK = go.layout.Template(
    layout={
        "xaxis": {**AXIS, "title_standoff": 10, "rangemode": "tozero", "tickformat": ",d"},
        "yaxis": {**AXIS, "title_standoff": 10},
        "legend": {"orientation": "h", "y": -0.2, "yanchor": "top", "x": 0},
        "margin": {"l": 56, "r": 12, "t": 28, "b": 46},
        "font": {"family": "system-ui, sans-serif", "size": 12.5, "color": "var(--soft)"},
        "paper_bgcolor": "var(--paper)",
        "plot_bgcolor": "var(--paper)",
        "hoverlabel": {"bgcolor": "var(--card)", "bordercolor": "var(--rule)", "font": {"color": "var(--ink)"}},
        "hovermode": "closest",
    }
)

PointsOf = Callable[[RunRecord], list[Point]]


@dataclass(frozen=True)
class Figure:
    """A figure of the page. drawing: None if nothing was recorded."""

    name: str
    drawing: go.Figure | None
    caption: str


@dataclass(frozen=True)
class Line:
    """A named line of a group. thin: it is one run of a group of several.

    second: it is the group's second kind of line in this figure, drawn dashed.
    """

    name: str
    group: int
    points: Sequence[Point]
    thin: bool = False
    second: bool = False


def _losses(negatives: bool) -> PointsOf:
    return lambda run: smooth([(step.step, step.loss) for step in run.steps if step.negatives == negatives])


def _cosines(name: str) -> PointsOf:
    return lambda run: smooth([(step.step, getattr(step, name)) for step in run.steps])


DEV, LOSS, WINDOW = "Dev score", "loss (nats, log scale)", "Mean in a window of steps centred on each step."
# figure -> (label of y, caption, the kinds of line of each run by what is added to the run's name)
CURVES: dict[str, tuple[str, str, dict[str, PointsOf]]] = {
    DEV: (
        "Spearman correlation × 100",
        "Spearman correlation on the dev pairs, × 100.",
        {"": lambda run: [(step, 100 * score) for step, score in run.dev]},
    ),
    "Similarity over training": (
        "cosine similarity (batch mean)",
        "Solid: anchor and positive. Dashed: anchor and negative, easy to tell apart where it is far below.",
        {": positive": _cosines("cosine_positive"), ": negative": _cosines("cosine_negative")},
    ),
    # two figures, since steps with negatives have twice as many candidates
    "Loss of the steps without negatives": (LOSS, WINDOW, {"": _losses(False)}),
    "Loss of the steps with negatives": (LOSS, WINDOW, {"": _losses(True)}),
}


def curve_figures(groups: Sequence[Group]) -> list[Figure]:
    """Dev score, cosines and loss over the steps; a dev score that was not recorded is said."""
    figures = []
    for name, (y_label, caption, kinds) in CURVES.items():
        lines = [line for second, kind in enumerate(kinds) for line in _lines(groups, kinds[kind], kind, bool(second))]
        drawing = line_chart(lines, y_label, log=y_label == LOSS)
        if drawing and name == DEV:
            for start in sorted({f"{100 * group.start:.2f}" for group in groups if group.start is not None}):
                line = {"color": "var(--soft)", "width": 1.5, "dash": "dot"}
                drawing.add_hline(float(start), line=line, annotation_text=f"before training {start}")
        if drawing or name == DEV:
            figures.append(Figure(name, drawing, caption + THIN * any(line.thin for line in lines)))
    return figures


def _lines(groups: Sequence[Group], points_of: PointsOf, kind: str, second: bool) -> list[Line]:
    """For a group of several runs their mean and a thin line per run; for a single run its line."""
    lines = []
    for i, group in enumerate(groups):
        curves = [(run.name, points) for run in group.runs if (points := points_of(run))]
        if len(curves) > 1:
            lines += [Line(name + kind, i, points, thin=True, second=second) for name, points in curves]
            mean = mean_curve([points for _, points in curves])
            lines.append(Line(f"{group.label}, mean of {len(curves)}{kind}", i, mean, second=second))
        else:
            lines += [Line(group.label + kind, i, points, second=second) for _, points in curves]
    return lines


def colour(number: int) -> str:
    """The colour of a group, by its name in page.css."""
    return f"var(--c{number % N_COLOURS})"


def line_chart(lines: Sequence[Line], y_label: str, log: bool = False) -> go.Figure | None:
    """Lines over optimiser steps; None if none has a finite point. log: a logarithmic y axis if all y are above 0."""
    drawn = [(line, thinned([point for point in line.points if math.isfinite(point[1])])) for line in lines]
    drawn = sorted([each for each in drawn if each[1]], key=lambda each: not each[0].thin)
    if not drawn:
        return None
    figure = go.Figure([_trace(*each) for each in drawn], {"template": LOOK})
    figure.update_layout(showlegend=sum(not line.thin for line, _ in drawn) > 1)
    figure.update_xaxes(title_text="optimiser step").update_yaxes(title_text=y_label)
    lowest = min(y for _, points in drawn for _, y in points)
    return figure.update_yaxes(type="log", dtick="D2", tickformat=".2~g") if log and lowest > 0 else figure


def _trace(line: Line, points: Sequence[Point]) -> go.Scatter:
    dash = DASHES[(line.group // N_COLOURS + line.second) % len(DASHES)]
    return go.Scatter(
        x=_rounded(x for x, _ in points),
        y=_rounded(y for _, y in points),
        mode="lines+markers" if len(points) <= MOST_MARKED and not line.thin else "lines",
        name=html.escape(line.name, quote=False),
        legendgroup=f"{line.group} {line.second}",
        showlegend=not line.thin,
        line={"color": colour(line.group), "width": 1 if line.thin else 2.4, "dash": dash},
        marker={"size": 7, "symbol": SYMBOLS[line.group % len(SYMBOLS)]},
        opacity=0.5 if line.thin else 1,
        hovertemplate="%{fullData.name}<br>step %{x:,.0f}: %{y:.4~g}<extra></extra>",
    )


def _rounded(values: Iterable[float]) -> list[float]:
    return [float(f"{value:.{DIGITS}g}") for value in values]


def smooth(points: Sequence[Point]) -> list[Point]:
    """Means of the finite values in a window centred on each point; values outside the window have no influence.

    The window is cut at the ends, so the first and the last point average half as many values.
    """
    finite = [(x, y) for x, y in points if math.isfinite(y)]
    half = max(LEAST_WINDOW, round(len(finite) * WINDOW_SHARE)) // 2
    sums = np.cumsum([0.0, *(y for _, y in finite)])
    at = np.arange(len(finite))
    low, high = np.maximum(at - half, 0), np.minimum(at + half + 1, len(finite))
    means = (sums[high] - sums[low]) / np.maximum(high - low, 1)
    return [(x, float(mean)) for (x, _), mean in zip(finite, means, strict=True)]


def mean_curve(curves: Sequence[Sequence[Point]]) -> list[Point]:
    """The mean of several curves, at the x that all of them have."""
    by_x = [dict(curve) for curve in curves]
    common = sorted(set(by_x[0]).intersection(*by_x[1:]))
    return [(x, statistics.fmean(curve[x] for curve in by_x)) for x in common]


def thinned(points: Sequence[Point]) -> list[Point]:
    """At most MOST_POINTS points: the means of consecutive parts of nearly equal size."""
    if len(points) <= MOST_POINTS:
        return list(points)
    bounds = [len(points) * i // MOST_POINTS for i in range(MOST_POINTS + 1)]
    parts = [points[start:stop] for start, stop in itertools.pairwise(bounds)]
    return [(statistics.fmean(x for x, _ in part), statistics.fmean(y for _, y in part)) for part in parts]
