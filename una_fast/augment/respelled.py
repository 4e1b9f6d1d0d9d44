"""Words that stay in a negative with surface="lower", where the sentence does not spell them as the index does.

The index has "ca" and "n't" for "can't", its mark of a quotation for '' and "cuánto" where "¿cuánto" is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from una_fast._kernels.draws.rows import Respelled
from una_fast._kernels.ids.written import ChunkWords
from una_fast.arrays import POINTER, Ragged, StringTable, row_bounds
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
        self._n_documents = index.n_documents
        self.rows, starts, kind, listed, unreadable = _marked_chunks(index, marks)
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
        self.by_text = np.union1d(unreadable, np.searchsorted(index.word_ids.indptr, starts[untold], side="right") - 1)

    def for_kernel(self, parts_openings: bool) -> Respelled | None:
        """The same for a kernel that draws rows; None if all documents are spelled as the index has them."""
        listed = (np.ascontiguousarray(one) for one in (self._places, self._lengths, self._ids, self._openings))
        n = self._n_documents
        return Respelled(n, self.rows, self.by_text, *listed, parts_openings) if len(self.rows) else None


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
