"""Rows of drawn ids -> their text, in one of the surfaces, and their token ids where those depend on the sentence."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from una_fast.arrays import POINTER, Ragged, StringTable
from una_fast.augment.surface import OPENING, QUOTES, drawn_form, in_cases, write_kept
from una_fast.augment.text_rows import NO_STRINGS, TextRows, spell
from una_fast.augment.written import WrittenRows
from una_fast.corpus.word_tokenizers import NAMED
from una_fast.index.index import Index
from una_fast.tokens.ids import TokenIds


class Detokenizer:
    """Writes the ids that a kernel draws.

    index: the corpus; surface: "paper": each id as the index has it, with spaces between; "spaced": but a quotation
    mark is '"'; "kept": like the sentence; tokens: of a tokenizer, None: no ids are needed; extra: the strings of the
    ids that follow the ids of the terms.

    strings: the string of each id where it is drawn; writes_ids: whether `fill` writes the token ids of rows;
    term_tokens: what a kernel needs to write them, None: it cannot, or need not.
    """

    def __init__(
        self, index: Index, surface: str, tokens: TokenIds | None, n_jobs: int, extra: StringTable = NO_STRINGS
    ):
        self._index, self._n_jobs = index, n_jobs
        self._tokens = tokens if tokens is not None and tokens.by_word else None
        self._keeps = surface == "kept"
        self._quotes = (*QUOTES,) if index.word_tokenizer == "treebank" and surface != "paper" else ()
        openings = OPENING if index.word_tokenizer in NAMED and self._keeps else ""
        terms = index.terms.followed_by(extra) if len(extra) else index.terms
        marked = terms.rows_with(*(mark.encode() for mark in (*self._quotes, *openings)))
        forms = [drawn_form(terms[i], self._quotes, openings) for i in marked.tolist()]
        self.strings = terms.exchanged(marked, forms)
        self.writes_ids, self.term_tokens = self._keeps and self._tokens is not None, None
        if self.writes_ids:
            _ = self._written  # made before threads ask for it
        elif self._tokens is not None:
            order = np.arange(len(terms), dtype=POINTER)
            order[marked] = len(terms) + np.arange(len(marked))
            added = StringTable.from_strings([*extra, *forms])
            self.term_tokens = self._tokens.term_tokens(added, order)

    @cached_property
    def _cased(self) -> StringTable:
        return in_cases(self.strings)

    @cached_property
    def _written(self) -> WrittenRows:
        return WrittenRows(self._index, self._cased, self._tokens, self._n_jobs)

    def rows(self, rows: np.ndarray, drawn: Ragged) -> list[str]:
        """The texts of `drawn`, the ids of the augmented documents `rows`, int64 (B,)."""
        if not self._keeps:
            return [*spell(drawn, self.strings)]
        texts = self._written.texts(rows, drawn)
        return [self.row(int(rows[i]), drawn[i]) if text is None else text for i, text in enumerate(texts)]

    def row(self, row: int, new: np.ndarray) -> str:
        """The text of a document that became the ids `new`, int32 (n,), written like its sentence in Python."""
        old = self._index.word_ids[row]
        return self._keep(self._index.sentence(row), [self._index.terms[i] for i in old.tolist()], old, new)

    def fill(self, rows: np.ndarray, drawn: Ragged, input_ids: np.ndarray, attention_mask: np.ndarray) -> np.ndarray:
        """Fill both outputs, int64 (B, L), as `rows`; returns the lines, int64, that the tokenizer has to encode."""
        return self._written.fill(rows, drawn, input_ids, attention_mask)

    def texts(self, text: TextRows, drawn: Ragged, unseen: StringTable) -> list[str]:
        """The texts of `drawn`, the ids of the augmented rows of `text`; unseen: the strings of negative ids."""
        if not self._keeps:
            strings = ['"' if word in self._quotes else word for word in unseen]
            return [*spell(drawn, self.strings, StringTable.from_strings(strings))]
        texts = []
        for i, sentence in enumerate(text.texts):
            words = [text.word(term, self._index.terms) for term in text.terms[i].tolist()]
            texts.append(self._keep(sentence.decode("utf-8"), words, text.terms[i], drawn[i]))
        return texts

    def _keep(self, sentence: str, words: list[str], old: np.ndarray, new: np.ndarray) -> str:
        """`sentence` with its `words`, whose ids are `old`, replaced where the ids `new` differ."""
        drawn = [None if i == j else j for i, j in zip(old.tolist(), new.tolist(), strict=True)]
        return write_kept(sentence, words, drawn, self._cased, self._index.lowercase)
