"""Make a table of the paper: ``python -m bench.paper TABLE --output FOLDER``.

``python -m bench.paper main --output runs/paper`` trains what the table of that name needs, scores it, and writes it
beside the paper's figures. The same command goes on after a stop.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from bench.paper.request import read_request
from train.config.command import run_command
from train.signals import handled, leave_at_once, tell_user

COMMAND = "bench.paper"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line, by default that of the process, and return the exit code."""
    with handled(leave_at_once):  # from the start, because the imports below take seconds
        return run_command(lambda: _run(list(sys.argv[1:] if arguments is None else arguments)), "train")


def _run(words: list[str]) -> int:
    request = read_request(words, f"python -m {COMMAND}")
    # imported late: --help and errors of the command line should not wait for torch
    from bench.paper.tables import save
    from bench.paper.works import works_of
    from train.record.folder import is_own, output_folder

    cells = request.cells()
    works = works_of(request, cells)
    left = [work for work in works.values() if not work.done()]
    if request.given.get("dry_run"):
        lines = [f"{'to do' if work in left else 'done '}  {work.command}\n" for work in works.values()]
        sys.stdout.write("".join([*lines, f"{len(left)} of {len(works)} are to do\n"]))
        return 0
    for work in left:
        work.check()
    with output_folder(request.output, COMMAND, resume=is_own(request.output, COMMAND)):
        for number, work in enumerate(left, start=1):
            if not work.done():  # an earlier work may have done it too
                tell_user(f"{work.name}, {number} of {len(left)}")
                if code := work.do():
                    tell_user(f"the same command goes on: {len(left) - number + 1} of {len(left)} are left")
                    return code
                save(request.output, request.about(), cells, {source: one.scores() for source, one in works.items()})
        scores = {source: work.scores() for source, work in works.items()}
        sys.stdout.write(save(request.output, request.about(), cells, scores) + "\n")
    tell_user(f"{request.output / 'table.json'} and table.md hold it")
    return 0


if __name__ == "__main__":
    sys.exit(main())
