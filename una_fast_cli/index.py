"""`una-fast index CORPUS... --output FOLDER`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from train.config.data import Files, Words
from train.config.options import option, options_of
from train.config.parser import checked_values, option_parser
from una_fast.errors import InputError, counted


@dataclass(frozen=True)
class Output:
    """Output."""

    output: str = option("", "folder to save the index in; it must not exist", metavar="FOLDER")


def main(arguments: Sequence[str] | None = None, prog: str = "una-fast index") -> int:
    """Build the index of a corpus and save it; the exit code."""
    groups = (Output, Files, Words)
    parser = option_parser(prog, "Build the index of a corpus: its words, counted, scored and ranked.", groups)
    parser.usage = f"{prog} FILE ... --output FOLDER [options]"
    about = "files of text: .txt, .csv, .tsv, .jsonl, .json or .parquet, one sentence a line or row; folders and globs"
    parser.add_argument("corpus", nargs="+", metavar="FILE", help=about)
    values = checked_values(parser, groups, arguments)
    if not values["output"]:
        raise InputError("--output is missing: give the folder to save the index in")
    if Path(values["output"]).exists():
        raise InputError(f"--output {values['output']}: exists already: choose another folder, or delete it")
    # imported late: --help and errors of the command line should not wait for Numba
    import una_fast

    index = una_fast.build_index(
        [Path(path) for path in values["corpus"]],
        word_tokenizer=values["word_tokenizer"],
        lowercase=values["lowercase"],
        progress=True,
        **Files(**{name: values[name] for name in options_of(Files)}).reading(),
    )
    index.save(values["output"])
    said = f"{counted(index.n_documents, 'sentence')}, {counted(index.n_terms, 'term')}"
    sys.stdout.write(f"{values['output']}: {said}\n")
    return 0
