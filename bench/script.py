"""What the scripts of bench/ share: the command line, the sentences of a file, and names of folders."""

from __future__ import annotations

import argparse
import gzip
import os
import sys
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

from una_fast.command import run_command

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
RESULTS = ROOT / "bench" / "results"
TESTS = ROOT / "tests"  # scripts that need `support` add it to sys.path
FOLDER: dict[str, Any] = {"type": Path, "metavar": "FOLDER"}
DATA = FOLDER | {"default": os.environ.get("UNA_FAST_DATA"), "help": "folder of the data [UNA_FAST_DATA]"}
CORPUS: dict[str, Any] = {"flag": "corpus", "type": Path, "metavar": "FILE", "help": "one sentence per line, or .gz"}
RUNS = FOLDER | {"nargs": "*", "default": (), "metavar": "RUN", "help": "runs of train.ddp, one per seed"}


def run(doc: str | None, action: Callable[..., int | None], **options: dict[str, Any]) -> int:
    """Parse the command line of a script, call `action` with the options by name, and return the exit code.

    Args:
        doc: the docstring of the script, which --help shows.
        action: receives the options; returns the exit code, or None for 0.
        options: the arguments of `ArgumentParser.add_argument` by name. "flag" replaces the name on the command line.
            An option is required unless it has a default or an action.
    """
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, about in options.items():
        flag = about.get("flag", f"--{name.replace('_', '-')}")
        named = {key: value for key, value in about.items() if key != "flag"}
        if flag.startswith("-"):
            required = about.get("default") is None and "action" not in about
            named = {"dest": name, "required": required, **named}
        parser.add_argument(flag, **named)
    values = vars(parser.parse_args())
    return run_command(lambda: action(**values), "evidence")


def read_lines(path: Path, number: int | None = None) -> list[str]:
    """Return the first lines of a file, possibly gzipped. number: None for all lines."""
    opened = gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8")
    with opened as file:
        return [line.rstrip("\n") for line in islice(file, number)]


def import_tests() -> None:
    """Make `support`, which belongs to the tests, importable."""
    sys.path.insert(0, str(TESTS))
