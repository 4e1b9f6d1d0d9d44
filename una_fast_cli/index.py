"""`una-fast index CORPUS... --output FOLDER`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from train.config.command import Parser
from train.config.options import option, options_of
from train.config.run import FILES, WORDS, Run, reading_arguments
from una_fast.corpus.word_tokenizers import tokenizer_name
from una_fast.errors import InputError, counted
from una_fast.imports import naming_extras
from una_fast.index.layout import KIND
from una_fast.index.staged.work import work_folder
from una_fast.storage import check_own, is_saved, resolved

if TYPE_CHECKING:
    from una_fast import Index

TIMEOUT = 10  # s, for the first answer of a Dask scheduler


@dataclass(frozen=True)
class Output:
    """Output."""

    output: str = option("", "folder to build the index in; it must not exist", required=True, metavar="FOLDER")


@dataclass(frozen=True)
class Build:
    """How it is built."""

    memory: str = option(
        "",
        "memory that the build may take, as 2GB; on a cluster, that each worker may take; by default half of the "
        "machine's",
        metavar="SIZE",
    )
    cluster: str = option(
        "",
        "address of the scheduler of a Dask cluster whose workers build the index; they must see the corpus and "
        "--output under the same names",
        metavar="ADDRESS",
    )


def main(arguments: Sequence[str] | None = None, prog: str = "una-fast index") -> int:
    """Build the index of a corpus and save it; the exit code."""
    options = options_of(Output) | options_of(Build) | options_of(Run, FILES, WORDS)
    parser = Parser(prog, "Build the index of a corpus: its words, counted, scored and ranked.", options)
    parser.usage = f"{prog} FILE ... --output FOLDER [options]"
    about = "files of text: .txt, .csv, .tsv, .jsonl, .json or .parquet, one sentence a line or row; folders and globs"
    parser.add_argument("corpus", nargs="+", metavar="FILE", help=about)
    values = parser.checked(arguments)
    index = _build(values)
    said = f"{counted(index.n_documents, 'sentence')}, {counted(index.n_terms, 'term')}"
    sys.stdout.write(f"{values['output']}: {said}\n")
    return 0


def _build(values: dict[str, Any]) -> Index:
    output = resolved(values["output"])
    was_stopped = os.path.isdir(work_folder(output))  # noqa: PTH112  Path.is_dir raises for names that are too long
    if not was_stopped or (is_saved(output) and not _is_of_command(values)):
        check_own(output, KIND, unused=True)
    import una_fast  # here, so that --help and errors of the command line do not wait for it

    with connected(values["cluster"]) if values["cluster"] else nullcontext() as executor:
        return una_fast.build_index(
            [Path(path) for path in values["corpus"]],
            word_tokenizer=values["word_tokenizer"],
            lowercase=values["lowercase"],
            progress=sys.stderr.isatty(),
            folder=values["output"],
            memory=values["memory"] or None,
            executor=executor,
            **reading_arguments(values),
        )


def _is_of_command(values: dict[str, Any]) -> bool:
    """Whether the index in --output has the words of this command. Raises InputError for one of another corpus."""
    from una_fast import load_index

    name = values["word_tokenizer"]
    function = name if ":" in name else None  # which an index does not hold
    corpus = [Path(path) for path in values["corpus"]]
    index = load_index(values["output"], corpus, values["column"], function, quoting=values["quoting"])
    return (tokenizer_name(index.word_tokenizer), index.lowercase) == (name, values["lowercase"])


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """A client of the scheduler at `address` ("tcp://host:8786", "host:8786").

    Raises:
        InputError: no scheduler answers there, or it is of another version of Dask that does not understand this one.
    """
    with naming_extras("cluster"):
        from distributed import Client
    try:
        client = Client(address, timeout=TIMEOUT)
    except (OSError, ValueError, TypeError) as error:
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(
            f"no Dask scheduler answers at {address} ({said}): start one with `dask scheduler`, and give the address "
            "that it prints"
        ) from error
    with client:
        yield client
