"""Train a sentence encoder: ``python -m train.ddp --nproc 4 --corpus FILE --model NAME_OR_FOLDER --output FOLDER``.

The command starts its own ranks. On several machines, let torchrun start them:
``torchrun --nnodes 2 --nproc-per-node 8 --rdzv-backend c10d --rdzv-endpoint HOST -m train.ddp --corpus FILE ...``
Each machine may have its own --index; only rank 0 writes --output and runs the evaluation. torchrun with --seeds is
refused, because each run of --seeds starts its own ranks.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from train.signals import handled, leave_at_once
from una_fast.command import run_command


def main(argv: Sequence[str] | None = None, prog: str = "python -m train.ddp") -> int:
    """Run the command line and return the exit code. prog: the command's name in --help."""
    with handled(leave_at_once):  # now, because the imports below take seconds
        return run_command(lambda: _run(argv, prog), "train")


def _run(argv: Sequence[str] | None, prog: str) -> int:
    from train.config import make_run, parse

    run = make_run(_add_saved_options(_add_demo_options(parse(argv, prog))))
    # imported late: --help and errors of the command line should not wait for torch
    if run.seeds:
        from train.launch.seeds import train_seeds

        return train_seeds(run)
    from train.launch.ranks import launch

    return launch(run)


def _add_demo_options(values: dict[str, Any]) -> dict[str, Any]:
    """With --demo, add the demo's options to `values`. The user's options override them."""
    if not values.get("demo"):
        return values
    from train.demo import demo_settings, free_folder

    return {**demo_settings(Path(values["output"]) if values.get("output") else free_folder()), **values}


def _add_saved_options(values: dict[str, Any]) -> dict[str, Any]:
    """With --resume, add the options of the run in --output to `values`. The user's options override them."""
    if not (values.get("resume") and values.get("output")):
        return values
    from train.record.checkpoint import saved_options
    from train.record.folder import RUN, check_owner

    saved = saved_options(Path(values["output"]))
    if not saved and "corpus" not in values:
        check_owner(Path(values["output"]), RUN)
    if "seeds" in values:
        saved.pop("seed", None)
    if "seed" in values:
        saved.pop("seeds", None)
    return {**saved, **values}


if __name__ == "__main__":
    sys.exit(main())
