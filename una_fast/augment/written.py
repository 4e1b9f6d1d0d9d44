"""Negatives of rows of the index that are written like their sentences, as text or as token ids.

A kernel writes a row chunk by chunk. A chunk that stays keeps its ids of the sentence, a drawn term alone has ids that
were made once and kept beside the index, and any other chunk, such as "(album)." around a new word, is a string that
the tokenizer encodes once.
"""

from __future__ import annotations

import threading
import unicodedata

import numpy as np

from una_fast._kernels.ids.written import (
    APART,
    CASED,
    CUT,
    LOWER,
    N_CHARACTERS,
    TITLE,
    UNKNOWN,
    UPPER,
    Forms,
    RowWriter,
    fill_rows,
)
from una_fast._kernels.words.strings import StringSet
from una_fast.arrays import ID, POINTER, Ragged, StringTable
from una_fast.augment.surface import CASES, QUOTES, stands_apart
from una_fast.index.index import Index
from una_fast.storage.folder import Arrays
from una_fast.tokens.binding import encode_chunks
from una_fast.tokens.ids import TokenIds
from una_fast.tokens.subwords import SubwordEncoder

VERSION = 5  # of the layout of the forms
MOST_BYTES = 2**25  # of the strings whose ids are remembered, and their ids: some 500,000 strings
BYTES_A_STRING = 48  # of its places in the table


class WrittenRows:
    """Writes rows of an index whose words were drawn.

    index: the corpus; strings: V terms as they are spelled where they are drawn, in each of CASES: 4 V strings; tokens:
    of a tokenizer that makes ids by word, None: no ids are needed.
    """

    def __init__(self, index: Index, strings: StringTable, tokens: TokenIds | None, n_jobs: int):
        used = {*index.chunks.utf8.tobytes().decode("utf-8"), *strings.utf8.tobytes().decode("utf-8")}
        self._tokens, self._forms, cuts = tokens, None, ""
        if tokens is not None and tokens.encoder is not None:
            self._units = UnitIds(tokens.encoder)
            self._forms, cuts = _forms(index, tokens.encoder, strings, sorted(used), n_jobs)
        kinds = _kinds(used, cuts)
        self._writer = RowWriter(index, *lower_chunks(index), quote_terms(index), strings, kinds, self._forms)

    def texts(self, rows: np.ndarray, drawn: Ragged) -> list[str | None]:
        """The texts of `drawn`, the terms of the negatives of `rows`, int64 (B,); None where the kernel cannot tell."""
        return self._writer.write(rows, drawn.values, drawn.indptr).texts()

    def fill(self, rows: np.ndarray, drawn: Ragged, input_ids: np.ndarray, attention_mask: np.ndarray) -> np.ndarray:
        """Fill both outputs, int64 (B, L), as `texts`; returns the lines, int64, that only the tokenizer can encode."""
        assert self._tokens is not None
        frame, sentences = self._tokens.frame, self._tokens.sentences
        written = self._writer.write(rows, drawn.values, drawn.indptr, input_ids.shape[1] - frame.n_special)
        numbers, ids = self._units.number(*written.units())
        units, kept = (numbers, ids.values, ids.indptr), (sentences.values, sentences.indptr)
        fill = fill_rows[f"{sentences.values.dtype}_t"]
        return fill(written, self._forms, *units, *kept, rows, frame, input_ids, attention_mask)


class UnitIds:
    """The sub-words of strings; each is encoded once, and remembered until all of them take more than MOST_BYTES.

    Then they are forgotten, and each is encoded again when it comes. A string that only a whole text can tell the ids
    of, has none. Threads may share one object.
    """

    def __init__(self, encoder: SubwordEncoder):
        self._encoder, self._lock = encoder, threading.Lock()
        self._forget()

    def _forget(self) -> None:
        self._strings, self._n_bytes = StringSet(), 0
        self._values, self._bounds = np.empty(2**10, dtype=ID), np.zeros(2**10, dtype=POINTER)

    def number(self, text: np.ndarray, starts: np.ndarray, stops: np.ndarray) -> tuple[np.ndarray, Ragged]:
        """The number, int32 (n,), of each string ``text[starts[i]:stops[i]]``, and the ids of the strings by number.

        Where ids depend on what precedes a string, it begins with a space, or with a newline for the start of a text.
        """
        with self._lock:
            if self._n_bytes > MOST_BYTES:
                self._forget()
            n_known = len(self._strings)
            numbers = self._strings.add(text, starts, stops)
            new = np.flatnonzero(numbers >= n_known)
            if len(new):
                new = new[np.unique(numbers[new], return_index=True)[1]]
                strings = [text[starts[i] : stops[i]].tobytes().decode("utf-8") for i in new.tolist()]
                self._add(n_known, encode_units(strings, self._encoder))
                self._n_bytes += int((stops[new] - starts[new]).sum()) + BYTES_A_STRING * len(new)
            n = len(self._strings)
            return numbers, Ragged(self._values, self._bounds[: n + 1])

    def _add(self, n_known: int, ids: Ragged) -> None:
        """Append the ids of new strings. Arrays that other threads read are never written below their ends."""
        n, used = n_known + len(ids), int(self._bounds[n_known])
        if n + 1 > len(self._bounds):
            self._bounds = np.concatenate([self._bounds[: n_known + 1], np.empty(n + 1, dtype=POINTER)])
        if used + len(ids.values) > len(self._values):
            self._values = np.concatenate([self._values[:used], np.empty(used + len(ids.values), dtype=ID)])
        self._values[used : used + len(ids.values)] = ids.values
        self._bounds[n_known + 1 : n + 1] = used + ids.indptr[1:]
        self._n_bytes += 4 * len(ids.values)


def encode_units(strings: list[str], encoder: SubwordEncoder) -> Ragged:
    """int32 ids of strings as `UnitIds.number` takes them; none where only a whole text can tell them."""
    if encoder.pipeline.context_free:
        return encoder.encode(StringTable.from_strings(strings))[0]
    is_first = np.array([string[0] == "\n" for string in strings], dtype=bool)
    return encoder.encode(StringTable.from_strings([string[1:] for string in strings]), is_first)[0]


def _forms(
    index: Index, encoder: SubwordEncoder, strings: StringTable, used: list[str], n_jobs: int
) -> tuple[Forms, str]:
    """The ids of the terms in each context and case, and the marks that cut a chunk; kept in the index's folder.

    used: the characters of the chunks and of `strings`.
    """
    n_terms, context_free = len(strings) // len(CASES), encoder.pipeline.context_free
    first_offset = 0 if context_free else len(index.chunks)

    def make() -> Arrays:
        bounds = strings.offsets[:: n_terms or 1]
        tables = [
            StringTable(strings.utf8[a:b], strings.offsets[i * n_terms : (i + 1) * n_terms + 1] - a)
            for i, (a, b) in enumerate(zip(bounds[:-1], bounds[1:], strict=True))
        ]
        rows: list[Ragged] = []
        blocks = []
        for is_first in (False,) if context_free else (False, True):
            for table in tables:
                ids, _ = encoder.encode(table, np.full(n_terms, is_first), n_jobs)
                same = [i for i, other in enumerate(rows) if _are_equal(ids, other)]
                blocks.append(same[0] if same else len(rows))
                rows += [] if same else [ids]
        _, lengths, _ = encode_chunks(index, encoder, n_jobs)
        sizes = np.where((lengths < 0) | (lengths >= UNKNOWN), UNKNOWN, lengths).astype(np.uint16)
        joined = rows[0]
        for ids in rows[1:]:
            joined = joined.followed_by(ids)
        placed = n_terms * np.array(blocks * (2 if context_free else 1), dtype=POINTER)
        cuts = np.frombuffer(encoder.checked_cuts(used).encode("ascii"), dtype=np.uint8)
        return {"values": joined.values, "indptr": joined.indptr, "blocks": placed, "sizes": sizes, "cuts": cuts}

    arrays = index.cached(f"kept-{VERSION}-{encoder.fingerprint}", VERSION, make)
    forms = Forms(arrays["values"], arrays["indptr"], arrays["blocks"], arrays["sizes"], first_offset, context_free)
    return forms, arrays["cuts"].tobytes().decode("latin-1")


def _are_equal(rows: Ragged, others: Ragged) -> bool:
    return np.array_equal(rows.indptr, others.indptr) and np.array_equal(rows.values, others.values)


def _kinds(used: set[str], cuts: str) -> np.ndarray:
    """uint8 (N_CHARACTERS,): what the kernel needs to know of the characters `used`."""
    kinds = np.zeros(N_CHARACTERS, dtype=np.uint8)
    for character in used:
        if ord(character) < N_CHARACTERS:
            kinds[ord(character)] = (
                stands_apart(character) * APART
                | (character.lower() != character.upper()) * CASED
                | character.islower() * LOWER
                | character.isupper() * UPPER
                | (unicodedata.category(character) == "Lt") * TITLE
                | (character in cuts) * CUT
            )
    return kinds


def quote_terms(index: Index) -> np.ndarray:
    """int32 (2,): the terms that stand for a quotation mark; -1 for one that the index does not hold."""
    known = index.word_tokenizer == "treebank"
    candidates = index.terms.rows_with(*(mark.encode() for mark in QUOTES)).tolist() if known else []
    marks = {index.terms[i]: i for i in candidates}
    return np.array([marks.get(mark, -1) for mark in QUOTES], dtype=ID)


def lower_chunks(index: Index) -> tuple[np.ndarray, np.ndarray]:
    """The UTF-8 of the chunks, in lower case if the words are, and which chunks have another length then: uint8."""
    chunks, refused = index.chunks, np.zeros(len(index.chunks), dtype=np.uint8)
    if not index.lowercase:
        return chunks.utf8, refused
    utf8 = np.frombuffer(bytearray(chunks.utf8.tobytes().lower()), dtype=np.uint8)  # ASCII alone
    beyond_ascii = np.unique(np.searchsorted(chunks.offsets, np.flatnonzero(chunks.utf8 >= 0x80), side="right") - 1)
    for i in beyond_ascii.tolist():
        chunk, lower = chunks[i], chunks[i].lower()
        if [len(one.encode()) for one in chunk] == [len(one.encode()) for one in lower]:
            utf8[chunks.offsets[i] : chunks.offsets[i + 1]] = np.frombuffer(lower.encode(), dtype=np.uint8)
        else:
            refused[i] = True
    return utf8, refused
