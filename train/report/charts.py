"""Numbers -> inline SVG: lines with bands, scatter plots, scores by column. Colours and fonts are the page's style."""

from __future__ import annotations

import html
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from train.report.runs import Spread

N_COLOURS = 7  # the style has --c0 to --c6
WIDTH, HEIGHT = 520, 320  # of a panel; two fit side by side, and a telephone shows one at 70 %
WIDE = 1064  # of a chart as wide as the page
LEFT, RIGHT, TOP, BOTTOM = 58, 10, 10, 46
MOST_POINTS = 300  # of a line: more cannot be seen, and would weigh megabytes
MOST_MARKED = 40  # points of a line that are drawn as discs too

Point = tuple[float, float]
NOTHING = "<p class='none'>nothing recorded</p>"


def colour(number: int) -> str:
    """The colour of a group, by the style's name of it."""
    return f"var(--c{number % N_COLOURS})"


@dataclass(frozen=True)
class Line:
    """A named line, with a band of deviations (x, low, high) around it, or thin where it is one run among several."""

    name: str
    colour: str
    points: Sequence[Point]
    band: Sequence[tuple[float, float, float]] = ()
    thin: bool = False


@dataclass(frozen=True)
class Marks:
    """The values of one group in one column: a disc each, their mean with whiskers of one deviation."""

    name: str
    colour: str
    values: Sequence[float]

    @property
    def whiskers(self) -> tuple[float, ...]:
        """Mean minus and plus one deviation; none of fewer than two values."""
        if len(self.values) < 2:
            return ()
        spread = Spread.of(self.values)
        return spread.mean - spread.deviation, spread.mean + spread.deviation


@dataclass(frozen=True)
class Scale:
    """Data [low, high] -> pixels [start, stop], by the logarithm where `log` is set."""

    low: float
    high: float
    start: float
    stop: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """The pixel of a value."""
        low, high, at = (math.log(v) if self.log else v for v in (self.low, self.high, value))
        return self.start + (at - low) / (high - low) * (self.stop - self.start)

    def ticks(self) -> list[float]:
        """About five round numbers."""
        if not self.log:
            return ticks(self.low, self.high)
        decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        found = [factor * 10.0**power for power in decades for factor in (1, 2, 5)]
        inside = [value for value in found if self.low <= value <= self.high]
        return inside if len(inside) <= 7 else [value for value in inside if f"{value:e}"[0] == "1"]


def scale_of(values: Sequence[float], start: float, stop: float, log: bool = False) -> Scale:
    """A scale that holds all values, with room where all are equal."""
    low, high = min(values), max(values)
    if log:
        return Scale(low / 1.15, high * 1.15, start, stop, log=True)
    margin = 0.04 * (high - low) or abs(high) * 0.05 or 1.0
    return Scale(low - margin, high + margin, start, stop)


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers from low to high, about so many."""
    if high <= low:
        return [low]
    raw = (high - low) / about
    unit = 10 ** math.floor(math.log10(raw))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= raw)
    first = math.ceil(low / step - 1e-9)
    return [round(i * step, 12) for i in range(first, math.floor(high / step + 1e-9) + 1)]


def thin(points: Sequence[tuple[float, ...]], most: int = MOST_POINTS) -> list[tuple[float, ...]]:
    """At most `most` points: the means of consecutive parts of nearly equal size."""
    if len(points) <= most:
        return list(points)
    bounds = [len(points) * i // most for i in range(most + 1)]
    parts = [points[start:stop] for start, stop in itertools.pairwise(bounds)]
    return [tuple(sum(values) / len(part) for values in zip(*part, strict=True)) for part in parts]


@dataclass
class Frame:
    """A chart in the making: its scales, and its SVG so far."""

    x: Scale
    y: Scale
    width: int = WIDTH
    height: int = HEIGHT
    body: list[str] = field(default_factory=list)

    def add(self, svg: str) -> None:
        """Draw on top of what is there."""
        self.body.append(svg)

    def axes(self, x_label: str, y_label: str, x_ticks: bool = True) -> None:
        """Grid, numbers and names of both axes."""
        right, bottom = self.width - RIGHT, self.height - BOTTOM
        for value in self.y.ticks():
            at = f"{self.y(value):.1f}"
            self.add(f"<path class='grid' d='M{LEFT},{at}H{right}'/>")
            self.add(f"<text x='{LEFT - 7}' y='{at}' dy='.32em' text-anchor='end'>{value:g}</text>")
        for value in self.x.ticks() if x_ticks else ():
            self.add(f"<path class='grid' d='M{self.x(value):.1f},{bottom}v4'/>")
            self.add(f"<text x='{self.x(value):.1f}' y='{bottom + 17}' text-anchor='middle'>{value:,.10g}</text>")
        self.add(f"<path class='axis' d='M{LEFT},{bottom}H{right}'/>")
        middle = (LEFT + right) / 2
        self.add(f"<text class='name' x='{middle}' y='{self.height - 8}' text-anchor='middle'>{_text(x_label)}</text>")
        turned = f"transform='translate(13,{(TOP + bottom) / 2}) rotate(-90)'"
        self.add(f"<text class='name' {turned} text-anchor='middle'>{_text(y_label)}</text>")

    def disc(self, x: float, y: float, radius: float, fill: str, about: str) -> None:
        """A point with what it says when pointed at."""
        self.add(f"<circle cx='{x:.1f}' cy='{y:.1f}' r='{radius}' fill='{fill}'><title>{_text(about)}</title></circle>")

    def svg(self, title: str) -> str:
        """The chart."""
        size = f"viewBox='0 0 {self.width} {self.height}' width='{self.width}'"
        return f"<svg {size} role='img' aria-label='{_text(title)}'>{''.join(self.body)}</svg>"


def line_chart(lines: Sequence[Line], x_label: str, y_label: str, log: bool = False) -> str:
    """Lines over common axes; lines without a finite point are left out. log: of y, where all of it is above 0."""
    drawn = [(line, thin([p for p in line.points if math.isfinite(p[1])])) for line in lines]
    drawn = [(line, points) for line, points in drawn if points]
    if not drawn:
        return NOTHING
    xs = [x for _, points in drawn for x, _ in points]
    ys = [y for _, points in drawn for _, y in points]
    ys += [y for line, _ in drawn for _, *bounds in line.band for y in bounds]
    y_scale = scale_of(ys, HEIGHT - BOTTOM, TOP, log and min(ys) > 0)
    frame = Frame(scale_of(xs, LEFT, WIDTH - RIGHT), y_scale)
    frame.axes(x_label, y_label)
    for line, points in sorted(drawn, key=lambda each: not each[0].thin):
        _draw(frame, line, points)
    return frame.svg(f"{y_label} over {x_label}")


def _draw(frame: Frame, line: Line, points: Sequence[tuple[float, ...]]) -> None:
    band = thin(line.band)
    if band:
        edge = [(x, high) for x, _, high in band] + [(x, low) for x, low, _ in reversed(band)]
        frame.add(f"<path class='band' d='{_path(frame, edge)}Z' fill='{line.colour}'/>")
    kind = "line thin" if line.thin else "line"
    title = f"<title>{_text(line.name)}</title>"
    frame.add(f"<path class='{kind}' d='{_path(frame, points)}' stroke='{line.colour}'>{title}</path>")
    if len(points) <= MOST_MARKED and not line.thin:
        for x, y in points:
            frame.disc(frame.x(x), frame.y(y), 3.2, line.colour, f"{line.name}: {x:g}, {y:.4g}")


def _path(frame: Frame, points: Sequence[tuple[float, ...]]) -> str:
    return "M" + "L".join(f"{frame.x(x):.1f},{frame.y(y):.1f}" for x, y in points)


def scatter(points: Sequence[Point], means: Sequence[Point], fill: str, labels: tuple[str, str], y_range: Point) -> str:
    """Points as translucent discs with a line of means over them; y_range: least and most of all plots beside it."""
    finite = [p for p in points if math.isfinite(p[0]) and math.isfinite(p[1])]
    if not finite:
        return NOTHING
    frame = Frame(scale_of([x for x, _ in finite], LEFT, WIDTH - RIGHT), scale_of(y_range, HEIGHT - BOTTOM, TOP))
    frame.axes(*labels)
    discs = "".join(f"<circle cx='{frame.x(x):.0f}' cy='{frame.y(y):.0f}' r='2.2'/>" for x, y in finite)
    frame.add(f"<g class='cloud' fill='{fill}'>{discs}</g>")
    frame.add(f"<path class='line over' d='{_path(frame, means)}'/>")
    for x, y in means:
        frame.disc(frame.x(x), frame.y(y), 3.6, "var(--ink)", f"{labels[1]} {y:.3f} at {labels[0]} {x:.1f}")
    return frame.svg(f"{labels[1]} over {labels[0]}")


def columns_chart(columns: Mapping[str, Sequence[Marks]], y_label: str) -> str:
    """A column a score, in it every group's values side by side: discs, and the mean with whiskers of a deviation."""
    values = [value for marks in columns.values() for mark in marks for value in (*mark.values, *mark.whiskers)]
    if not values:
        return NOTHING
    frame = Frame(Scale(0, len(columns), LEFT, WIDE - RIGHT), scale_of(values, HEIGHT - BOTTOM, TOP), WIDE)
    frame.axes("", y_label, x_ticks=False)
    bottom = HEIGHT - BOTTOM
    for number, (name, marks) in enumerate(columns.items()):
        at = f"x='{frame.x(number + 0.5):.1f}' y='{bottom + 20}'"
        frame.add(f"<text class='name' {at} text-anchor='middle'>{_text(name)}</text>")
        if number:
            frame.add(f"<path class='grid' d='M{frame.x(number):.1f},{TOP}V{bottom}'/>")
        for place, mark in enumerate(marks):
            _draw_marks(frame, mark, frame.x(number + (place + 1) / (len(marks) + 1)), name)
    return frame.svg(f"{y_label} by task")


def _draw_marks(frame: Frame, mark: Marks, x: float, column: str) -> None:
    if mark.whiskers:
        low, high = mark.whiskers
        mean = (low + high) / 2
        about = f"{mark.name}, {column}: {mean:.2f} ± {high - mean:.2f}"
        frame.add(f"<path class='whisker' d='M{x:.1f},{frame.y(low):.1f}V{frame.y(high):.1f}' stroke='{mark.colour}'/>")
        bar = f"M{x - 9:.1f},{frame.y(mean):.1f}h18"
        frame.add(f"<path class='mean' d='{bar}' stroke='{mark.colour}'><title>{_text(about)}</title></path>")
    for value in mark.values:
        frame.disc(x, frame.y(value), 3.4, mark.colour, f"{mark.name}, {column}: {value:.2f}")


def legend(names: Sequence[tuple[str, str]]) -> str:
    """Names with their colour."""
    items = [f"<li><i style='background:{fill}'></i>{_text(name)}</li>" for name, fill in names]
    return f"<ul class='legend'>{''.join(items)}</ul>"


def _text(text: str) -> str:
    return html.escape(text, quote=True)
