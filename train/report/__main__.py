"""The command: `python -m train.report RUN... [--output report.html]`."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from train.config.command import run_command
from train.config.parser import Parser
from train.record.files import replacing
from train.report.page import make_page
from train.report.paper_tables import find_tables
from train.report.runs import find_runs

EPILOG = (
    "Test scores, and the similarities that are drawn against gold scores, are read from RUN/evaluation.json: "
    "`train.ddp --evaluate FOLDER` writes it, and so does `train.evaluate --model RUN/best --pairs --json "
    "RUN/evaluation.json`."
)


def build_parser(prog: str = "python -m train.report") -> Parser:
    """The command line."""
    parser = Parser(prog=prog, description="Runs as one HTML page.", epilog=EPILOG)
    parser.add_argument(
        "runs", type=Path, nargs="+", metavar="RUN", help="folder of a run, of several, or of train.paper"
    )
    parser.add_argument(
        "--output", type=Path, default=Path("report.html"), metavar="FILE", help="file of the page [report.html]"
    )
    parser.add_argument("--samples", type=int, default=6, metavar="N", help="negatives shown of each setting [6]")
    about = "folder of the run, or of the seeds, that the others are compared with, seed by seed"
    parser.add_argument("--baseline", type=Path, metavar="RUN", help=about)
    return parser


def main(arguments: Sequence[str] | None = None, prog: str = "python -m train.report") -> int:
    """Run the command and return its exit code."""
    return run_command(lambda: _run(build_parser(prog).parse_args(arguments)), "report")


def _run(options: Namespace) -> int:
    notes: list[str] = []
    tables = find_tables(options.runs, notes)
    page = make_page(find_runs(options.runs, notes), options.samples, options.baseline, notes, tables)
    with replacing(options.output) as partial:  # a run's JSON may hold surrogates, which UTF-8 cannot encode
        partial.write_bytes(page.encode("utf-8", "xmlcharrefreplace"))
    for note in dict.fromkeys(notes):
        print(f"warning: {note}", file=sys.stderr)
    print(f"{options.output}: {len(page) / 1024:,.0f} KiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
