"""Is an encoder better with UNA than without? ``python -m bench.evidence --data FOLDER --output FOLDER``.

Trains every condition with every seed on the same sentences in the same order, scores it on the seven STS tasks, and
compares each condition with the same base without hard negatives, paired by seed. A command that was stopped goes on;
what is done stays. The results go into results/evidence.json and, as tables and a chart, into docs/will-it-help.md.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
from pathlib import Path
from typing import Any

from bench.evidence.chart import draw
from bench.evidence.conditions import BASES, SEEDS, Condition, find_conditions
from bench.evidence.corpora import corpus_of
from bench.evidence.hardness import Hardness, hardness
from bench.evidence.page import base_table, difference, hardness_table, regimes_table, summary_table, task_table
from bench.evidence.runs import Workplace, result_of, run_all, scores_before
from bench.report import EVIDENCE, README, write_between_marks
from train.config.command import run_command, whole_numbers
from train.record.folder import OutputFolder, is_own, write_file
from una_fast.errors import InputError

PAGE = Path(__file__).parents[2] / "docs" / "will-it-help.md"
NEAR_MISS_PAGE = PAGE.with_name("near-misses.md")
CHART = "images/will-it-help.svg"  # beside the page
DEFAULT = "minilm-mlm: none; minilm-mlm: other sentences; minilm-mlm: una"
REGIMES = find_conditions("minilm-mlm: una; minilm-cls: una")  # the rows of README
MAIN_PAIR = REGIMES[0]  # shown by task
NEAR_MISSES, RANDOM = find_conditions("minilm-near: una; minilm-near: una, replacements at random")  # of that page
PAIRED, PAIRED_TASKS = "minilm-pairs", ("replace", "recall_at_5", "sick_auc", "STSBenchmark")  # of that page too
COMMAND = "bench.evidence"
TOLERANCE = 1e-3  # of a repeated score


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.evidence", description=(__doc__ or "").splitlines()[0])
    add = parser.add_argument
    add("--data", type=Path, default=os.environ.get("UNA_FAST_DATA"), help="folder with corpora/ and senteval/")
    add("--output", type=Path, required=True, help="folder of the runs")
    add("--conditions", default=DEFAULT, metavar="'BASE: VARIATION; ...'", help=f"default: {DEFAULT!r}")
    add("--seeds", type=whole_numbers, default=SEEDS, metavar="N,N,...", help=f"default: {','.join(map(str, SEEDS))}")
    add("--jobs", type=int, default=1, metavar="N", help="runs at a time, each on its share of the cores [1]")
    add("--check", action="store_true", help="write nothing: compare the scores with those of evidence.json")
    options = parser.parse_args()
    return run_command(lambda: carry_out(options), "evidence")


def carry_out(options: argparse.Namespace) -> int:
    """Make the runs, then keep or compare their scores."""
    if options.data is None:
        raise InputError("--data: name the folder that holds corpora/ and senteval/, or set UNA_FAST_DATA")
    conditions, seeds = find_conditions(options.conditions), list(options.seeds)
    if options.check:  # before any run
        for condition, seed in itertools.product(conditions, seeds):
            committed(condition, str(seed))
    with OutputFolder(options.output, COMMAND, resume=is_own(options.output, COMMAND)):
        return compare_all(options, conditions, seeds)


def compare_all(options: argparse.Namespace, conditions: list[Condition], seeds: list[int]) -> int:
    """Make the runs that are missing, and keep or compare all scores."""
    place = Workplace(options.data, options.output, corpus_of(options.data), options.jobs)
    for base in dict.fromkeys(condition.base for condition in conditions):
        place.base(base)
    missing = [
        (condition, seed)  # seed by seed, so that pairs are there early
        for seed in seeds
        for condition in conditions
        if not condition.is_untrained and (options.check or str(seed) not in kept_seeds(condition))
    ]
    failed = run_all(place, missing, lambda line: print(line, flush=True))
    found = {condition: results(place, condition, seeds) for condition in conditions}
    code = compared(found) if options.check else kept(found, hardness(place, MAIN_PAIR) if MAIN_PAIR in found else {})
    for line in failed:
        print(f"error: {line}", file=sys.stderr)
    return 1 if failed else code


def results(place: Workplace, condition: Condition, seeds: list[int]) -> dict[str, Any]:
    """A condition as evidence.json keeps it."""
    before = scores_before(place, condition.base)
    if condition.is_untrained:
        same = {str(seed): before for seed in seeds}
        return {"settings": condition.settings(), "before": before, "seeds": same, "dev": {}, "cosines": {}, "run": {}}
    done = {str(seed): result for seed in seeds if (result := result_of(place, condition, seed)) is not None}
    parts = {name: {seed: result[name] for seed, result in done.items()} for name in ("dev", "cosines", "run")}
    scores = {seed: result["scores"] for seed, result in done.items()}
    return {"settings": condition.settings(), "before": before, "seeds": scores, **parts}


def kept(found: dict[Condition, dict[str, Any]], cosines: Hardness) -> int:
    """Add the results to evidence.json, in place of the same seeds of before, and write the page's tables."""
    content = read_evidence() | ({"hardness": cosines} if cosines else {})
    for condition, result in found.items():
        earlier = content["conditions"].get(condition.name)
        if earlier and earlier["settings"] == result["settings"]:
            for part in ("seeds", "dev", "cosines", "run"):
                result[part] = {**earlier[part], **result[part]}
        if result["seeds"]:
            content["conditions"][condition.name] = result
    write_file(EVIDENCE, (json.dumps(content, indent=1) + "\n").encode())
    write_page(content)
    return 0


def write_page(content: dict[str, Any]) -> None:
    """Put tables and chart of evidence.json into the page, two rows into README, and print the tables."""
    conditions = content["conditions"]
    parts = [summary_table(conditions)]
    if difference(conditions, MAIN_PAIR):
        parts += [f"By task, for {BASES[MAIN_PAIR.base].title}:", task_table(conditions, MAIN_PAIR)]
        parts += ["How near the encoders put negatives to their anchors:", hardness_table(content["hardness"])]
        draw(conditions, MAIN_PAIR, PAGE.parent / CHART)
        write_between_marks(README, [regimes_table(conditions, REGIMES)], "evidence")
    if difference(conditions, NEAR_MISSES, "replace"):
        tables = [task_table(conditions, NEAR_MISSES)]
        if difference(conditions, NEAR_MISSES, "replace", RANDOM):
            tables += [
                "Against any word of the corpus in the replacement's place:",
                task_table(conditions, NEAR_MISSES, RANDOM),
            ]
        write_between_marks(NEAR_MISS_PAGE, tables, "training")
    if f"{PAIRED}: none" in conditions:
        write_between_marks(NEAR_MISS_PAGE, [base_table(conditions, PAIRED, PAIRED_TASKS)], "pairs")
    print("\n\n".join(parts))
    if difference(conditions, MAIN_PAIR):
        parts.append(f"![Differences by task and seed, dev scores and cosines over the steps]({CHART})")
    write_between_marks(PAGE, parts)


def kept_seeds(condition: Condition) -> dict[str, Any]:
    """The scores of evidence.json by seed, if they were made with the condition's settings of today."""
    earlier = read_evidence()["conditions"].get(condition.name, {})
    return earlier["seeds"] if earlier.get("settings") == condition.settings() else {}


def compared(found: dict[Condition, dict[str, Any]]) -> int:
    """Say how far repeated scores lie from the committed ones; 1 if any is further than TOLERANCE."""
    code = 0
    for condition, result in found.items():
        for seed, scores in result["seeds"].items():
            earlier = committed(condition, seed)
            furthest = max(abs(scores[task] - earlier[task]) for task in earlier)
            code |= furthest > TOLERANCE
            print(f"{condition.name}, seed {seed}: {furthest:.6f} from the committed scores at most")
    return int(code)


def committed(condition: Condition, seed: str) -> dict[str, float]:
    """The scores of evidence.json for a seed. Raises InputError if it has none."""
    seeds = read_evidence()["conditions"].get(condition.name, {}).get("seeds", {})
    if seed not in seeds:
        raise InputError(f"{EVIDENCE}: holds no seed {seed} of {condition.name}: --check compares seeds that it holds")
    return seeds[seed]


def read_evidence() -> dict[str, Any]:
    """The committed results."""
    return json.loads(EVIDENCE.read_text(encoding="utf-8")) if EVIDENCE.is_file() else {"conditions": {}}


if __name__ == "__main__":
    sys.exit(main())
