"""Makes one HTML page about groups of runs. The page needs neither other files nor the network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from plotly.offline import get_plotlyjs

from train.report.runs import LOSS_CURVES, Group, differing_settings, score_table, short, unimproved_note

MAIN_SETTINGS = ("model", "corpus", "batch_size", "max_length", "max_steps", "epochs", "learning_rate", "loss")
MOST_POINTS = 100  # per line; a longer curve is averaged over this many parts of consecutive steps
COSINES = ("cosine_positive", "cosine_negative")
FIGURES = {  # name -> curves of `RunRecord.curves`, title of the y axis, caption
    "Dev score": (("dev",), "dev score × 100", ""),
    "Similarity over training": (
        COSINES,
        "cosine similarity",
        "Solid: anchor and positive. Dashed: anchor and negative.",
    ),
    **{name.replace("loss", "Loss of the steps"): ((name,), "loss (nats)", "") for name in LOSS_CURVES},
}


def make_page(groups: Sequence[Group], baseline: Group | None = None, notes: Sequence[str] = ()) -> str:
    """Return the page as HTML. baseline: the group to compare all others with. notes: texts above the scores."""
    runs, first = [run for group in groups for run in group.runs], groups[0].runs[0]
    templates = Environment(loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined)
    differing, versions = differing_settings(groups), first.summary.get("versions", {})
    settings = {name: first.settings.get(name) for name in MAIN_SETTINGS if name not in differing}
    head, rows = score_table(groups, baseline)
    return templates.get_template("page.html").render(
        name=f"{len(runs)} training runs" if len(runs) > 1 else f"Training run {groups[0].label}",
        facts=[f"{name.replace('_', ' ')} {short(value)}" for name, value in settings.items() if value]
        + [f"{name} {versions[name]}" for name in ("una_fast", "torch") if name in versions],
        notes=dict.fromkeys([*notes, *filter(None, [unimproved_note(runs)])]),
        labels=[group.label for group in groups],
        scored=any(run.scores for run in runs),
        head=head,
        rows=rows,
        figures=figures(groups),
        plotly=get_plotlyjs(),
    )


def figures(groups: Sequence[Group]) -> list[dict[str, Any]]:
    """Return the figures that page.js draws, without those for which no run has values.

    Losses of different kinds are not comparable: each kind of --loss has its own figures.
    """
    drawn, losses = [], [*dict.fromkeys(group.runs[0].settings.get("loss") for group in groups)]
    for (heading, (curves, label, caption)), loss in product(FIGURES.items(), losses):
        is_loss = curves[0] in LOSS_CURVES
        if not is_loss and loss != losses[0]:
            continue
        title = f"{heading}: {loss}" if is_loss and len(losses) > 1 else heading
        lines = [
            {
                "name": f"{run.name}: {name.removeprefix('cosine_')}" if name in COSINES else run.name,
                "group": i,
                "dashed": second,
                **points(run.curves[name], 100 if name == "dev" else 1),
            }
            for second, name in enumerate(curves)
            for i, group in enumerate(groups)
            for run in group.runs
            if name in run.curves and (not is_loss or run.settings.get("loss") == loss)
        ]
        drawn += [{"name": title, "label": label, "caption": caption, "lines": lines}] if lines else []
    return drawn


def points(curve: Mapping[int, float], factor: int) -> dict[str, list[float]]:
    """Return a curve as {"x": steps, "y": values times `factor`}, averaged to at most MOST_POINTS points."""
    parts = np.array_split(np.array(sorted(curve.items())), min(len(curve), MOST_POINTS))
    x, y = zip(*(part.mean(axis=0) for part in parts), strict=True)
    return {"x": [float(f"{value:.6g}") for value in x], "y": [float(f"{factor * value:.6g}") for value in y]}
