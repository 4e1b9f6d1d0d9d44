"""Groups of runs -> the tables of the page."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from train.report.baseline import Difference
from train.report.charts import colour
from train.report.records import RunRecord
from train.report.runs import Group, Spread, differing_settings, title


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """An HTML table. head: plain text; rows: cells that are HTML already."""
    top = "".join(f"<th scope='col'>{html.escape(name)}</th>" for name in head)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<div class='wide'><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"


def named(label: str, number: int) -> str:
    """A group's or run's name behind a disc of the group's colour."""
    return f"<i style='background:{colour(number)}'></i>{html.escape(label)}"


def value(spread: Spread) -> str:
    """Mean ± deviation, × 100."""
    text = f"{100 * spread.mean:.2f}"
    return text if math.isnan(spread.deviation) else f"{text} <small>± {100 * spread.deviation:.2f}</small>"


def difference(found: Difference) -> str:
    """A difference to the baseline, × 100, with the number of seeds that it is the mean of."""
    kind = "up" if found.mean > 0 else "down"
    spread = "" if math.isnan(found.deviation) else f" <small>± {100 * found.deviation:.2f}</small>"
    over = f"{found.n_pairs} seed{'s' if found.n_pairs > 1 else ''}" if found.n_pairs else "unpaired"
    return f"<span class='{kind}'>{100 * found.mean:+.2f}</span>{spread} <small>({over})</small>"


def scores_table(groups: Sequence[Group], names: Sequence[str], found: Sequence[Mapping[str, Difference]]) -> str:
    """Mean ± deviation of every score, the best in bold; below a group its differences to the baseline, if any."""
    spreads = [group.spreads() for group in groups]
    best = {name: max(spread[name].mean for spread in spreads if name in spread) for name in names}

    def cell(i: int, name: str) -> str:
        if name not in spreads[i]:
            return "-"
        strong = len(groups) > 1 and spreads[i][name].mean == best[name]
        return f"<span class='best'>{value(spreads[i][name])}</span>" if strong else value(spreads[i][name])

    rows = []
    for i, group in enumerate(groups):
        rows.append([named(group.label, i), str(len(group.runs)), *(cell(i, name) for name in names)])
        if found[i]:
            cells = [difference(found[i][name]) if name in found[i] else "-" for name in names]
            rows.append(["difference to the baseline", "", *cells])
    return table(["", "runs", *map(title, names)], rows)


def settings_table(groups: Sequence[Group]) -> str:
    """The settings by which the groups differ."""
    names = differing_settings([group.runs[0] for group in groups])
    if not names:
        return "<p class='none'>None but the seed and where the runs were made.</p>"
    rows = [
        [named(group.label, i), *(html.escape(short(group.runs[0].settings.get(name, "-"))) for name in names)]
        for i, group in enumerate(groups)
    ]
    return table(["", *names], rows)


def short(setting: Any, parts: int = 1) -> str:
    """A setting in short form: of a path, its last `parts` parts."""
    values = setting if isinstance(setting, list) else [setting]
    return ", ".join("/".join(Path(one).parts[-parts:]) if isinstance(one, str) else str(one) for one in values)


def runs_table(groups: Sequence[Group], names: Sequence[str]) -> str:
    """Every score of every run, its speed, and its run.json."""
    members = [(i, run) for i, group in enumerate(groups) for run in group.runs]
    rows = [
        [
            named(run.name, i),
            html.escape(str(run.seed)),
            *(f"{100 * run.scores[name]:.2f}" if name in run.scores else "-" for name in names),
            _speed(run),
        ]
        for i, run in members
    ]
    summaries = "".join(
        f"<details><summary>run.json of {html.escape(run.name)}</summary>"
        f"<pre>{html.escape(json.dumps(run.summary, indent=1, ensure_ascii=False))}</pre></details>"
        for _, run in members
    )
    return f"{table(['', 'seed', *map(title, names), 'sentences/s (median)'], rows)}<p></p>{summaries}"


def _speed(run: RunRecord) -> str:
    """The median of the sentences per second, or "-"."""
    speeds = sorted(step.sentences_per_second for step in run.steps if math.isfinite(step.sentences_per_second))
    return f"{speeds[len(speeds) // 2]:,.0f}" if speeds else "-"
