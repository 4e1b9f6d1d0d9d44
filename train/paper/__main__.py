"""Make a table of the paper: ``python -m train.paper TABLE --output FOLDER``.

``python -m train.paper main --output runs/paper`` trains what the table of that name needs, scores it, and writes it
beside the paper's figures.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from train.config.command import run_command
from train.signals import handled, leave_at_once, tell_user


def main(arguments: Sequence[str] | None = None, prog: str = "python -m train.paper") -> int:
    """The command line; returns the exit code. prog: the command's name in --help."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    with handled(leave_at_once):  # from the start, because the imports below take seconds
        return run_command(lambda: _run(words, prog), "train")


def _run(words: list[str], prog: str) -> int:
    from train.paper.request import read_request

    request = read_request(words, prog)
    # imported late: --help and errors of the command line should not wait for torch
    from train.paper.tables import save
    from train.paper.works import works_of
    from train.record.folder import PAPER, OutputFolder, is_own

    cells = request.cells()
    works = works_of(request, cells)
    left = [work for work in works.values() if not work.done()]
    if request.given.get("dry_run"):
        for work in works.values():
            print(f"{'to do' if work in left else 'done '}  {work.command}")
        print(f"{len(left)} of {len(works)} are to do")
        return 0
    for work in left:
        work.check()

    def write_table() -> str:
        scores = {source: work.scores() for source, work in works.items()}
        return save(request.output, request.about(), cells, scores)

    with OutputFolder(request.output, PAPER, resume=is_own(request.output, PAPER)):  # the same command goes on
        write_table()  # refuses to replace a table that the user changed, before works take hours
        for number, work in enumerate(left, start=1):
            if not work.done():  # an earlier work may have done it too
                tell_user(f"{work.name}, {number} of {len(left)}")
                if code := work.do():
                    tell_user(f"the same command goes on: {len(left) - number + 1} of {len(left)} are left")
                    return code
                write_table()
        print(write_table())
    tell_user(f"{request.output / 'table.json'} and table.md hold it")
    return 0


if __name__ == "__main__":
    sys.exit(main())
