"""Write paraphrases or back-translations of a corpus, for `--paraphrases` of training.

``python -m train.generate paraphrase --model pegasus --corpus FILE --output FILE``
``python -m train.generate back-translation --model opus-mt-fr --corpus FILE --output FILE``
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from train.config.command import Command
from train.generation.options import OPTIONS, read_job
from train.signals import handled, leave_at_once


def main(arguments: Sequence[str] | None = None, prog: str = "python -m train.generate") -> int:
    """The command line; returns the exit code. prog: the command's name in --help."""
    about = "Write a paraphrase or a back-translation of every sentence of a corpus, line by line."
    with handled(leave_at_once):  # from the start, because the imports below take seconds
        return Command(prog, about, OPTIONS, _run, "generate")(arguments)


def _run(values: dict[str, Any]) -> int:
    job = read_job(values)
    # imported late: --help and errors of the command line should not wait for torch
    from train.generation.write import write_output

    return write_output(job)


if __name__ == "__main__":
    sys.exit(main())
