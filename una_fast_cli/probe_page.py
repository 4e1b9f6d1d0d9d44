"""The page of `una-fast probe --pairs FILE --html PAGE`: one HTML file with a drawn curve, without scripts."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from una_fast.pair_scores import PairScores

SIDE, EDGE = 420, 50  # of the figure, in pixels
COLOURS = ("#0072b2", "#d55e00")  # Okabe and Ito's, which readers with any colour vision can distinguish
PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>
<style>body {{ font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }}
table {{ border-collapse: collapse }} td, th {{ padding: .3rem .7rem; border-bottom: 1px solid #ddd; text-align: left }}
text {{ font-size: 13px }}</style>
<h1>{title}</h1>
<p>Each point of a curve is a threshold. A higher curve is a better encoder; the dotted line is chance.</p>
{figure}
<table><tr><th></th><th>encoder</th><th>figures</th></tr>
{rows}
</table></html>
"""


def curve_page(path: str, scores: Mapping[str, PairScores]) -> str:
    """The page, as HTML. scores: of one or two encoders by name, on the pairs of the file at `path`."""
    lines = [_line(*one.curve(), colour) for one, colour in zip(scores.values(), COLOURS, strict=False)]
    rows = [
        f'<tr><td style="color: {colour}">&#9632;</td><td>{escape(name)}</td><td>{escape(str(one))}</td></tr>'
        for (name, one), colour in zip(scores.items(), COLOURS, strict=False)
    ]
    return PAGE.format(title=f"Pairs of {escape(path)}", figure=_figure(lines), rows="\n".join(rows))


def _line(near_misses: object, same: object, colour: str) -> str:
    points = " ".join(f"{_x(a):.1f},{_y(b):.1f}" for a, b in zip(near_misses, same, strict=True))  # type: ignore
    return f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{_x(0)},{_y(0)} {points}"/>'


def _figure(lines: list[str]) -> str:
    ticks = [
        f'<text x="{_x(share)}" y="{SIDE + EDGE + 18}" text-anchor="middle">{share:.0%}</text>'
        f'<text x="{EDGE - 6}" y="{_y(share) + 4}" text-anchor="end">{share:.0%}</text>'
        for share in (0, 0.25, 0.5, 0.75, 1)
    ]
    middle, size = EDGE + SIDE // 2, SIDE + 2 * EDGE
    labels = (
        f'<text x="{middle}" y="{size - 8}" text-anchor="middle">near-misses above the threshold</text>'
        f'<text transform="translate(12 {middle}) rotate(-90)" text-anchor="middle">'
        "pairs with the same meaning above the threshold</text>"
    )
    frame = f'<rect x="{EDGE}" y="{EDGE}" width="{SIDE}" height="{SIDE}" fill="none" stroke="#bbb"/>'
    chance = f'<line x1="{_x(0)}" y1="{_y(0)}" x2="{_x(1)}" y2="{_y(1)}" stroke="#bbb" stroke-dasharray="3"/>'
    return f'<svg width="{size}" height="{size}" role="img">{frame}{chance}{"".join([*ticks, *lines])}{labels}</svg>'


def _x(share: float) -> float:
    return EDGE + SIDE * share


def _y(share: float) -> float:
    return EDGE + SIDE * (1 - share)
