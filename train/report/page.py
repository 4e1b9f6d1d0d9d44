"""Groups of runs -> one HTML page that needs no other file and no network, by the template page.html."""

from __future__ import annotations

import functools
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from plotly.offline import get_plotlyjs

from train.report.figures import colour, curve_figures
from train.report.runs import (
    STS_AVERAGE,
    Group,
    RunRecord,
    differences,
    differing_settings,
    groups_with_baseline,
    kept_start,
    title,
)

MAIN_SCORES = (STS_AVERAGE, "stsb_dev")  # large at the top: the first that all groups have
MAIN_SETTINGS = ("model", "corpus", "batch_size", "max_length", "max_steps", "epochs", "learning_rate", "loss")


def make_page(runs: Sequence[RunRecord], baseline: Path | None = None, notes: Sequence[str] = ()) -> str:
    """The whole page, as HTML.

    baseline: the folder of the runs that the others are compared with.
    notes: sentences about what was left out, or about the comparison.

    Raises:
        InputError: the baseline holds no run or runs of several settings.
    """
    said = list(notes)
    groups, marked = groups_with_baseline(runs, baseline, said)
    members = [(i, run) for i, group in enumerate(groups) for run in group.runs]
    every = [run for _, run in members]
    parts: list[dict[str, Any]] = [
        {
            "i": i,
            "group": group,
            "is_baseline": group is marked,
            "spreads": group.spreads(),
            "differences": differences(group, marked) if marked and group is not marked else {},
        }
        for i, group in enumerate(groups)
    ]
    names = list(dict.fromkeys(name for part in parts for name in part["spreads"]))
    return (
        templates()
        .get_template("page.html")
        .render(
            name=_name(groups),
            facts=_common_facts(every),
            main=next((name for name in MAIN_SCORES if all(name in part["spreads"] for part in parts)), ""),
            notes=dict.fromkeys(said),
            parts=parts,
            names=names,
            best={name: max(part["spreads"][name].mean for part in parts if name in part["spreads"]) for name in names},
            kept_start=kept_start(every),
            paired=any(part["differences"] for part in parts),
            curves=curve_figures(groups),
            differing=differing_settings([group.runs[0] for group in groups]),
            members=members,
            plotly=get_plotlyjs(),
        )
    )


def _name(groups: Sequence[Group]) -> str:
    n_runs = sum(len(group.runs) for group in groups)
    if n_runs == 1:
        return f"Training run {groups[0].label}"
    return f"{n_runs} training runs" + (f" in {len(groups)} settings" if len(groups) > 1 else f": {groups[0].label}")


def _common_facts(runs: Sequence[RunRecord]) -> list[str]:
    """The main settings that all runs have in common, and the versions of the first."""
    settings, differing = runs[0].settings, differing_settings(runs)
    common = [name for name in MAIN_SETTINGS if name not in differing and settings.get(name) not in (None, "", [])]
    versions = runs[0].summary.get("versions", {})
    return [f"{name.replace('_', ' ')} {short(settings[name])}" for name in common] + [
        f"{name} {versions[name]}" for name in ("una_fast", "torch") if name in versions
    ]


@functools.cache
def templates() -> Environment:
    """The templates, which escape every text that is not Markup, with the functions that they call."""
    folder = FileSystemLoader(Path(__file__).parent)
    made = Environment(loader=folder, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    made.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    made.filters["heading"] = title
    made.globals |= {"colour": colour, "short": short, "median_speed": median_speed}
    return made


def short(setting: Any) -> str:
    """A setting in short form: of a path, its last part."""
    values = setting if isinstance(setting, list) else [setting]
    return ", ".join(Path(one).name if isinstance(one, str) else str(one) for one in values)


def median_speed(run: RunRecord) -> str:
    """The median of the sentences per second, or "-"."""
    return f"{statistics.median(step.sentences_per_second for step in run.steps):,.0f}" if run.steps else "-"
