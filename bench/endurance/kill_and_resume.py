"""Kill trainings at random moments, also during saves, then --resume: the result must not differ by a bit.

``python -m bench.endurance.kill_and_resume --kills 50 --nproc 1 2`` trains a tiny encoder repeatedly and kills each run
several times (kill -9) before it may finish. It compares each run with an uninterrupted one: weights, optimiser state,
best/ and all lines of metrics.jsonl. It prints one line per kill. A kill takes 5 s on a free core, and 10 s with two
ranks.
"""

from __future__ import annotations

import functools
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import script

script.import_tests()
from support import small_runs as training  # noqa: E402
from train.record.folder import RUN, is_own, saved_step  # noqa: E402

KILLS_PER_RUN = 5
STEPS = {"epochs": 6, "eval_every": 20, "save_every": 2}  # 54 steps; saves are so frequent that most kills hit one
MOST_SAVES = 6  # before a kill; a run has 28 saves
LONGEST_WAIT = 0.5  # seconds of training between the last of these saves and the kill
LONGEST_RUN = 3600  # seconds
EARLY = 0.15  # share of kills that may happen before the first new checkpoint


def last_save(output: Path) -> int:
    """Return the time at which the newest checkpoint was written, in ns, or 0 if there is none."""
    checkpoint = output / "last" / "checkpoint.json"
    return checkpoint.stat().st_mtime_ns if checkpoint.is_file() else 0


def kill_at_random(process, output: Path, chance: random.Random) -> bool:
    """Kill the whole process group of a run at a random moment. Return False if the run had already ended."""
    while process.poll() is None and os.getpgid(process.pid) != process.pid:
        time.sleep(0.002)  # the new process has not set its group yet
    if chance.random() < EARLY:
        time.sleep(chance.uniform(0, 5))
    else:
        for _ in range(chance.randint(1, MOST_SAVES)):
            before = last_save(output)
            while process.poll() is None and last_save(output) == before:
                time.sleep(0.002)
        time.sleep(chance.uniform(0, LONGEST_WAIT))
    if process.poll() is not None:
        return False
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    return True


def run_with_kills(values: dict, chance: random.Random, kills: int, say: Callable[[str], Any] = print) -> int:
    """Kill one run up to `kills` times, resume it each time, let it finish, and return the number of kills.

    say: prints a line.
    """
    output, done = Path(values["output"]), 0
    while True:
        resume = is_own(output, RUN)
        process = training.start({**values, "resume": True} if resume else values)
        if done < kills and kill_at_random(process, output, chance):
            done += 1
            say(f"{output.name}: kill {done}, saved: step {saved_step(output)}")
            continue
        code, said = training.finish(process, timeout=LONGEST_RUN)
        if code:
            raise SystemExit(f"after {done} kills:\n{said}")
        return done


def kill_runs(kills: int, nproc: list[int], seed: int) -> None:
    """Kill runs of each number of ranks, and compare each with an uninterrupted one."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    chance, say = random.Random(seed), functools.partial(print, flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        model = training.tiny_encoder(folder / "model")
        for ranks in nproc:
            values = training.options(folder, model, nproc=ranks, **STEPS)
            whole = {**values, "output": str(folder / f"whole{ranks}")}
            run_with_kills(whole, chance, 0)
            say(f"{ranks} ranks: the run without kills is done")
            killed = runs = 0
            while killed < kills:
                output = folder / f"killed{ranks}-{runs}"
                wanted = min(KILLS_PER_RUN, kills - killed)
                killed += run_with_kills({**values, "output": str(output)}, chance, wanted, say)
                training.assert_same_run(output, whole["output"])
                runs += 1
                say(f"{ranks} ranks: {killed} kills, {runs} runs, all bit-identical to the uninterrupted one")


if __name__ == "__main__":
    sys.exit(
        script.run(
            __doc__,
            kill_runs,
            kills={"type": int, "default": 50, "help": "for each number of ranks [50]"},
            nproc={"type": int, "nargs": "+", "default": [1, 2], "help": "numbers of ranks [1 2]"},
            seed={"type": int, "default": 0, "help": "seed of the moments of the kills [0]"},
        )
    )
