"""Rows of drawn ids -> their text, in one of the surfaces, and their token ids where those depend on the sentence.

With surface="lower" some words that stay are not spelled as the index has them: it has "ca" and "n't" for "can't", its
mark of a quotation for '' and "cuánto" where "¿cuánto" is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from una_fast._kernels.draws.rows import Respelled
from una_fast._kernels.ids.written import ChunkWords
from una_fast.arrays import POINTER, Ragged, StringTable, row_bounds
from una_fast.augment.surface import OPENING, QUOTES, drawn_form, opening, runs_together, word_spans, write_surface
from una_fast.augment.text_rows import NO_STRINGS, TextRows, spell
from una_fast.augment.written import WrittenRows, lower_chunks, quote_terms
from una_fast.corpus.word_tokenizers import NAMED
from una_fast.index.index import Index
from una_fast.tokens.ids import TokenIds

# words that NLTK's rules split between two letters; these rules take "İ" and "ı" for "i", and "ſ" for "s"
SPLIT = ("n't", "cannot", "d'ye", "more'n", "gonna", "gotta", "lemme", "wanna", *(f"g{i}mme" for i in "iİı"))
SPLIT += (*(f"'twa{s}" for s in "sſ"), *(f"'t{i}{s}" for i in "iİı" for s in "sſ"))
NONE = -1
Spellings = list[tuple[int, int, str, str]]  # of a chunk: (place, how many words, spelling, opening mark)


class Speller:
    """Spells the ids that a kernel draws.

    index: the corpus; surface: "paper": each id as the index has it; "spaced": but a quotation mark is '"'; "lower":
    also, a drawn word has no opening mark ("¿"), and what stays is spelled as in the sentence; "kept": like the
    sentence; tokens: of a tokenizer, None: no ids are needed; extra: the strings of the ids that follow the ids of the
    terms.

    strings: the string of each id where it is drawn; writes_ids: whether `fill` writes the token ids of rows;
    term_tokens, respelled: what a kernel needs to write them, None: it cannot, or need not. Where a caller's function
    makes the words, "lower" is the same as "paper".
    """

    def __init__(
        self, index: Index, surface: str, tokens: TokenIds | None, n_jobs: int, extra: StringTable = NO_STRINGS
    ):
        self._index, self._n_jobs = index, n_jobs
        self._tokens = tokens if tokens is not None and tokens.by_word else None
        self._keeps, reads_sentences = surface == "kept", surface in ("lower", "kept")
        self._quotes = (*QUOTES,) if index.word_tokenizer == "treebank" and surface != "paper" else ()
        openings = OPENING if index.word_tokenizer in NAMED and reads_sentences else ""
        marks = (*self._quotes, *openings, *(SPLIT if self._quotes else ()))
        self._marks = [mark.encode() for mark in marks] if reads_sentences else []
        terms = index.terms.followed_by(extra) if len(extra) else index.terms
        marked = terms.rows_with(*(mark.encode() for mark in (*self._quotes, *openings))).tolist()
        changed = {i: drawn_form(terms[i], self._quotes, openings) for i in marked}
        changed = {i: form for i, form in changed.items() if form != terms[i]}
        parts_openings = self._tokens is not None and self._tokens.are_parted(OPENING)
        spelled, self._first_opening, self._by_text, self.respelled = respelled_words(
            index, self._marks if not self._keeps else (), len(terms), parts_openings
        )
        added = StringTable.from_strings([*extra, *changed.values()]).followed_by(spelled)
        order = np.arange(len(terms) + len(spelled), dtype=POINTER)
        order[len(terms) :] += len(changed)
        order[[*changed]] = len(terms) + np.arange(len(changed))
        self.strings = index.terms.followed_by(added).take(order) if len(added) else terms
        self.writes_ids = self._keeps and self._tokens is not None
        self.term_tokens = self._tokens.term_tokens(added, order) if self._tokens and not self._keeps else None

    @cached_property
    def _written(self) -> WrittenRows:
        return WrittenRows(self._index, self.strings, self._tokens, self._n_jobs)

    def rows(self, rows: np.ndarray, drawn: Ragged) -> list[str]:
        """The texts of `drawn`, the ids of the augmented documents `rows`, int64 (B,)."""
        if self._keeps:
            written = self._written.texts(rows, drawn)
            return [self.row(int(rows[i]), drawn[i]) if text is None else text for i, text in enumerate(written)]
        texts = [*spell(drawn, self.strings, first_glued=self._first_opening)]
        for i in np.flatnonzero(np.isin(rows, self._by_text)).tolist():
            texts[i] = self.row(int(rows[i]), drawn[i])
        return texts

    def row(self, row: int, new: np.ndarray) -> str:
        """The text of a document that became the ids `new`, int32 (n,), written from its sentence in Python."""
        old = self._index.word_ids[row]
        return self._write(self._index.sentence(row), [self._index.terms[i] for i in old.tolist()], old, new)

    def fill(self, rows: np.ndarray, drawn: Ragged, input_ids: np.ndarray, attention_mask: np.ndarray) -> np.ndarray:
        """Fill both outputs, int64 (B, L), as `rows`; returns the lines, int64, that the tokenizer has to encode."""
        return self._written.fill(rows, drawn, input_ids, attention_mask)

    def texts(self, text: TextRows, drawn: Ragged, unseen: StringTable) -> list[str]:
        """The texts of `drawn`, the ids of the augmented rows of `text`; unseen: the strings of negative ids."""
        if self._quotes:
            unseen = StringTable.from_strings(['"' if word in self._quotes else word for word in unseen])
        if self._keeps:
            texts, chosen = [""] * len(text.texts), list(range(len(text.texts)))
        else:
            utf8 = np.frombuffer(b"".join(text.texts).lower(), dtype=np.uint8)
            lowered = StringTable(utf8, row_bounds([len(sentence) for sentence in text.texts]))
            texts, chosen = [*spell(drawn, self.strings, unseen)], lowered.rows_with(*self._marks).tolist()
        for i in chosen:
            words = [text.word(term, self._index.terms) for term in text.terms[i].tolist()]
            texts[i] = self._write(text.texts[i].decode("utf-8"), words, text.terms[i], drawn[i])
        return texts

    def _write(self, sentence: str, words: list[str], old: np.ndarray, new: np.ndarray) -> str:
        """`sentence` with its `words`, whose ids are `old`, replaced where the ids `new` differ."""
        pairs = zip(old.tolist(), new.tolist(), strict=True)
        drawn = [None if i == j else self._index.terms[j] for i, j in pairs]
        return write_surface(sentence, words, drawn, self._index.lowercase, self._keeps)


def respelled_words(
    index: Index, marks: Sequence[bytes], n_ids: int, parts_openings: bool
) -> tuple[StringTable, int, np.ndarray, Respelled | None]:
    """Where documents spell their words otherwise, and how.

    index: the corpus; marks: what a chunk holds that spells a word otherwise; n_ids: the ids before those of the
    strings; parts_openings: of `Respelled`.

    Returns (the spellings, and after them the opening marks; the id of the first opening mark; int64, ascending, the
    documents that are written from their sentence; the words for a kernel, None if no document has such words).
    """
    rows, starts, kind, listed, unreadable = _marked_chunks(index, marks)
    spelled = [*dict.fromkeys(text for one in listed for _, _, text, _ in one or ())]
    openings = [*dict.fromkeys(mark for one in listed for *_, mark in one or () if mark)]
    first_opening = n_ids + len(spelled)
    numbers = {text: n_ids + i for i, text in enumerate(spelled)}
    marked = {"": NONE} | {mark: first_opening + i for i, mark in enumerate(openings)}
    table = [[(at, n, numbers[text], marked[mark]) for at, n, text, mark in one or ()] for one in listed]
    entries = np.array([entry for one in table for entry in one], dtype=POINTER).reshape(-1, 4)
    chosen = Ragged(np.arange(len(entries)), row_bounds([*map(len, table)])).take(kind)
    entries = entries[chosen.values]
    entries[:, 0] += np.repeat(starts, chosen.lengths())
    untold = np.array([one is None for one in listed], dtype=bool)[kind]
    by_text = np.union1d(unreadable, np.searchsorted(index.word_ids.indptr, starts[untold], side="right") - 1)
    columns = map(np.ascontiguousarray, entries.T)
    kernel = Respelled(index.n_documents, rows, by_text, *columns, parts_openings) if len(rows) else None
    return StringTable.from_strings([*spelled, *openings]), first_opening, by_text, kernel


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
