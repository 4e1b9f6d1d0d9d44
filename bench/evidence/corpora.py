"""The sentences of Wikipedia that encoders are trained on: parts of a large file of the data folder."""

from __future__ import annotations

import gzip
import itertools
import zlib
from pathlib import Path

from train.record.folder import write_file
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
    """Write `number` lines of `source` from line `first` on to `path`, if it is not there, and return it.

    Raises:
        InputError: `source` is damaged or has fewer lines.
    """
    if path.is_file():
        return path
    try:
        with gzip.open(source, "rb") if source.suffix == ".gz" else source.open("rb") as file:
            lines = list(itertools.islice(file, first, first + number))
    except (EOFError, OSError, zlib.error) as error:
        raise InputError(f"{source}: damaged or cut short ({error}): fetch it again") from error
    if len(lines) < number:
        raise InputError(f"{source}: has fewer than {first + number:,} lines: give the whole file")
    write_file(path, b"".join(lines))
    return path
