"""`una-fast index FILE ... --output FOLDER`: builds the index of a corpus."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from una_fast.command import Command, option, settings_of
from una_fast.errors import InputError, counted, first_line
from una_fast.imports import naming_extras
from una_fast.options import Files, Words

TIMEOUT = 10  # s, for the first answer of a Dask scheduler


@dataclass(frozen=True)
class IndexOptions(Files, Words):
    """The options of `una-fast index`."""

    corpus: tuple[str, ...] = option(
        "files of text: .txt, .csv, .tsv, .jsonl, .json or .parquet, one sentence per line or row; folders and globs",
        (), required=True, positional=True, metavar="FILE",
    )  # fmt: skip
    output: str = option("folder to build the index in; it must not exist", "", required=True, metavar="FOLDER")
    memory: str = option(
        "memory limit of the build, such as 2GB; on a cluster, of each worker; default: half of the machine's memory",
        "", metavar="SIZE",
    )  # fmt: skip
    cluster: str = option(
        "address of the scheduler of a Dask cluster; its workers build the index, and must see the corpus and --output "
        "under the same paths",
        "", metavar="ADDRESS",
    )  # fmt: skip


def _build(options: IndexOptions) -> None:
    import una_fast  # imported here, so that --help and command-line errors do not wait for it
    from una_fast.index.index import KIND, warn_of_few_terms
    from una_fast.storage.array_folder import check_array_folder, resolved

    check_array_folder(resolved(options.output), KIND, unused=True)
    with connected(options.cluster) if options.cluster else nullcontext() as executor:
        index = una_fast.build_index(
            [*map(Path, options.corpus)],
            progress=sys.stderr.isatty(),
            folder=options.output,
            memory=options.memory or None,
            executor=executor,
            **settings_of(options, Files, Words),
        )
    warn_of_few_terms(index)
    size = f"{counted(index.n_documents, 'sentence')}, {counted(index.n_terms, 'term')}"
    sys.stdout.write(f"{options.output}: {size}\n")


def connected(address: str) -> Any:
    """Return a client of the Dask scheduler at `address` ("tcp://host:8786" or "host:8786"), for a with block."""
    with naming_extras("cluster"):
        from distributed import Client
    try:
        return Client(address, timeout=TIMEOUT)
    except (OSError, ValueError, TypeError) as error:
        raise InputError(
            f"no Dask scheduler answers at {address} ({first_line(error)}): start one with `dask scheduler`, and give "
            "the address that it prints"
        ) from error


main = Command(
    "una-fast index",
    "Build the index of a corpus: count its words, then score and rank them.",
    IndexOptions,
    _build,
    page="cluster",
)
