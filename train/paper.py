"""Make a table of the paper: ``python -m train.paper TABLE --output FOLDER``.

``python -m train.paper main --output runs/paper`` trains what the table of that name needs, scores it, and writes it
beside the paper's figures.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from train.config.command import run_command
from train.steps.signals import handled, leave_at_once


def main(arguments: Sequence[str] | None = None, prog: str = "python -m train.paper") -> int:
    """The command line; returns the exit code. prog: the command's name in --help."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    with handled(leave_at_once):  # from the start, because the imports below take seconds
        return run_command(lambda: _run(words, prog), "train")


def _run(words: list[str], prog: str) -> int:
    if words and words[0] in ("-h", "--help"):
        sys.stdout.write(overview(prog))
        sys.exit(0)
    from train.reproduction.options import read_request

    request = read_request(words, prog)
    # imported late: --help and errors of the command line should not wait for torch
    from train.reproduction.launch import launch

    return launch(request)


def overview(prog: str) -> str:
    """The help text: one line per table."""
    from train.tables.registry import NAMES, table_of

    lines = [f"  {name:<14}table {table.number}: {table.title}\n" for name in NAMES for table in [table_of(name)]]
    return f"usage: {prog} TABLE [options]\n\n{''.join(lines)}\n`{prog} TABLE --help` shows the options.\n"


if __name__ == "__main__":
    sys.exit(main())
