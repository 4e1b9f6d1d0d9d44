"""Train a sentence encoder: ``python -m train.ddp --nproc 4 --corpus FILE --model NAME_OR_FOLDER --output FOLDER``.

On several machines, let torchrun start the ranks:
``torchrun --nnodes 2 --nproc-per-node 8 --rdzv-backend c10d --rdzv-endpoint HOST -m train.ddp --corpus FILE ...``
Each machine may have its own --index; only rank 0 writes --output and runs the evaluation.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from train.config import OPTIONS, PRESETS, Run, make_run
from train.signals import leave_at_once, signals_handled
from una_fast.command import Command
from una_fast.errors import InputError

COMMON = (
    "corpus", "model", "output", "dev", "near_misses", "loss", "batch_size", "learning_rate", "max_steps", "epochs",
    "nproc", "resume",
)  # fmt: skip
MAY_CHANGE = ", ".join(option.flag for option in OPTIONS.values() if option.role not in ("result", "call"))


def read_run(given: dict[str, Any]) -> Run:
    """Make the run from the given values. The run in --output, the demo and the preset give others, in this order."""
    chosen = [name for name in PRESETS if given.pop(name, False)]
    if len(chosen) > 1:
        raise InputError("--paper and --near-misses together: give one of them")
    values = {**(PRESETS[chosen[0]] if chosen else {}), **given}
    if values.get("demo"):
        from train.demo import demo_settings, free_folder

        values = {**demo_settings(Path(values["output"]) if values.get("output") else free_folder()), **values}
    if values.get("resume") and values.get("output"):
        values = {**_saved_options(values), **values}
    return make_run(values)


def _saved_options(values: dict[str, Any]) -> dict[str, Any]:
    """Return the options of the run in --output, which --resume continues. values: those that are given."""
    from train.record.folder import INDEX, RUN, SEEDS, check_owner, saved_options
    from una_fast.storage.files import read_object

    output = Path(values["output"])
    saved = saved_options(output, Run)
    if not saved and "corpus" not in values:
        check_owner(output, RUN)
    saved.pop("trust_remote_code", None)  # a folder of somebody else must not decide that a model's code is run
    if saved.get("index") == str(Path(saved.get("output", "")) / INDEX):
        del saved["index"]  # it moves with the folder
    if saved.get("seeds"):
        added = map(int, read_object(output / SEEDS).get("seeds", ()))  # those of later calls
        saved["seeds"] = [*dict.fromkeys([*saved["seeds"], *added])]
        saved.pop("seed", None)
    for one, other in (("seeds", "seed"), ("seed", "seeds")):
        if one in values:
            saved.pop(other, None)
    return saved


def _run(run: Run) -> int:
    # imported late: --help and errors of the command line should not wait for torch
    if run.seeds:
        from train.launch.seeds import train_seeds

        return train_seeds(run)
    from train.launch.ranks import launch

    return launch(run)


command = Command(
    "python -m train.ddp", "Train a sentence encoder with UNA's hard negatives, on one rank or many.",
    Run, _run, make=read_run, extra="train", page="tutorial", first=COMMON,
    epilog=f"With --resume these may differ from the values of the first call: {MAY_CHANGE}.",
)  # fmt: skip


def main(argv: Sequence[str] | None = None, prog: str = "python -m train.ddp") -> int:
    """Run the command line and return the exit code."""
    with signals_handled(leave_at_once):  # now, because the imports of a run take seconds
        return command(argv, prog)


if __name__ == "__main__":
    sys.exit(main())
