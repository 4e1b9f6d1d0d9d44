"""Write a large corpus: altered copies of a given one, one shard per copy.

    python -m bench.scale.large_corpus wiki_large.txt.gz --copies 20 --output FOLDER

In each copy except the first, a quarter of the distinct chunks gets an ending, so that the vocabulary grows.
Consecutive copies alter different quarters, and each copy has another ending.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from una_fast.arrays import RaggedArray, StringTable
from una_fast.corpus.word_tokenizers import WordTokenizer
from una_fast.corpus.words import parse_corpus

ROWS_AT_ONCE = 1 << 17
ALTERED = 4  # one chunk in this many is altered


def read(corpus: str) -> tuple[list[str], RaggedArray]:
    """Return the distinct chunks of a corpus, and its documents as chunk ids."""
    parsed, _ = parse_corpus(corpus, WordTokenizer("whitespace"))
    return list(parsed.chunks), parsed.sentences


def altered(chunks: list[str], copy: int) -> StringTable:
    """Return the chunks of copy number `copy`, each followed by a space."""
    ending = chr(ord("a") + copy % 26) + chr(ord("a") + copy // 26) + "q"
    texts = [
        f"{chunk}{ending} " if copy and chunk.isalpha() and (number + copy) % ALTERED == 0 else f"{chunk} "
        for number, chunk in enumerate(chunks)
    ]
    return StringTable.from_strings(texts)


def write_copy(path: Path, chunks: StringTable, sentences: RaggedArray) -> None:
    """Write one shard, one document per line."""
    with path.open("wb") as file:
        for row in range(0, len(sentences), ROWS_AT_ONCE):
            bounds = sentences.indptr[row : row + ROWS_AT_ONCE + 1]
            text = chunks.take(sentences.values[bounds[0] : bounds[-1]].astype(np.int64))
            text.utf8[text.offsets[bounds[1:] - bounds[0]] - 1] = ord("\n")
            file.write(text.utf8.data)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", help="file of sentences to copy")
    parser.add_argument("--copies", type=int, default=20, help="number of copies [20]")
    parser.add_argument("--output", type=Path, required=True, help="folder for the shards; it must not exist")
    options = parser.parse_args()
    options.output.mkdir(parents=True)
    chunks, sentences = read(options.corpus)
    for copy in range(options.copies):
        path = options.output / f"copy-{copy:03}.txt"
        write_copy(path, altered(chunks, copy), sentences)
        print(f"{path}: {path.stat().st_size:,} bytes", flush=True)


if __name__ == "__main__":
    main()
