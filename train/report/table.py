"""Groups of runs -> the table of scores and settings that the report, `--seeds` and `una-fast compare` show."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from train.report.runs import Comparison, Group, differing_settings, title


class Row(NamedTuple):
    """A row of the table: the number of its group, "run", "mean" (of the runs) or "difference", and its cells."""

    group: int
    kind: str
    cells: list[str]


def score_table(groups: Sequence[Group], baseline: Group | None = None) -> tuple[list[str], list[Row]]:
    """The head and the rows of the table; scores × 100.

    Columns are a name, the seed or the number of runs, all scores, and the settings in which groups differ. Rows are a
    group's runs, their mean ± deviation, and the differences to the baseline, with 95 % intervals.
    """
    settings = differing_settings(groups)
    names = list(dict.fromkeys(name for group in groups for run in group.runs for name in run.scores))
    rows = []
    for i, group in enumerate(groups):
        lines = [("run", run.name, f"seed {run.seed}", Group("", [run]).compared()) for run in group.runs]
        label = f"{len(lines)} runs" if len(lines) > 1 else lines.pop()[2]
        lines.append(("mean", group.label, label, group.compared()))
        if baseline and group is not baseline and (pairs := group.compared(baseline)):
            lines.append(("difference", f"difference to {baseline.label}", "", pairs))
        shown = [short(group.runs[0].settings.get(name, "-")) for name in settings]
        for kind, name, about, pairs in lines:
            cells = [_cell(kind, pairs[score]) if score in pairs else "-" for score in names]
            rows.append(Row(i, kind, [name, about, *cells, *(shown if kind == "mean" else [""] * len(shown))]))
    return ["", "runs", *map(title, names), *settings], rows


def _cell(kind: str, pair: Comparison) -> str:
    if kind == "difference":
        interval = f" ({100 * pair.low:+.2f} to {100 * pair.high:+.2f})" if pair.n > 1 else ""
        return f"{100 * pair.difference:+.2f}{interval}"
    return f"{100 * pair.with_it:.2f}" + (f" ± {100 * pair.deviation:.2f}" if pair.n > 1 else "")


def short(setting: Any) -> str:
    """A setting in short form: of a path, its last part."""
    values = setting if isinstance(setting, list) else [setting]
    return ", ".join(Path(value).name if isinstance(value, str) else str(value) for value in values)
