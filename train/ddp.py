"""Train a sentence encoder: ``python -m train.ddp --nproc 4 --corpus FILE --model NAME_OR_FOLDER --output FOLDER``.

The command starts its ranks itself. On several machines, let torchrun start them:
``torchrun --nnodes 2 --nproc-per-node 8 --rdzv-backend c10d --rdzv-endpoint HOST -m train.ddp --corpus FILE ...``
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from train.config import fail, parse
from una_fast.errors import InputError


def main(argv: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    try:
        run = parse(argv)
        # imported late: --help and errors of the command line should not wait for torch
        from train.launch import launch, report

        if "TORCHELASTIC_RUN_ID" not in os.environ:
            return launch(run)
        from train.worker import work_under_torchrun

        return report(run, work_under_torchrun(run))
    except InputError as error:
        fail(error)


if __name__ == "__main__":
    sys.exit(main())
