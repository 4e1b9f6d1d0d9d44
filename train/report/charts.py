"""Numbers -> inline SVG: lines with axes, and scatter plots. Text and colours come from the page's own style."""

from __future__ import annotations

import html
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

# Okabe and Ito's colours, which readers with any colour vision tell apart
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f")
WIDTH, HEIGHT = 720, 300
LEFT, RIGHT, TOP, BOTTOM = 74, 12, 12, 42
MOST_POINTS = 300  # of a line: more cannot be seen, and would weigh megabytes

Point = tuple[float, float]


@dataclass(frozen=True)
class Line:
    """A named line; `dashed` sets a second kind of line of the same colour apart."""

    name: str
    colour: str
    points: Sequence[Point]
    dashed: bool = False


@dataclass(frozen=True)
class Scale:
    """Data [low, high] -> pixels [start, stop]."""

    low: float
    high: float
    start: float
    stop: float

    def __call__(self, value: float) -> float:
        """The pixel of a value."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.stop - self.start)


def thin(points: Sequence[Point], most: int = MOST_POINTS) -> list[Point]:
    """At most `most` points: the means of consecutive parts of nearly equal size."""
    if len(points) <= most:
        return list(points)
    bounds = [len(points) * i // most for i in range(most + 1)]
    parts = [points[start:stop] for start, stop in itertools.pairwise(bounds)]
    return [(sum(x for x, _ in part) / len(part), sum(y for _, y in part) / len(part)) for part in parts]


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers from low to high, about so many."""
    if high <= low:
        return [low]
    raw = (high - low) / about
    unit = 10 ** math.floor(math.log10(raw))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= raw)
    first = math.ceil(low / step - 1e-9)
    return [round(i * step, 12) for i in range(first, math.floor(high / step + 1e-9) + 1)]


def line_chart(lines: Sequence[Line], x_label: str, y_label: str) -> str:
    """Lines over common axes; lines without a finite point are left out."""
    drawn = [(line, thin([p for p in line.points if math.isfinite(p[1])])) for line in lines]
    drawn = [(line, points) for line, points in drawn if points]
    if not drawn:
        return "<p class='none'>nothing recorded</p>"
    every = [point for _, points in drawn for point in points]
    x, y = _scales(every, WIDTH, HEIGHT)
    body = [_axes(x, y, x_label, y_label, WIDTH, HEIGHT)]
    for line, points in drawn:
        path = "M" + "L".join(f"{x(a):.1f},{y(b):.1f}" for a, b in points)
        dash = " stroke-dasharray='5 3'" if line.dashed else ""
        title = f"<title>{html.escape(line.name)}</title>"
        body.append(f"<path class='line' d='{path}' stroke='{line.colour}'{dash}>{title}</path>")
        if len(points) <= 40:
            body += [
                f"<circle cx='{x(a):.1f}' cy='{y(b):.1f}' r='3' fill='{line.colour}'>"
                f"<title>{html.escape(line.name)}: {a:g}, {b:.4f}</title></circle>"
                for a, b in points
            ]
    return _svg(body, WIDTH, HEIGHT, f"{y_label} over {x_label}")


def scatter(points: Sequence[Point], colour: str, x_label: str, y_label: str) -> str:
    """Points as small translucent discs."""
    width, height = 350, 300
    finite = [p for p in points if math.isfinite(p[0]) and math.isfinite(p[1])]
    if not finite:
        return "<p class='none'>nothing recorded</p>"
    x, y = _scales(finite, width, height)
    discs = "".join(f"<circle cx='{x(a):.1f}' cy='{y(b):.1f}' r='2'/>" for a, b in finite)
    body = [_axes(x, y, x_label, y_label, width, height), f"<g fill='{colour}' fill-opacity='.3'>{discs}</g>"]
    return _svg(body, width, height, f"{y_label} over {x_label}")


def legend(lines: Sequence[tuple[str, str, bool]]) -> str:
    """Names with their colour and kind of line: (name, colour, dashed)."""
    items = [
        f"<li><svg width='26' height='8' aria-hidden='true'><path class='line' d='M0,4L26,4' stroke='{colour}'"
        f"{' stroke-dasharray=' + chr(39) + '5 3' + chr(39) if dashed else ''}/></svg>{html.escape(name)}</li>"
        for name, colour, dashed in lines
    ]
    return f"<ul class='legend'>{''.join(items)}</ul>"


def _scales(points: Sequence[Point], width: int, height: int) -> tuple[Scale, Scale]:
    """Scales that hold all points, with room where all are equal."""
    ranges = []
    for values in zip(*points, strict=True):
        low, high = min(values), max(values)
        margin = 0.03 * (high - low) or abs(high) * 0.05 or 1.0
        ranges.append((low - margin, high + margin))
    return Scale(*ranges[0], LEFT, width - RIGHT), Scale(*ranges[1], height - BOTTOM, TOP)


def _axes(x: Scale, y: Scale, x_label: str, y_label: str, width: int, height: int) -> str:
    parts = []
    for value in ticks(y.low, y.high):
        at = f"{y(value):.1f}"
        parts.append(f"<path class='grid' d='M{LEFT},{at}H{width - RIGHT}'/>")
        parts.append(f"<text x='{LEFT - 6}' y='{at}' dy='.32em' text-anchor='end'>{value:g}</text>")
    for value in ticks(x.low, x.high):
        parts.append(f"<text x='{x(value):.1f}' y='{height - BOTTOM + 16}' text-anchor='middle'>{value:,.10g}</text>")
    bottom = height - BOTTOM
    parts.append(f"<path class='axis' d='M{LEFT},{TOP}V{bottom}H{width - RIGHT}'/>")
    middle = (LEFT + width - RIGHT) / 2
    parts.append(f"<text x='{middle}' y='{height - 6}' text-anchor='middle'>{html.escape(x_label)}</text>")
    turned = f"transform='translate(12,{(TOP + bottom) / 2}) rotate(-90)'"
    parts.append(f"<text {turned} text-anchor='middle'>{html.escape(y_label)}</text>")
    return "".join(parts)


def _svg(body: Sequence[str], width: int, height: int, title: str) -> str:
    return (
        f"<svg viewBox='0 0 {width} {height}' width='{width}' role='img' aria-label='{html.escape(title)}'>"
        f"{''.join(body)}</svg>"
    )
