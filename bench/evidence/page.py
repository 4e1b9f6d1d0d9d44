"""evidence.json -> the tables of docs/will-it-help.md, between its markers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.evidence.conditions import BASES, Condition, find_conditions
from bench.evidence.hardness import Hardness
from bench.report import table
from train.report.runs import Comparison, compare, title

Evidence = Mapping[str, Any]  # "conditions" of evidence.json


def seed_scores(conditions: Evidence, condition: Condition, task: str) -> dict[str, float]:
    """A task's score x 100 by seed; {} for a condition without runs."""
    seeds = conditions.get(condition.name, {}).get("seeds", {})
    return {seed: 100 * scores[task] for seed, scores in seeds.items() if task in scores}


def difference(conditions: Evidence, condition: Condition, task: str = "average") -> Comparison | None:
    """A condition against the same base without hard negatives."""
    without, with_it = (seed_scores(conditions, one, task) for one in (condition.reference, condition))
    return compare(without, with_it)


def summary_table(conditions: Evidence) -> str:
    """One row a condition that has pairs: STS average before, without, with, and their difference."""
    rows = []
    for condition in find_conditions(";".join(conditions)) if conditions else []:
        found = difference(conditions, condition)
        if condition != condition.reference and found is not None:
            before = conditions[condition.name]["before"].get("average")
            rows.append([
                f"{BASES[condition.base].title}; {condition.variation}",
                found.n,
                "" if before is None else f"{100 * before:.2f}",
                f"{found.without:.2f}",
                f"{found.with_it:.2f}",
                *cells(found),
            ])  # fmt: skip
    columns = ["encoder; setting", "seeds", "before", "without UNA", "with it", "difference", "95 % interval", "p"]
    return table(columns, rows)


def task_table(conditions: Evidence, condition: Condition) -> str:
    """One row a task: scores without and with, and their difference."""
    tasks = conditions[condition.name]["before"]
    rows = [
        [title(task), f"{found.without:.2f}", f"{found.with_it:.2f}", *cells(found)]
        for task in tasks
        if (found := difference(conditions, condition, task)) is not None
    ]
    return table(["task", "without UNA", "with it", "difference", "95 % interval", "p"], rows)


def hardness_table(found: Hardness) -> str:
    """One row an encoder: mean cosines of anchors with other sentences and with negatives."""
    columns = list(next(iter(found.values())))
    return table(
        ["cosine of anchors with", *columns],
        [[title, *(f"{values[column]:.2f}" for column in columns)] for title, values in found.items()],
    )


def sentence(conditions: Evidence, condition: Condition) -> str:
    """The comparison in one sentence, for README."""
    found = difference(conditions, condition)
    assert found is not None
    before = 100 * conditions[condition.name]["before"]["average"]
    return (
        f"STS average of {BASES[condition.base].title}, trained on {condition.n_sentences():,} sentences of Wikipedia "
        f"with {found.n} seeds: **{found.without:.2f} without UNA, {found.with_it:.2f} with it** (before training "
        f"{before:.2f}; difference {found.difference:+.2f}, 95 % interval {found.low:+.2f} to {found.high:+.2f})."
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
