"""Sentences as chunks (texts between spaces) and as word ids: the sentences of an index, or any other text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
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
class SplitSentences:
    """Sentences, as chunks (texts between spaces) and as words. Row i of `sentences` and of `words` is sentence i."""

    terms: StringTable  # of the index
    chunks: StringTable  # distinct chunks of sentences; a text that is not in the index is one chunk
    sentences: RaggedArray  # int32, positions in `chunks`; a sentence is its chunks, joined with spaces
    words: RaggedArray  # int32, ids of terms; len(terms) + k is the unseen word ``unseen[k]``
    unseen: StringTable = NO_STRINGS
    are_documents: bool = False  # whether these are the sentences of the index

    @cached_property
    def hashes(self) -> np.ndarray:
        """A hash of the words of each sentence: uint64 (n_rows,)."""
        spelled = self.spell(self.words)
        text, bounds = spelled.utf8.data, spelled.offsets.tolist()
        return np.array([xxhash.xxh3_64_intdigest(text[a:b]) for a, b in pairwise(bounds)], dtype=np.uint64)

    def streams(self, rows: np.ndarray) -> np.ndarray:
        """Return each sentence's random stream: its row number if it is a sentence of the index, otherwise its hash."""
        return rows if self.are_documents else self.hashes[rows]

    def texts(self, rows: np.ndarray) -> list[str]:
        """Return the original text of each sentence in `rows`."""
        chunks = self.sentences.take(rows)
        tables = self.chunks.utf8, self.chunks.offsets, NO_STRINGS.utf8, NO_STRINGS.offsets
        return [*StringTable(*spell_rows(chunks.values, chunks.indptr, *tables))]

    def strings(self, ids: np.ndarray) -> list[str]:
        """Return the words with these ids."""
        n = len(self.terms)
        return [self.terms[i] if i < n else self.unseen[i - n] for i in ids.tolist()]

    def spell(self, ids: RaggedArray) -> StringTable:
        """Return one text per row of word ids: the words, joined with spaces."""
        tables = self.terms.utf8, self.terms.offsets, self.unseen.utf8, self.unseen.offsets
        return StringTable(*spell_rows(ids.values, ids.indptr, *tables))


def split_sentences(sentences: Iterable[str], index: Index, split: WordTokenizer) -> SplitSentences:
    """Split any sentences into words with `split`, the word tokenizer of `index`."""
    if isinstance(sentences, (str, Mapping)) or not isinstance(sentences, Iterable) or hasattr(sentences, "columns"):
        raise InputError(
            f"sentences: is {type(sentences).__name__}, must be a list of str: give [sentence], or TABLE[COLUMN]"
        )
    texts = StringTable.from_bytes([encode_sentence(text, f"sentences[{i}]") for i, text in enumerate(sentences)])
    vocabulary, words = split_texts(texts, split)
    known = index.term_ids.find(vocabulary)
    new = np.flatnonzero(known < 0)
    known[new] = index.n_terms + np.arange(len(new), dtype=ID)
    chunks = RaggedArray(np.arange(len(texts), dtype=ID), np.arange(len(texts) + 1))
    ids = RaggedArray(known[words.values], words.indptr)
    return SplitSentences(index.terms, texts, chunks, ids, vocabulary.take(new))
