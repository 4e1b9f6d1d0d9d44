"""Writes docs/will-it-help.md, its chart and its appendix, and a table of docs/near-misses.md from evidence.json."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from bench.evidence.chart import Row, draw
from bench.evidence.conditions import (
    AS_PAPER,
    BASES,
    FROM_SCRATCH_ARMS,
    GRID_BASE,
    QUESTIONS,
    SCALE,
    SENTENCES,
    STEPS,
    TUNED,
    TUNED_ARMS,
    TUNED_THERE,
    WIDE,
    WIDER,
    Condition,
    find_condition,
)
from bench.report import over_seeds, table, write_between_marks
from bench.script import DOCS
from train.report.runs import Comparison, compare, title
from una_fast.errors import InputError

Evidence = Mapping[str, Any]  # evidence.json
Pair = tuple[str, Condition, Condition]  # label, condition with hard negatives, condition to compare with
FIGURES = ("sentences", "seeds", "before", "without", "with", "difference", "95% interval")
NONE, UNA = TUNED_ARMS
OF_8192 = "UNA, settings tuned on 8,192"
PAPER = ", ".join(f"{name} {value}" for name, value in AS_PAPER.items())
SCRATCH_NONE, SCRATCH_UNA, SCRATCH_MINED, SCRATCH_LARGER, PAPER_NONE, PAPER_UNA = (
    f"{base}: {arm}, {TUNED_THERE}" for base, arm in FROM_SCRATCH_ARMS
)
PAIRS = (  # rows of the page, if both conditions have runs: label, condition, condition to compare with
    ("UNA, both tuned", SCRATCH_UNA, SCRATCH_NONE),
    ("UNA as in the paper, both tuned", PAPER_UNA, PAPER_NONE),
    ("mined negatives, both tuned", SCRATCH_MINED, SCRATCH_NONE),
    ("UNA, against batches of 128 without UNA, both tuned", SCRATCH_UNA, SCRATCH_LARGER),
    ("UNA, both tuned", UNA, NONE),
    *((OF_8192, f"{base}: una, {TUNED}", f"{base}: none, {TUNED}") for base in SCALE),
    (f"{OF_8192}, batches of 256", *(f"{WIDE}: {arm}, {TUNED}, {WIDER}" for arm in ("una", "none"))),
    ("UNA, both tuned", *(f"{WIDE}: {arm}, {TUNED_THERE}" for arm in ("una", "none"))),
    ("UNA, against twice the steps without UNA", UNA, f"{NONE}, max_steps 256"),
    ("UNA, against batches of 128 without UNA", UNA, f"{NONE}, batch_size 128"),
    ("UNA, default settings", f"{GRID_BASE}: una", f"{GRID_BASE}: none"),
    ("UNA as in the paper", f"{GRID_BASE}: una, {PAPER}", f"{GRID_BASE}: none"),
    ("UNA, against random words", UNA, f"{GRID_BASE}: una, words at random, {TUNED}"),
    ("UNA, against random replacements", UNA, f"{GRID_BASE}: una, replacements at random, {TUNED}"),
    ("mined negatives", f"{GRID_BASE}: mined, {TUNED}", NONE),
    (
        "mined negatives and UNA, against mined negatives",
        f"{GRID_BASE}: mined, and una, {TUNED}",
        f"{GRID_BASE}: mined, {TUNED}",
    ),
    ("UNA as in the paper", "minilm-cls: una", "minilm-cls: none"),
    ("UNA with the margin loss, against no training", "minilm-near: una", "minilm-near: none"),
)

NEAR_ROWS = {  # rows of docs/near-misses.md: label -> task
    "QQP, near-duplicates: AUC": "qqp_near",
    "... in a number": "qqp_near number",
    "... in polarity": "qqp_near polarity",
    "... in a name": "qqp_near name",
    "... recall at 5%": "qqp_near recall",
    "QQP, close pairs: AUC": "qqp_close",
    "CheckList, templates: AUC": "checklist",
    "PAWS, Wikipedia: AUC": "paws_wiki",
    "SICK, captions: AUC": "sick_auc",
    "SugarCrepe++: recall at 5%": "recall_at_5",
    "STS average": "average",
}
NEAR_COLUMNS = {  # its columns: label -> variation that is trained on questions
    "captions' recipe": "captions",
    "one word": "one word",
    "`--near-misses`": "near-misses",
}


PAGE, NEAR_MISS_PAGE = DOCS / "will-it-help.md", DOCS / "near-misses.md"
APPENDIX = DOCS / "appendix" / "evidence.md"
ABOUT_APPENDIX = """# All runs of "Will it help me?"

`python -m bench.evidence` writes this page from `bench/results/evidence.json`, which has the scores of every run.
[Will it help me?](../will-it-help.md) explains the settings. Scores are multiplied by 100. Differences are paired by
seed. Intervals are from Student's t distribution, and p is the p value of a paired t-test. "p, Holm" is corrected for
all comparisons of its table. The STS-B dev score of a run is the highest of its evaluations."""
CHART = "images/will-it-help.svg"  # next to the page
NEAR_MISSES, NEAR_RANDOM = (Condition("minilm-near", one) for one in ("una", "una, replacements at random"))
NEAR_BASES = (QUESTIONS, SENTENCES)  # STS is not what their settings are compared on
OF_BASES = {  # bases with their own table in the appendix, and the tasks that it shows
    "minilm-pairs": ("replace", "recall_at_5", "sick_auc", "STSBenchmark"),
    **dict.fromkeys(NEAR_BASES, (*NEAR_ROWS.values(), "checklist polarity", "qqp_near added", "replace_obj")),
}


def pairs_of(content: Evidence, names: Sequence[tuple[str, str, str]] = PAIRS) -> list[Pair]:
    """Return the pairs of `names` whose two conditions have runs with a common seed. names: as in PAIRS."""
    found = []
    for shown, *both in names:
        with suppress(InputError):  # no point of a tuned arm's grid was run
            condition, reference = (find_condition(name, content["conditions"], whole=False) for name in both)
            found.append((shown, condition, reference))
    return [pair for pair in found if difference(content, *pair[1:])]


def every_pair(content: Evidence) -> list[Pair]:
    """Return every condition with scores, except those of NEAR_BASES, paired with its reference."""
    found = [one for one in map(find_condition, content["conditions"]) if one.base not in NEAR_BASES]
    pairs = [(one.variation, one, one.reference) for one in found if one != one.reference]
    return [pair for pair in pairs if difference(content, *pair[1:])]


def step_pairs(content: Evidence) -> list[Pair]:
    """Pair UNA with each variation that replaces one of its steps, with the same settings and surface."""
    names = []
    for spelling, arm in itertools.product((f", {TUNED}", "", ", surface paper"), STEPS):
        with_it, without = (f"{GRID_BASE}: {one}{spelling}" for one in ("una", arm))
        names.append((f"UNA, against {arm.removeprefix('una, ')}{spelling}", with_it, without))
    return pairs_of(content, names)


def seed_scores(content: Evidence, condition: Condition, task: str) -> dict[str, float]:
    """Return a condition's scores x 100 on a task, by seed. The result is empty if there are no runs."""
    runs = content["conditions"].get(condition.name, {}).get("runs", {})
    return {seed: 100 * run["scores"][task] for seed, run in runs.items() if task in run.get("scores", {})}


def paired(
    content: Evidence, condition: Condition, reference: Condition, task: str = "average"
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the scores of the reference and of the condition on a task, by seed.

    An untrained reference has the same score for every seed.
    """
    with_it = seed_scores(content, condition, task)
    if reference.is_untrained:
        before = content["bases"].get(reference.base, {}).get("before", {})
        return (dict.fromkeys(with_it, 100 * before[task]) if task in before else {}), with_it
    return seed_scores(content, reference, task), with_it


def difference(content: Evidence, *names: Any) -> Comparison | None:
    """Compare the scores of two conditions, paired by seed; None without a common seed. names: as in `paired`."""
    return compare(*paired(content, *names))


def pair_table(content: Evidence, pairs: Sequence[Pair], brief: bool = False) -> str:
    """Return a table of the STS averages of pairs: before training, without and with negatives, and the difference.

    brief: whether to leave out the deviation and p.
    """
    found = [(pair, one) for pair in pairs if (one := difference(content, *pair[1:]))]
    adjusted = holm([one.p for _, one in found])
    columns = ["base", "compared", *FIGURES, *([] if brief else ["p", "p, Holm"])]
    rows = []
    for ((shown, condition, _), one), corrected in zip(found, adjusted, strict=True):
        before = content["bases"].get(condition.base, {}).get("before", {}).get("average", np.nan)
        apart = [f"{one.difference:+.2f}", cells(one)[1]] if brief else [*cells(one), shown_p(corrected)]
        start = [BASES[condition.base].title, shown, f"{condition.n_sentences():,}", one.n, f"{100 * before:.2f}"]
        rows.append([*start, f"{one.without:.2f}", f"{one.with_it:.2f}", *apart])
    return table(columns, rows)


def run_table(content: Evidence) -> str:
    """Return a table with one row per condition: number of seeds, mean of the best dev scores, mean STS average."""
    rows = []
    for one in map(find_condition, content["conditions"]):
        runs = content["conditions"][one.name]["runs"]
        dev = [100 * max(run["dev"].values()) for run in runs.values() if run["dev"]]
        scores = [*seed_scores(content, one, "average").values()]
        means = [f"{np.mean(found):.2f}" if found else "" for found in (dev, scores)]
        rows.append([BASES[one.base].title, one.variation, f"{one.n_sentences():,}", len(runs), *means])
    return table(["base", "setting", "sentences", "seeds", "STS-B dev", "STS average"], rows)


def task_table(content: Evidence, condition: Condition, reference: Condition) -> str:
    """Return a table with one row per task: the scores of reference and condition, and their difference."""
    rows = [
        [title(task), f"{found.without:.2f}", f"{found.with_it:.2f}", *cells(found)]
        for task in content["bases"][condition.base]["before"]
        if (found := difference(content, condition, reference, task)) is not None
    ]
    return table(["task", reference.variation, "with", *FIGURES[5:], "p"], rows)


def base_table(content: Evidence, base: str, tasks: Sequence[str]) -> str:
    """Return a table with one row per condition of a base: mean scores, and their differences from the reference."""
    conditions, before = content["conditions"], content["bases"][base]["before"]
    listed = [one for one in map(find_condition, conditions) if one.base == base]
    rows = [["before training", "", *(f"{100 * before[task]:.2f}" for task in tasks)]]
    for one in sorted(listed, key=lambda one: one != one.reference):
        found = [at for task in tasks if (at := difference(content, one, one.reference, task))]
        shown = [f"{at.with_it:.2f}" for at in found]
        if one != one.reference:
            apart = [f"{at.difference:+.2f}, {cells(at)[1]}".removesuffix(", ") for at in found]
            shown = [f"{score} ({text})" for score, text in zip(shown, apart, strict=True)]
        rows.append([one.variation, len(conditions[one.name]["runs"]), *shown])
    return table(["setting", "seeds", *map(title, tasks)], rows)


def near_table(content: Evidence) -> str:
    """Return the table of docs/near-misses.md: for each of NEAR_ROWS, scores before and after each training.

    The trainings are those of NEAR_COLUMNS that have runs.
    """
    base = QUESTIONS
    trained = {shown: Condition(base, variation) for shown, variation in NEAR_COLUMNS.items()}
    trained = {shown: one for shown, one in trained.items() if one.name in content["conditions"]}
    rows: list[list[Any]] = [["seeds", "", *(len(content["conditions"][one.name]["runs"]) for one in trained.values())]]
    for shown, task in NEAR_ROWS.items():
        row = [shown, f"{100 * content['bases'][base]['before'][task]:.1f}"]
        for one in trained.values():
            scores = [*seed_scores(content, one, task).values()]
            row.append(f"{np.mean(scores):.1f}{over_seeds(scores)}" if scores else "")
        rows.append(row)
    return table(["", "before", *trained], rows)


def cells(found: Comparison) -> list[str]:
    """Return three table cells for a comparison: difference ± deviation, interval, p."""
    if found.n == 1:
        return [f"{found.difference:+.2f}", "", ""]
    interval = f"{found.low:+.2f} to {found.high:+.2f}"
    return [f"{found.difference:+.2f} ± {found.deviation:.2f}", interval, shown_p(found.p)]


def shown_p(p: float) -> str:
    """Format a p value for a table."""
    return "" if np.isnan(p) else "< 0.01" if p < 0.01 else f"{p:.2f}"


def holm(values: Sequence[float]) -> np.ndarray:
    """Correct the p values of one table by Holm's step-down method.

    Args:
        values: p of each comparison, NaN for a comparison with one seed.

    Returns:
        The corrected p values, float64 (n_comparisons,). NaN stays NaN.
    """
    p = np.array(values, np.float64)
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known])]
    p[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(order), 0, -1)), 1)
    return p


def chart_row(content: Evidence, shown: str, condition: Condition, reference: Condition) -> Row:
    """Return the row of a pair in the chart."""
    without, with_it = paired(content, condition, reference)
    each = [with_it[seed] - without[seed] for seed in with_it if seed in without]
    found = compare(without, with_it)
    assert found  # `pairs_of` returns only such pairs
    return Row(BASES[condition.base].title, f"{shown} ({condition.n_sentences():,})", each, found)


def write_pages(content: Evidence) -> None:
    """Write the tables and the chart of evidence.json into the pages and the appendix, and print the first table."""
    pairs = pairs_of(content)
    first = pair_table(content, pairs, brief=True)
    draw([chart_row(content, *pair) for pair in pairs], PAGE.parent / CHART)
    write_between_marks(PAGE, [f"![The differences in the table, with intervals and seeds]({CHART})", first])
    parts = [ABOUT_APPENDIX, "## Every setting against none", pair_table(content, every_pair(content))]
    parts += ["## UNA's steps replaced by other rules", pair_table(content, step_pairs(content))]
    for shown, condition, reference in pairs:
        name = f"{BASES[condition.base].title}, {condition.n_sentences():,} sentences: {shown}"
        parts += [f"## By task: {name}", task_table(content, condition, reference)]
    if NEAR_MISSES.name in content["conditions"]:
        parts += ["## By task: near-misses, against random replacements"]
        parts += [task_table(content, NEAR_MISSES, NEAR_RANDOM)]
    for base, tasks in OF_BASES.items():
        if base in content["bases"]:
            parts += [f"## All settings: {BASES[base].title}", base_table(content, base, tasks)]
    parts += ["## All runs", run_table(content)]
    parts += [f"Failed: {name}: {reason}." for name, reason in content["failed"].items()]
    APPENDIX.parent.mkdir(exist_ok=True)
    APPENDIX.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    if QUESTIONS in content["bases"]:
        write_between_marks(NEAR_MISS_PAGE, [near_table(content)], "near")
    print(first)
