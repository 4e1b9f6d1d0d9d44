"""The sentences of Wikipedia that encoders are trained on: parts of a large file of the data folder."""

from __future__ import annotations

import gzip
import itertools
from pathlib import Path

from una_fast.errors import InputError

CORPORA = ("wiki_large.txt.gz", "wiki1m_for_simcse.txt")  # a sentence a line; train.download fetches the second


def corpus_of(data: Path) -> Path:
    """The first of CORPORA that the folder `data` has.

    Raises:
        InputError: it has none.
    """
    for name in CORPORA:
        if (data / "corpora" / name).is_file():
            return data / "corpora" / name
    raise InputError(
        f"{data} has no corpora/{' or corpora/'.join(CORPORA)}: `python -m train.download --to {data}` fetches one"
    )


def write_lines(source: Path, path: Path, first: int, number: int) -> Path:
    """Write `number` lines of `source` from line `first` on to `path`, if it is not there, and return it."""
    if not path.is_file():
        beside = path.with_name(f".{path.name}.partial")
        opened = gzip.open(source, "rb") if source.suffix == ".gz" else source.open("rb")
        with opened as lines, beside.open("wb") as file:
            file.writelines(itertools.islice(lines, first, first + number))
        beside.rename(path)
    return path
