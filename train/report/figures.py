"""Groups of runs -> the figures of the page, drawn by plotly: dev score, cosines and loss over the steps.

A colour is a variable of page.css, "var(--c0)": page.js puts in its value in light or dark mode. Names are escaped,
because plotly reads texts as HTML.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go

from train.report.runs import Group, RunRecord

N_COLOURS = 7  # page.css has --c0 to --c6
DASHES = ("solid", "dash", "dot", "dashdot")
MOST_POINTS = 100  # of a line, at most: the means of so many equal parts of the steps
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

Curve = dict[float, float]  # y of each x
CurveOf = Callable[[RunRecord], Curve]


class Figure(NamedTuple):
    """A figure of the page. drawing: None if nothing was recorded."""

    name: str
    drawing: go.Figure | None
    caption: str


def _of_steps(name: str, negatives: tuple[bool, ...] = (True, False)) -> CurveOf:
    return lambda run: {step.step: getattr(step, name) for step in run.steps if step.negatives in negatives}


DEV, LOSS = "Dev score", "loss (nats, log scale)"
MEANS = f"Means of a {MOST_POINTS}th of the steps each."
# figure -> (label of y, caption, the curves of each run by what is added to the run's name)
CURVES: dict[str, tuple[str, str, dict[str, CurveOf]]] = {
    DEV: (
        "Spearman correlation × 100",
        "Spearman correlation on the dev pairs, × 100.",
        {"": lambda run: {step: 100 * score for step, score in run.dev}},
    ),
    "Similarity over training": (
        "cosine similarity (batch mean)",
        "Solid: anchor and positive. Dashed: anchor and negative, easy to tell apart where it is far below.",
        {": positive": _of_steps("cosine_positive"), ": negative": _of_steps("cosine_negative")},
    ),
    # two figures, since steps with negatives have twice as many candidates
    "Loss of the steps without negatives": (LOSS, MEANS, {"": _of_steps("loss", (False,))}),
    "Loss of the steps with negatives": (LOSS, MEANS, {"": _of_steps("loss", (True,))}),
}


def curve_figures(groups: Sequence[Group]) -> list[Figure]:
    """Dev score, cosines and loss over the steps; a dev score that was not recorded is said."""
    figures = []
    for name, (y_label, caption, kinds) in CURVES.items():
        traces = [
            trace
            for second, (suffix, curve_of) in enumerate(kinds.items())
            for i, group in enumerate(groups)
            for trace in _traces(group, i, curve_of, suffix, second)
        ]
        drawing = _chart(traces, y_label) if traces else None
        if drawing and name == DEV:
            for start in sorted({f"{100 * group.start:.2f}" for group in groups if group.start is not None}):
                line = {"color": "var(--soft)", "width": 1.5, "dash": "dot"}
                drawing.add_hline(float(start), line=line, annotation_text=f"before training {start}")
        if drawing or name == DEV:
            figures.append(Figure(name, drawing, caption + THIN * any(not trace.showlegend for trace in traces)))
    return figures


def _traces(group: Group, i: int, curve_of: CurveOf, suffix: str, second: int) -> list[go.Scatter]:
    """The lines of group i: for a single run its line, for several a thin line each and their mean."""
    drawn = {run.name: {x: y for x, y in curve_of(run).items() if not math.isnan(y)} for run in group.runs}
    curves = {name: curve for name, curve in drawn.items() if curve}
    look = {"color": colour(i), "dash": DASHES[(i // N_COLOURS + second) % len(DASHES)]}
    if len(curves) < 2:
        return [_trace(group.label + suffix, curve, look) for curve in curves.values()]
    traces = [_trace(name + suffix, curve, look, thin=True) for name, curve in curves.items()]
    if mean := mean_curve([*curves.values()]):
        traces.append(_trace(f"{group.label}, mean of {len(curves)}{suffix}", mean, look))
    return traces


def _trace(name: str, curve: Curve, look: dict[str, str], thin: bool = False) -> go.Scatter:
    points = thinned(curve)
    return go.Scatter(
        x=[*points],
        y=[*points.values()],
        mode="lines+markers" if len(points) <= MOST_POINTS // 2 and not thin else "lines",
        name=html.escape(name, quote=False),
        showlegend=not thin,
        line={**look, "width": 1 if thin else 2.4},
        opacity=0.5 if thin else 1,
        hovertemplate="%{fullData.name}<br>step %{x:,.0f}: %{y:.4~g}<extra></extra>",
    )


def _chart(traces: Sequence[go.Scatter], y_label: str) -> go.Figure:
    """The traces over optimiser steps; a loss on a logarithmic axis if it is above 0 everywhere."""
    figure = go.Figure(list(traces), {"template": LOOK})
    figure.update_layout(showlegend=sum(trace.showlegend for trace in traces) > 1)
    figure.update_xaxes(title_text="optimiser step").update_yaxes(title_text=y_label)
    is_log = y_label == LOSS and min(y for trace in traces for y in trace.y) > 0
    return figure.update_yaxes(type="log", dtick="D2", tickformat=".2~g") if is_log else figure


def colour(number: int) -> str:
    """The colour of a group, by its name in page.css."""
    return f"var(--c{number % N_COLOURS})"


def mean_curve(curves: Sequence[Curve]) -> Curve:
    """The mean of several curves, at the x that all of them have."""
    common = sorted(set(curves[0]).intersection(*curves[1:]))
    return {x: sum(curve[x] for curve in curves) / len(curves) for x in common}


def thinned(curve: Curve) -> Curve:
    """At most MOST_POINTS points: the means of consecutive parts of nearly equal size, to six significant digits."""
    parts = np.array_split(np.array(sorted(curve.items())), min(len(curve), MOST_POINTS))
    return {float(f"{x:.6g}"): float(f"{y:.6g}") for x, y in (part.mean(axis=0) for part in parts)}
