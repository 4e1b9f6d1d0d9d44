"""The page of `una-fast probe --html PAGE`: one HTML file with a drawn curve, without scripts."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from una_fast.pair_scores import PairScores

SIDE, EDGE = 420, 50  # of the figure, in pixels
COLOURS = ("#0072b2", "#d55e00")  # Okabe and Ito's, which readers with any colour vision can distinguish
PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>una-fast probe</title>
<style>body {{ font: 15px/1.5 system-ui, sans-serif; margin: 2rem }} text {{ font-size: 13px }}</style>
<h1>una-fast probe</h1>
{figure}
<pre>{text}</pre></html>
"""
ABOUT = "<p>Each point of a curve is a threshold. A higher curve is a better encoder; the dotted line is chance.</p>"


def page(scores: Mapping[str, PairScores], text: str) -> str:
    """The page, as HTML. scores: of labelled pairs, by encoder, or {}; text: what the command printed."""
    coloured = [*zip(scores.items(), COLOURS, strict=False)]
    names = [f'<li style="color: {colour}">{escape(name)}</li>' for (name, _), colour in coloured]
    lines = [_line(*one.curve(), colour) for (_, one), colour in coloured]
    figure = f"{ABOUT}\n<ul>{''.join(names)}</ul>\n{_figure(lines)}" if scores else ""
    return PAGE.format(figure=figure, text=escape(text))


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
