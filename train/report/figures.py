"""Groups of runs, and tables of the paper -> the figures of the page, drawn by plotly.

A colour is a variable of page.css, "var(--c0)", or "var(--c0, 15%)" with an opacity: page.js puts in its value in light
or dark mode. Names are escaped, because plotly reads texts as HTML.
"""

from __future__ import annotations

import html
import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from train.report.paper_tables import PaperTable
from train.report.records import Point, RunRecord
from train.report.runs import DEV_SCORES, Difference, Group, Spread, score_names, title

N_COLOURS = 7  # page.css has --c0 to --c6
DASHES = ("solid", "dash", "dot", "dashdot")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star")
MOST_MARKED = 40  # a line of at most so many points shows them as marks
MOST_POINTS = 300  # of a line: more cannot be seen, and would enlarge the page by megabytes
DIGITS = 6  # significant digits of a number, for the same reason
BINS = 40  # of a histogram
GOLD_BINS = 5
WINDOW_SHARE = 1 / 25  # share of a curve's points that are averaged for a smoothed point
LEAST_WINDOW = 5
TABLE_ROWS = 10  # at most, in the table of a figure's curves
STEPS = "optimiser step"
THIN = " Thin lines are runs, a thick line is the mean over the runs of a group, its band one standard deviation."
AXIS = {"gridcolor": "var(--rule)", "linecolor": "var(--soft)", "zeroline": False, "automargin": True}
LOOK = go.layout.Template(
    layout={
        "xaxis": {**AXIS, "exponentformat": "power", "title_standoff": 10},
        "yaxis": {**AXIS, "exponentformat": "power", "title_standoff": 10},
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
    """A figure of the page. drawing: None if nothing was recorded. values: head and rows of a table of its curves.

    whole: it is as wide as the page.
    """

    name: str
    drawing: go.Figure | None
    caption: str
    values: tuple[Sequence[str], Sequence[Sequence[str]]] | None = None
    whole: bool = False


@dataclass(frozen=True)
class Line:
    """A named line of a group, with a band (x, low, high) around it. thin: it is one run of a group of several.

    second: it is the group's second kind of line in this figure, drawn dashed.
    """

    name: str
    group: int
    points: Sequence[Point]
    band: Sequence[tuple[float, float, float]] = ()
    thin: bool = False
    second: bool = False


# --- groups -> figures ---


def scores_figures(groups: Sequence[Group], found: Sequence[Mapping[str, Difference]]) -> list[Figure]:
    """Every score of every run, and every paired difference to the baseline; one column per score."""
    names = [name for name in score_names(groups) if name not in DEV_SCORES]  # the dev score has a figure of its own
    scores = [{name: [100 * run.scores[name] for run in group.runs if name in run.scores] for name in names}
              for group in groups]  # fmt: skip
    differences = [{name: [100 * value for value in one.values] for name, one in by_name.items()} for by_name in found]
    of_scores = columns_chart(scores, groups, "score × 100")
    of_differences = columns_chart(differences, groups, "difference of scores × 100", level=(0, "baseline"))
    symbol, bar = "A symbol is the score of", "A bar is the mean, its whiskers one standard deviation."
    return [
        Figure(name, drawing, f"{symbol} {what}. {bar}", whole=True)
        for name, drawing, what in (
            ("Scores by task", of_scores, "a run"),
            ("Differences to the baseline", of_differences, "one seed minus the baseline's score of the same seed"),
        )
        if drawing
    ]


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
        drawing = line_chart(lines, STEPS, y_label, log=y_label == LOSS)
        if drawing and name == DEV:
            for start in sorted({f"{100 * group.start:.2f}" for group in groups if group.start is not None}):
                _add_level(drawing, float(start), f"before training {start}")
        if drawing or name == DEV:
            figures.append(Figure(name, drawing, caption + _of_runs(lines), _values(lines)))
    return figures


def histogram_figures(groups: Sequence[Group]) -> list[Figure]:
    """Histograms of the cosines of anchor with positive and with negative, late in training, one per group."""
    found = [(group, *cosines) for group in groups if (cosines := late_cosines(group))[1]]
    every = [value for _, positive, negative in found for value in (*positive, *negative)]
    figures = []
    for group, positive, negative in found:
        below = sum(n < p for n, p in zip(negative, positive, strict=True)) / len(negative)
        note = (
            f"{len(negative):,} sentences of the second half of training, under the weights of their steps. The "
            f"negative is less similar than the positive in {100 * below:.1f} % of them."
        )
        kinds = {"anchor and positive": positive, "anchor and negative": negative}
        drawing = histograms(kinds, "cosine similarity", (min(every), max(every)))
        figures.append(Figure(f"Similarities of {group.label}", drawing, note))
    return figures


def late_cosines(group: Group) -> tuple[list[float], list[float]]:
    """The sampled cosines of anchor with positive and with negative in the second half of each run's steps."""
    late = [step for run in group.runs for step in run.steps if step.step >= run.steps[-1].step / 2]
    late = [step for step in late if len(step.sample_positive) == len(step.sample_negative)]
    return [y for step in late for y in step.sample_positive], [y for step in late for y in step.sample_negative]


def scatter_figures(groups: Sequence[Group]) -> list[Figure]:
    """Cosine against gold score of one task's pairs, one figure per group, of its first run with such pairs."""
    firsts = [next((run for run in group.runs if run.pairs), None) for group in groups]
    found = [(i, run, *run.pairs) for i, run in enumerate(firsts) if run and run.pairs]
    cosines = [y for *_, points in found for _, y in points]
    figures = []
    for i, run, task, points in found:
        drawing = scatter(points, i, f"gold score of {title(task)}", (min(cosines), max(cosines)))
        score = f", Spearman correlation × 100: {100 * run.scores[task]:.2f}" if task in run.scores else ""
        note = f"{len(points):,} pairs of {title(task)}{score}. The line is the mean by gold score."
        figures.append(Figure(f"{title(task)}: {run.name}", drawing, note))
    return figures


def paper_curves(table: PaperTable) -> list[Figure]:
    """The columns of a table whose rows are values of an option, over these values; [] for another table."""
    if not table.curve:
        return []
    lines: list[Line] = []
    for group, column in enumerate(table.columns):
        cells = table.over_values(column)
        measured = [(x, 100 * cell.measured) for x, cell in cells if isinstance(cell.measured, float)]
        paper = [(x, 100 * cell.paper) for x, cell in cells if isinstance(cell.paper, float)]
        around = {x: 100 * cell.deviation for x, cell in cells if cell.deviation is not None}
        band = [(x, y - around[x], y + around[x]) for x, y in measured if x in around]
        lines += [Line(column, group, measured, band), Line(f"{column}, paper", group, paper, second=True)]
    drawing = line_chart(lines, table.curve, "Spearman correlation × 100 on STS-B dev", x_format="~g")
    note = "Solid: measured, the band one standard deviation over seeds. Dashed: the paper."
    return [Figure(f"STS-B dev over {table.curve}", drawing, note, whole=True)]


def _lines(groups: Sequence[Group], points_of: PointsOf, kind: str, second: bool) -> list[Line]:
    """For a group of several runs its mean with a band and a thin line per run; for a single run its line."""
    lines = []
    for i, group in enumerate(groups):
        curves = [(run.name, points) for run in group.runs if (points := points_of(run))]
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


def _values(lines: Sequence[Line]) -> tuple[list[str], list[list[str]]] | None:
    """The thick lines as a table of TABLE_ROWS steps at most, with each line's value at its nearest step."""
    shown = [line for line in lines if not line.thin and line.points]
    steps = sorted({x for line in shown for x, _ in line.points})
    if not steps:
        return None
    n = min(len(steps), TABLE_ROWS)
    chosen = [steps[round(i * (len(steps) - 1) / max(n - 1, 1))] for i in range(n)]
    rows = [[f"{step:,.0f}", *(_nearest(line.points, step) for line in shown)] for step in chosen]
    return [STEPS, *(line.name for line in shown)], rows


def _nearest(points: Sequence[Point], step: float) -> str:
    value = min(points, key=lambda point: abs(point[0] - step))[1]
    return f"{value:.4g}" if math.isfinite(value) else "-"


# --- numbers -> plotly's figures ---


def colour(number: int, opacity: str = "") -> str:
    """The colour of a group, by its name in page.css. opacity: "", or as ", 16%"."""
    return f"var(--c{number % N_COLOURS}{opacity})"


def line_chart(
    lines: Sequence[Line], x_label: str, y_label: str, log: bool = False, x_format: str = ",d"
) -> go.Figure | None:
    """Lines over common axes; None if none has a finite point.

    log: use a logarithmic y axis if all y are above 0. x_format: d3's format of x; by default whole numbers.
    """
    drawn = [(line, thin([point for point in line.points if math.isfinite(point[1])])) for line in lines]
    drawn = sorted([each for each in drawn if each[1]], key=lambda each: not each[0].thin)
    if not drawn:
        return None
    hover = f"{x_label} %{{x:{',.0f' if x_format == ',d' else x_format}}}: %{{y:.4~g}}"
    traces = [_band(line) for line, _ in drawn if line.band] + [_trace(line, points, hover) for line, points in drawn]
    figure = _figure(traces, x_label, y_label, legend=sum(not line.thin for line, _ in drawn) > 1)
    figure.update_xaxes(tickformat=x_format, rangemode="tozero")
    lowest = min(y for trace in traces for y in trace.y)
    return figure.update_yaxes(type="log", dtick="D2", tickformat=".2~g") if log and lowest > 0 else figure


def _trace(line: Line, points: Sequence[tuple[float, ...]], hover: str) -> go.Scatter:
    dash = DASHES[(line.group // N_COLOURS + line.second) % len(DASHES)]
    return go.Scatter(
        x=_rounded(x for x, _ in points),
        y=_rounded(y for _, y in points),
        mode="lines+markers" if len(points) <= MOST_MARKED and not line.thin else "lines",
        name=_text(line.name),
        legendgroup=f"{line.group} {line.second}",
        showlegend=not line.thin,
        line={"color": colour(line.group), "width": 1 if line.thin else 2.4, "dash": dash},
        marker={"size": 7, "symbol": SYMBOLS[line.group % len(SYMBOLS)]},
        opacity=0.5 if line.thin else 1,
        hovertemplate=f"%{{fullData.name}}<br>{hover}<extra></extra>",
    )


def _band(line: Line) -> go.Scatter:
    band = thin(line.band)
    edge = [(x, high) for x, _, high in band] + [(x, low) for x, low, _ in reversed(band)]
    return go.Scatter(
        x=_rounded(x for x, _ in edge),
        y=_rounded(y for _, y in edge),
        mode="lines",
        legendgroup=f"{line.group} {line.second}",
        showlegend=False,
        line={"width": 0},
        fill="toself",
        fillcolor=colour(line.group, ", 16%"),
        hoverinfo="skip",
    )


def columns_chart(
    values: Sequence[Mapping[str, Sequence[float]]],
    groups: Sequence[Group],
    y_label: str,
    level: tuple[float, str] | None = None,
) -> go.Figure | None:
    """One column per score, with the values of every group side by side; None if there is no value.

    values: of each group, by score. level: a line across the columns, with its label.
    """
    traces = [trace for i, group in enumerate(groups) for trace in _marks(group.label, i, values[i])]
    if not traces:
        return None
    figure = _figure(traces, "", y_label, legend=len({trace.legendgroup for trace in traces}) > 1)
    # by default plotly orders an axis of categories as they occur in the groups
    names = {_text(name): _text(title(name)) for by_name in values for name in by_name}
    order = {"categoryorder": "array", "categoryarray": [*names]}
    figure.update_xaxes(**order, tickvals=[*names], ticktext=[*names.values()], showgrid=False)
    if level:
        _add_level(figure, *level)
    return figure.update_layout(scattermode="group", scattergap=0.3)


def _marks(label: str, group: int, values: Mapping[str, Sequence[float]]) -> list[go.Scatter]:
    """A mark for each value of a group, and for several values of a score a bar at their mean, with whiskers."""
    marks = [(_text(name), value) for name, of_runs in values.items() for value in of_runs]
    means = [(_text(name), Spread.of(of_runs)) for name, of_runs in values.items() if len(of_runs) > 1]
    ink = {"color": colour(group)}
    runs = go.Scatter(
        x=[name for name, _ in marks],
        y=_rounded(value for _, value in marks),
        marker={**ink, "size": 9, "symbol": SYMBOLS[group % len(SYMBOLS)], "opacity": 0.5 if means else 1},
        hovertemplate="%{fullData.name}<br>%{x}: %{y:.2f}<extra></extra>",
    )
    bars = go.Scatter(
        x=[name for name, _ in means],
        y=_rounded(spread.mean for _, spread in means),
        error_y={**ink, "array": _rounded(spread.deviation for _, spread in means)},
        marker={"size": 20, "symbol": "line-ew", "line": {**ink, "width": 3}},
        showlegend=False,
        hovertemplate="%{fullData.name}<br>%{x}: mean %{y:.2f} ± %{error_y.array:.2f}<extra></extra>",
    )
    looks = {"mode": "markers", "name": _text(label), "legendgroup": str(group), "offsetgroup": str(group)}
    return [trace.update(looks) for trace in (runs, bars) if trace.x]


def scatter(points: Sequence[Point], group: int, x_label: str, y: Point) -> go.Figure:
    """Cosines as translucent discs with a line of means over them. y: range of the y axis, common to all figures."""
    means = binned_means(points)
    cloud = go.Scatter(
        x=_rounded(x for x, _ in points),
        y=_rounded(value for _, value in points),
        mode="markers",
        marker={"color": colour(group, ", 30%"), "size": 5},
        hovertemplate="gold %{x:.2f}, cosine %{y:.3f}<extra></extra>",
    )
    line = go.Scatter(
        x=_rounded(x for x, _ in means),
        y=_rounded(value for _, value in means),
        mode="lines+markers",
        line={"color": "var(--ink)", "width": 2},
        hovertemplate="mean at gold %{x:.2f}: %{y:.3f}<extra></extra>",
    )
    margin = 0.06 * (y[1] - y[0]) or 0.05
    figure = _figure([cloud, line], x_label, "cosine similarity", legend=False)
    return figure.update_yaxes(range=[y[0] - margin, y[1] + margin])


def histograms(kinds: Mapping[str, Sequence[float]], x_label: str, x: Point) -> go.Figure:
    """Overlaid histograms of each kind's values in per cent, with common bins from x[0] to x[1]."""
    low, high = x if x[1] > x[0] else (x[0] - 0.01, x[0] + 0.01)
    edges = np.linspace(low, high, BINS + 1)
    bars = [
        go.Bar(
            x=_rounded((edges[1:] + edges[:-1]) / 2),
            y=_rounded(100 * np.histogram(values, edges)[0] / max(len(values), 1)),
            name=_text(name),
            width=(high - low) / BINS,
            marker={"color": f"var(--{ink}, 60%)", "line": {"color": f"var(--{ink})", "width": 1}},
            hovertemplate=f"%{{fullData.name}}<br>{x_label} %{{x:.3f}}: %{{y:.1f}} %<extra></extra>",
        )
        for (name, values), ink in zip(kinds.items(), ("pos", "neg"), strict=True)
    ]
    figure = _figure(bars, x_label, "share of sentences (%)", legend=True).update_yaxes(rangemode="tozero")
    return figure.update_layout(barmode="overlay", bargap=0)


def _figure(traces: Sequence[go.Scatter | go.Bar], x_label: str, y_label: str, legend: bool) -> go.Figure:
    figure = go.Figure(traces, {"template": LOOK, "showlegend": legend})
    return figure.update_xaxes(title_text=_text(x_label)).update_yaxes(title_text=_text(y_label))


def _add_level(figure: go.Figure, level: float, label: str) -> None:
    """Add a dotted horizontal line at y = `level`, labelled with `label`."""
    line = {"color": "var(--soft)", "width": 1.5, "dash": "dot"}
    figure.add_hline(level, line=line, annotation_text=_text(label), annotation_position="top right")


def _rounded(values: Iterable[float]) -> list[float]:
    return [float(f"{value:.{DIGITS}g}") for value in values]


def _text(text: str) -> str:
    return html.escape(text, quote=False)


# --- series -> smoothed, averaged, thinned and binned series ---


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


def mean_and_band(curves: Sequence[Sequence[Point]]) -> tuple[list[Point], list[tuple[float, float, float]]]:
    """Mean and mean ± deviation of several curves, at the x that all of them have."""
    by_x = [dict(curve) for curve in curves]
    common = sorted(set(by_x[0]).intersection(*by_x[1:]))
    spreads = [(x, Spread.of([curve[x] for curve in by_x])) for x in common]
    return (
        [(x, spread.mean) for x, spread in spreads],
        [(x, spread.mean - spread.deviation, spread.mean + spread.deviation) for x, spread in spreads],
    )


def thin(points: Sequence[tuple[float, ...]], most: int = MOST_POINTS) -> list[tuple[float, ...]]:
    """At most `most` points: the means of consecutive parts of nearly equal size."""
    if len(points) <= most:
        return list(points)
    bounds = [len(points) * i // most for i in range(most + 1)]
    parts = [points[start:stop] for start, stop in itertools.pairwise(bounds)]
    return [tuple(sum(values) / len(part) for values in zip(*part, strict=True)) for part in parts]


def binned_means(points: Sequence[Point], bins: int = GOLD_BINS) -> list[Point]:
    """Means of the points in each of `bins` equal parts of the range of x; parts without points are left out."""
    low, high = min(x for x, _ in points), max(x for x, _ in points)
    width = high / bins - low / bins or 1.0
    parts: dict[int, list[Point]] = {}
    for x, y in points:
        if math.isfinite(y):
            parts.setdefault(min(int((x - low) / width), bins - 1), []).append((x, y))
    return [
        (sum(x for x, _ in part) / len(part), sum(y for _, y in part) / len(part)) for _, part in sorted(parts.items())
    ]
