"""Train a verifier: ``python -m train.verifier --corpus FILE --model NAME_OR_FOLDER --output FOLDER``.

The verifier tells near-misses from pairs with the same meaning. It reads the token embeddings of the encoder, which
stays as it is. Its training pairs are made from the unlabelled sentences of --corpus.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from train.record.folder import VERIFIER, check_owner, read_mark
from train.signals import leave_at_once, signals_handled
from train.verifier.options import OPTIONS
from una_fast.command import Command


class VerifierCommand(Command):
    """The command. With --resume, the options of the run in --output are the defaults."""

    def given(self, arguments: Sequence[str] | None) -> dict[str, Any]:
        """Return the values of the command line, and with --resume those of the run that the line does not give."""
        values = super().given(arguments)
        if not (values.get("resume") and values.get("output")):
            return values
        output = Path(values["output"])
        check_owner(output, VERIFIER)
        saved = read_mark(output).get("settings", {})
        names = {name for name, known in OPTIONS.items() if known.role != "call"} & saved.keys() - {"output"}
        return {name: OPTIONS[name].read(saved[name]) for name in names} | values


def _run(values: dict[str, Any]) -> int:
    from train.verifier.run import train_verifier  # here, because --help and wrong options should not wait for torch

    return train_verifier(values)


command = VerifierCommand(
    "python -m train.verifier",
    "Train a verifier, which tells near-misses from pairs with the same meaning.",
    OPTIONS,
    _run,
    "train",
    page="verifier",
)


def main(argv: Sequence[str] | None = None, prog: str = "python -m train.verifier") -> int:
    """Run the command line and return the exit code."""
    with signals_handled(leave_at_once):  # now, because the imports of a run take seconds
        return command(argv, prog)


if __name__ == "__main__":
    sys.exit(main())
