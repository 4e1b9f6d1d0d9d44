"""A few texts -> words, in the caller's thread, by the kernels that read a corpus."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from una_fast.arrays import ID, Ragged, StringTable, row_bounds
from una_fast.corpus.chunks import ChunkTable
from una_fast.corpus.source import Block
from una_fast.corpus.word_tokenizers import NAMED, WordTokenizer
from una_fast.corpus.words import document_words
from una_fast.parallel import CallingThread

FEW = 16  # fewer texts are split one by one, because the tables of `split_at_once` take 0.5 ms to set up


def split_texts(texts: Sequence[bytes], tokenizer: WordTokenizer) -> tuple[StringTable, Ragged]:
    """The distinct words of `texts` (UTF-8) by first appearance, and int32 ids of each text's words, in order.

    The words equal `tokenizer.words` of each text.
    """
    if tokenizer.name not in NAMED or len(texts) < FEW:
        return _number([tokenizer.words(text.decode("utf-8")) for text in texts])
    return split_at_once(texts, tokenizer)


def split_at_once(texts: Sequence[bytes], tokenizer: WordTokenizer) -> tuple[StringTable, Ragged]:
    """As `split_texts`, for at least one text and a tokenizer of NAMED: each distinct chunk is split once."""
    bounds = row_bounds([len(text) for text in texts])
    block, table, here = (
        Block(np.frombuffer(b"".join(texts), dtype=np.uint8), bounds[:-1], bounds[1:]),
        ChunkTable(),
        CallingThread(),
    )
    table.add([block], here, lambda block: None)
    return document_words(here, *table.result(here), tokenizer)


def _number(rows: list[list[str]]) -> tuple[StringTable, Ragged]:
    numbers: dict[str, int] = {}
    ids = [numbers.setdefault(word, len(numbers)) for row in rows for word in row]
    return StringTable.from_strings(list(numbers)), Ragged(np.array(ids, dtype=ID), row_bounds([len(r) for r in rows]))
