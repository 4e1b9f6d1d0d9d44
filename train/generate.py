"""Write paraphrases or back-translations of a corpus, for `--paraphrases` of training.

``python -m train.generate paraphrase --model pegasus --corpus FILE --output FILE``
``python -m train.generate back-translation --model opus-mt-fr --corpus FILE --output FILE``
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from train.config.command import checked_values, option_parser, run_command
from train.generation.options import TEXT_KINDS, options_for, resolve_job
from train.signals import handled, leave_at_once
from una_fast.errors import InputError

if TYPE_CHECKING:
    from train.generation.options import Job


def main(arguments: Sequence[str] | None = None, prog: str = "python -m train.generate") -> int:
    """The command line; returns the exit code. prog: the command's name in --help."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    with handled(leave_at_once):  # from the start, because the imports below take seconds
        return run_command(lambda: _run(words, prog), "generate")


def _run(words: list[str], prog: str) -> int:
    job = read_job(words, prog)
    # imported late: --help and errors of the command line should not wait for torch
    from train.generation.work import launch

    return launch(job)


def read_job(words: list[str], prog: str) -> Job:
    """The job of a command line.

    Raises:
        InputError: no such kind of text, an unknown option, a value that is missing or out of range.
    """
    if words and words[0] in ("-h", "--help"):
        sys.stdout.write(overview(prog))
        sys.exit(0)
    if not words or words[0] not in TEXT_KINDS:
        given = words[0] if words else ""
        close = difflib.get_close_matches(given, TEXT_KINDS, n=1)
        hint = f"did you mean {close[0]}?" if close else f"choose from {', '.join(TEXT_KINDS)}"
        raise InputError(f"{prog} {given or 'needs the kind of text to write'}: {hint}")
    name, *rest = words
    options = options_for(name)
    values = checked_values(option_parser(f"{prog} {name}", TEXT_KINDS[name].about, options), options, rest)
    return resolve_job(name, values)


def overview(prog: str) -> str:
    """The help text: one line for each kind of text that the command writes."""
    lines = [f"  {name:<16}  {kind.about}\n" for name, kind in TEXT_KINDS.items()]
    return f"usage: {prog} KIND [options]\n\n{''.join(lines)}\n`{prog} KIND --help` shows the options.\n"


if __name__ == "__main__":
    sys.exit(main())
