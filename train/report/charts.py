"""Numbers -> charts as plotly's figures (dictionaries of its JSON schema), which page.js draws in the page's colours.

A colour is the name of a variable of page.css, "var(--c0)", or this with an opacity, "var(--c0) 15%": the page replaces
it by the variable's value in light or dark mode. Names are escaped, because plotly reads texts as HTML.
"""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from train.report.curves import thin
from train.report.records import Point
from train.report.runs import Spread

N_COLOURS = 7  # page.css has --c0 to --c6
DASHES = ("solid", "dash", "dot", "dashdot")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star")
MOST_MARKED = 40  # a line of at most so many points shows them as marks
BINS = 40  # of a histogram
DIGITS = 6  # significant digits of a number: more cannot be seen, and would enlarge the page

Chart = dict[str, Any]


def colour(number: int) -> str:
    """The colour of a group, by its name in page.css."""
    return f"var(--c{number % N_COLOURS})"


@dataclass(frozen=True)
class Line:
    """A named line of a group, with a band (x, low, high) around it. thin: it is one run of a group of several.

    second: it is the group's second kind of line in this chart, drawn dashed.
    """

    name: str
    group: int
    points: Sequence[Point]
    band: Sequence[tuple[float, float, float]] = ()
    thin: bool = False
    second: bool = False


@dataclass(frozen=True)
class Marks:
    """The values of one group by column: each is drawn, and their mean with whiskers of one deviation."""

    name: str
    group: int
    values: Mapping[str, Sequence[float]]

    def extent(self) -> list[float]:
        """All values that are drawn, the ends of the whiskers included."""
        spreads = [Spread.of(values) for values in self.values.values() if len(values) > 1]
        ends = [spread.mean + sign * spread.deviation for spread in spreads for sign in (-1, 1)]
        return [*ends, *(value for values in self.values.values() for value in values)]


def line_chart(
    lines: Sequence[Line], x_label: str, y_label: str, log: bool = False, x_format: str = ",d"
) -> Chart | None:
    """Lines over common axes; None if none has a finite point.

    log: use a logarithmic y axis if all y are above 0. x_format: d3's format of x; by default whole numbers.
    """
    drawn = [(line, thin([point for point in line.points if math.isfinite(point[1])])) for line in lines]
    drawn = [(line, points) for line, points in drawn if points]
    if not drawn:
        return None
    drawn.sort(key=lambda each: not each[0].thin)
    hover = ",.0f" if x_format == ",d" else x_format
    traces = [_band(line) for line, _ in drawn if line.band]
    traces += [_trace(line, points, f"{x_label} %{{x:{hover}}}: %{{y:.4~g}}") for line, points in drawn]
    ys = [y for _, points in drawn for _, y in points] + [
        y for line, _ in drawn for _, *ends in line.band for y in ends
    ]
    kind = {"type": "log", "dtick": "D2", "tickformat": ".2~g"} if log and min(ys) > 0 else {}
    legend = sum(not line.thin for line, _ in drawn) > 1
    return {
        "data": traces,
        "layout": _layout(_axis(x_label, tickformat=x_format, rangemode="tozero"), _axis(y_label, **kind), legend),
    }


def _trace(line: Line, points: Sequence[tuple[float, ...]], hover: str) -> dict[str, Any]:
    dash = DASHES[(line.group // N_COLOURS + line.second) % len(DASHES)]
    marked = len(points) <= MOST_MARKED and not line.thin
    return {
        "type": "scatter",
        "mode": "lines+markers" if marked else "lines",
        "name": _text(line.name),
        "legendgroup": f"{line.group} {line.second}",
        "showlegend": not line.thin,
        "x": _rounded(x for x, _ in points),
        "y": _rounded(y for _, y in points),
        "line": {"color": colour(line.group), "width": 1 if line.thin else 2.4, "dash": dash},
        "marker": {"size": 7, "symbol": SYMBOLS[line.group % len(SYMBOLS)]},
        "opacity": 0.5 if line.thin else 1,
        "hovertemplate": f"%{{fullData.name}}<br>{hover}<extra></extra>",
    }


def _band(line: Line) -> dict[str, Any]:
    band = thin(line.band)
    edge = [(x, high) for x, _, high in band] + [(x, low) for x, low, _ in reversed(band)]
    return {
        "type": "scatter",
        "mode": "lines",
        "legendgroup": f"{line.group} {line.second}",
        "showlegend": False,
        "x": _rounded(x for x, _ in edge),
        "y": _rounded(y for _, y in edge),
        "line": {"width": 0},
        "fill": "toself",
        "fillcolor": f"{colour(line.group)} 16%",
        "hoverinfo": "skip",
    }


def with_level(chart: Chart, level: float, label: str) -> Chart:
    """The chart with a dotted horizontal line at y = `level`, labelled with `label`."""
    line = {"color": "var(--soft)", "width": 1.5, "dash": "dot"}
    shape = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": level, "y1": level, "line": line}
    place = {"xref": "paper", "x": 1, "xanchor": "right", "y": level, "yanchor": "bottom", "showarrow": False}
    layout = chart["layout"]
    shapes = [*layout.get("shapes", []), shape]
    notes = [*layout.get("annotations", []), {"text": _text(label), **place}]
    return {**chart, "layout": {**layout, "shapes": shapes, "annotations": notes}}


def columns_chart(marks: Sequence[Marks], columns: Mapping[str, str], y_label: str) -> Chart | None:
    """One column per score, with every group's values side by side; None if there is no value.

    columns: score -> its title.
    """
    traces = [trace for mark in marks for trace in _marks(mark, list(columns))]
    if not traces:
        return None
    names = [_text(name) for name in columns]
    titles = [_text(column) for column in columns.values()]
    # by default plotly orders an axis of categories as they occur in the groups
    order = {"type": "category", "categoryorder": "array", "categoryarray": names}
    extent = [value for mark in marks for value in mark.extent()]
    y = _axis(y_label, range=_with_margin(min(extent), max(extent)))
    layout = _layout(_axis("", **order, tickvals=names, ticktext=titles, showgrid=False), y, len(marks) > 1)
    return {"data": traces, "layout": {**layout, "scattermode": "group", "scattergap": 0.3}}


def _marks(mark: Marks, columns: Sequence[str]) -> list[dict[str, Any]]:
    values = [(column, value) for column in columns for value in mark.values.get(column, ())]
    spreads = [(column, Spread.of(many)) for column in columns if len(many := mark.values.get(column, ())) > 1]
    group = str(mark.group)
    common = {"type": "scatter", "mode": "markers", "name": _text(mark.name), "legendgroup": group}
    symbol = {"color": colour(mark.group), "size": 9, "symbol": SYMBOLS[mark.group % len(SYMBOLS)]}
    bar = {"color": colour(mark.group), "width": 3}
    runs = {
        "x": [_text(column) for column, _ in values],
        "y": _rounded(value for _, value in values),
        "marker": {**symbol, "opacity": 0.5 if spreads else 1},
        "hovertemplate": "%{fullData.name}<br>%{x}: %{y:.2f}<extra></extra>",
    }
    means = {
        "x": [_text(column) for column, _ in spreads],
        "y": _rounded(spread.mean for _, spread in spreads),
        "error_y": {"array": _rounded(spread.deviation for _, spread in spreads), "color": colour(mark.group)},
        "marker": {"size": 20, "symbol": "line-ew", "line": bar},
        "showlegend": False,
        "hovertemplate": "%{fullData.name}<br>%{x}: mean %{y:.2f} ± %{error_y.array:.2f}<extra></extra>",
    }
    found = ([runs] if values else []) + ([means] if spreads else [])
    return [{**common, "offsetgroup": group, **trace} for trace in found]


def scatter(points: Sequence[Point], means: Sequence[Point], group: int, labels: tuple[str, str], y: Point) -> Chart:
    """Points as translucent discs with a line of means over them. y: range of the y axis, common to all plots."""
    cloud = {
        "type": "scatter",
        "mode": "markers",
        "x": _rounded(x for x, _ in points),
        "y": _rounded(value for _, value in points),
        "marker": {"color": f"{colour(group)} 30%", "size": 5},
        "hovertemplate": "gold %{x:.2f}, cosine %{y:.3f}<extra></extra>",
    }
    line = {
        "type": "scatter",
        "mode": "lines+markers",
        "x": _rounded(x for x, _ in means),
        "y": _rounded(value for _, value in means),
        "line": {"color": "var(--ink)", "width": 2},
        "hovertemplate": "mean at gold %{x:.2f}: %{y:.3f}<extra></extra>",
    }
    axes = _axis(labels[0]), _axis(labels[1], range=_with_margin(*y))
    return {"data": [cloud, line], "layout": _layout(*axes, legend=False)}


def histograms(kinds: Mapping[str, Sequence[float]], x_label: str, x: Point) -> Chart:
    """Overlaid histograms of each kind's values in per cent, with common bins from x[0] to x[1]."""
    low, high = x if x[1] > x[0] else (x[0] - 0.01, x[0] + 0.01)
    edges = np.linspace(low, high, BINS + 1)
    centres, width = (edges[1:] + edges[:-1]) / 2, (high - low) / BINS
    traces = [
        {
            "type": "bar",
            "name": _text(name),
            "x": _rounded(centres.tolist()),
            "y": _rounded((100 * np.histogram(values, edges)[0] / max(len(values), 1)).tolist()),
            "width": width,
            "marker": {"color": f"{fill} 60%", "line": {"color": fill, "width": 1}},
            "hovertemplate": f"%{{fullData.name}}<br>{x_label} %{{x:.3f}}: %{{y:.1f}} %<extra></extra>",
        }
        for (name, values), fill in zip(kinds.items(), ("var(--pos)", "var(--neg)"), strict=True)
    ]
    layout = _layout(_axis(x_label), _axis("share of sentences (%)", rangemode="tozero"), legend=True)
    return {"data": traces, "layout": {**layout, "barmode": "overlay", "bargap": 0}}


def _axis(label: str, **more: Any) -> dict[str, Any]:
    lines = {"gridcolor": "var(--rule)", "linecolor": "var(--soft)", "zeroline": False, "automargin": True}
    return {"title": {"text": _text(label), "standoff": 10}, **lines, "exponentformat": "power", **more}


def _layout(x: dict[str, Any], y: dict[str, Any], legend: bool) -> dict[str, Any]:
    return {
        "xaxis": x,
        "yaxis": y,
        "showlegend": legend,
        "legend": {"orientation": "h", "y": -0.2, "yanchor": "top", "x": 0},
        "margin": {"l": 56, "r": 12, "t": 28, "b": 46},
        "font": {"family": "system-ui, sans-serif", "size": 12.5, "color": "var(--soft)"},
        "paper_bgcolor": "var(--paper)",
        "plot_bgcolor": "var(--paper)",
        "hoverlabel": {"bgcolor": "var(--card)", "bordercolor": "var(--rule)", "font": {"color": "var(--ink)"}},
        "hovermode": "closest",
    }


def _with_margin(low: float, high: float) -> list[float]:
    margin = 0.06 * (high - low) or 0.05 * abs(high) or 1.0
    return [low - margin, high + margin]


def _rounded(values: Any) -> list[float]:
    return [float(f"{value:.{DIGITS}g}") for value in values]


def _text(text: str) -> str:
    return html.escape(text, quote=False)
