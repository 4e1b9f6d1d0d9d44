"""Groups of runs -> one HTML page that needs no other file and no network, by the template page.html.

Its figures are data, dev score, cosines and loss over the steps, which page.js draws.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from plotly.offline import get_plotlyjs

from train.report.runs import DEV, DEV_LAST, LOSSES, STS_AVERAGE, Group, differing_settings, kept_start, title
from train.report.table import difference_cell, mean_cell, score_table, short

MAIN_SETTINGS = ("model", "corpus", "batch_size", "max_length", "max_steps", "epochs", "learning_rate", "loss")
MOST_POINTS = 100  # of a line, at most: the means of so many equal parts of the steps
COSINES = ("cosine_positive", "cosine_negative")
FIGURES = {  # name -> curves of `RunRecord.curves`, title of the y axis, caption
    "Dev score": (("dev",), "Spearman correlation × 100", ""),
    "Similarity over training": (COSINES, "cosine similarity", "Solid: anchor and positive. Dashed: and negative."),
    **{name.replace("loss", "Loss of the steps"): ((name,), "loss (nats)", "") for name in LOSSES},
}


def make_page(groups: Sequence[Group], baseline: Group | None = None, notes: Sequence[str] = ()) -> str:
    """The whole page, as HTML.

    Args:
        groups: at least one.
        baseline: the one of them that the others are compared with.
        notes: sentences to show above the figures.
    """
    runs, first = [run for group in groups for run in group.runs], groups[0].runs[0]
    templates = Environment(loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined)
    differing, versions = differing_settings(groups), first.summary.get("versions") or {}
    settings = {name: first.settings.get(name) for name in MAIN_SETTINGS if name not in differing}
    head, rows = score_table(groups, baseline)
    return templates.get_template("page.html").render(
        name=f"{len(runs)} training runs" if len(runs) > 1 else f"Training run {groups[0].label}",
        facts=[f"{name.replace('_', ' ')} {short(value)}" for name, value in settings.items() if value]
        + [f"{name} {versions[name]}" for name in ("una_fast", "torch") if name in versions],
        notes=dict.fromkeys([*notes, *filter(None, [kept_start(runs)])]),
        cards=[_card(group, groups, baseline) for group in groups],
        head=head,
        rows=rows,
        figures=figures(groups),
        plotly=get_plotlyjs(),
    )


def _card(group: Group, groups: Sequence[Group], baseline: Group | None) -> dict[str, str]:
    """A group's main score, of what was trained, and what stands beside it.

    The main score is one that all groups have: the STS average, else the dev score of best/; but where best/ of a run
    is the model that was given, the dev score after the last step.
    """
    order = (DEV_LAST, DEV) if any(run.is_start for each in groups for run in each.runs) else (STS_AVERAGE, DEV)
    scores, shared = group.compared(), set.intersection(*({*each.by_seed()} for each in groups))
    main = next((name for begin in order for name in scores if name.startswith(begin) and name in shared), "")
    if not main:
        return {"label": group.label, "value": "-", "start": "", "about": "no score that all runs have"}
    about = f"{title(main)}, {f'mean ± deviation of {n} runs' if (n := scores[main].n) > 1 else 'one run'}"
    if baseline and group is not baseline and main in (pairs := group.compared(baseline)):
        about += f"; {difference_cell(pairs[main])} against {baseline.label}"
    start = "" if main == STS_AVERAGE or group.start is None else f"start {100 * group.start:.2f}"
    return {"label": group.label, "value": mean_cell(scores[main]), "start": start, "about": about}


def figures(groups: Sequence[Group]) -> list[dict[str, Any]]:
    """The figures of which something was recorded: "name", "label" of y, "caption", "lines" and "starts".

    A line has "name", "group" (its number), "dashed", "x" (steps) and "y". starts: dev scores before training.
    """
    drawn = []
    for heading, (curves, label, caption) in FIGURES.items():
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
            drawn.append(
                {"name": heading, "label": label, "caption": caption, "lines": lines, "starts": sorted(starts)}
            )
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
