"""Token ids of surface="kept": the ids of the sentence, except for the words that are replaced.

A text is encoded chunk by chunk (`una_fast.tokens.regularity`), and a chunk in which a word was replaced word by word,
where the tokenizer begins a new sub-word beside the marks around that word (`una_fast.tokens.joins`). The sub-words of
every term in every case are made once, and kept beside the index. A text that holds something else goes through the
tokenizer: a replaced word beside another that it could grow together with ("can't" is "ca" and "n't"), an added token.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from una_fast._kernels.ids.kept import (
    CASE,
    EXACT,
    GLUED,
    HARD,
    OPENS,
    Joins,
    count_words,
    find_chunks,
    spread,
    write_kept,
)
from una_fast.arrays import ID, POINTER, Ragged, StringTable, row_bounds
from una_fast.augment.kept_text import lower_chunks, quote_terms
from una_fast.augment.surface import CASES, QUOTES, case_of, in_case, is_mark
from una_fast.errors import InputError
from una_fast.index.beside import Arrays, Part, kept_beside
from una_fast.index.index import Index
from una_fast.index.layout import KEPT
from una_fast.storage.content import wrong_rows
from una_fast.tokens.binding import encode_chunks
from una_fast.tokens.ids import TokenIds
from una_fast.tokens.joins import mark_number
from una_fast.tokens.subwords import SubwordEncoder

VERSION = 1
LATER, FIRST, INSIDE = range(3)  # a term after a space, as the first word of a text, after another character


class KeptIds:
    """Writes the ids of rows whose words were drawn.

    index: the corpus; tokens: a tokenizer that makes ids by word; strings: each term as it is spelled where it is
    drawn.
    """

    def __init__(self, index: Index, tokens: TokenIds, strings: StringTable, n_jobs: int):
        assert tokens.encoder is not None
        self._index, self._tokens = index, tokens
        arrays = _Maker(index, tokens, strings, n_jobs).arrays()
        forms = Ragged(arrays["forms_values"], arrays["forms_indptr"])
        rest = (arrays[name] for name in ("before", "after", "marks", "looks"))
        one = not tokens.cased
        cases = [0, 0, 0, 0] if one else [0, 0, 1, 2] if index.lowercase else [0, 1, 2, 3]
        contexts = [0, 0, 0] if tokens.context_free else [0, 1, 2]
        between_marks = tokens.encoder.pipeline.joins.between_marks
        self._joins = Joins(arrays["sizes"], arrays["flags"], forms, *rest, contexts, cases, between_marks)

    def write(self, rows: np.ndarray, drawn: Ragged, input_ids: np.ndarray, attention_mask: np.ndarray) -> np.ndarray:
        """Fill both outputs, int64 (B, L); returns the lines, int64, that are left for the tokenizer.

        rows: int64 (B,); drawn: `Ragged` int32, the terms of their negatives.
        """
        words, ids = self._index.word_ids, self._tokens.sentences
        write = write_kept[f"{ids.values.dtype}_t"]
        return write(
            self._joins,
            words.values,
            words.indptr,
            ids.values,
            ids.indptr,
            rows,
            drawn.values,
            drawn.indptr,
            self._tokens.frame,
            input_ids,
            attention_mask,
        )


class _Edges(NamedTuple):
    """What stands at the ends of each term, see `Joins`."""

    before: np.ndarray
    after: np.ndarray
    marks: np.ndarray
    looks: np.ndarray


class _Maker:
    """Makes the arrays of `Joins`."""

    def __init__(self, index: Index, tokens: TokenIds, strings: StringTable, n_jobs: int):
        assert tokens.encoder is not None
        self._index, self._strings, self._n_jobs = index, [*strings], n_jobs
        self._encoder: SubwordEncoder = tokens.encoder
        self._tokens = tokens
        if not tokens.cased:
            self._cases = [CASES[0]]
        else:
            self._cases = [CASES[0], *CASES[2:]] if index.lowercase else [*CASES]
        self._contexts = (LATER,) if tokens.context_free else (LATER, FIRST, INSIDE)

    def arrays(self) -> Arrays:
        """The arrays, from the index's folder if they were kept there."""
        n_words, n_terms = len(self._index.word_ids.values), self._index.n_terms
        n_forms = len(self._contexts) * len(self._cases) * n_terms
        shapes = {
            "sizes": (np.dtype(np.uint16), (n_words,)),
            "flags": (np.dtype(np.uint8), (n_words,)),
            "before": (np.dtype(np.uint64), (n_terms,)),
            "after": (np.dtype(np.uint64), (n_terms,)),
            "marks": (np.dtype(np.int8), (n_terms, 2)),
            "looks": (np.dtype(np.uint8), (n_terms,)),
            "forms_indptr": (np.dtype(POINTER), (n_forms + 1,)),
        }

        def check(folder: Path, arrays: Arrays) -> None:
            found = {name: (array.dtype, array.shape) for name, array in arrays.items()}
            values = found.pop("forms_values", None)
            wrong = "other arrays" if found != shapes or values is None or values[0] != ID else ""
            if not wrong:
                forms = Ragged(arrays["forms_values"], arrays["forms_indptr"])
                wrong = wrong_rows(forms, n_forms, self._encoder.n_ids)
            if wrong:
                raise InputError(f"{folder}: damaged, or not written by una_fast: {wrong}; delete it, it is made again")

        name = f"kept-{self._encoder.fingerprint}"
        return kept_beside(self._index, Part(name, KEPT, VERSION, check, str(n_forms)), self._make)

    def _make(self) -> Arrays:
        edges = self._edges()
        forms = self._forms(edges)
        sizes, flags = self._words(edges, forms)
        made = {"sizes": sizes, "flags": flags, **edges._asdict()}
        return {**made, "forms_values": forms.values, "forms_indptr": forms.indptr}

    def _edges(self) -> _Edges:
        joins, strings = self._encoder.pipeline.joins, self._strings
        firsts, lasts = [term[:1] for term in strings], [term[-1:] for term in strings]
        after, before = (
            {c: of(c) if c else 0 for c in {*ends}} for of, ends in ((joins.after, firsts), (joins.before, lasts))
        )
        looks = {c: bool(c) and is_mark(c) for c in {*firsts, *lasts}}
        marks = {c: mark_number(c) if c else -1 for c in {*firsts, *lasts}}
        return _Edges(
            np.array([before[c] for c in lasts], dtype=np.uint64),
            np.array([after[c] for c in firsts], dtype=np.uint64),
            np.array([[marks[a], marks[b]] for a, b in zip(firsts, lasts, strict=True)], dtype=np.int8).reshape(-1, 2),
            np.array([looks[a] | looks[b] << 1 for a, b in zip(firsts, lasts, strict=True)], dtype=np.uint8),
        )

    def _forms(self, edges: _Edges) -> Ragged:
        """The sub-words of each term in each context and case."""
        left_out = self._left_out()
        parts = []
        for context in self._contexts:
            prefixes = self._prefixes(edges) if context == INSIDE else [""] * len(self._strings)
            for case in self._cases:
                cased = [in_case(term, case) for term in self._strings]
                parts.append(self._encoded(cased, prefixes, context != FIRST, left_out))
        values = np.concatenate([part.values for part in parts])
        return Ragged(values, row_bounds(np.concatenate([part.lengths() for part in parts])))

    def _left_out(self) -> np.ndarray:
        """Bool (V,): terms that the tokenizer is asked for: words of added tokens, and those that a case changes."""
        words = {word for token in self._tokens.added for word in re.findall(r"\w+", token.lower())}
        beyond = [i for i, term in enumerate(self._strings) if not term.isascii() and not self._keeps_length(term)]
        near = [i for i, term in enumerate(self._strings) if term.lower() in words]
        left_out = np.zeros(len(self._strings), dtype=bool)
        left_out[beyond + near] = True
        return left_out

    def _keeps_length(self, term: str) -> bool:
        """Whether a word is the same again after a change of case and back, and no character becomes two."""
        forms = [in_case(term, case) for case in CASES]
        same = all(len(form) == len(term) and form.lower() == term.lower() for form in forms)
        return same and (term == term.lower() or not self._index.lowercase)

    def _prefixes(self, edges: _Edges) -> list[str | None]:
        """What to put before each term, to find its sub-words inside a chunk; None: nothing is known to part there."""
        found: list[str | None] = []
        letters = [(letter, self._encoder.pipeline.joins.before(letter)) for letter in "azxqk0"]
        for begin, after in zip(edges.marks[:, 0].tolist(), edges.after.tolist(), strict=True):
            if begin >= 0:
                found.append(next((letter for letter, bits in letters if bits >> begin & 1), None))
            else:
                found.append(next((mark for mark in '(),-/.:"' if after >> mark_number(mark) & 1), None))
        return found

    def _encoded(
        self, strings: Sequence[str], prefixes: Sequence[str | None], after_space: bool, left_out: np.ndarray
    ) -> Ragged:
        """The sub-words of strings behind their prefixes; none where they cannot be made so."""
        pipeline = self._encoder.pipeline
        table = StringTable.from_strings([(prefix or "") + one for prefix, one in zip(prefixes, strings, strict=True)])
        wanted = pipeline.regular(table) & ~left_out & np.array([prefix is not None for prefix in prefixes])
        whole = self._encoder.encode_chunks(table, wanted, after_space, self._n_jobs)
        wanted[
            np.searchsorted(whole.indptr, np.flatnonzero(pipeline.holds_added_token(whole.values)), side="right") - 1
        ] = False
        if not any(prefixes):
            return whole.take_where(wanted)
        distinct = [prefix for prefix in dict.fromkeys(prefixes) if prefix]
        before = self._encoder.encode_chunks(
            StringTable.from_strings(distinct), np.ones(len(distinct), dtype=bool), True
        )
        ids = {prefix: before[i].tolist() for i, prefix in enumerate(distinct)}
        rows = []
        for i, prefix in enumerate(prefixes):
            row = whole[i].tolist() if wanted[i] else []
            first = ids[prefix] if prefix else []
            rows.append(row[len(first) :] if row[: len(first)] == first else [])
        return Ragged(np.array([one for row in rows for one in row], dtype=ID), row_bounds([*map(len, rows)]))

    def _words(self, edges: _Edges, forms: Ragged) -> tuple[np.ndarray, np.ndarray]:
        """`sizes` and `flags` of `Joins`."""
        index = self._index
        chunks, words, terms = index.sentences, index.word_ids, index.terms
        ids, lengths, first_offset = encode_chunks(index, self._encoder, self._n_jobs)
        lowered, refused = lower_chunks(index.chunks, index.lowercase)
        quotes = quote_terms(index)
        refused[lengths[: len(refused)] < 0] = 1
        if first_offset:
            refused[lengths[first_offset:] < 0] = 1
        counts, whole = np.zeros(len(chunks.values), dtype=np.uint16), np.zeros(len(chunks), dtype=np.uint8)
        count_words(
            chunks.values,
            chunks.indptr,
            lowered,
            index.chunks.offsets,
            words.values,
            words.indptr,
            terms.utf8,
            terms.offsets,
            quotes,
            refused,
            counts,
            whole,
        )
        n_entries = len(index.chunks) * (2 if first_offset else 1)
        places, sizes_of = np.full(n_entries, -1, dtype=POINTER), np.zeros(n_entries, dtype=np.uint16)
        find_chunks(chunks.values, chunks.indptr, words.indptr, counts, whole, first_offset, places, sizes_of)
        bounds = row_bounds(sizes_of)
        entry_sizes, entry_flags = np.zeros(bounds[-1], dtype=np.uint16), np.zeros(bounds[-1], dtype=np.uint8)
        describe = _Entries(self, edges, forms, words.values)
        for entry in np.flatnonzero(sizes_of).tolist():
            at, n = int(places[entry]), int(sizes_of[entry])
            is_first = bool(first_offset) and entry >= first_offset
            chunk = index.chunks[entry - first_offset if is_first else entry]
            own = slice(bounds[entry], bounds[entry] + n)
            entry_sizes[own], entry_flags[own] = describe(
                chunk, words.values[at : at + n].tolist(), ids[entry], is_first
            )
        sizes, flags = np.zeros(len(words.values), dtype=np.uint16), np.zeros(len(words.values), dtype=np.uint8)
        spread(
            chunks.values,
            chunks.indptr,
            words.values,
            words.indptr,
            counts,
            whole,
            first_offset,
            places,
            sizes_of,
            bounds,
            entry_sizes,
            entry_flags,
            lengths,
            self._tokens.sentences.indptr,
            sizes,
            flags,
        )
        return sizes, flags


class _Entries:
    """Sizes and flags of the words of a chunk."""

    def __init__(self, maker: _Maker, edges: _Edges, forms: Ragged, words: np.ndarray):
        self._maker, self._forms = maker, forms
        self._edges = _Edges(*(part.tolist() for part in edges))
        self._joins, self._terms = maker._encoder.pipeline.joins, maker._index.terms
        self._strings = maker._strings

    def __call__(self, chunk: str, words: list[int], ids: np.ndarray, is_first: bool) -> tuple[list[int], list[int]]:
        closed = [min(len(ids), 2**16 - 1)] + [0] * (len(words) - 1), [HARD] + [HARD | GLUED] * (len(words) - 1)
        if len(words) == 1 and self._is_plain(chunk, words[0]):
            return [closed[0][0]], [case_of(chunk) * CASE]
        written = self._written(chunk, words)
        if not written or not all(map(self._is_plain, written, words)):
            return closed
        units = self._units(words, is_first)
        found = [self._ids(written, words, unit, is_first) for unit in units]
        known = [one for one in found if one is not None]
        n_unknown, rest = len(found) - len(known), len(ids) - sum(map(len, known))
        if n_unknown > 1 or rest < n_unknown or (not n_unknown and rest):
            return closed
        sizes, flags, at = [], [], 0
        for (start, stop), one in zip(units, found, strict=True):
            size = rest if one is None else len(one)
            if one is not None and ids[at : at + size].tolist() != one:
                return closed
            at += size
            sizes += [size] + [0] * (stop - start - 1)
            for j in range(start, stop):
                flag = case_of(written[j]) * CASE | (GLUED if j else 0) | (HARD if stop - start > 1 else 0)
                exact = in_case(self._strings[words[j]], CASES[case_of(written[j])]) == written[j]
                flags.append(flag | (EXACT if exact else 0) | (OPENS if self._opens(j, is_first) else 0))
        return sizes, flags

    def _is_plain(self, written: str, word: int) -> bool:
        """Whether a word is written as it would be drawn, but for its case."""
        return written == '"' if self._strings[word] == '"' else self._strings[word] == self._terms[word]

    def _written(self, chunk: str, words: list[int]) -> list[str]:
        """The words as the chunk has them; [] if they are not all of it."""
        found, at = [], 0
        for word in words:
            term = self._terms[word]
            n = 1 if term in QUOTES and chunk[at : at + 1] == '"' else len(term)
            found.append(chunk[at : at + n])
            at += n
        return found if at == len(chunk) and all(found) else []

    def _opens(self, j: int, is_first: bool) -> bool:
        return not self._joins.after_space_only or (j == 1 and not is_first)

    def _units(self, words: list[int], is_first: bool) -> list[tuple[int, int]]:
        """Where the words are parted: (start, stop) of each run of words that are not."""
        starts = [0] + [
            j for j in range(1, len(words)) if self._parted(words[j - 1], words[j], self._opens(j, is_first))
        ]
        return [*zip(starts, [*starts[1:], len(words)], strict=True)]

    def _parted(self, word: int, following: int, opens: bool) -> bool:
        end, begin = self._edges.marks[word][1], self._edges.marks[following][0]
        if end >= 0 and begin >= 0:
            return self._joins.between_marks
        if begin >= 0:
            return bool(self._edges.before[word] >> begin & 1)
        return end >= 0 and opens and bool(self._edges.after[following] >> end & 1)

    def _ids(self, written: list[str], words: list[int], unit: tuple[int, int], is_first: bool) -> list[int] | None:
        """The sub-words of a unit, if it is a term in one of the cases."""
        start, stop = unit
        case = case_of(written[start])
        if stop - start > 1 or in_case(self._strings[words[start]], CASES[case]) != written[start]:
            return None
        maker = self._maker
        context = INSIDE if start else FIRST if is_first else LATER
        place = maker._contexts.index(context) if len(maker._contexts) > 1 else 0
        kind = maker._cases.index(CASES[case]) if CASES[case] in maker._cases else 0
        row = (place * len(maker._cases) + kind) * len(self._strings) + words[start]
        return self._forms[row].tolist() or None
