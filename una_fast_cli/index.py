"""`una-fast index CORPUS... --output FOLDER`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from train.config.command import checked_values, option_parser
from train.config.options import option, options_of
from train.config.run import FILES, WORDS, Run, reading_arguments
from una_fast.corpus.word_tokenizers import tokenizer_name
from una_fast.errors import InputError, counted
from una_fast.index.layout import KIND
from una_fast.index.staged.work import end_work, open_work, work_folder
from una_fast.storage import check_unused, is_saved

if TYPE_CHECKING:
    from una_fast import Index


@dataclass(frozen=True)
class Output:
    """Output."""

    output: str = option("", "folder to build the index in; it must not exist", metavar="FOLDER")


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

    @contextmanager
    def executor(self) -> Iterator[Any]:
        """The client of the cluster, or None."""
        if not self.cluster:
            yield None
            return
        from una_fast.integrations.dask import connected

        with connected(self.cluster) as client:
            yield client


def main(arguments: Sequence[str] | None = None, prog: str = "una-fast index") -> int:
    """Build the index of a corpus and save it; the exit code."""
    options = options_of(Output) | options_of(Build) | options_of(Run, FILES, WORDS)
    parser = option_parser(prog, "Build the index of a corpus: its words, counted, scored and ranked.", options)
    parser.usage = f"{prog} FILE ... --output FOLDER [options]"
    about = "files of text: .txt, .csv, .tsv, .jsonl, .json or .parquet, one sentence a line or row; folders and globs"
    parser.add_argument("corpus", nargs="+", metavar="FILE", help=about)
    values = checked_values(parser, options, arguments)
    if not values["output"]:
        raise InputError("--output is missing: give the folder to save the index in")
    index = _built_before(values) or _build(values)
    said = f"{counted(index.n_documents, 'sentence')}, {counted(index.n_terms, 'term')}"
    sys.stdout.write(f"{values['output']}: {said}\n")
    return 0


def _build(values: dict[str, Any]) -> Index:
    check_unused(Path(values["output"]), KIND)
    import una_fast  # here, so that --help and errors of the command line do not wait for it

    build = Build(**{name: values[name] for name in options_of(Build)})
    with build.executor() as executor:
        return una_fast.build_index(
            [Path(path) for path in values["corpus"]],
            word_tokenizer=values["word_tokenizer"],
            lowercase=values["lowercase"],
            progress=True,
            folder=values["output"],
            memory=build.memory or None,
            executor=executor,
            **reading_arguments(values),
        )


def _built_before(values: dict[str, Any]) -> Index | None:
    """The index that the same command has built, if that was killed before it deleted its work folder."""
    folder = Path(values["output"])
    if not (is_saved(folder) and work_folder(folder).is_dir()):
        return None
    from una_fast import load_index

    name = values["word_tokenizer"]
    function = name if ":" in name else None  # which an index does not hold
    corpus = [Path(path) for path in values["corpus"]]
    index = load_index(folder, corpus, values["column"], function, quoting=values["quoting"])
    if (tokenizer_name(index.word_tokenizer), index.lowercase) != (name, values["lowercase"]):
        return None
    with open_work(folder) as work:
        end_work(work)
    return index
