"""Stores sentences as token ids in one small file. A million sentences of Wikipedia take 31 MB; gzipped text, 57 MB."""

from __future__ import annotations

import gzip
import itertools
import lzma
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from una_fast.errors import InputError

LONGEST = 62  # tokens of a sentence, without [CLS] and [SEP]
AT_A_TIME = 20_000  # sentences per call of the tokenizer
# encoding pairs of bytes together gives 57% of the ids' size; the default preset gives 62%
FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 6, "lc": 0, "lp": 1, "pb": 1, "dict_size": 1 << 26}]


def write_ids(source: Path, tokenizer: Any, path: Path, first: int, number: int | None = None) -> None:
    """Write the ids of the lines of a gzipped text, from line `first` on, without special tokens.

    Args:
        source: one sentence per line.
        tokenizer: a fast tokenizer of at most 65,536 entries.
        path: the file to write.
        first: how many lines to skip.
        number: how many lines to write. None: all lines that follow.
    """
    lengths, ids = [], []
    with gzip.open(source, "rt", encoding="utf-8") as file:
        lines = itertools.islice(file, first, None if number is None else first + number)
        while some := [line.rstrip("\n") for line in itertools.islice(lines, AT_A_TIME)]:
            encoded = tokenizer(some, add_special_tokens=False, truncation=True, max_length=LONGEST)["input_ids"]
            lengths.append(np.array([*map(len, encoded)], np.uint8))
            ids.append(np.fromiter(itertools.chain.from_iterable(encoded), np.uint16))
    with lzma.open(path, "wb", filters=FILTERS) as out:
        for parts in (lengths, ids):
            np.save(out, np.concatenate(parts))


def read_ids(path: Path) -> tuple[NDArray[np.uint8], NDArray[np.uint16]]:
    """Read a file of `write_ids`, and return (lengths, ids).

    lengths: uint8 (n_sentences,), the number of tokens of each sentence.
    ids: uint16, the token ids of all sentences, one sentence after the other.

    Raises:
        InputError: the file is missing or damaged.
    """
    try:
        with lzma.open(path, "rb") as file:
            return np.load(file), np.load(file)
    except (EOFError, OSError, ValueError, lzma.LZMAError) as error:
        raise InputError(f"{path}: its token ids cannot be read: {error}") from error


def with_special(lengths: NDArray[np.uint8], ids: NDArray[np.uint16], cls: int, sep: int) -> NDArray[np.int32]:
    """Return all sentences concatenated, int32, each sentence between [CLS] and [SEP].

    lengths, ids: from `read_ids`; cls, sep: the ids of [CLS] and [SEP].
    """
    ends = np.cumsum(lengths.astype(np.int64) + 2)
    stream = np.full(ends[-1], -1, np.int32)
    stream[ends - 1] = sep
    stream[np.r_[0, ends[:-1]]] = cls
    stream[stream < 0] = ids
    return stream
