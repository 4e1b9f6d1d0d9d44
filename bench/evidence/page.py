"""evidence.json -> the tables of docs/will-it-help.md, between its markers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bench.evidence.conditions import BASES, Condition, find_conditions
from bench.evidence.hardness import Hardness
from bench.report import table
from train.report.runs import Comparison, compare, title

Evidence = Mapping[str, Any]  # "conditions" of evidence.json
MAIN, OTHER_SENTENCES = "una", "other sentences"  # the variation that is also compared with its control
FIGURES = ("seeds", "before", "without UNA", "with it", "difference", "95 % interval", "p")


def seed_scores(conditions: Evidence, condition: Condition, task: str) -> dict[str, float]:
    """A task's score x 100 by seed; {} for a condition without runs."""
    seeds = conditions.get(condition.name, {}).get("seeds", {})
    return {seed: 100 * scores[task] for seed, scores in seeds.items() if task in scores}


def difference(
    conditions: Evidence, condition: Condition, task: str = "average", reference: Condition | None = None
) -> Comparison | None:
    """A condition against another, by default the same base without hard negatives."""
    without, with_it = (seed_scores(conditions, one, task) for one in (reference or condition.reference, condition))
    return compare(without, with_it)


def summary_table(conditions: Evidence) -> str:
    """One row a condition and what it is compared with: STS average before, without, with, and their difference."""
    rows = []
    for condition in find_conditions(";".join(conditions)) if conditions else []:
        controls = [Condition(condition.base, OTHER_SENTENCES)] if condition.variation == MAIN else []
        for reference in (condition.reference, *controls):
            found = difference(conditions, condition, reference=reference)
            if condition != reference and found is not None:
                title = f"{BASES[condition.base].title}; {condition.variation}"
                rows.append([title, reference.variation, *figures(conditions, condition, found)])
    return table(["encoder; setting", "against", *FIGURES], rows)


def regimes_table(conditions: Evidence, main: Sequence[Condition]) -> str:
    """One row for each of `main` that has pairs, for README."""
    rows = []
    for condition in main:
        if found := difference(conditions, condition):
            title = BASES[condition.base].title
            rows.append([title, f"{condition.n_sentences():,}", *figures(conditions, condition, found)])
    return table(["trained from", "sentences", *FIGURES], rows)


def figures(conditions: Evidence, condition: Condition, found: Comparison) -> list[Any]:
    """The columns FIGURES of a comparison."""
    before = conditions[condition.name]["before"].get("average")
    shown = "" if before is None else f"{100 * before:.2f}"
    return [found.n, shown, f"{found.without:.2f}", f"{found.with_it:.2f}", *cells(found)]


def task_table(conditions: Evidence, condition: Condition, reference: Condition | None = None) -> str:
    """One row a task: scores without and with, and their difference. reference: in place of no hard negatives."""
    tasks = conditions[condition.name]["before"]
    rows = [
        [title(task), f"{found.without:.2f}", f"{found.with_it:.2f}", *cells(found)]
        for task in tasks
        if (found := difference(conditions, condition, task, reference)) is not None
    ]
    return table(["task", reference.variation if reference else FIGURES[2], *FIGURES[3:]], rows)


def base_table(conditions: Evidence, base: str, tasks: Sequence[str]) -> str:
    """One row a setting of a base: its mean scores, and how far they lie from the scores without hard negatives."""
    listed = find_conditions(";".join(name for name in conditions if name.startswith(f"{base}:")))
    rows = []
    for one in sorted(listed, key=lambda one: one != one.reference):
        found = [difference(conditions, one, task) for task in tasks]
        apart = [f"{at.difference:+.2f}, {cells(at)[1]}".removesuffix(", ") for at in found if at]
        shown = [f"{at.with_it:.2f} ({text})" for at, text in zip(filter(None, found), apart, strict=True)]
        if one == one.reference:
            shown = [f"{at.with_it:.2f}" for at in found if at]
        rows.append([one.variation, len(conditions[one.name]["seeds"]), *shown])
    before = conditions[listed[0].name]["before"]
    rows.insert(0, ["before training", "", *(f"{100 * before[task]:.2f}" for task in tasks)])
    return table(["setting", "seeds", *map(title, tasks)], rows)


def hardness_table(found: Hardness) -> str:
    """One row an encoder: mean cosines of anchors with other sentences and with negatives."""
    columns = list(next(iter(found.values())))
    return table(
        ["cosine of anchors with", *columns],
        [[title, *(f"{values[column]:.2f}" for column in columns)] for title, values in found.items()],
    )


def cells(found: Comparison) -> list[str]:
    """Difference, interval and p of a comparison as they stand in a table."""
    if found.n == 1:
        return [f"{found.difference:+.2f}", "", ""]
    interval = f"{found.low:+.2f} to {found.high:+.2f}"
    return [
        f"{found.difference:+.2f} ± {found.deviation:.2f}",
        interval,
        "< 0.01" if found.p < 0.01 else f"{found.p:.2f}",
    ]
