"""Groups of runs -> one HTML page that needs no other file and no network, by the template page.html."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from plotly.offline import get_plotlyjs

from train.report.figures import colour, curve_figures
from train.report.records import STS_AVERAGE, RunRecord, mapping
from train.report.runs import (
    Group,
    differences,
    differing_settings,
    groups_with_baseline,
    kept_start,
    score_names,
    title,
)
from train.report.samples import samples_or_reason

MAIN_SCORES = (STS_AVERAGE, "stsb_dev")  # large at the top: the first that all groups have
MAIN_SETTINGS = ("model", "corpus", "batch_size", "max_length", "max_steps", "epochs", "learning_rate", "loss")


def make_page(
    runs: Sequence[RunRecord],
    n_samples: int = 6,
    baseline: Path | None = None,
    notes: list[str] | None = None,
) -> str:
    """The whole page, as HTML.

    n_samples: negatives shown of each group.
    baseline: the folder of the runs that the others are compared with.
    notes: sentences about what was left out so far; sentences about files of the runs are added.

    Raises:
        InputError: the baseline holds no run or runs of several settings.
    """
    said = [] if notes is None else notes
    groups, marked = groups_with_baseline(runs, baseline, said)
    members = [(i, run) for i, group in enumerate(groups) for run in group.runs]
    said += [note for _, run in members for note in run.notes]
    parts = [_part(i, group, marked, n_samples) for i, group in enumerate(groups)]
    names, spreads = score_names(groups), [part["spreads"] for part in parts]
    template = templates().get_template("page.html")
    return template.render(
        name=_name(groups),
        facts=_common_facts([run for _, run in members]),
        main=next((name for name in MAIN_SCORES if all(name in one for one in spreads)), ""),
        notes=dict.fromkeys(said),
        parts=parts,
        names=names,
        best={name: max(one[name].mean for one in spreads if name in one) for name in names},
        kept_start=kept_start([run for _, run in members]),
        paired=any(part["differences"] for part in parts),
        curves=curve_figures(groups),
        differing=differing_settings([group.runs[0] for group in groups]),
        members=members,
        plotly=get_plotlyjs(),
    )


def _part(i: int, group: Group, baseline: Group | None, n_samples: int) -> dict[str, Any]:
    """What the template shows of group i."""
    return {
        "i": i,
        "group": group,
        "is_baseline": group is baseline,
        "spreads": group.spreads(),
        "differences": differences(group, baseline) if baseline and group is not baseline else {},
        "samples": samples_or_reason(group.runs[0], n_samples),
    }


def _name(groups: Sequence[Group]) -> str:
    n_runs = sum(len(group.runs) for group in groups)
    if n_runs == 1:
        return f"Training run {groups[0].label}"
    return f"{n_runs} training runs" + (f" in {len(groups)} settings" if len(groups) > 1 else f": {groups[0].label}")


def _common_facts(runs: Sequence[RunRecord]) -> list[str]:
    """The settings that all runs have in common, and versions if they are recorded."""
    differing = differing_settings(runs)
    settings = {name: runs[0].settings.get(name) for name in MAIN_SETTINGS if name not in differing}
    shared = [
        f"{name.replace('_', ' ')} {short(setting, parts=2 if name == 'model' else 1)}"
        for name, setting in settings.items()
        if setting not in (None, "", [])
    ]
    versions = mapping(runs[0].summary.get("versions", {}), "versions", [])
    shared += [f"{name} {versions[name]}" for name in ("una_fast", "torch") if str(versions.get(name))[0].isdigit()]
    return shared


@functools.cache
def templates() -> Environment:
    """The templates, which escape every text that is not Markup, with the functions that they call."""
    folder = FileSystemLoader(Path(__file__).parent)
    made = Environment(loader=folder, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    made.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    made.filters |= {"hundredfold": hundredfold, "heading": title}
    made.globals |= {"colour": colour, "short": short, "median_speed": median_speed}
    return made


def hundredfold(value: float, sign: str = "") -> str:
    """A score × 100; sign: "+" shows it for positive numbers too."""
    return f"{100 * value:{sign}.2f}"


def short(setting: Any, parts: int = 1) -> str:
    """A setting in short form: of a path, its last `parts` parts."""
    values = setting if isinstance(setting, list) else [setting]
    return ", ".join("/".join(Path(one).parts[-parts:]) if isinstance(one, str) else str(one) for one in values)


def median_speed(run: RunRecord) -> str:
    """The median of the sentences per second, or "-"."""
    speeds = sorted(step.sentences_per_second for step in run.steps if math.isfinite(step.sentences_per_second))
    return f"{speeds[len(speeds) // 2]:,.0f}" if speeds else "-"
