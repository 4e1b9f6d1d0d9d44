"""Show runs as one HTML page: ``python -m train.report RUN... [--output report.html]``."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from train.report.runs import find_runs, group_runs
from una_fast.command import Command, option
from una_fast.errors import InputError
from una_fast.storage.files import write_file

GENERATOR = b'<meta name="generator" content="una_fast">'  # at the start of a page
EPILOG = (
    "Test scores are read from RUN/evaluation.json: `train.ddp --evaluate FOLDER` writes it, and so does "
    "`train.evaluate --model RUN/best --json RUN/evaluation.json`."
)


@dataclass(frozen=True)
class ReportOptions:
    """The options of `python -m train.report`."""

    runs: tuple[str, ...] = option(
        "folders of runs", (), "Runs and page", required=True, positional=True, metavar="RUN"
    )
    output: str = option("HTML file to write", "report.html", metavar="FILE")
    baseline: str | None = option("run, or folder of seeds, to compare the other runs with", None, metavar="RUN")


def _run(options: ReportOptions) -> None:
    # imported late: --help and errors of the command line should not wait for plotly
    from train.report.page import make_page

    output, baseline = Path(options.output), [Path(options.baseline)] if options.baseline else []
    groups = group_runs(find_runs([*baseline, *map(Path, options.runs)]))  # the baseline's group is the first
    if baseline and len(group_runs(find_runs(baseline))) > 1:
        raise InputError(
            f"--baseline {baseline[0]}: contains runs with different settings: give a folder of one setting"
        )
    if output.is_file() and GENERATOR not in output.read_bytes()[:1000]:
        raise InputError(f"--output {output}: exists, and this command did not write it: choose another name")
    page = make_page(groups, groups[0] if baseline else None)
    write_file(output, page)
    sys.stdout.write(f"{output.absolute()}: written, {len(page) / 1024:,.0f} KiB\n")


ABOUT = "Show runs as one HTML page."
main = Command("python -m train.report", ABOUT, ReportOptions, _run, extra="report", epilog=EPILOG, page="tutorial")

if __name__ == "__main__":
    sys.exit(main())
