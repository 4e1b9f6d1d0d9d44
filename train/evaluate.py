"""`python -m train.evaluate`: the scores of a model on SentEval's tasks, with their protocol."""

from __future__ import annotations

import argparse
import difflib
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from train.evaluation.correlation import AGGREGATES
from train.evaluation.files import downstream_folder
from train.evaluation.model import PRECISIONS, load_model
from train.evaluation.results import Protocol, evaluate
from train.evaluation.table import format_results
from train.files import write_json
from train.pooling import DEFAULT_POOLING, POOLINGS
from train.sts import DEV_TASKS, STS_TASKS, StsTask, read_sts
from train.transfer import TRANSFER_TASKS, TransferTask, read_transfer
from una_fast.errors import InputError

TASK_SETS = {"sts": STS_TASKS, "transfer": TRANSFER_TASKS, "full": (*STS_TASKS, *TRANSFER_TASKS)}


def build_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m train.evaluate", description=__doc__)
    add = parser.add_argument
    add("--model", required=True, help="name on the Hugging Face hub, or folder")
    add("--data", help="folder that holds senteval/ or is one (default: UNA_FAST_DATA)")
    add("--tasks", default="sts", help="sts, transfer, full, or names with commas between (default: sts)")
    add("--mode", choices=("dev", "test", "fasttest"), default="test", help="as in SimCSE (default: test)")
    add("--aggregate", choices=AGGREGATES, default="all", help="over an STS task's subsets (default: all)")
    add("--pooling", choices=POOLINGS, default=DEFAULT_POOLING, help=f"(default: {DEFAULT_POOLING})")
    add(
        "--max-length",
        type=int,
        metavar="TOKENS",
        help="cut longer sentences (default: the model's own limit)",
    )
    add("--whiten", action="store_true", help="whiten embeddings on each task's own sentences")
    add("--precision", choices=PRECISIONS, default="fp32", help="(default: fp32)")
    add("--device", default="auto", help="auto, cpu, cuda or cuda:N (default: auto)")
    add("--threads", type=int, help="CPU threads (default: PyTorch's choice)")
    add("--pairs", action="store_true", help="keep every pair's similarity in the JSON, for train.report")
    add("--json", type=Path, metavar="FILE", help="write all scores and the protocol there")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit code."""
    options = build_parser().parse_args(arguments)
    try:
        _run(options)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def task_names(tasks: str, mode: str) -> list[str]:
    """The names that --tasks stands for; in dev mode, those of a set that have a dev score."""
    if tasks in TASK_SETS:
        return [name for name in TASK_SETS[tasks] if mode != "dev" or name in (*DEV_TASKS, *TRANSFER_TASKS)]
    known = {name.lower(): name for name in TASK_SETS["full"]}
    names = [name.strip() for name in tasks.split(",") if name.strip()]
    for name in names:
        if name.lower() not in known:
            near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.5)
            hint = f"did you mean {known[near[0]]}?" if near else f"choose from {', '.join(known.values())}"
            raise InputError(f"unknown task {name!r}: {hint}")
    if not names:
        raise InputError(f"--tasks {tasks!r} names no task: give sts, transfer, full or names of tasks")
    return list(dict.fromkeys(known[name.lower()] for name in names))


def read_tasks(downstream: Path, names: Sequence[str], split: str) -> tuple[list[StsTask | TransferTask], list[str]]:
    """The tasks whose files could be read, and a note for each other. InputError if none could."""
    tasks: list[StsTask | TransferTask] = []
    notes = []
    for name in names:
        try:
            tasks.append(read_sts(downstream, name, split) if name in STS_TASKS else read_transfer(downstream, name))
        except InputError as error:
            notes.append(f"{name} left out: {error}")
    if not tasks:
        raise InputError("none of the tasks could be read:\n" + "\n".join(notes))
    return tasks, notes


def _run(options: argparse.Namespace) -> None:
    if options.max_length is not None and options.max_length < 3:
        raise InputError(f"--max-length {options.max_length}: at least 3, two special tokens and a word")
    if options.threads is not None:
        if options.threads < 1:
            raise InputError(f"--threads {options.threads}: at least 1")
        torch.set_num_threads(options.threads)
    protocol = Protocol(
        mode=options.mode,
        aggregate=options.aggregate,
        pooling=options.pooling,
        max_length=options.max_length,
        whiten=options.whiten,
        precision=options.precision,
        keep_pairs=options.pairs,
    )
    names = task_names(options.tasks, options.mode)
    tasks, notes = read_tasks(downstream_folder(options.data), names, protocol.split)
    model = load_model(options.model, options.pooling, options.precision, options.device)
    started = time.perf_counter()
    results = evaluate(model, tasks, protocol)
    seconds = time.perf_counter() - started
    results.notes[:0] = notes
    print(format_results(results))
    print(f"\n{len(tasks)} of {len(names)} tasks in {seconds:.1f} s on {torch.get_num_threads()} threads")
    if options.json:
        write_json(options.json, {**results.to_json(), "seconds": round(seconds, 3)})


if __name__ == "__main__":
    sys.exit(main())
