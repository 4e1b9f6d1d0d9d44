"""Any text -> rows of terms with their tf-idf and probabilities; unseen words count as terms of one document."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import xxhash

from una_fast._kernels.draws.law import Law
from una_fast._kernels.draws.probability import replacement_probabilities
from una_fast.arrays import ID, SCORE, row_bounds
from una_fast.corpus.source import encode_sentence
from una_fast.corpus.word_tokenizers import WordTokenizer
from una_fast.errors import InputError
from una_fast.index.index import Index


@dataclass(frozen=True)
class TermRows:
    """Sentences as rows of terms: row i is words ``indptr[i] .. indptr[i + 1] - 1``; T words in all.

    words: the words of each row; ids: int32 (T,) term ids, -1, -2, ... for the unseen words of a row; indptr: int64;
    keys: uint64, the hash of each row's words, which stands for its row number in the draws; first: int32 (T,), where
    in its row each word stands first; z: float64 (T,), its tf-idf; p: float64 (T,), its replacement probability.
    """

    words: list[list[str]]
    ids: np.ndarray
    indptr: np.ndarray
    keys: np.ndarray
    first: np.ndarray
    z: np.ndarray
    p: np.ndarray

    def spell(self, ids: np.ndarray, terms: Sequence[str]) -> list[list[str]]:
        """The words of each row where `ids` stand in the place of its terms; an unseen word that stayed is itself."""
        spelled = iter(
            word if i < 0 else terms[i]
            for word, i in zip((word for row in self.words for word in row), ids.tolist(), strict=True)
        )
        return [[next(spelled) for _ in row] for row in self.words]


def read_terms(index: Index, law: Law, split: WordTokenizer, sentences: Iterable[str]) -> TermRows:
    """Split `sentences` into words as the index was, look them up and weigh them."""
    if isinstance(sentences, str):
        raise InputError("sentences: got one str, and a list of them is needed: [sentence]")
    words = split.words_batch(_checked(sentences))
    indptr = row_bounds([len(row) for row in words])
    ids = np.array([i for row in words for i in _look_up(row, index.term_ids)], dtype=ID)
    keys = np.array([xxhash.xxh3_64_intdigest(" ".join(row).encode()) for row in words], dtype=np.uint64)
    first = np.empty(len(ids), dtype=ID)
    z, p = np.empty((2, len(ids)), dtype=SCORE)
    replacement_probabilities(law, ids, indptr, first, z, p)
    return TermRows(words, ids, indptr, keys, first, z, p)


def _look_up(words: Sequence[str], term_ids: dict[str, int]) -> list[int]:
    unseen: dict[str, int] = {}
    return [term_ids[word] if word in term_ids else unseen.setdefault(word, -1 - len(unseen)) for word in words]


def _checked(sentences: Iterable[str]) -> list[str]:
    checked = list(sentences)
    for i, sentence in enumerate(checked):
        encode_sentence(sentence, f"sentences[{i}]")
    return checked
