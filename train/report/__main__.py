"""Show runs as one HTML page: ``python -m train.report RUN... [--output report.html]``.

`runs` reads the files of runs and groups them over seeds, `intervals` compares scores, `table` and `figures` show them,
and `page` fills page.html. The page needs no other file and no network.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from train.config.command import Parser, run_command
from train.config.options import option, options_of
from train.record.folder import write_page
from train.report.runs import find_runs, group_runs
from una_fast.errors import InputError

EPILOG = (
    "Test scores are read from RUN/evaluation.json: `train.ddp --evaluate FOLDER` writes it, and so does "
    "`train.evaluate --model RUN/best --json RUN/evaluation.json`."
)


@dataclass(frozen=True)
class Page:
    """The page."""

    output: str = option("report.html", "file of the page", metavar="FILE")
    baseline: str | None = option(
        None, "folder of the run, or of the seeds, that the others are compared with, seed by seed", metavar="RUN"
    )


def main(arguments: Sequence[str] | None = None, prog: str = "python -m train.report") -> int:
    """Run the command and return its exit code."""
    parser = Parser(prog, "Show runs as one HTML page.", options_of(Page))
    parser.usage, parser.epilog = "%(prog)s RUN [RUN ...] [options]", EPILOG
    parser.add_argument("runs", nargs="+", metavar="RUN", help="folder of a run, of several, or of bench.paper")
    return run_command(lambda: _run(parser.checked(arguments)), "report")


def _run(values: dict[str, Any]) -> int:
    # imported late: --help and errors of the command line should not wait for plotly
    from train.report.page import make_page

    output, first = Path(values["output"]), [Path(values["baseline"])] if values["baseline"] else []
    groups = group_runs(find_runs([*first, *map(Path, values["runs"])]))  # the baseline's group is the first
    inside = [run.folder for run in find_runs(first)] if first else []
    marked = [group.label for group in groups if any(run.folder in inside for run in group.runs)]
    if len(marked) > 1:
        raise InputError(
            f"--baseline {first[0]}: holds runs of {len(marked)} settings ({'; '.join(marked)}): name one of them"
        )
    page = make_page(groups, groups[0] if first else None)
    write_page(output, page)
    sys.stdout.write(f"{output}: {len(page) / 1024:,.0f} KiB\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
