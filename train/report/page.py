"""Groups of runs -> one HTML page that needs no other file and no network, by the template page.html."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from plotly.offline import get_plotlyjs

from train.report.figures import figures
from train.report.runs import DEV, DEV_LAST, STS_AVERAGE, Group, differing_settings, kept_start, title
from train.report.table import difference_cell, mean_cell, score_table, short

MAIN_SETTINGS = ("model", "corpus", "batch_size", "max_length", "max_steps", "epochs", "learning_rate", "loss")


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
