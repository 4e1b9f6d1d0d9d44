"""`una-fast index CORPUS... --output FOLDER`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from train.config.parser import Parser
from una_fast.errors import InputError


def main(arguments: Sequence[str] | None = None, prog: str = "una-fast index") -> int:
    """Build the index of a corpus and save it; the exit code."""
    parser = Parser(prog=prog, description="Build the index of a corpus: its words, counted, scored and ranked.")
    add = parser.add_argument
    about = "files of text: .txt, .txt.gz, .csv, .tsv, .jsonl or .parquet, one sentence a line or row"
    add("corpus", nargs="+", type=Path, metavar="FILE", help=about)
    add("--output", required=True, type=Path, metavar="FOLDER", help="folder to save the index in; it must not exist")
    add("--column", default="text", metavar="NAME", help="column of the sentences in a table [default text]")
    options = parser.parse_args(arguments)
    if options.output.exists():
        raise InputError(f"--output {options.output}: exists already: choose another folder, or delete it")
    # imported late: --help and errors of the command line should not wait for Numba
    import una_fast

    index = una_fast.build_index(options.corpus, column=options.column, progress=True)
    index.save(options.output)
    sys.stdout.write(f"{options.output}: {index.n_documents:,} sentences, {index.n_terms:,} terms\n")
    return 0
