"""Series -> smoothed and thinned series -> plotly's figures, which plotly's objects check against its schema."""

import json
import math
from typing import Any

import plotly.graph_objects as go
import pytest

from train.report.figures import (
    BINS,
    MOST_POINTS,
    Line,
    binned_means,
    columns_chart,
    histograms,
    line_chart,
    mean_and_band,
    scatter,
    smooth,
    thin,
)
from train.report.runs import Group


def content(drawing: go.Figure | None) -> dict[str, Any]:
    """The figure as the page holds it."""
    assert drawing is not None
    return json.loads(json.dumps(drawing.to_plotly_json(), allow_nan=False))


# --- series ---


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


def test_means_by_bin_and_over_seeds() -> None:
    points = [(0.0, 0.1), (0.5, 0.3), (5.0, 0.9), (4.9, math.nan)]
    assert binned_means(points) == [(0.25, pytest.approx(0.2)), (5.0, 0.9)]
    assert binned_means([(3.0, 0.5), (3.0, 0.7)]) == [(3.0, pytest.approx(0.6))]
    mean, band = mean_and_band([[(1, 2.0), (2, 4.0)], [(1, 4.0), (3, 9.0)]])
    assert mean == [(1, 3.0)]  # only steps of both runs
    assert band == [(1, pytest.approx(3 - math.sqrt(2)), pytest.approx(3 + math.sqrt(2)))]


def test_long_lines_are_thinned_by_means() -> None:
    points = [(float(i), float(i % 2)) for i in range(10_000)]
    thinned = thin(points)
    assert len(thinned) == MOST_POINTS
    assert all(0.4 < y < 0.6 for _, y in thinned)
    assert sum(x for x, _ in thinned) / MOST_POINTS == pytest.approx(4999.5, rel=1e-3)


# --- figures ---


def test_lines_are_drawn_with_their_bands_and_without_what_is_not_a_number() -> None:
    points = [(0.0, 1.0), (1.0, math.nan), (2.0, -3.0), (3.0, 7.0)]
    band = [(0.0, 0.5, 1.5), (3.0, 2.0, 12.0)]
    chart = content(line_chart([Line("a <b> & 'c'", 0, points, band), Line("one", 0, points, thin=True)], "x", "y"))
    area, thin_line, line = chart["data"]  # the thick line is drawn last
    assert (line["x"], line["y"]) == ([0, 2, 3], [1, -3, 7])
    assert (area["x"], area["y"]) == ([0, 3, 3, 0], [1.5, 12, 2, 0.5])
    assert line["name"] == "a &lt;b&gt; &amp; 'c'"
    assert [trace["showlegend"] for trace in chart["data"]] == [False, False, True]
    assert thin_line["legendgroup"] == line["legendgroup"] == area["legendgroup"]
    assert line_chart([Line("a", 0, [(0.0, math.inf)])], "x", "y") is None


@pytest.mark.parametrize(("lowest", "kind"), [(0.1, "log"), (0.0, None)])
def test_a_log_axis_is_one_where_all_is_above_0(lowest: float, kind: str | None) -> None:
    chart = content(line_chart([Line("a", 0, [(0.0, 1.0), (1.0, lowest), (2.0, 0.5)])], "x", "y", log=True))
    assert chart["layout"]["yaxis"].get("type") == kind


def test_groups_differ_by_more_than_colour() -> None:
    lines = content(line_chart([Line(str(i), i, [(0.0, float(i))]) for i in range(14)], "x", "y"))["data"]
    assert len({(one["line"]["color"], one["line"]["dash"], one["marker"]["symbol"]) for one in lines}) == 14


def test_columns_show_every_run_and_whiskers_of_a_deviation() -> None:
    groups, values = [Group("una"), Group("none")], [{"STSBenchmark": [70.0, 74.0], "CR": []}, {"STSBenchmark": [71.0]}]
    chart = content(columns_chart(values, groups, "score", level=(1, "before <training>")))
    runs, mean, alone = chart["data"]
    assert (runs["y"], alone["y"]) == ([70, 74], [71])
    assert (mean["x"], mean["y"]) == (["STSBenchmark"], [72])  # a single run has no whiskers
    assert mean["error_y"]["array"] == [pytest.approx(2.82843)]
    assert chart["layout"]["xaxis"]["ticktext"] == ["STS-B", "CR"]
    assert chart["layout"]["shapes"][0]["y0"] == chart["layout"]["shapes"][0]["y1"] == 1
    assert chart["layout"]["annotations"][0]["text"] == "before &lt;training&gt;"
    assert columns_chart([{}], [Group("una")], "score") is None


def test_equal_values_have_room_around_them() -> None:
    """An axis from a value to the same value would show nothing."""
    low, high = content(scatter([(0.0, 0.5)], 0, "x", (0.5, 0.5)))["layout"]["yaxis"]["range"]
    assert low < 0.5 < high
    bars = content(histograms({"a": [0.5, 0.5], "b": []}, "x", (0.5, 0.5)))["data"]
    assert sum(bars[0]["y"]) == pytest.approx(100) and sum(bars[1]["y"]) == 0


def test_histograms_are_shares_by_common_bins() -> None:
    near, far = content(histograms({"near": [0.9] * 3 + [1.0], "far": [0.0, 0.1]}, "cosine", (0.0, 1.0)))["data"]
    assert near["x"] == far["x"] and len(near["x"]) == BINS
    assert max(near["y"]) == 75 and near["y"][-1] == 25
    assert far["y"][0] == 50 and sum(far["y"]) == 100
