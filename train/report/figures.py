"""Groups of runs -> the figures of the page as data: dev score, cosines and loss over the steps. page.js draws them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from train.report.runs import LOSSES, Group

MOST_POINTS = 100  # of a line, at most: the means of so many equal parts of the steps
COSINES = ("cosine_positive", "cosine_negative")
FIGURES = {  # name -> curves of `RunRecord.curves`, title of the y axis, caption
    "Dev score": (("dev",), "Spearman correlation × 100", ""),
    "Similarity over training": (COSINES, "cosine similarity", "Solid: anchor and positive. Dashed: and negative."),
    **{name.replace("loss", "Loss of the steps"): ((name,), "loss (nats)", "") for name in LOSSES},
}


def figures(groups: Sequence[Group]) -> list[dict[str, Any]]:
    """The figures of which something was recorded: "name", "label" of y, "caption", "lines" and "starts".

    A line has "name", "group" (its number), "dashed", "x" (steps) and "y". starts: dev scores before training.
    """
    drawn = []
    for title, (curves, label, caption) in FIGURES.items():
        factor = 100 if curves == ("dev",) else 1
        lines = [
            {
                "name": f"{run.name}{name[6:].replace('_', ': ')}",
                "group": i,
                "dashed": second,
                **points(run.curves[name], factor),
            }
            for second, name in enumerate(curves)
            for i, group in enumerate(groups)
            for run in group.runs
            if run.curves.get(name)
        ]
        starts = (
            {round(100 * group.start, 2) for group in groups if group.start is not None} if curves == ("dev",) else ()
        )
        if lines:
            drawn.append({"name": title, "label": label, "caption": caption, "lines": lines, "starts": sorted(starts)})
    return drawn


def points(curve: Mapping[int, float], factor: int = 1) -> dict[str, list[float]]:
    """At most MOST_POINTS points: the means of consecutive parts of nearly equal size, to six significant digits.

    Args:
        curve: Value by step.
        factor: What values are multiplied by.
    """
    parts = np.array_split(np.array(sorted(curve.items())), min(len(curve), MOST_POINTS))
    x, y = zip(*(part.mean(axis=0) for part in parts), strict=True)
    return {"x": [float(f"{value:.6g}") for value in x], "y": [float(f"{factor * value:.6g}") for value in y]}
