"""Any text -> rows of the index's terms, and rows -> text; words that the index has not seen are negative ids."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import xxhash

from una_fast._kernels.ids.spell import spell_rows
from una_fast.arrays import ID, RaggedArray, StringTable
from una_fast.corpus.source import encode_sentence
from una_fast.corpus.word_tokenizers import word_tokenizer
from una_fast.corpus.words import split_texts
from una_fast.errors import InputError
from una_fast.index.index import Index

NO_STRINGS = StringTable.from_strings([])


def spell(rows: RaggedArray, strings: StringTable, unseen: StringTable = NO_STRINGS) -> StringTable:
    """Each row's words joined by spaces; id i >= 0 is ``strings[i]``, a negative one ``unseen[-1 - i]``."""
    tables = strings.utf8, strings.offsets, unseen.utf8, unseen.offsets
    return StringTable(*spell_rows(rows.values, rows.indptr, *tables))


@dataclass(frozen=True)
class TextRows:
    """Sentences as rows of ids.

    texts: UTF-8 of each; terms: `RaggedArray` int32, their words: a term's id, or -1 - k for word k of `unseen`; keys:
    uint64 (N,), the hash of each row's words, which stands for its row number in the draws.
    """

    texts: list[bytes]
    terms: RaggedArray
    unseen: StringTable
    keys: np.ndarray

    def words(self, ids: np.ndarray, terms: StringTable) -> list[str]:
        """The words of these ids. terms: of the index."""
        return [terms[i] if i >= 0 else self.unseen[-1 - i] for i in ids.tolist()]


class TextReader:
    """Splits text into words as an index was split, and looks them up."""

    def __init__(self, index: Index):
        self._index = index
        self._split = word_tokenizer(index.word_tokenizer, index.lowercase)

    def read(self, sentences: Iterable[str]) -> TextRows:
        """The rows of `sentences`. Raises InputError for one str, and for an item that is not a str."""
        if isinstance(sentences, str) or not isinstance(sentences, Iterable):
            raise InputError(f"sentences: got {type(sentences).__name__}, and a list of str is needed: [sentence]")
        texts = [encode_sentence(sentence, f"sentences[{i}]") for i, sentence in enumerate(sentences)]
        vocabulary, words = split_texts(texts, self._split)
        known = self._index.term_ids.find(vocabulary)
        new = np.flatnonzero(known < 0)
        known[new] = -1 - np.arange(len(new), dtype=ID)
        unseen = vocabulary.take(new)
        terms = RaggedArray(known[words.values], words.indptr)
        spelled = spell(words, vocabulary)
        text, bounds = spelled.utf8.data, spelled.offsets.tolist()
        keys = [xxhash.xxh3_64_intdigest(text[a:b]) for a, b in pairwise(bounds)]
        return TextRows(texts, terms, unseen, np.array(keys, dtype=np.uint64))
