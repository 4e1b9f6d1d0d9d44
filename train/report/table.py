"""Groups of runs -> the table of scores and settings that the report, `--seeds` and `una-fast compare` show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from train.report.runs import Comparison, Group, differing_settings, holm, title


class Row(NamedTuple):
    """A row of the table: the number of its group, "run", "mean" (of the runs) or "difference", and its cells."""

    group: int
    kind: str
    cells: list[str]


def score_table(groups: Sequence[Group], baseline: Group | None = None) -> tuple[list[str], list[Row]]:
    """The head and the rows of the table; scores × 100.

    Columns are a name, the seed or the number of runs, all scores, and the settings in which groups differ. Rows are a
    group's runs, their mean ± deviation, and the differences to the baseline, with 95 % intervals and Holm's p.
    """
    settings = differing_settings(groups)
    names = list(dict.fromkeys(name for group in groups for name in group.by_seed()))
    pairs = [group.compared(baseline) if baseline and group is not baseline else {} for group in groups]
    corrected = iter(holm([pair.p for of in pairs for pair in of.values()]))
    rows = []

    def add(i: int, kind: str, label: str, runs: str, scores: dict[str, str], shown: Sequence[str] = ()) -> None:
        values = [scores.get(name, "-") for name in names]
        rows.append(Row(i, kind, [label, runs, *values, *(shown or [""] * len(settings))]))

    for i, (group, of) in enumerate(zip(groups, pairs, strict=True)):
        several = len(group.runs) > 1
        for run in group.runs if several else ():
            scores = {name: f"{100 * score:.2f}" for name, score in run.scores.items()}
            add(i, "run", run.name, f"seed {run.seed}", scores)
        count = f"{len(group.runs)} runs" if several else f"seed {group.runs[0].seed}"
        shown = [short(group.runs[0].settings.get(name, "-")) for name in settings]
        add(i, "mean", group.label, count, {name: mean_cell(mean) for name, mean in group.compared().items()}, shown)
        if baseline and of:
            differences = {name: difference_cell(pair, next(corrected)) for name, pair in of.items()}
            add(i, "difference", f"difference to {baseline.label}", "", differences)
    return ["", "runs", *map(title, names), *settings], rows


def mean_cell(score: Comparison) -> str:
    """The mean of a score over seeds, ± its deviation."""
    return f"{100 * score.with_it:.2f}" + (f" ± {100 * score.deviation:.2f}" if score.n > 1 else "")


def difference_cell(pair: Comparison, p: float = math.nan) -> str:
    """A mean difference, its 95 % interval in brackets, and Holm's p where there is one."""
    interval = f" ({100 * pair.low:+.2f} to {100 * pair.high:+.2f})" if pair.n > 1 else ""
    return f"{100 * pair.difference:+.2f}{interval}" + ("" if math.isnan(p) else f", p {p:.2f}")


def short(setting: Any) -> str:
    """A setting in short form: of a path, its last part."""
    values = setting if isinstance(setting, list) else [setting]
    return ", ".join(Path(value).name if isinstance(value, str) else str(value) for value in values)
