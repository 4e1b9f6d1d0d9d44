"""Series -> smoothed and thinned series -> plotly's figures, which plotly's objects check against its schema."""

import json
import math
from typing import Any

import plotly.graph_objects as go
import pytest

from train.report.figures import MOST_POINTS, Line, line_chart, mean_curve, smooth, thinned


def content(drawing: go.Figure | None) -> dict[str, Any]:
    """The figure as the page holds it."""
    assert drawing is not None
    return json.loads(json.dumps(drawing.to_plotly_json(), allow_nan=False))


def test_a_smoothed_curve_forgets_its_start() -> None:
    """A first loss of 100 affects its own window only; a running mean of weight 0.9 would be 9 at step 24."""
    points = [(step, 100.0 if step == 0 else 1.0) for step in range(100)]
    values = dict(smooth(points))
    assert values[0] > 10
    assert all(values[step] == pytest.approx(1.0) for step in range(10, 100))


def test_smoothing_is_centred_and_skips_nan() -> None:
    assert smooth([(0, 5.0), (1, 5.0), (2, math.nan), (3, 5.0)]) == [(0, 5.0), (1, 5.0), (3, 5.0)]
    rising = dict(smooth([(step, 2.0 * step) for step in range(200)]))
    assert all(rising[step] == pytest.approx(2 * step) for step in range(50, 150))  # a mean of the past is lower


def test_a_mean_is_over_the_steps_of_all_runs() -> None:
    assert mean_curve([[(1, 2.0), (2, 4.0)], [(1, 4.0), (3, 9.0)]]) == [(1, 3.0)]


def test_long_lines_are_thinned_by_means() -> None:
    points = [(float(i), float(i % 2)) for i in range(10_000)]
    short = thinned(points)
    assert len(short) == MOST_POINTS
    assert all(0.4 < y < 0.6 for _, y in short)
    assert sum(x for x, _ in short) / MOST_POINTS == pytest.approx(4999.5, rel=1e-3)


def test_lines_are_drawn_without_what_is_not_a_number() -> None:
    points = [(0.0, 1.0), (1.0, math.nan), (2.0, -3.0), (3.0, 7.0)]
    chart = content(line_chart([Line("a <b> & 'c'", 0, points), Line("one", 0, points, thin=True)], "y"))
    thin_line, line = chart["data"]  # the thick line is drawn last
    assert (line["x"], line["y"]) == ([0, 2, 3], [1, -3, 7])
    assert line["name"] == "a &lt;b&gt; &amp; 'c'"
    assert [trace["showlegend"] for trace in chart["data"]] == [False, True]
    assert thin_line["legendgroup"] == line["legendgroup"]
    assert line_chart([Line("a", 0, [(0.0, math.inf)])], "y") is None


@pytest.mark.parametrize(("lowest", "kind"), [(0.1, "log"), (0.0, None)])
def test_a_log_axis_is_one_where_all_is_above_0(lowest: float, kind: str | None) -> None:
    chart = content(line_chart([Line("a", 0, [(0.0, 1.0), (1.0, lowest), (2.0, 0.5)])], "y", log=True))
    assert chart["layout"]["yaxis"].get("type") == kind


def test_groups_differ_by_more_than_colour() -> None:
    lines = content(line_chart([Line(str(i), i, [(0.0, float(i))]) for i in range(14)], "y"))["data"]
    assert len({(one["line"]["color"], one["line"]["dash"], one["marker"]["symbol"]) for one in lines}) == 14
