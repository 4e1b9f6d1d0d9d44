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

from train.signals import leave_at_once, signals_handled
from una_fast.command import run_command


def main(argv: Sequence[str] | None = None, prog: str = "python -m train.ddp") -> int:
    """Run the command line and return the exit code."""
    with signals_handled(leave_at_once):  # now, because the imports below take seconds
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
    from train.record.folder import RUN, check_owner

    output = Path(values["output"])
    saved = saved_options(output)
    if not saved and "corpus" not in values:
        check_owner(output, RUN)
    for given, other in (("seeds", "seed"), ("seed", "seeds")):
        if given in values:
            saved.pop(other, None)
    return {**saved, **values}


def saved_options(output: Path) -> dict[str, Any]:
    """Return the options with which the run in `output` was started, by field name; {} if none are saved."""
    from train.config import OPTIONS
    from train.record.folder import INDEX, SEEDS, read_mark
    from una_fast.storage.files import read_object

    settings = read_mark(output).get("settings", {})
    names = {name for name, option in OPTIONS.items() if option.role != "call"} & settings.keys()
    names -= {"output", "trust_remote_code"}  # a folder of somebody else must not decide that a model's code is run
    if settings.get("index") == str(Path(settings.get("output", "")) / INDEX):
        names -= {"index"}  # it moves with the folder
    values = {name: settings[name] for name in names}
    if settings.get("seeds"):
        added = map(int, read_object(output / SEEDS).get("seeds", ()))  # those of later calls
        values["seeds"] = list(dict.fromkeys([*settings["seeds"], *added]))
        values.pop("seed", None)
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}


if __name__ == "__main__":
    sys.exit(main())
