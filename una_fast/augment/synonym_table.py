"""The synonyms of an index's terms as ids; a synonym that is not a term gets an id after the ids of the terms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from una_fast.arrays import ID, Ragged, StringTable, row_bounds
from una_fast.augment.synonyms import Synonyms
from una_fast.index.index import Index


class SynonymTable:
    """Synonyms of the V terms of an index.

    synonyms: `Ragged` int32 (V rows); extra: the W synonyms that are no terms, of ids V to V + W - 1; strings: the
    V + W strings by id.
    """

    def __init__(self, index: Index, look_up: Synonyms):
        self._look_up = look_up
        self._term_ids = index.term_ids
        self._extra_ids: dict[str, int] = {}
        found = [look_up(term) for term in index.terms]
        n_terms = index.n_terms
        ids = [
            self._term_ids[word]
            if word in self._term_ids
            else self._extra_ids.setdefault(word, n_terms + len(self._extra_ids))
            for words in found
            for word in words
        ]
        self.synonyms = Ragged(np.array(ids, dtype=ID), row_bounds([len(words) for words in found]))
        self.extra = StringTable.from_strings(list(self._extra_ids))
        self.strings = index.terms
        if self._extra_ids:
            bounds = np.concatenate([index.terms.offsets, self.extra.offsets[1:] + index.terms.offsets[-1]])
            self.strings = StringTable(np.concatenate([index.terms.utf8, self.extra.utf8]), bounds)

    def number(self, ids: np.ndarray, words: Sequence[str], n_unseen: int) -> tuple[np.ndarray, Ragged, list[str]]:
        """Number `words` 0, 1, ..., and their synonyms after them.

        ids: int32 (n,), the id of each of `words`, -1 - k for unseen word k of `n_unseen`. Returns (the id of each
        number, int32; the numbers of each word's synonyms, n rows; the synonyms that have no id, which get the
        negative ids that follow the ids of the unseen words).
        """
        found = [self._look_up(word) for word in words]
        new: dict[str, int] = {}
        names = [self._id(word, new, n_unseen) for synonyms in found for word in synonyms]
        bounds = row_bounds([len(synonyms) for synonyms in found])
        numbers = np.arange(len(words), len(words) + bounds[-1], dtype=ID)
        return np.concatenate([ids, np.array(names, dtype=ID)]), Ragged(numbers, bounds), list(new)

    def _id(self, word: str, new: dict[str, int], n_unseen: int) -> int:
        known = self._term_ids.get(word, self._extra_ids.get(word))
        return new.setdefault(word, -1 - n_unseen - len(new)) if known is None else known
