"""Is an encoder better with UNA than without? ``python -m bench.evidence --data FOLDER --output FOLDER``.

Trains every condition with every seed on the same sentences in the same order, and scores it on the seven STS tasks.
The settings of the first comparison are tuned on STS-B dev only. Each finished run is added to results/evidence.json at
once; after a stop, the same command continues. docs/will-it-help.md and its appendix show these results.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from bench import script
from bench.evidence.bases import digest
from bench.evidence.conditions import STAGES, Condition, Stage
from bench.evidence.corpora import corpus_of
from bench.evidence.page import write_pages
from bench.evidence.results import TOLERANCE, changed_evidence, committed, furthest, is_kept, keep, read_evidence
from bench.evidence.runs import Workplace, machine_of, result_of, run_all, scores_before
from train.record.folder import is_own, output_folder
from una_fast.errors import InputError

COMMAND = "bench.evidence"


def find_stages(names: str, conditions: str, seeds: Sequence[int]) -> list[Stage]:
    """Return the stages that the command line names: `conditions`, or the stages `names`. Raises InputError if unknown.

    seeds: replace the seeds of the stages, unless empty.
    """
    if unknown := [name for name in names.split(",") if name not in STAGES]:
        raise InputError(f"--stages {unknown[0]!r}: choose from {', '.join(STAGES)}")
    stages = [Stage(conditions.split(";"))] if conditions else [STAGES[name] for name in names.split(",")]
    return [replace(stage, seeds=seeds or stage.seeds) for stage in stages]


def run_stages(
    data: Path, output: Path, stages: str, conditions: str, seeds: Sequence[int], jobs: int, check: bool
) -> int:
    """Run the stages in order, then write the pages; returns the highest exit code of a stage."""
    chosen = find_stages(stages, conditions, seeds)
    if check:  # before any run
        for stage in chosen:
            for condition, seed in itertools.product(stage.conditions(read_evidence()["conditions"]), stage.seeds):
                committed(condition, seed)
    with output_folder(output, COMMAND, resume=is_own(output, COMMAND)):
        place = Workplace(data, output, corpus_of(data), jobs)
        code = max(run_stage(place, stage, check) for stage in chosen)
    if not check:
        write_pages(read_evidence())
    return code


def run_stage(place: Workplace, stage: Stage, check: bool) -> int:
    """Train and score the missing runs of a stage, or repeat all of its runs to check the committed scores.

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
            with changed_evidence() as content:
                content["failed"][f"{condition.name}, seed {seed}"] = said
        elif check:
            apart = furthest(condition, seed, result)
            code |= apart > TOLERANCE
            said = f"at most {apart:.6f} from the committed scores"
        else:
            keep(condition, digests[condition.base], seed, result, machine)
        print(f"{condition.name}, seed {seed}: {said or 'done'}", flush=True)

    def wanted() -> Iterator[tuple[Condition, int]]:
        content = read_evidence()
        for seed, one in itertools.product(stage.seeds, conditions):  # seed by seed, so that pairs are complete early
            kept = not check and is_kept(content, one, digests[one.base], seed, stage.scored)
            if not (kept or one.is_untrained):
                yield one, seed

    if stage.scored and not check:
        keep_bases(place, digests)
    for condition, seed in wanted():
        if place.is_done(condition, seed, stage.scored):
            done(condition, seed, "")
    run_all(place, wanted(), stage.scored, done)
    return code


def keep_bases(place: Workplace, digests: dict[str, str]) -> None:
    """Score the bases before training, and add the scores to evidence.json if it lacks them.

    digests: the digest of the weights of each base.
    """
    for base, weights in digests.items():
        if read_evidence()["bases"].get(base, {}).get("digest") != weights:
            before = scores_before(place, base)
            with changed_evidence() as content:
                content["bases"][base] = {"digest": weights, "before": before}


def numbers(text: str) -> tuple[int, ...]:
    """Parse numbers such as "42,0,1"."""
    return tuple(map(int, text.split(",")))


if __name__ == "__main__":
    sys.exit(
        script.run(
            __doc__,
            run_stages,
            data=script.DATA,
            output=script.FOLDER | {"help": "folder of the runs"},
            stages={"default": ",".join(STAGES), "metavar": "NAME,...", "help": "default: %(default)s"},
            conditions={"default": "", "metavar": "'BASE: VARIATION; ...'", "help": "conditions to run, not stages"},
            seeds={"type": numbers, "default": (), "metavar": "N,...", "help": "default: the seeds of the stage"},
            jobs={"type": int, "default": 1, "help": "parallel runs, each on its share of the cores [1]"},
            check={"action": "store_true", "help": "compare the scores with those of evidence.json, write nothing"},
        )
    )
