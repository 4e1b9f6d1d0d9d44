"""Make a table of the paper: ``python -m bench.paper TABLE --output FOLDER``.

``python -m bench.paper main --output runs/paper`` trains and scores what the table `main` needs, and writes the table
with the paper's figures. After a stop, the same command continues.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from bench.paper.request import read_request
from train.messages import tell_user
from train.signals import leave_at_once, signals_handled
from una_fast.command import run_command

COMMAND = "bench.paper"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return the exit code. arguments: by default the command-line arguments of this process."""
    with signals_handled(leave_at_once):  # handles signals from the start, because the imports below take seconds
        return run_command(lambda: _run(list(sys.argv[1:] if arguments is None else arguments)), "train")


def _run(words: list[str]) -> int:
    request = read_request(words, f"python -m {COMMAND}")
    cells = request.cells()
    notices = request.left_out(cells)
    # imported late: --help and errors of the command line should not wait for torch
    from bench.paper.forms import Table
    from bench.paper.works import works_of
    from train.record.folder import is_own, output_folder

    works = works_of(request, cells)
    left = [work for work in works.values() if not work.done()]
    if request.given.get("dry_run"):
        runs = [work for work in works.values() if work.is_run]
        lines = [f"{'to do' if work in left else 'done '}  {work.command}" for work in runs]
        lines += [f"with the table  {work.command}" for work in works.values() if not work.is_run]
        sys.stdout.write("\n".join([*lines, f"{len(left)} of {len(runs)} runs are to do", *notices, ""]))
        return 0
    for work in left:
        work.check()
    with output_folder(request.output, COMMAND, resume=is_own(request.output, COMMAND)):
        tell_user("\n".join([f"negatives by --variant {request.variant}", *notices]))
        for number, work in enumerate(left, start=1):
            if not work.done():  # an earlier work can have done it too
                tell_user(f"{work.name}, {number} of {len(left)}")
                if code := work.do():
                    tell_user(f"run the same command to continue: {len(left) - number + 1} of {len(left)} are left")
                    return code
                Table(request, cells, works).save()
        table = Table(request, cells, works)
        table.save()
        sys.stdout.write(table.markdown() + "\n")
    tell_user(f"the table is in {request.output / 'table.json'} and table.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
