"""The texts of surface="kept", for rows of the index: by a kernel where the words that are replaced are ASCII."""

from __future__ import annotations

import numpy as np

from una_fast._kernels.ids.kept_text import spell_kept
from una_fast.arrays import ID, Ragged, StringTable
from una_fast.augment.surface import CASES, QUOTES, in_case
from una_fast.index.index import Index


class KeptTexts:
    """Writes negatives like their sentences. strings: each term as it is spelled where it is drawn."""

    def __init__(self, index: Index, strings: StringTable):
        self._index, self._strings, self._quotes = index, strings, quote_terms(index)
        self._lowered, self._refused = lower_chunks(index.chunks, index.lowercase)
        beyond_ascii = np.flatnonzero(strings.utf8 >= 0x80)
        terms = np.unique(np.searchsorted(strings.offsets, beyond_ascii, side="right") - 1)
        self._cased = np.full(len(strings), -1, dtype=ID)  # where the strings of such a term begin, one for each case
        self._cased[terms] = len(CASES) * np.arange(len(terms))
        self._forms = StringTable.from_strings([in_case(strings[i], case) for i in terms.tolist() for case in CASES])

    def spell(self, rows: np.ndarray, drawn: Ragged) -> list[str | None]:
        """The texts of `drawn`, the terms of the negatives of `rows`, int64 (B,); None where the kernel cannot tell."""
        index, strings = self._index, self._strings
        chunks, table, words, terms = index.sentences, index.chunks, index.word_ids, index.terms
        text, starts, stops = spell_kept(
            chunks.values,
            chunks.indptr,
            table.utf8,
            self._lowered,
            table.offsets,
            self._refused,
            words.values,
            words.indptr,
            terms.utf8,
            terms.offsets,
            strings.utf8,
            strings.offsets,
            self._cased,
            self._forms.utf8,
            self._forms.offsets,
            self._quotes,
            rows,
            drawn.values,
            drawn.indptr,
        )
        utf8 = text.data
        return [
            None if stop < 0 else str(utf8[start:stop], "utf-8")
            for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)
        ]


def quote_terms(index: Index) -> np.ndarray:
    """int32 (2,): the terms that stand for a quotation mark; -1 for one that the index does not hold."""
    known = index.word_tokenizer == "treebank"
    return np.array([index.term_ids.get(mark, -1) if known else -1 for mark in QUOTES], dtype=ID)


def lower_chunks(chunks: StringTable, lowercase: bool) -> tuple[np.ndarray, np.ndarray]:
    """The UTF-8 of the chunks, in lower case if `lowercase`, and which chunks have another length then: uint8."""
    refused = np.zeros(len(chunks), dtype=np.uint8)
    if not lowercase:
        return chunks.utf8, refused
    utf8 = chunks.utf8.copy()
    utf8[(utf8 >= ord("A")) & (utf8 <= ord("Z"))] += ord("a") - ord("A")
    beyond_ascii = np.searchsorted(chunks.offsets, np.flatnonzero(chunks.utf8 >= 0x80), side="right") - 1
    for i in np.unique(beyond_ascii).tolist():
        chunk = chunks[i]
        lower = chunk.lower()
        same = len(lower) == len(chunk)
        same = same and all(len(a.encode()) == len(b.encode()) for a, b in zip(chunk, lower, strict=True))
        refused[i] = not same
        if same:
            utf8[chunks.offsets[i] : chunks.offsets[i + 1]] = np.frombuffer(lower.encode(), dtype=np.uint8)
    return utf8, refused
