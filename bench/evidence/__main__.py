"""Is an encoder better with UNA than without? ``python -m bench.evidence --data FOLDER --output FOLDER``.

Trains every condition with every seed on the same sentences in the same order, and scores it on the seven STS tasks.
The settings of the first comparison are tuned on STS-B dev only. Each finished run is added to results/evidence.json at
once; after a stop, the same command continues. docs/will-it-help.md and its appendix show these results.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
from pathlib import Path

from bench.evidence.bases import digest
from bench.evidence.chart import draw
from bench.evidence.conditions import BASES, QUESTIONS, SENTENCES, STAGES, Condition, Stage, find_conditions
from bench.evidence.corpora import corpus_of
from bench.evidence.page import (
    NEAR_ROWS,
    Evidence,
    base_table,
    every_pair,
    near_table,
    pair_table,
    pairs_of,
    run_table,
    step_pairs,
    task_table,
)
from bench.evidence.results import TOLERANCE, committed, furthest, is_kept, keep, keep_base, keep_failure, read_evidence
from bench.evidence.runs import Workplace, machine_of, result_of, run_all, scores_before
from bench.report import write_between_marks
from train.record.folder import is_own, output_folder
from una_fast.command import run_command
from una_fast.errors import InputError

COMMAND = "bench.evidence"
PAGE = Path(__file__).parents[2] / "docs" / "will-it-help.md"
NEAR_MISS_PAGE = PAGE.with_name("near-misses.md")
APPENDIX = PAGE.parent / "appendix" / "evidence.md"
ABOUT_APPENDIX = """# All runs of "Will it help me?"

`python -m bench.evidence` writes this page from `bench/results/evidence.json`, which has the scores of every run.
[Will it help me?](../will-it-help.md) explains the settings. Scores are multiplied by 100. Differences are paired by
seed. Intervals are from Student's t distribution, and p is the p value of a paired t-test. "p, Holm" is corrected for
all comparisons of its table. The STS-B dev score of a run is the highest of its evaluations."""
CHART = "images/will-it-help.svg"  # next to the page
NEAR_MISSES, NEAR_RANDOM = find_conditions("minilm-near: una; minilm-near: una, replacements at random")
NEAR_BASES = (QUESTIONS, SENTENCES)  # STS is not what their settings are compared on
OF_BASES = {  # bases with their own table in the appendix, and the tasks that it shows
    "minilm-pairs": ("replace", "recall_at_5", "sick_auc", "STSBenchmark"),
    **dict.fromkeys(NEAR_BASES, (*NEAR_ROWS.values(), "checklist polarity", "qqp_near added", "replace_obj")),
}


def numbers(text: str) -> tuple[int, ...]:
    """Parse numbers such as "42,0,1"."""
    return tuple(map(int, text.split(",")))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.evidence", description=(__doc__ or "").splitlines()[0])
    add = parser.add_argument
    add("--data", type=Path, default=os.environ.get("UNA_FAST_DATA"), help="folder with corpora/ and senteval/")
    add("--output", type=Path, help="folder of the runs")
    add("--stages", default=",".join(STAGES), metavar="NAME,...", help=f"default: all, {','.join(STAGES)}")
    add("--conditions", metavar="'BASE: VARIATION; ...'", help="conditions to run instead of stages")
    add("--seeds", type=numbers, metavar="N,N,...", help="default: the seeds of the stage")
    add("--jobs", type=int, default=1, metavar="N", help="parallel runs, each on its share of the cores [1]")
    add("--check", action="store_true", help="compare the scores with those of evidence.json and write nothing")
    options = parser.parse_args()
    return run_command(lambda: run_stages(options), "evidence")


def run_stages(options: argparse.Namespace) -> int:
    """Run the stages in order, then write the pages; returns the highest exit code of a stage."""
    if options.output is None:
        raise InputError("--output is missing: give the folder of the runs")
    if options.data is None:
        raise InputError("--data is missing: give the folder with corpora/ and senteval/, or set UNA_FAST_DATA")
    stages = chosen_stages(options)
    if options.check:  # before any run
        for stage in stages:
            for condition, seed in itertools.product(stage.conditions(read_evidence()["conditions"]), stage.seeds):
                committed(condition, seed)
    with output_folder(options.output, COMMAND, resume=is_own(options.output, COMMAND)):
        place = Workplace(options.data, options.output, corpus_of(options.data), options.jobs)
        code = max(run_stage(place, stage, options) for stage in stages)
    if not options.check:
        write_pages(read_evidence())
    return code


def write_pages(content: Evidence) -> None:
    """Write the tables and the chart of evidence.json into the pages and the appendix, and print the first table."""
    pairs = pairs_of(content)
    first = pair_table(content, pairs, brief=True)
    draw(content, pairs, PAGE.parent / CHART)
    write_between_marks(PAGE, [f"![The differences in the table, with intervals and seeds]({CHART})", first])
    parts = [ABOUT_APPENDIX, "## Every setting against none", pair_table(content, every_pair(content, NEAR_BASES))]
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


def chosen_stages(options: argparse.Namespace) -> list[Stage]:
    """Return the stages that the command line names."""
    if options.conditions:
        found = [Stage(options.conditions.split(";"))]
    else:
        unknown = [name for name in options.stages.split(",") if name not in STAGES]
        if unknown:
            raise InputError(f"--stages {unknown[0]!r}: choose from {', '.join(STAGES)}")
        found = [STAGES[name] for name in options.stages.split(",")]
    return [Stage(one.names, options.seeds or one.seeds, one.scored) for one in found]


def run_stage(place: Workplace, stage: Stage, options: argparse.Namespace) -> int:
    """Train and score the missing runs of a stage. With --check, repeat all of its runs.

    Returns 1 if a run fails, or if a repeated score differs from the committed score. Returns 0 if not.
    """
    conditions = stage.conditions(read_evidence()["conditions"])
    digests = {base: digest(place.base(base)) for base in dict.fromkeys(one.base for one in conditions)}
    machine, code = machine_of(place), 0

    def done(condition: Condition, seed: int, said: str) -> None:
        nonlocal code
        result = result_of(place, condition, seed)
        if said or result is None:
            code = 1
            keep_failure(condition, seed, said)
        elif options.check:
            apart = furthest(condition, seed, result)
            code |= apart > TOLERANCE
            said = f"at most {apart:.6f} from the committed scores"
        else:
            keep(condition, digests[condition.base], seed, result, machine)
        print(f"{condition.name}, seed {seed}: {said or 'done'}", flush=True)

    def wanted() -> list[tuple[Condition, int]]:
        content = read_evidence()
        return [
            (one, seed)  # seed by seed, so that pairs are complete early
            for seed, one in itertools.product(stage.seeds, conditions)
            if not one.is_untrained
            and (options.check or not is_kept(content, one, digests[one.base], seed, stage.scored))
        ]

    if not options.check:
        keep_bases(place, digests, stage.scored)
    for condition, seed in wanted():
        if place.is_done(condition, seed, stage.scored):
            done(condition, seed, "")
    run_all(place, wanted(), stage.scored, done)
    return code


def keep_bases(place: Workplace, digests: dict[str, str], scored: bool) -> None:
    """Score the bases before training, and add the scores to evidence.json if it lacks them.

    digests: the digest of the weights of each base. If `scored` is false, this does nothing.
    """
    for base, weights in digests.items():
        if scored and read_evidence()["bases"].get(base, {}).get("digest") != weights:
            keep_base(base, weights, scores_before(place, base))


if __name__ == "__main__":
    sys.exit(main())
