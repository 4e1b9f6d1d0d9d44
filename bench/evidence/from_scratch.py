"""The stages wiki-grid and wiki-arms within a given time, after their language model: on one GPU, in one command.

``python -m bench.evidence.from_scratch --ids FILE --tokenizer FOLDER --data FOLDER --output FOLDER --seconds 450``

First `bench.evidence.pretrain` makes the language model. Then every arm is tuned on STS-B dev, and the best point of
each is scored on the seven tasks with as many of five seeds as there is time for. --output gets evidence.json, written
after each run, and the weights in half precision; `python -m bench.evidence --merge FILE` adds the runs to the
repository's. A run that would end too late does not begin, and an arm whose grid is not finished takes the best of the
points that are.
"""

from __future__ import annotations

import argparse
import atexit
import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bench.evidence import results, runs
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
from bench.evidence.runs import Workplace, machine_of, result_of, run_all, scores_before
from una_fast.command import run_command
from una_fast.errors import InputError

SMALL = ", batch_size 8, max_steps 4, eval_every 2"
SMALL_CONDITIONS = "wiki-lm: none; wiki-lm: una; wiki-lm: mined; wiki-lm-cls: none; wiki-lm-cls: una"
FINALS = 1.2  # of the longest run of the grid: the time that is kept for scored runs, of which 16 run at a time
MPS_SECONDS = 45  # most that a process may need to reach the GPU through the daemon
LAST_SECONDS = 5  # kept for the table
BASES = ("wiki-lm", "wiki-lm-cls")


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.evidence.from_scratch", description=(__doc__ or "").splitlines()[0]
    )
    add = parser.add_argument
    add("--ids", type=Path, help="sentences for the language model, as bench.evidence.token_ids writes them")
    add("--tokenizer", type=Path, help="folder of BERT's tokenizer")
    add("--base", type=Path, metavar="FOLDER", help="a language model that is there already, in place of these two")
    add("--data", type=Path, required=True, help="folder with corpora/ and senteval/")
    add("--output", type=Path, required=True, help="folder of results")
    add("--work", type=Path, required=True, help="folder of the runs, which nobody needs afterwards")
    add("--seconds", type=float, default=450, help="time in all [450]")
    add("--pretrain-seconds", type=float, default=205, help="of these for the language model [205]")
    add("--jobs", type=int, default=16, metavar="N", help="runs at a time [16]")
    add("--mps", action="store_true", help="let the runs' kernels overlap on the GPU, by NVIDIA's MPS daemon")
    add("--small", action="store_true", help="a tiny language model and runs of 4 steps, to try the command on a CPU")
    options = parser.parse_args()
    return run_command(lambda: carry_out(options), "evidence")


def carry_out(options: argparse.Namespace) -> None:
    """The language model, the grid, the best points, and the table."""
    ends = time.monotonic() + options.seconds
    os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")  # else shared imports could use the GPU
    results.EVIDENCE = options.output / "evidence.json"
    place = Workplace(options.data, options.work, corpus_of(options.data), options.jobs, options.base)
    options.output.mkdir(parents=True, exist_ok=True)
    points = small_points() if options.small else STAGES["wiki-grid"].conditions({})
    language_model = options.base is None and start_pretraining(options)
    if options.mps:
        start_mps(options.work)
    warm_up(place, points, options.work / "warm-up.log")
    if language_model and language_model.wait():
        raise InputError(f"the language model was not made: exit code {language_model.returncode}")
    place.saved = options.base or options.work / "language-model"
    tell("the language model is there", ends)
    with ThreadPoolExecutor(len(BASES)) as pool:
        before = {base: pool.submit(scores_before, place, base) for base in BASES}
        make_runs(place, [(one, SEEDS[0]) for one in points], False, ends, FINALS)
        for base, scores in before.items():
            results.keep_base(base, digest(place.base(base)), scores.result())
    tell("the grids are over", ends)
    best = best_points(points, results.read_evidence()["conditions"])
    finals = [(one, seed) for seed in FRESH for one in best.values()]
    make_runs(place, finals, True, ends - LAST_SECONDS)
    tell("all runs are over", ends)
    print(summary(best, points, results.read_evidence()), flush=True)


def small_points() -> list[Condition]:
    """Two points for each of five arms."""
    names = [f"{name}{option}{SMALL}" for option in ("", ", temperature 0.1") for name in SMALL_CONDITIONS.split("; ")]
    return find_conditions(";".join(names))


def start_pretraining(options: argparse.Namespace) -> subprocess.Popen[bytes]:
    """Start `bench.evidence.pretrain` in a process of its own, which frees the GPU when it ends."""
    if not (options.ids and options.tokenizer):
        raise InputError("give --ids and --tokenizer, or --base")
    values = {"ids": options.ids, "tokenizer": options.tokenizer, "seconds": options.pretrain_seconds}
    values |= {"output": options.work / "language-model", "parts": options.output}
    words = [word for name, value in values.items() for word in (f"--{name}", str(value))]
    return subprocess.Popen([sys.executable, "-m", "bench.evidence.pretrain", *words, *["--small"] * options.small])


def start_mps(work: Path) -> None:
    """Start the daemon of MPS, which ends with this command, and have all later processes use it if one can."""
    variables = {f"CUDA_MPS_{name}_DIRECTORY": str(work / f"mps-{name.lower()}") for name in ("PIPE", "LOG")}
    for folder in variables.values():
        Path(folder).mkdir(parents=True, exist_ok=True)
    environment = os.environ | variables
    try:
        subprocess.run(["nvidia-cuda-mps-control", "-d"], env=environment, check=True, timeout=10)
        probe = [sys.executable, "-m", "bench.evidence.gpu"]
        subprocess.run(probe, env=environment, check=True, timeout=MPS_SECONDS)
    except (OSError, subprocess.SubprocessError) as error:
        print(f"without MPS: {error}", file=sys.stderr, flush=True)
        return
    os.environ.update(variables)
    stop = ["nvidia-cuda-mps-control"]
    atexit.register(subprocess.run, stop, input=b"quit\n", env=environment, timeout=10, check=False)


def warm_up(place: Workplace, points: list[Condition], log: Path) -> None:
    """Make what the runs share, their imports too, while the language model trains."""
    log.parent.mkdir(parents=True, exist_ok=True)
    if runs.on_cores([("bench.evidence.gpu", [])], place.shares[0], log):
        print(f"imports of the runs are not shared: see {log}", file=sys.stderr, flush=True)
        runs.processes = multiprocessing.get_context("spawn")
    for one in points:
        place.index(one)


def make_runs(
    place: Workplace, wanted: list[tuple[Condition, int]], scored: bool, ends: float, after: float = 0.0
) -> None:
    """Make runs and keep each at once."""
    weights, machine = digest(place.base(BASES[0])), machine_of(place)

    def done(condition: Condition, seed: int, said: str) -> None:
        result = result_of(place, condition, seed)
        if said or result is None:
            results.keep_failure(condition, seed, said)
        else:
            results.keep(condition, weights, seed, result, machine)
        print(f"{condition.name}, seed {seed}: {said or 'done'}", flush=True)

    run_all(place, wanted, scored, done, ends, after)


def arms_of(points: list[Condition]) -> dict[tuple[str, str], list[Condition]]:
    """The points of each arm; of the small ones by their base and first word."""
    of_grid = {one: (base, arm) for base, arm in FROM_SCRATCH_ARMS for one in grid(arm, base)}
    arms: dict[tuple[str, str], list[Condition]] = {}
    for one in points:
        arms.setdefault(of_grid.get(one, (one.base, one.variation.split(",")[0])), []).append(one)
    return arms


def best_points(points: list[Condition], conditions: Mapping[str, Any]) -> dict[tuple[str, str], Condition]:
    """The point of each arm with the highest dev score, of the points that have one."""
    best = {}
    for arm, of_arm in arms_of(points).items():
        scores = {one: dev_score(conditions.get(one.name, {})) for one in of_arm}
        if found := {one: score for one, score in scores.items() if score is not None}:
            best[arm] = max(found, key=lambda one: found[one])
    return best


def summary(best: Mapping[tuple[str, str], Condition], points: list[Condition], content: Mapping[str, Any]) -> str:
    """A line for each arm: how many points of its grid ran, its best dev score, its average and distance to none."""
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


def tell(what: str, ends: float) -> None:
    """Print a stage that has ended, and how much time is left."""
    print(f"{what}; {ends - time.monotonic():.0f} s are left", flush=True)


if __name__ == "__main__":
    sys.exit(main())
