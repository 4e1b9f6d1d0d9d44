"""Words that stay in a negative with surface="lower", where the sentence does not spell them as the index does.

The index has "ca" and "n't" for "can't", its mark of a quotation for '' and "cuánto" where "¿cuánto" is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from una_fast._kernels.ids.written import ChunkWords
from una_fast.arrays import ID, POINTER, Ragged, StringTable, row_bounds
from una_fast.augment.surface import QUOTES, drawn_form, opening, runs_together, word_spans
from una_fast.augment.written import lower_chunks, quote_terms
from una_fast.index.index import Index

NONE = -1
Spellings = list[tuple[int, int, str, str]]  # of a chunk: (place, how many words, spelling, opening mark)


class RespelledWords:
    """Where documents spell their words otherwise, and how.

    index: the corpus; marks: what a chunk holds that spells a word otherwise; n_ids: the ids before those of `strings`.

    strings: the spellings, and after them, from the id `first_opening` on, the opening marks; rows: int64, ascending,
    the documents with such words; by_text: int64, ascending, those of them that are written from their sentence.
    """

    def __init__(self, index: Index, marks: Sequence[bytes], n_ids: int):
        self._words, self.rows, starts, kind, listed, unreadable = index.word_ids, *_marked_chunks(index, marks)
        numbers = {text: 0 for one in listed for _, _, text, _ in one or ()}
        openings = {mark: 0 for one in listed for *_, mark in one or () if mark}
        self.strings = StringTable.from_strings([*numbers, *openings])
        self.first_opening = n_ids + len(numbers)
        numbers = {text: n_ids + i for i, text in enumerate(numbers)}
        openings = {"": NONE} | {mark: self.first_opening + i for i, mark in enumerate(openings)}
        table = [[(at, n, numbers[text], openings[mark]) for at, n, text, mark in one or ()] for one in listed]
        entries = np.array([entry for one in table for entry in one], dtype=POINTER).reshape(-1, 4)
        chosen = Ragged(np.arange(len(entries)), row_bounds([*map(len, table)])).take(kind)
        offsets, self._lengths, self._ids, self._openings = entries[chosen.values].T
        self._places = np.repeat(starts, chosen.lengths()) + offsets
        untold = np.array([one is None for one in listed], dtype=bool)[kind]
        self.by_text = np.union1d(unreadable, np.searchsorted(self._words.indptr, starts[untold], side="right") - 1)

    def apply(self, rows: np.ndarray, drawn: Ragged) -> tuple[Ragged, np.ndarray]:
        """The ids of `drawn`, the augmented documents `rows`, int64 (B,), with the ids of `strings` in their places.

        And int64: the rows in which a replaced word has an opening mark before it, which no space parts from it.
        """
        begin = self._words.indptr[rows]
        first, last = np.searchsorted(self._places, [begin, self._words.indptr[rows + 1]])
        row = np.repeat(np.arange(len(rows)), last - first)
        entry = np.arange(len(row)) + (last - np.cumsum(last - first))[row]
        place, joined = self._places[entry], self._lengths[entry] == 2
        at = place - begin[row] + drawn.indptr[row]
        stays = (drawn.values[at] == self._words.values[place]) & (
            drawn.values[at + joined] == self._words.values[place + joined]
        )
        opened = ~stays & (self._openings[entry] != NONE)
        values, copies = drawn.values.copy(), np.ones(len(drawn.values), dtype=POINTER)
        values[at[stays]] = self._ids[entry[stays]]
        copies[at[stays & joined] + 1], copies[at[opened]] = 0, 2
        values, ends = np.repeat(values, copies), np.append(0, np.cumsum(copies))
        values[ends[at[opened]]] = self._openings[entry[opened]]
        return Ragged(values.astype(ID, copy=False), ends[drawn.indptr]), row[opened]


def _marked_chunks(
    index: Index, marks: Sequence[bytes]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[Spellings | None], np.ndarray]:
    """Where the chunks that hold one of `marks` are, and what `spellings` says of them.

    Returns (rows int64, ascending, the documents that hold one; starts int64 (E,), the place of the first word of each
    such chunk among all words of the index; kind int64 (E,), its place in the list; the list, an entry for each
    distinct chunk; unreadable int64, the rows whose chunks cannot be told).
    """
    lowered = StringTable(np.frombuffer(index.chunks.utf8.tobytes().lower(), np.uint8), index.chunks.offsets)
    marked = lowered.rows_with(*marks)
    rows = index.sentences.rows_with(marked)
    wanted, needed = np.zeros((2, len(lowered)), dtype=np.uint8)
    wanted[marked], needed[index.sentences.take(rows).values] = 1, 1
    reader = ChunkWords(index, *lower_chunks(index.chunks, index.lowercase, needed.view(bool)), quote_terms(index))
    starts, counts, found, readable = reader.find(rows, wanted)
    kinds, first, kind = np.unique(np.stack([found, counts]), axis=1, return_index=True, return_inverse=True)
    words = [index.word_ids.values[starts[i] : starts[i] + counts[i]].tolist() for i in first.tolist()]
    listed = [
        spellings(index.chunks[chunk], [index.terms[i] for i in ids], index.lowercase)
        for chunk, ids in zip(kinds[0].tolist(), words, strict=True)
    ]
    return rows, starts, kind.ravel(), listed, rows[readable == 0]


def spellings(text: str, words: Sequence[str], lowercase: bool) -> Spellings | None:
    """The words of a chunk that are spelled otherwise where they stay.

    None where the ways to replace some of them are too many: three words in one, or an opening mark before two in one.
    """
    spans = word_spans(text, words, lowercase)
    olds = [text[start:stop] for start, stop in spans]
    forms = [old if word in QUOTES else word for old, word in zip(olds, words, strict=True)]
    found, at = [], 0
    while at < len(words):
        stop = at + 1
        while (
            stop < len(words) and spans[stop][0] == spans[stop - 1][1] and runs_together(forms[stop - 1], forms[stop])
        ):
            stop += 1
        mark, spelling = opening(olds[at]), "".join(forms[at:stop])
        if stop > at + 2 or (stop == at + 2 and mark):
            return None
        if stop == at + 2 or spelling != drawn_form(words[at]):
            found.append((at, stop - at, spelling, mark))
        at = stop
    return found
