"""Negatives of rows of the index that are written like their sentences, as text or as token ids.

A kernel writes a row chunk by chunk. A chunk that stays keeps its ids of the sentence, and a drawn term has ids that
were made once and kept beside the index. What else a chunk holds is cut into *units*, such as ")." behind a new word,
where the tokenizer begins a new sub-word (`una_fast.tokens.joins`); the tokenizer encodes each unit once.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Iterable, Sequence

import numpy as np

from una_fast._kernels.ids.written import (
    CASED,
    LOWER,
    MARK,
    N_CHARACTERS,
    TITLE,
    UNKNOWN,
    UPPER,
    Characters,
    Forms,
    RowWriter,
    fill_rows,
)
from una_fast._kernels.words.strings import StringSet
from una_fast.arrays import ID, POINTER, Ragged, StringTable, row_bounds
from una_fast.augment.surface import CASES, QUOTES, in_case, is_mark
from una_fast.index.index import Index
from una_fast.storage.folder import Arrays
from una_fast.tokens.binding import encode_both, encode_chunks
from una_fast.tokens.ids import TokenIds
from una_fast.tokens.joins import WordJoins, mark_number
from una_fast.tokens.subwords import SubwordEncoder

VERSION = 4  # of the layout of the forms
MOST_UNITS = 2**17  # strings whose ids are remembered: some 10 MB
ONLY_WHOLE = -1  # as `fill_rows` knows it
NO_IDS = Ragged(np.zeros(0, dtype=ID), np.zeros(1, dtype=POINTER))
LETTERS, MARKS = "azxqk0", '(),-/.:"'  # what a form inside a chunk may stand behind


class WrittenRows:
    """Writes rows of an index whose words were drawn.

    index: the corpus; strings: each term as it is spelled where it is drawn; tokens: of a tokenizer that makes ids by
    word, None: no ids are needed.
    """

    def __init__(self, index: Index, strings: StringTable, tokens: TokenIds | None, n_jobs: int):
        self._tokens, self._forms, joins = tokens, None, None
        if tokens is not None and tokens.encoder is not None:
            self._units, joins = UnitIds(tokens.encoder), tokens.encoder.joins()
            self._forms = _cased_forms(index, tokens, tokens.encoder, [*strings], joins, n_jobs)
        terms = _beyond_ascii(strings)
        cased = np.full(len(strings), -1, dtype=ID)
        cased[terms] = len(CASES) * np.arange(len(terms))
        in_cases = StringTable.from_strings([in_case(strings[i], case) for i in terms.tolist() for case in CASES])
        characters = _characters(index, strings, joins)
        chunks, quotes = lower_chunks(index.chunks, index.lowercase), quote_terms(index)
        self._writer = RowWriter(index, *chunks, quotes, strings, cased, in_cases, characters, self._forms)

    def texts(self, rows: np.ndarray, drawn: Ragged) -> list[str | None]:
        """The texts of `drawn`, the terms of the negatives of `rows`, int64 (B,); None where the kernel cannot tell."""
        return self._writer.write(rows, drawn.values, drawn.indptr).texts()

    def fill(self, rows: np.ndarray, drawn: Ragged, input_ids: np.ndarray, attention_mask: np.ndarray) -> np.ndarray:
        """Fill both outputs, int64 (B, L), as `texts`; returns the lines, int64, that only the tokenizer can encode."""
        assert self._tokens is not None
        frame, sentences = self._tokens.frame, self._tokens.sentences
        room = input_ids.shape[1] - frame.n_special
        written = self._writer.write(rows, drawn.values, drawn.indptr, room)
        numbers, ids = self._units.number(*written.units())
        units, kept = (numbers, ids.values, ids.indptr), (sentences.values, sentences.indptr)
        fill = fill_rows[f"{sentences.values.dtype}_t"]
        return fill(written, self._forms, *units, *kept, rows, frame, input_ids, attention_mask)


class UnitIds:
    """The sub-words of strings, by the character that stands before them; each is encoded once.

    A string that only a whole text can tell the ids of, has the one id ONLY_WHOLE.
    """

    def __init__(self, encoder: SubwordEncoder):
        self._encoder, self._lock = encoder, threading.Lock()
        self._strings, self._ids = StringSet(), NO_IDS

    def number(self, text: np.ndarray, starts: np.ndarray, stops: np.ndarray) -> tuple[np.ndarray, Ragged]:
        """The number, int32 (n,), of each string ``text[starts[i]:stops[i]]``, and the ids of the strings by number."""
        with self._lock:
            if len(self._strings) > MOST_UNITS:
                self._strings, self._ids = StringSet(), NO_IDS
            n_known = len(self._ids)
            numbers = self._strings.add(text, starts, stops)
            new = np.flatnonzero(numbers >= n_known)
            if len(new):
                new = new[np.unique(numbers[new], return_index=True)[1]]
                strings = [text[starts[i] : stops[i]].tobytes().decode("utf-8") for i in new.tolist()]
                ids = encode_behind(strings, self._encoder)
                without = ids.lengths() == 0
                values = np.insert(ids.values, ids.indptr[:-1][without], ONLY_WHOLE)
                self._ids = self._ids.followed_by(Ragged(values, row_bounds(ids.lengths() + without)))
            return numbers, self._ids


def encode_behind(strings: Sequence[str], encoder: SubwordEncoder, n_jobs: int = 1) -> Ragged:
    """int32 ids of each string but its first character, which is what stands before it in a text.

    A space, a newline, which is here the start of the text, or a character behind which the tokenizer begins a new
    sub-word. A string that only a whole text can tell the ids of, has none; and so has an empty one.
    """
    heads = [string[:1] for string in strings]
    outside = [head in " \n" for head in heads]
    table = StringTable.from_strings([s[1:] if out else s for s, out in zip(strings, outside, strict=True)])
    is_first = np.array([head == "\n" for head in heads], dtype=bool)
    regular, ids, first = encode_both(table, is_first, encoder, n_jobs)
    if first is not ids:
        ids = ids.followed_by(first).take(np.arange(len(ids)) + len(ids) * is_first)
    distinct = dict.fromkeys(head for head, out in zip(heads, outside, strict=True) if not out)
    numbers = {head: i for i, head in enumerate(distinct)}
    before = encoder.encode_chunks(StringTable.from_strings([*numbers]), np.ones(len(numbers), dtype=bool), True)
    number = np.array([-1 if out else numbers[head] for head, out in zip(heads, outside, strict=True)], dtype=POINTER)
    lengths, skipped = ids.lengths(), np.append(before.lengths(), 0)[number]
    regular &= lengths > skipped
    for k in range(int(skipped.max(initial=0))):
        at = np.flatnonzero(regular & (skipped > k))
        regular[at] = ids.values[ids.indptr[at] + k] == before.values[before.indptr[number[at]] + k]
    skipped = np.where(regular, skipped, lengths)
    kept = np.arange(len(ids.values)) >= np.repeat(ids.indptr[:-1] + skipped, lengths)
    return Ragged(ids.values[kept], row_bounds(lengths - skipped))


def _cased_forms(
    index: Index, tokens: TokenIds, encoder: SubwordEncoder, strings: list[str], joins: WordJoins, n_jobs: int
) -> Forms:
    """The ids of the terms in each context and case, kept in the index's folder."""
    cases = [0, 0, 0, 0] if not tokens.cased else [0, 0, 1, 2] if index.lowercase else [0, 1, 2, 3]
    contexts = [0, 0, 0] if tokens.context_free else [0, 1, 2]
    first_offset = 0 if tokens.context_free else len(index.chunks)

    def make() -> Arrays:
        distinct_cases = [CASES[cases.index(i)] if i else CASES[0] for i in range(max(cases) + 1)]
        heads: list[Iterable[str]] = [[" "] * len(strings), ["\n"] * len(strings), _heads(strings, joins)]
        terms = strings if tokens.cased else [term if _is_one_word(term) else "" for term in strings]
        rows = NO_IDS
        for before in heads[: max(contexts) + 1]:
            for case in distinct_cases:
                behind = [head and head + in_case(term, case) for head, term in zip(before, terms, strict=True)]
                rows = rows.followed_by(encode_behind(behind, encoder, n_jobs))
        _, lengths, _ = encode_chunks(index, encoder, n_jobs)
        sizes = np.where((lengths < 0) | (lengths > UNKNOWN), UNKNOWN, lengths).astype(np.uint16)
        return {"values": rows.values, "indptr": rows.indptr, "sizes": sizes}

    arrays = index.cached(f"kept-{VERSION}-{encoder.fingerprint}", VERSION, make)
    added = {word for token in tokens.added for word in re.findall(r"\w+", token.lower())}
    whole = np.array([term.lower() in added for term in strings], dtype=np.uint8)
    rows = Ragged(arrays["values"], arrays["indptr"])
    return Forms(rows, arrays["sizes"], whole, contexts, cases, first_offset)


def _is_one_word(term: str) -> bool:
    """Whether a tokenizer that makes all letters small makes the same of a term in every case; "ß" is "SS"."""
    forms = [] if term.isascii() else [in_case(term, case) for case in CASES]
    return len({"".join(map(str.lower, form)) for form in forms}) <= 1


def _heads(strings: Iterable[str], joins: WordJoins) -> list[str]:
    """For each term a character behind which the tokenizer begins a new sub-word; "" if none is known."""
    known: dict[str, str] = {}
    for first in {term[:1] for term in strings} - {""}:
        mark, after = mark_number(first), joins.after(first)
        fitting = (one for one in LETTERS if mark >= 0 and joins.before(one) >> mark & 1)
        known[first] = next(fitting, next((one for one in MARKS if after >> mark_number(one) & 1), ""))
    return [known.get(term[:1], "") for term in strings]


def _characters(index: Index, strings: StringTable, joins: WordJoins | None) -> Characters:
    """What the kernel needs to know of the characters that the index holds."""
    used = {*index.chunks.utf8.tobytes().decode("utf-8"), *strings.utf8.tobytes().decode("utf-8")}
    used |= {cased for one in used for cased in one.upper() + one.lower()}
    kinds, marks = np.zeros(N_CHARACTERS, dtype=np.uint8), np.full(N_CHARACTERS, -1, dtype=np.int8)
    before, after = np.zeros((2, N_CHARACTERS), dtype=np.uint64)
    for one in (one for one in used if ord(one) < N_CHARACTERS):
        kinds[ord(one)] = (
            is_mark(one) * MARK
            | (one.lower() != one.upper()) * CASED
            | one.islower() * LOWER
            | one.isupper() * UPPER
            | (unicodedata.category(one) == "Lt") * TITLE
        )
        if joins is not None:
            marks[ord(one)] = mark_number(one)
            before[ord(one)], after[ord(one)] = joins.before(one), joins.after(one)
    parts = (joins.between_marks, joins.after_space_only) if joins is not None else (False, False)
    return Characters(kinds, marks, before, after, *parts)


def quote_terms(index: Index) -> np.ndarray:
    """int32 (2,): the terms that stand for a quotation mark; -1 for one that the index does not hold."""
    known = index.word_tokenizer == "treebank"
    candidates = index.terms.rows_with(*(mark.encode() for mark in QUOTES)).tolist() if known else []
    found = {index.terms[i]: i for i in candidates}
    return np.array([found.get(mark, -1) for mark in QUOTES], dtype=ID)


def lower_chunks(
    chunks: StringTable, lowercase: bool, needed: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The UTF-8 of the chunks, in lower case if `lowercase`, and which chunks have another length then: uint8.

    needed: bool (C,), the chunks that have to be right; None: all of them.
    """
    refused = np.zeros(len(chunks), dtype=np.uint8)
    if not lowercase:
        return chunks.utf8, refused
    utf8 = np.frombuffer(bytearray(chunks.utf8.tobytes().lower()), dtype=np.uint8)  # ASCII alone
    beyond_ascii = _beyond_ascii(chunks)
    for i in (beyond_ascii if needed is None else beyond_ascii[needed[beyond_ascii]]).tolist():
        chunk, lower = chunks[i], chunks[i].lower()
        if [len(one.encode()) for one in chunk] == [len(one.encode()) for one in lower]:
            utf8[chunks.offsets[i] : chunks.offsets[i + 1]] = np.frombuffer(lower.encode(), dtype=np.uint8)
        else:
            refused[i] = True
    return utf8, refused


def _beyond_ascii(strings: StringTable) -> np.ndarray:
    """int64, ascending: the numbers of the strings that hold a character beyond ASCII."""
    return np.unique(np.searchsorted(strings.offsets, np.flatnonzero(strings.utf8 >= 0x80), side="right") - 1)
