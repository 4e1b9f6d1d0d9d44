"""Rows of drawn ids -> their text, in one of the surfaces, and their token ids where those depend on the sentence."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from una_fast._kernels.ids.emit import TermTokens
from una_fast.arrays import POINTER, Ragged, StringTable, row_bounds
from una_fast.augment.respelled import RespelledWords
from una_fast.augment.surface import OPENING, QUOTES, drawn_form, write_surface
from una_fast.augment.text_rows import NO_STRINGS, TextRows, spell
from una_fast.augment.written import WrittenRows
from una_fast.corpus.word_tokenizers import NAMED
from una_fast.index.index import Index
from una_fast.tokens.ids import TokenIds

# words that NLTK's rules split between two letters; these rules take "İ" and "ı" for "i", and "ſ" for "s"
SPLIT = ("n't", "cannot", "d'ye", "more'n", "gonna", "gotta", "lemme", "wanna", *(f"g{i}mme" for i in "iİı"))
SPLIT += (*(f"'twa{s}" for s in "sſ"), *(f"'t{i}{s}" for i in "iİı" for s in "sſ"))


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
        self._index, self._tokens, self._n_jobs, self._extra = index, tokens, n_jobs, extra
        self._keeps, reads_sentences = surface == "kept", surface in ("lower", "kept")
        self._quotes = (*QUOTES,) if index.word_tokenizer == "treebank" and surface != "paper" else ()
        opening = OPENING if index.word_tokenizer in NAMED and reads_sentences else ""
        marks = (*self._quotes, *opening, *(SPLIT if self._quotes else ()))
        self._marks = [mark.encode() for mark in marks] if reads_sentences else []
        terms = index.terms.followed_by(extra) if len(extra) else index.terms
        marked = terms.rows_with(*(mark.encode() for mark in (*self._quotes, *opening))).tolist()
        changed = {i: drawn_form(terms[i], self._quotes, opening) for i in marked}
        changed = {i: form for i, form in changed.items() if form != terms[i]}
        words = RespelledWords(index, self._marks if not self._keeps else (), len(terms))
        self._by_text, self._first_opening = words.by_text, words.first_opening
        self._extra = StringTable.from_strings([*extra, *changed.values()]).followed_by(words.strings)
        order = np.arange(len(terms) + len(words.strings), dtype=POINTER)
        order[len(terms) :] += len(changed)
        order[[*changed]] = len(terms) + np.arange(len(changed))
        self.strings = index.terms.followed_by(self._extra).take(order) if len(self._extra) else terms
        self.writes_ids = self._keeps and tokens is not None and tokens.by_word
        self.term_tokens, parts_openings = None, False
        if tokens is not None and tokens.by_word and not self._keeps:
            later, first, irregular = tokens.with_terms(self._extra)
            if len(self._extra):
                same, later, first = first is later, later.take(order), first.take(order)
                first = later if same else first
            self.term_tokens = TermTokens(later, first, tokens.frame, np.flatnonzero(np.isin(order, irregular)))
            parts_openings = tokens.context_free and tokens.are_parted(OPENING, "a")
        self.respelled = words.for_kernel(parts_openings)

    @cached_property
    def _written(self) -> WrittenRows:
        tokens = self._tokens if self._tokens is not None and self._tokens.by_word else None
        return WrittenRows(self._index, self.strings, tokens, self._n_jobs)

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
