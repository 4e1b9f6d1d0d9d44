"""Rows of drawn ids -> their text, in one of the surfaces, and their token ids where those depend on the sentence.

surface="kept" is the sentence as it is written, except for its replaced words: a new word takes the capitals of the
word that it replaces, the opening marks before that word ("¿Cuánto") stay, and where a new word and its neighbour would
look like one ("song," and "album" for the comma), a space is put between.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Callable
from functools import cached_property

import numpy as np

from una_fast._kernels.ids import written as kernel
from una_fast._kernels.ids.emit import TermTokens
from una_fast._kernels.words.strings import StringSet
from una_fast.arrays import ID, POINTER, RaggedArray, StringTable, row_bounds, rows_from
from una_fast.augment.text_rows import NO_STRINGS, TextRows, spell
from una_fast.corpus.word_tokenizers import NAMED, SCRIPTS
from una_fast.errors import InputError
from una_fast.index.index import Index
from una_fast.tokens.ids import TokenIds
from una_fast.tokens.subwords import SubwordEncoder

QUOTES = ("``", "''")  # the words of the Treebank tokenizer for quotation marks
OPENING = "¿¡"  # Spanish marks, which the Treebank tokenizer leaves at their word
WITHOUT_SPACES = re.compile(f"[{''.join(SCRIPTS.values())}]")
KNOWN = 1 << 31
CHARACTERS = np.zeros(0x110000, dtype=np.uint32)  # of each, what the kernel needs to know; 0: not asked for yet
MOST_BYTES = 2**26  # of the strings whose ids are remembered, and their ids: some 900,000 strings
BYTES_A_STRING = 48  # of its places in the table


class Detokenizer:
    """Writes the ids that a kernel draws.

    index: the corpus; surface: "paper": each id as the index has it, with spaces between; "kept": like the sentence;
    tokens: of a tokenizer, None: no ids are needed.

    writes_ids: whether `fill` writes the token ids of rows; term_tokens: what a kernel needs to write them, None: it
    cannot, or need not.
    """

    def __init__(self, index: Index, surface: str, tokens: TokenIds | None):
        self._index, self._tokens = index, tokens if tokens is not None and tokens.by_word else None
        self._keeps = surface == "kept"
        self.writes_ids, self.term_tokens = self._keeps and self._tokens is not None, None
        if self.writes_ids:
            _ = self._rows  # made before threads ask for it
        elif self._tokens is not None:
            self.term_tokens = TermTokens(self._tokens.terms, index.n_terms, self._tokens.frame)

    @cached_property
    def _rows(self) -> kernel.RowWriter:
        """Of the rows of the index."""
        terms, cased, *_ = self._terms
        characters, subwords = learn_characters(self._index.chunks, cased), None
        if self._tokens is not None:
            tokens, encoder = self._tokens, self._tokens.encoder
            self._units = UnitIds(encoder)
            name = f"tokens-forms-{encoder.fingerprint}"
            kept = self._index.cached(name, 1, lambda: {"alike": encoder.alike(cased, terms)})
            subwords = kernel.Subwords(tokens.terms, tokens.chunk_sizes, encoder.cuts(characters), kept["alike"])
        self._subwords = subwords
        tables = self._index.chunks, self._index.sentences, self._index.word_ids, NO_STRINGS
        return kernel.RowWriter(*tables, *self._terms, subwords)

    @cached_property
    def _terms(self) -> tuple[StringTable, StringTable, np.ndarray, bool]:
        """What a `RowWriter` needs to know of the terms: among others the string of each where it is drawn."""
        terms, quotes = self._index.terms, QUOTES if self._index.word_tokenizer == "treebank" else ()
        openings = OPENING if self._index.word_tokenizer in NAMED else ""
        marked = terms.rows_with(*(mark.encode() for mark in (*quotes, *openings)))
        forms = ['"' if terms[i] in quotes else terms[i].lstrip(openings) or terms[i] for i in marked.tolist()]
        return terms, in_cases(terms.exchanged(marked, forms)), CHARACTERS, self._index.lowercase

    def rows(self, rows: np.ndarray, drawn: RaggedArray) -> list[str]:
        """The texts of `drawn`, the ids of the augmented documents `rows`, int64 (B,)."""
        if not self._keeps:
            return [*spell(drawn, self._index.terms)]
        written = self._rows.write(rows, drawn.values, drawn.indptr)
        return _checked(written.texts(), lambda i: self._index.sentence(int(rows[i])))

    def texts(self, text: TextRows, drawn: RaggedArray) -> list[str]:
        """The texts of `drawn`, the ids of the augmented rows of `text`."""
        if not self._keeps:
            return [*spell(drawn, self._index.terms, text.unseen)]
        rows = np.arange(len(text.texts))
        table = StringTable(np.frombuffer(b"".join(text.texts), dtype=np.uint8), row_bounds([*map(len, text.texts)]))
        learn_characters(table, self._terms[1])
        whole = RaggedArray(rows.astype(ID), np.arange(len(rows) + 1))  # each text is one chunk
        writer = kernel.RowWriter(table, whole, text.terms, text.unseen, *self._terms)
        return _checked(writer.write(rows, drawn.values, drawn.indptr).texts(), table.__getitem__)

    def fill(
        self, rows: np.ndarray, drawn: RaggedArray, input_ids: np.ndarray, attention_mask: np.ndarray, left: np.ndarray
    ) -> None:
        """Fill both, int64 (B, L), as `rows`, and `left`, uint8 (B,): 1 for a line that the tokenizer has to encode."""
        assert self._tokens is not None
        frame, sentences = self._tokens.frame, self._tokens.sentences
        written = self._rows.write(rows, drawn.values, drawn.indptr, input_ids.shape[1] - frame.n_special)
        numbers, ids = self._units.number(*written.units())
        units, kept = (numbers, ids.values, ids.indptr), (sentences.values, sentences.indptr)
        fill = kernel.fill_rows[f"{sentences.values.dtype}_t"]
        fill(written, self._subwords, *units, *kept, rows, frame, input_ids, attention_mask, left)


def _checked(texts: list[str | None], sentence: Callable[[int], str]) -> list[str]:
    if None in texts:
        raise InputError(
            f'surface="kept": the word tokenizer made words of {sentence(texts.index(None))!r} that the text does not '
            'hold, or not in this order: give surface="paper"'
        )
    return texts  # type: ignore[return-value]


class UnitIds:
    """The sub-words of strings; each is encoded once, and remembered until all of them take more than MOST_BYTES.

    Then they are forgotten, and each is encoded again when it comes. A string that only a whole text can tell the ids
    of, has none. Threads may share one object.
    """

    def __init__(self, encoder: SubwordEncoder):
        self._encoder, self._lock = encoder, threading.Lock()
        self._forget()

    def _forget(self) -> None:
        self._strings, self.n_bytes = StringSet(), 0
        self._values, self._bounds = np.empty(2**10, dtype=ID), np.zeros(2**10, dtype=POINTER)

    def number(self, text: np.ndarray, starts: np.ndarray, stops: np.ndarray) -> tuple[np.ndarray, RaggedArray]:
        """The number, int32 (n,), of each string ``text[starts[i]:stops[i]]``, and the ids of the strings by number.

        Where ids depend on what precedes a string, it begins with a space, or with a newline for the start of a text.
        """
        with self._lock:
            if self.n_bytes > MOST_BYTES:
                self._forget()
            n_known = len(self._strings)
            numbers = self._strings.add(text, starts, stops)
            new = np.flatnonzero(numbers >= n_known)
            if len(new):
                new = new[np.unique(numbers[new], return_index=True)[1]]
                begins = starts[new] + (not self._encoder.pipeline.context_free)
                strings = rows_from(text, begins, stops[new] - begins)
                is_first = text[starts[new]] == ord("\n")
                self._add(n_known, self._encoder.encode(StringTable(strings.values, strings.indptr), is_first)[0])
                self.n_bytes += len(strings.values) + BYTES_A_STRING * len(new)
            return numbers, RaggedArray(self._values, self._bounds[: len(self._strings) + 1])

    def _add(self, n_known: int, ids: RaggedArray) -> None:
        """Append the ids of new strings. Arrays that other threads read are never written below their ends."""
        n, used = n_known + len(ids), int(self._bounds[n_known])
        if n + 1 > len(self._bounds):
            self._bounds = np.concatenate([self._bounds[: n_known + 1], np.empty(n + 1, dtype=POINTER)])
        if used + len(ids.values) > len(self._values):
            self._values = np.concatenate([self._values[:used], np.empty(used + len(ids.values), dtype=ID)])
        self._values[used : used + len(ids.values)] = ids.values
        self._bounds[n_known + 1 : n + 1] = used + ids.indptr[1:]
        self.n_bytes += 4 * len(ids.values)


def learn_characters(*tables: StringTable) -> list[str]:
    """Fill in CHARACTERS for the characters of all tables; returns these characters, each once."""
    used = sorted({character for table in tables for character in table.utf8.tobytes().decode("utf-8")})
    for character in used:
        if not CHARACTERS[ord(character)]:
            CHARACTERS[ord(character)] = (
                KNOWN
                | ord(character.lower()[0])
                | stands_apart(character) * kernel.APART
                | (character.lower() != character.upper()) * kernel.CASED
                | character.islower() * kernel.LOWER
                | character.isupper() * kernel.UPPER
                | (unicodedata.category(character) == "Lt") * kernel.TITLE
            )
    return used


def stands_apart(character: str) -> bool:
    """Whether a word may stand beside this character without a space.

    It is punctuation, as BERT's tokenizer has it (of Unicode, or any other visible character of ASCII but letters and
    digits), or of a script without spaces between words.
    """
    is_mark = unicodedata.category(character).startswith("P") or ("!" <= character <= "~" and not character.isalnum())
    return is_mark or WITHOUT_SPACES.match(character) is not None


def in_cases(strings: StringTable) -> StringTable:
    """3 V strings: V strings as they are, with a capital, and in upper case."""
    beyond_ascii = strings.rows_from(0x80)
    spelled = [strings[i] for i in beyond_ascii.tolist()]
    lower, upper = (np.frombuffer(bytearray(change(strings.utf8.tobytes())), np.uint8) for change in ASCII_CASES)
    title, firsts = lower, strings.offsets[:-1][np.diff(strings.offsets) > 0]
    title[firsts] = upper[firsts]
    table = strings
    for utf8, change in ((title, _capitalised), (upper, str.upper)):
        changed = StringTable(utf8, strings.offsets).exchanged(beyond_ascii, [*map(change, spelled)])
        table = table.followed_by(changed)
    return table


def _capitalised(word: str) -> str:
    return word[:1].upper() + word[1:].lower()


ASCII_CASES = (bytes.lower, bytes.upper)  # they change the bytes of ASCII letters alone
