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


def write_lines(source: Path, path: Path, first: int, number: int, words: tuple[int, int] | None = None) -> Path:
    """Write `number` lines of `source` from line `first` on to `path`, if it is not there, and return it.

    words: fewest and most words, between spaces, of a line that counts; None: every line counts.

    Raises:
        InputError: `source` is damaged or has fewer lines.
    """
    if path.is_file():
        return path
    try:
        with gzip.open(source, "rb") if source.suffix == ".gz" else source.open("rb") as file:
            kept = (line for line in file if words is None or words[0] <= len(line.split()) <= words[1])
            lines = list(itertools.islice(kept, first, first + number))
    except (EOFError, OSError, zlib.error) as error:
        raise InputError(f"{source}: damaged or cut short ({error}): fetch it again") from error
    if len(lines) < number:
        which = " of that length" if words else ""
        raise InputError(f"{source}: has fewer than {first + number:,} lines{which}: give the whole file")
    write_file(path, b"".join(lines))
    return path
