"""Sentences of a corpus by row, and text as one line."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from una_fast.corpus.reading import Reading
from una_fast.corpus.sources import open_sources

Line = tuple[int, str]  # row of the corpus, sentence
# Lines are sorted by length within chunks of this many. Padding is then 2 % of the tokens of wiki_sample in batches of
# 3,276 tokens and 5 % in those of 8,192 (chunks of 512: 8 and 18 %), and the ranks' shares differ by a chunk at most.
CHUNK = 2048


def sentences(corpus: tuple[str, ...], column: str) -> Iterator[Line]:
    """Every sentence of the files, blank ones too, read as training reads them."""
    row = 0
    for source in open_sources([Path(name) for name in corpus], Reading(column)):
        for block in source.blocks():
            data = block.data.tobytes()
            for start, stop in zip(block.starts.tolist(), block.stops.tolist(), strict=True):
                yield row, data[start:stop].decode("utf-8")
                row += 1


def is_blank(sentence: str) -> bool:
    """True for a sentence without text, for which the output has an empty line."""
    return not sentence.strip()


def share_of_rank(lines: Iterator[Line], done: NDArray[np.bool_], rank: int, world: int) -> Iterator[list[Line]]:
    """The chunks of one rank among `world`: every world-th chunk of the lines that are neither blank nor done."""
    left = (line for line in lines if not done[line[0]] and not is_blank(line[1]))
    number = 0
    while chunk := list(islice(left, CHUNK)):
        if number % world == rank:
            yield chunk
        number += 1


def one_line(text: str) -> tuple[str, bool]:
    """`text` with each line break and the blanks around it replaced by one space; and whether it had a line break.

    Line breaks are those of str.splitlines, more than those that end a line of a file, so that every reader of the
    output finds the same lines.
    """
    lines = text.strip().splitlines()
    return " ".join(filter(None, map(str.strip, lines))), len(lines) > 1
