"""The training sentences: consecutive lines of a large file of Wikipedia in the data folder."""

from __future__ import annotations

import gzip
import itertools
import zlib
from pathlib import Path

from train.evaluation.tasks.reading import read_rows
from una_fast.errors import InputError
from una_fast.storage.files import write_file

CORPORA = ("wiki_large.txt.gz", "wiki1m_for_simcse.txt")  # one sentence per line; train.download fetches the second


def corpus_of(data: Path) -> Path:
    """Return the path of the first of CORPORA that the folder `data` contains.

    Raises:
        InputError: `data` contains none of them.
    """
    for name in CORPORA:
        if (data / "corpora" / name).is_file():
            return data / "corpora" / name
    raise InputError(
        f"{data} has no corpora/{' or corpora/'.join(CORPORA)}: `python -m train.download --to {data}` fetches one"
    )


def write_lines(source: Path, path: Path, first: int, number: int, words: tuple[int, int] | None = None) -> Path:
    """Write lines of a corpus to `path`, unless the file already has this content, and return `path`.

    Args:
        source: the corpus, one sentence per line, possibly gzipped.
        path: the file to write.
        first: how many lines to skip at the start.
        number: how many lines to write.
        words: minimum and maximum number of space-separated words per line. All other lines are ignored, and do not
            count for `first` and `number`. None: no limit.

    Raises:
        InputError: `source` is damaged or has too few lines, or `path` has other content.
    """
    try:
        with gzip.open(source, "rb") if source.suffix == ".gz" else source.open("rb") as file:
            kept = (line for line in file if words is None or words[0] <= len(line.split()) <= words[1])
            lines = list(itertools.islice(kept, first, first + number))
    except (EOFError, OSError, zlib.error) as error:
        raise InputError(f"{source}: damaged or truncated ({error}): fetch it again") from error
    if len(lines) < number:
        which = " of that length" if words else ""
        raise InputError(f"{source}: has fewer than {first + number:,} lines{which}: give the whole file")
    _write_once(path, b"".join(lines))
    return path


def _write_once(path: Path, content: bytes) -> None:
    """Write a file unless it exists. Raises InputError if it exists with other content."""
    if not path.exists():
        write_file(path, content)
    elif path.read_bytes() != content:
        raise InputError(f"{path}: this file or its source has changed: choose a new --output")


PARAPHRASE = 4.5  # minimum score, of 5, at which a pair of STS-B counts as a paraphrase


def write_pairs(data: Path, folder: Path) -> tuple[Path, Path]:
    """Write the paraphrases in the training parts of MRPC and STS-B to two files in `folder`, and return the paths.

    Line i of the first file is a paraphrase of line i of the second. data: folder that contains senteval/.
    """
    downstream = data / "senteval" / "downstream"
    mrpc = read_rows(downstream / "MRPC" / "msr_paraphrase_train.txt", (0, 3, 4), skip=1)
    sts_b = read_rows(downstream / "STS" / "STSBenchmark" / "sts-train.csv", (4, 5, 6))
    pairs = [pair for label, *pair in mrpc if label == "1"]
    pairs += [pair for score, *pair in sts_b if float(score) >= PARAPHRASE]
    paths = folder / "paraphrases-1.txt", folder / "paraphrases-2.txt"
    for path, side in zip(paths, zip(*pairs, strict=True), strict=True):
        _write_once(path, "".join(f"{text}\n" for text in side).encode())
    return paths
