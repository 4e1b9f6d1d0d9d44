"""evidence.json -> the tables of docs/will-it-help.md, between its markers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bench.evidence.conditions import (
    ARMS,
    BASES,
    GRID_BASE,
    SCALE,
    STEPS,
    TUNED,
    TUNED_ARMS,
    TUNED_THERE,
    WIDE,
    WIDER,
    Condition,
    dev_score,
    find_conditions,
    grid,
)
from bench.report import table
from train.report.runs import Comparison, compare, title
from una_fast.errors import InputError

Evidence = Mapping[str, Any]  # evidence.json
Pair = tuple[str, Condition, Condition]  # title, with, without
MOST_UNCORRECTED = 10  # comparisons; of more, one below p = 0.05 is to be expected by chance
FIGURES = ("seeds", "before", "without UNA", "with it", "difference", "95 % interval", "p")
PAIRS = (  # what a reader sees first: title, with, without
    ("a language model, both arms tuned on dev", TUNED_ARMS[1], TUNED_ARMS[0]),
    ("a language model, tuned, 2x the steps without", TUNED_ARMS[1], f"{TUNED_ARMS[0]}, max_steps 256"),
    ("a language model, tuned, batches of 128 without", TUNED_ARMS[1], f"{TUNED_ARMS[0]}, batch_size 128"),
    ("a language model, the defaults", "minilm-mlm: una", "minilm-mlm: none"),
    ("the packaged MiniLM, [CLS], the paper's settings", "minilm-cls: una", "minilm-cls: none"),
    ("the packaged MiniLM, near-misses", "minilm-near: una", "minilm-near: none"),
)


def pairs_of(content: Evidence, names: Sequence[tuple[str, str, str]] = PAIRS) -> list[Pair]:
    """The pairs of `names` that have runs of the same seeds."""
    found = []
    for shown, *both in names:
        try:
            condition, reference = find_conditions(";".join(both), content["conditions"])
        except InputError:  # the grid of a tuned arm is not run
            continue
        if difference(content, condition, reference):
            found.append((shown, condition, reference))
    return found


def seed_scores(content: Evidence, condition: Condition, task: str) -> dict[str, float]:
    """A task's score x 100 by seed; {} for a condition without runs."""
    runs = content["conditions"].get(condition.name, {}).get("runs", {})
    return {seed: 100 * run["scores"][task] for seed, run in runs.items() if task in run.get("scores", {})}


def difference(
    content: Evidence, condition: Condition, reference: Condition, task: str = "average"
) -> Comparison | None:
    """A condition against another, paired by seed; an encoder that is not trained has the same scores for any seed."""
    with_it = seed_scores(content, condition, task)
    if reference.is_untrained:
        before = content["bases"].get(reference.base, {}).get("before", {})
        return compare(dict.fromkeys(with_it, 100 * before[task]), with_it) if task in before else None
    return compare(seed_scores(content, reference, task), with_it)


def pair_table(content: Evidence, pairs: Sequence[Pair], heading: str) -> str:
    """One row a pair: STS average before, without, with, and their difference; Holm's p where there are many."""
    found = [difference(content, condition, reference) for _, condition, reference in pairs]
    adjusted = holm([one.p if one else np.nan for one in found])
    many = not np.isnan(adjusted).all()
    rows = []
    for number, ((shown, condition, _), one) in enumerate(zip(pairs, found, strict=True)):
        if one:
            before = content["bases"].get(condition.base, {}).get("before", {}).get("average")
            start = "" if before is None else f"{100 * before:.2f}"
            more = [shown_p(adjusted[number])] if many else []
            rows.append([shown, one.n, start, f"{one.without:.2f}", f"{one.with_it:.2f}", *cells(one), *more])
    return table([heading, *FIGURES, *(["p, Holm"] if many else [])], rows)


def every_pair(content: Evidence) -> list[Pair]:
    """Every condition with scores, against no hard negatives with the same base and options of the training."""
    found = find_conditions(";".join(content["conditions"])) if content["conditions"] else []
    return [
        (f"{BASES[one.base].title}; {one.variation}", one, one.reference)
        for one in found
        if one != one.reference and difference(content, one, one.reference)
    ]


def step_pairs(content: Evidence) -> list[Pair]:
    """UNA against what takes the place of each of its steps, at the same settings and spelling."""
    names = [
        (f"{arm.removeprefix('una, ')}{spelling}", f"minilm-mlm: una{spelling}", f"minilm-mlm: {arm}{spelling}")
        for spelling in (f", {TUNED}", "", ", surface paper")
        for arm in STEPS
    ]
    return pairs_of(content, names)


def scale_pairs(content: Evidence) -> list[Pair]:
    """The tuned arms by number of sentences, fewest first; then with batches of 256, and tuned at that size."""
    sizes = [(Condition(base, "none").n_sentences(), base) for base in (GRID_BASE, *SCALE)]
    names = [(f"{n:,} sentences", f"{base}: una, {TUNED}", f"{base}: none, {TUNED}") for n, base in sizes]
    wide = [(f"{shown}, batches of 256", *(f"{one}, {WIDER}" for one in both)) for shown, *both in names]
    again = [(shown, *(one.replace(TUNED, TUNED_THERE) for one in both)) for shown, *both in names if WIDE in both[0]]
    there = [(f"{shown}, {TUNED_THERE}", *both) for shown, *both in again]
    return pairs_of(content, [*names, *wide, *there])


def grid_table(content: Evidence, base: str = GRID_BASE) -> str:
    """One row a point of the grid of a base that has a dev score for an arm: those scores; "" where it has none."""
    rows: dict[str, dict[str, str]] = {}
    for arm in ARMS:
        for one in grid(arm, base):
            if (score := dev_score(content["conditions"].get(one.name, {}))) is not None:
                shown = one.variation.removeprefix(arm).removeprefix(", ") or "the defaults"
                rows.setdefault(shown, {})[arm] = f"{100 * score:.2f}"
    cells = [[shown, *(scores.get(arm, "") for arm in ARMS)] for shown, scores in rows.items()]
    return table(["setting", *(f"{arm}, STS-B dev" for arm in ARMS)], cells) if cells else ""


def task_table(content: Evidence, condition: Condition, reference: Condition) -> str:
    """One row a task: scores without and with, and their difference."""
    rows = [
        [title(task), f"{found.without:.2f}", f"{found.with_it:.2f}", *cells(found)]
        for task in content["bases"][condition.base]["before"]
        if (found := difference(content, condition, reference, task)) is not None
    ]
    return table(["task", reference.variation, *FIGURES[3:]], rows)


def base_table(content: Evidence, base: str, tasks: Sequence[str]) -> str:
    """One row a setting of a base: its mean scores, and how far they lie from the scores without hard negatives."""
    conditions, before = content["conditions"], content["bases"][base]["before"]
    listed = find_conditions(";".join(name for name in conditions if name.startswith(f"{base}:")))
    rows = [["before training", "", *(f"{100 * before[task]:.2f}" for task in tasks)]]
    for one in sorted(listed, key=lambda one: one != one.reference):
        found = [at for task in tasks if (at := difference(content, one, one.reference, task))]
        shown = [f"{at.with_it:.2f}" for at in found]
        if one != one.reference:
            apart = [f"{at.difference:+.2f}, {cells(at)[1]}".removesuffix(", ") for at in found]
            shown = [f"{score} ({text})" for score, text in zip(shown, apart, strict=True)]
        rows.append([one.variation, len(conditions[one.name]["runs"]), *shown])
    return table(["setting", "seeds", *map(title, tasks)], rows)


def cells(found: Comparison) -> list[str]:
    """Difference, interval and p of a comparison as they stand in a table."""
    if found.n == 1:
        return [f"{found.difference:+.2f}", "", ""]
    interval = f"{found.low:+.2f} to {found.high:+.2f}"
    return [f"{found.difference:+.2f} ± {found.deviation:.2f}", interval, shown_p(found.p)]


def shown_p(p: float) -> str:
    """A p value as it stands in a table."""
    return "" if np.isnan(p) else "< 0.01" if p < 0.01 else f"{p:.2f}"


def holm(values: Sequence[float]) -> np.ndarray:
    """The p values of one table as Holm's step-down method corrects them, where the table has more than ten.

    Args:
        values: p of each comparison; NaN of one with one seed.

    Returns:
        float64 (n,); NaN of one with one seed, and of all where there are no more than ten.
    """
    p = np.array(values, np.float64)
    known = np.flatnonzero(~np.isnan(p))
    if len(known) <= MOST_UNCORRECTED:
        return np.full(len(p), np.nan)
    order = known[np.argsort(p[known])]
    p[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(order), 0, -1)), 1)
    return p
