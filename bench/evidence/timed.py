"""What `from_scratch` and `near_card` share: making runs within a given time on one GPU."""

from __future__ import annotations

import argparse
import atexit
import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from bench.evidence import results, runs
from bench.evidence.bases import digest
from bench.evidence.conditions import Condition
from bench.evidence.runs import Workplace, machine_of, result_of, run_all
from una_fast.errors import InputError

MPS_SECONDS = 45  # time limit for a process to reach the GPU through the daemon
LAST_SECONDS = 5  # reserved for the table


def add_options(parser: argparse.ArgumentParser, seconds: float, small: str) -> Callable[..., Any]:
    """Add the options that both commands have, and return `parser.add_argument`.

    seconds: the default of --seconds; small: the help of --small.
    """
    add = parser.add_argument
    add("--output", type=Path, help="folder of results")
    add("--work", type=Path, help="folder of the runs; it can be deleted afterwards")
    add("--seconds", type=float, default=seconds, help=f"total time [{seconds}]")
    add("--jobs", type=int, default=16, metavar="N", help="parallel runs [16]")
    add("--mps", action="store_true", help="let the runs' kernels overlap on the GPU, with NVIDIA's MPS daemon")
    add("--small", action="store_true", help=small)
    return add


def begin(options: argparse.Namespace) -> float:
    """Make evidence.json a file in --output, and return the time.monotonic() at which the command must end."""
    if not (options.output and options.work):
        raise InputError("--output or --work is missing: give the folder of results and the folder of the runs")
    options.output.mkdir(parents=True, exist_ok=True)
    results.EVIDENCE = options.output / "evidence.json"
    return time.monotonic() + options.seconds


def start_mps(work: Path) -> None:
    """Start the MPS daemon, which runs until this command ends. Later processes use it if a trial process can."""
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
    atexit.register(stop_mps, environment)


def stop_mps(environment: dict[str, str]) -> None:
    """Stop the MPS daemon, and end its servers if they still run after 5 seconds."""
    with suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(
            ["nvidia-cuda-mps-control"], input=b"quit -t 5\n", env=environment, timeout=10, capture_output=True
        )


def warm_up(place: Workplace, points: list[Condition], log: Path) -> None:
    """Import the modules that all runs need, and build the indexes of `points`, before the first run.

    log: the file for the output.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    if runs.on_cores([("bench.evidence.gpu", [])], place.shares[0], log):
        print(f"imports of the runs are not shared: see {log}", file=sys.stderr, flush=True)
        runs.processes = multiprocessing.get_context("spawn")
    for one in points:
        place.index(one)


def make_runs(
    place: Workplace, base: str, wanted: list[tuple[Condition, int]], scored: bool, ends: float, after: float = 0.0
) -> None:
    """Make runs that start from the weights of `base`, and add each to evidence.json as soon as it has finished.

    wanted, scored, ends, after: as in `run_all`.
    """
    weights, machine = digest(place.base(base)), machine_of(place)

    def done(condition: Condition, seed: int, said: str) -> None:
        result = result_of(place, condition, seed)
        if said or result is None:
            results.keep_failure(condition, seed, said)
        else:
            results.keep(condition, weights, seed, result, machine)
        print(f"{condition.name}, seed {seed}: {said or 'done'}, {ends - time.monotonic():.0f} s left", flush=True)

    run_all(place, wanted, scored, done, ends, after)


def tell(what: str, ends: float) -> None:
    """Print what has just finished, and how much time is left."""
    print(f"{what}; {ends - time.monotonic():.0f} s are left", flush=True)
