"""Train a language model and run the stages wiki-grid and wiki-arms within a given time, on one GPU, in one command.

``python -m bench.evidence.from_scratch --ids FILE --tokenizer FOLDER --data FOLDER --output FOLDER --seconds 450``

First `bench.evidence.pretrain` makes the language model, and writes its weights to --output in half precision. Then the
settings of every arm are tuned on STS-B dev, and the best settings of each arm are scored on the seven tasks, with as
many of five seeds as the time allows. evidence.json is written to --output after each run; `python -m bench.evidence
--merge FILE` adds its runs to the repository's evidence.json. A run that would finish too late does not start. If the
grid of an arm is not finished, the best finished point is used.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bench.evidence import results
from bench.evidence.bases import digest
from bench.evidence.conditions import (
    FRESH,
    FROM_SCRATCH_ARMS,
    SEEDS,
    STAGES,
    Condition,
    dev_score,
    find_conditions,
    grid,
)
from bench.evidence.corpora import corpus_of
from bench.evidence.page import difference
from bench.evidence.runs import Workplace, scores_before
from bench.evidence.timed import LAST_SECONDS, add_options, begin, make_runs, start_mps, tell, warm_up
from una_fast.command import run_command
from una_fast.errors import InputError

SMALL = ", batch_size 8, max_steps 4, eval_every 2"
SMALL_CONDITIONS = "wiki-lm: none; wiki-lm: una; wiki-lm: mined; wiki-lm-cls: none; wiki-lm-cls: una"
FINALS = 1.2  # time reserved for the scored runs, as a multiple of the grid's longest run; 16 run at a time
BASES = ("wiki-lm", "wiki-lm-cls")


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.evidence.from_scratch", description=(__doc__ or "").splitlines()[0]
    )
    add = add_options(parser, 450, "a tiny language model and runs of 4 steps, to try the command on a CPU")
    add("--ids", type=Path, help="sentences for the language model, written by bench.evidence.token_ids")
    add("--tokenizer", type=Path, help="folder of BERT's tokenizer")
    add("--base", type=Path, metavar="FOLDER", help="an existing language model, instead of --ids and --tokenizer")
    add("--data", type=Path, required=True, help="folder with corpora/ and senteval/")
    add("--pretrain-seconds", type=float, default=205, help="share of --seconds for the language model [205]")
    options = parser.parse_args()
    return run_command(lambda: train_and_run_grid(options), "evidence")


def train_and_run_grid(options: argparse.Namespace) -> None:
    """Train the language model, run the grids and then their best points, and print a summary."""
    ends = begin(options)
    os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")  # otherwise shared imports could use the GPU
    place = Workplace(options.data, options.work, corpus_of(options.data), options.jobs, options.base)
    points = small_points() if options.small else STAGES["wiki-grid"].conditions({})
    language_model = options.base is None and start_pretraining(options)
    if options.mps:
        start_mps(options.work)
    warm_up(place, points, options.work / "warm-up.log")
    if language_model and language_model.wait():
        raise InputError(f"training the language model failed with exit code {language_model.returncode}")
    place.saved = options.base or options.work / "language-model"
    tell("the language model is ready", ends)
    with ThreadPoolExecutor(len(BASES)) as pool:
        before = {base: pool.submit(scores_before, place, base) for base in BASES}
        make_runs(place, BASES[0], [(one, SEEDS[0]) for one in points], False, ends, FINALS)
        for base, scores in before.items():
            results.keep_base(base, digest(place.base(base)), scores.result())
    tell("the grids are over", ends)
    best = best_points(points, results.read_evidence()["conditions"])
    finals = [(one, seed) for seed in FRESH for one in best.values()]
    make_runs(place, BASES[0], finals, True, ends - LAST_SECONDS)
    tell("all runs are over", ends)
    print(summary(best, points, results.read_evidence()), flush=True)


def small_points() -> list[Condition]:
    """Return two points for each of five arms, with runs of four steps."""
    names = [f"{name}{option}{SMALL}" for option in ("", ", temperature 0.1") for name in SMALL_CONDITIONS.split("; ")]
    return find_conditions(";".join(names))


def start_pretraining(options: argparse.Namespace) -> subprocess.Popen[bytes]:
    """Start `bench.evidence.pretrain` in a separate process, which frees the GPU when it ends."""
    if not (options.ids and options.tokenizer):
        raise InputError("--ids or --tokenizer is missing: give both, or --base")
    values = {"ids": options.ids, "tokenizer": options.tokenizer, "seconds": options.pretrain_seconds}
    values |= {"output": options.work / "language-model", "parts": options.output}
    words = [word for name, value in values.items() for word in (f"--{name}", str(value))]
    return subprocess.Popen([sys.executable, "-m", "bench.evidence.pretrain", *words, *["--small"] * options.small])


def arms_of(points: list[Condition]) -> dict[tuple[str, str], list[Condition]]:
    """Group points by base and arm. The arm of a point of `small_points` is the first word of its variation."""
    of_grid = {one: (base, arm) for base, arm in FROM_SCRATCH_ARMS for one in grid(arm, base)}
    arms: dict[tuple[str, str], list[Condition]] = {}
    for one in points:
        arms.setdefault(of_grid.get(one, (one.base, one.variation.split(",")[0])), []).append(one)
    return arms


def best_points(points: list[Condition], conditions: Mapping[str, Any]) -> dict[tuple[str, str], Condition]:
    """Return the point with the highest dev score for each base and arm. An arm without dev scores is left out."""
    best = {}
    for arm, of_arm in arms_of(points).items():
        scores = {one: dev_score(conditions.get(one.name, {})) for one in of_arm}
        if found := {one: score for one, score in scores.items() if score is not None}:
            best[arm] = max(found, key=lambda one: found[one])
    return best


def summary(best: Mapping[tuple[str, str], Condition], points: list[Condition], content: Mapping[str, Any]) -> str:
    """Return one line per arm: points that ran, best dev score, STS average, and difference from "none"."""
    lines = []
    for base, kept in content["bases"].items():
        lines.append(f"{base} before: " + ", ".join(f"{task} {100 * one:.2f}" for task, one in kept["before"].items()))
    for arm, one in best.items():
        scores = [dev_score(content["conditions"].get(point.name, {})) for point in arms_of(points)[arm]]
        known = [score for score in scores if score is not None]
        dev = content["conditions"][one.name]["runs"][str(SEEDS[0])]["dev"]
        line = f"{one.name}: {len(known)} of {len(scores)} points, dev {100 * dev['0']:.2f} -> {100 * max(known):.2f}"
        if found := difference(content, one, best.get((arm[0], "none"), one)):
            line += f"; {found.n} seeds: {found.with_it:.2f}, {found.difference:+.2f} to none"
            line += f" ({found.low:+.2f} to {found.high:+.2f})"
        lines.append(line)
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
