"""Curves of runs -> thinned curves -> plotly's figures, which plotly's objects check against its schema."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from train.report.figures import MOST_POINTS, curve_figures, mean_curve, thinned
from train.report.runs import Group, RunRecord, Step


def run(name: str, losses: list[float]) -> RunRecord:
    """A run with these losses, all of steps without negatives."""
    steps = [Step(at, loss, False, 1.0, 0.9, math.nan) for at, loss in enumerate(losses)]
    return RunRecord(name, Path(name), {}, {}, steps, [], {})


def losses_of(*groups: Group) -> dict[str, Any]:
    """The figure of the losses, as the page holds it."""
    (drawing,) = (one.drawing for one in curve_figures(groups) if one.name == "Loss of the steps without negatives")
    assert drawing is not None
    return json.loads(json.dumps(drawing.to_plotly_json(), allow_nan=False))


def test_a_mean_is_over_the_steps_of_all_runs() -> None:
    assert mean_curve([{1: 2.0, 2: 4.0}, {1: 4.0, 3: 9.0}]) == {1: 3.0}


def test_long_lines_are_thinned_by_means() -> None:
    short = thinned({float(i): float(i % 2) for i in range(10_000)})
    assert len(short) == MOST_POINTS
    assert all(0.4 < y < 0.6 for y in short.values())
    assert sum(short) / MOST_POINTS == pytest.approx(4999.5, rel=1e-3)


def test_lines_are_drawn_without_what_is_not_a_number() -> None:
    runs = [run("a <b> & 'c'", [1.0, math.nan, 3.0, 7.0]), run("two", [3.0, math.nan, 5.0, 9.0])]
    first, second, mean = losses_of(Group("both", runs))["data"]  # the thick line is drawn last
    assert (first["x"], first["y"], first["name"]) == ([0, 2, 3], [1, 3, 7], "a &lt;b&gt; &amp; 'c'")
    assert (mean["y"], mean["name"]) == ([2, 4, 8], "both, mean of 2")
    assert [line["showlegend"] for line in (first, second, mean)] == [False, False, True]
    nothing = curve_figures([Group("a", [run("a", [math.nan])])])
    assert [(one.name, one.drawing) for one in nothing if "Loss" in one.name or "Dev" in one.name] == [
        ("Dev score", None)
    ]


@pytest.mark.parametrize(("lowest", "kind"), [(0.1, "log"), (0.0, None)])
def test_a_log_axis_is_one_where_all_is_above_0(lowest: float, kind: str | None) -> None:
    assert losses_of(Group("a", [run("a", [1.0, lowest, 0.5])]))["layout"]["yaxis"].get("type") == kind


def test_groups_differ_by_more_than_colour() -> None:
    lines = losses_of(*(Group(str(i), [run(str(i), [1.0, 2.0])]) for i in range(14)))["data"]
    assert len({(one["line"]["color"], one["line"]["dash"]) for one in lines}) == 14
