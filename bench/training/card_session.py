"""Measure and check training on a GPU within minutes: ``python -m bench.training.card_session --output FOLDER``.

Phases run one after the other, most important first, each in a new process with a time limit. After each phase, the
results so far are written to FOLDER/train_gpu.json, from which bench.report makes tables. If a phase fails or times
out, this is noted in the file and the next phase runs. A phase is skipped if too little of --seconds is left for it.
--small runs all phases on a CPU, with a tiny encoder.

Only the standard library is imported at first; large packages are imported while the kernels compile.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
RESULT = "train_gpu.json"
IMPORTS = ("torch", "transformers", "torch.utils._pytree", "torch.profiler")


def main(argv: Sequence[str] | None = None) -> int:
    options = parse(argv)
    begun = time.monotonic()
    options.output.mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="card_session") as folder:
        found["kernels"] = build_kernels()
        if found["kernels"]["exit_code"]:
            print(found["kernels"]["said"], file=sys.stderr)
            return 1
        from bench.training.card_phases import PHASES

        for name, phase in PHASES.items():
            left = options.seconds - (time.monotonic() - begun)
            if options.phases and name not in options.phases and not phase.always:
                continue
            if left < phase.least:
                found[name] = {"skipped": f"{left:.0f} s left"}
            else:
                found[name] = in_process(
                    phase.run, options, Path(folder), min(phase.most * (5 if options.small else 1), left - 3)
                )
            save(options.output, found)
            print(f"{time.monotonic() - begun:6.1f} s  {name}: {shortened(found[name])}", flush=True)
    return 0


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", required=True, type=Path, help="folder for the results")
    parser.add_argument("--corpus", help="text, one sentence per line [the demo's sentences]")
    parser.add_argument("--phases", type=lambda names: names.split(","), help="phases to run, comma-separated [all]")
    parser.add_argument("--seconds", type=float, default=540, help="time limit of the whole session [540]")
    parser.add_argument("--small", action="store_true", help="try the command on a CPU, with a tiny encoder")
    return parser.parse_args(argv)


def build_kernels() -> dict[str, Any]:
    """Compile the kernels, and import the large packages at the same time."""
    begun = time.monotonic()
    build = subprocess.Popen(
        [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"], cwd=ROOT, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    for name in IMPORTS:
        __import__(name)
    imported = time.monotonic() - begun
    said, _ = build.communicate()
    seconds = time.monotonic() - begun
    about = {"exit_code": build.returncode, "seconds": seconds, "imports": imported}
    return {**about, "said": said[-2000:]} if build.returncode else about


def in_process(run: Callable[..., Any], options: argparse.Namespace, folder: Path, seconds: float) -> dict[str, Any]:
    """Run a phase in a fork of this process, and kill the fork's process group after `seconds`.

    A fork can use the GPU, because this process has not used it. Returns the results that the phase has noted, the
    seconds that it took and, if it failed, the exit code or the timeout.
    """
    file, begun = folder / "result.json", time.monotonic()
    file.unlink(missing_ok=True)
    process = multiprocessing.get_context("fork").Process(target=_child, args=(run, options, folder, file))
    process.start()
    process.join(seconds)
    status: dict[str, Any] = {}
    if process.is_alive():
        status["timeout"] = seconds
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # also ends processes that the phase has started
    process.join()
    if not status and process.exitcode:
        status["exit_code"] = process.exitcode
    with contextlib.suppress(OSError, ValueError):
        status = {**json.loads(file.read_text()), **status}
    return {"seconds": round(time.monotonic() - begun, 1), **status}


def _child(run: Callable[..., Any], options: argparse.Namespace, folder: Path, file: Path) -> None:
    os.setsid()
    log = os.open(options.output / "log.txt", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    os.dup2(log, 1)
    os.dup2(log, 2)
    print(f"\n===== {run.__name__}", flush=True)
    found: dict[str, Any] = {}

    def note(**named: Any) -> None:
        """Save the results so far, in case the phase does not finish."""
        found.update(named)
        partial = file.with_suffix(".partial")
        partial.write_text(json.dumps(found, default=str))
        partial.replace(file)

    try:
        run(options, folder, note)
    except BaseException:
        note(error=traceback.format_exc()[-4000:])
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def save(output: Path, found: dict[str, Any]) -> None:
    """Write the results and their tables. Call it only after the kernels are compiled."""
    from bench.training.card_tables import tables

    partial = output / ".partial"
    partial.write_text(json.dumps({"tables": tables(found), "measured": found}, indent=1, default=str) + "\n")
    partial.replace(output / RESULT)


def shortened(value: Any) -> str:
    """Summarise the results of a phase in one line. The results file contains all of them."""
    if isinstance(value, dict):
        short = {name: part for name, part in value.items() if name not in ("profile", "said", "error", "output")}
        if "error" in value:
            short["ERROR"] = value["error"].strip().splitlines()[-1]
        return json.dumps(short, default=lambda part: repr(part))[:1500]
    return str(value)


if __name__ == "__main__":
    sys.exit(main())
