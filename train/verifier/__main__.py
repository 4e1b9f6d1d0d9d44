"""Train a verifier: ``python -m train.verifier --corpus FILE --model NAME_OR_FOLDER --output FOLDER``.

The verifier tells near-misses from pairs with the same meaning. It reads the token embeddings of the encoder, which
stays as it is. Its training pairs are made from the unlabelled sentences of --corpus.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from train.record.folder import VERIFIER, check_owner, saved_options
from train.signals import leave_at_once, signals_handled
from train.verifier.options import VerifierOptions
from una_fast.command import Command, make_options


def read_options(given: dict[str, Any]) -> VerifierOptions:
    """Make the options from the given values. With --resume, those of the run in --output are the defaults."""
    saved: dict[str, Any] = {}
    if given.get("resume") and given.get("output"):
        check_owner(Path(given["output"]), VERIFIER)
        saved = saved_options(Path(given["output"]), VerifierOptions)
    return make_options(VerifierOptions, {**saved, **given})


def _run(options: VerifierOptions) -> int:
    from train.verifier.run import train_verifier  # here, because --help and wrong options should not wait for torch

    return train_verifier(options)


command = Command(
    "python -m train.verifier", "Train a verifier, which tells near-misses from pairs with the same meaning.",
    VerifierOptions, _run, make=read_options, extra="train", page="verifier",
)  # fmt: skip


def main(argv: Sequence[str] | None = None, prog: str = "python -m train.verifier") -> int:
    """Run the command line and return the exit code."""
    with signals_handled(leave_at_once):  # now, because the imports of a run take seconds
        return command(argv, prog)


if __name__ == "__main__":
    sys.exit(main())
