"""Check that the words of every line of a corpus are NLTK's, and that its chunks reproduce the line.

It takes 160 us per line on one core.

    python -m bench.parity.check_words data/corpora/*.txt.gz
"""

from __future__ import annotations

import argparse
import gzip
import multiprocessing
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from nltk import word_tokenize

from una_fast.corpus.words import Parsed, parse_corpus
from una_fast.parallel import n_cores

LINES_PER_TASK = 2000
Task = tuple[int, list[str]]  # the row of the first line, and the lines

parsed: Parsed  # set before worker processes are forked, so that they share it


def different_lines(task: Task) -> list[str]:
    """Return a message for each line whose words differ from NLTK's, or whose chunks do not reproduce the line."""
    found = []
    for row, line in enumerate(task[1], task[0]):
        text = " ".join(parsed.chunks[i] for i in parsed.sentences[row])
        words = [parsed.vocabulary[i] for i in parsed.words[row]]
        expected = word_tokenize(line.lower(), preserve_line=True)
        if text != line or words != expected:
            found.append(f"row {row}: {line!r}\n  chunks {text!r}\n  words  {words}\n  NLTK   {expected}")
    return found


def tasks(path: Path) -> Iterator[Task]:
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        lines = (line.removesuffix("\n") for line in file)
        row = 0
        while batch := list(islice(lines, LINES_PER_TASK)):
            yield row, batch
            row += len(batch)
    if row != len(parsed.words):
        raise ValueError(f"{path}: the file has {row:,} lines, and {len(parsed.words):,} were parsed")


def check(path: Path) -> int:
    """Compare one file, print the result and return the number of lines that differ."""
    global parsed
    start = time.perf_counter()
    parsed, _ = parse_corpus(path)
    parse_seconds = time.perf_counter() - start
    n_different = 0
    with multiprocessing.get_context("fork").Pool(n_cores(None)) as pool:
        for found in pool.imap(different_lines, tasks(path)):
            n_different += len(found)
            print(*found, sep="\n", end="\n" if found else "")
    seconds = time.perf_counter() - start - parse_seconds
    print(
        f"{path.name}: {n_different} of {len(parsed.words):,} lines differ; "
        f"parsed in {parse_seconds:.2f} s, compared in {seconds:.0f} s",
        flush=True,
    )
    return n_different


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path, nargs="+", help=".txt.gz files")
    sys.exit(sum(check(path) for path in parser.parse_args().corpus) > 0)
