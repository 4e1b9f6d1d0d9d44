"""Sentences as rows of word ids: documents of an index, or any other text. Other text may contain unseen words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import xxhash

from una_fast._kernels.ids.spell import spell_rows
from una_fast.arrays import ID, RaggedArray, StringTable
from una_fast.corpus.documents import encode_sentence
from una_fast.corpus.word_tokenizers import WordTokenizer
from una_fast.corpus.words import split_texts
from una_fast.errors import InputError
from una_fast.index.index import Index

NO_STRINGS = StringTable.from_strings([])


@dataclass(frozen=True)
class Rows:
    """Sentences as chunks and as words. Row i of `sentences` and of `words` is sentence i.

    Attributes:
        terms: the terms of the index. V below is their number.
        chunks: texts that make up the sentences. For documents of the index, these are the distinct texts between
            spaces. For any other text, each sentence is a single chunk.
        sentences: `RaggedArray` int32, indices into `chunks`. The text of a sentence is its chunks, joined with spaces.
        words: `RaggedArray` int32, word ids: the id of a term, or V + k for the unseen word ``unseen[k]``.
        unseen: the words that are not in the index.
        hashes: uint64 (n_rows,), a hash of the words of each sentence; None for documents of the index.
    """

    terms: StringTable
    chunks: StringTable
    sentences: RaggedArray
    words: RaggedArray
    unseen: StringTable = NO_STRINGS
    hashes: np.ndarray | None = None

    def texts(self, rows: np.ndarray) -> list[str]:
        """Return the text of each sentence in `rows`: row numbers, int64 (n_rows,)."""
        chunks = self.sentences.take(rows)
        tables = self.chunks.utf8, self.chunks.offsets, NO_STRINGS.utf8, NO_STRINGS.offsets
        return [*StringTable(*spell_rows(chunks.values, chunks.indptr, *tables))]

    def streams(self, rows: np.ndarray) -> np.ndarray:
        """Return one integer per sentence, which determines the random numbers of the sentence (see `CounterRNG.rows`).

        For documents of the index, the integers are the row numbers. For any other text, they are `hashes`, so equal
        sentences have equal random numbers. rows: row numbers, int64 (n_rows,).
        """
        return rows if self.hashes is None else self.hashes[rows]

    def strings(self, ids: np.ndarray) -> list[str]:
        """Return the words with these ids, integers (n_words,)."""
        n = len(self.terms)
        return [self.terms[i] if i < n else self.unseen[i - n] for i in ids.tolist()]

    def spell(self, ids: RaggedArray) -> StringTable:
        """Return one text per row of `ids`, with the words of the row joined by spaces. ids: word ids."""
        tables = self.terms.utf8, self.terms.offsets, self.unseen.utf8, self.unseen.offsets
        return StringTable(*spell_rows(ids.values, ids.indptr, *tables))


def read_rows(sentences: Iterable[str], index: Index, split: WordTokenizer) -> Rows:
    """Make `Rows` of any sentences. They need not be in the index.

    split: the word tokenizer of the index, which splits the sentences into words.
    Raises InputError if `sentences` is one str or a table, or if an item is not a str.
    """
    if isinstance(sentences, (str, Mapping)) or not isinstance(sentences, Iterable) or hasattr(sentences, "columns"):
        raise InputError(
            f"sentences: is {type(sentences).__name__}, must be a list of str: give [sentence], or TABLE[COLUMN]"
        )
    texts = StringTable.from_bytes([encode_sentence(text, f"sentences[{i}]") for i, text in enumerate(sentences)])
    vocabulary, words = split_texts(texts, split)
    known = index.term_ids.find(vocabulary)
    new = np.flatnonzero(known < 0)
    known[new] = index.n_terms + np.arange(len(new), dtype=ID)
    rows = Rows(
        index.terms,
        texts,
        RaggedArray(np.arange(len(texts), dtype=ID), np.arange(len(texts) + 1)),
        RaggedArray(known[words.values], words.indptr),
        vocabulary.take(new),
    )
    spelled = rows.spell(rows.words)
    text, bounds = spelled.utf8.data, spelled.offsets.tolist()
    hashes = [xxhash.xxh3_64_intdigest(text[a:b]) for a, b in pairwise(bounds)]
    return replace(rows, hashes=np.array(hashes, dtype=np.uint64))
