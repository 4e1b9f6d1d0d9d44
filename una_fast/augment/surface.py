"""surface="kept": rows of drawn ids -> their text and their token ids.

The text is the sentence as it is written, except for its replaced words: a new word takes the capitals of the
word that it replaces, the opening marks before that word ("¿Cuánto") stay, and where a new word and its neighbour would
look like one ("song," and "album" for the comma), a space is put between.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from functools import cached_property

import numpy as np

from una_fast._kernels.draws.rows import RowKernel
from una_fast._kernels.ids import written
from una_fast._kernels.words.strings import StringSet
from una_fast.arrays import ID, POINTER, RaggedArray, StringTable, rows_from
from una_fast.augment.counter_rng import SampleKey
from una_fast.augment.rows import Rows
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


class KeptSurface:
    """Writes each text like its sentence.

    documents: of the index; tokens: of a tokenizer, None: no ids are needed.
    """

    def __init__(self, index: Index, documents: Rows, tokens: TokenIds | None):
        self._index, self._documents, self._tokens = index, documents, tokens
        if tokens is not None:
            self._units, _ = UnitIds(tokens.encoder), self._writer  # made before threads ask for it

    @cached_property
    def _strings(self) -> StringTable:
        """3 V strings: each term where it is drawn, as it is, with a capital, and in upper case."""
        quotes = QUOTES if self._index.word_tokenizer == "treebank" else ()
        openings = OPENING if self._index.word_tokenizer in NAMED else ""
        words = ['"' if word in quotes else word.lstrip(openings) or word for word in self._index.terms]
        capitalised = (word[:1].upper() + word[1:].lower() for word in words)
        strings = StringTable.from_strings([*words, *capitalised, *map(str.upper, words)])
        learn_characters(strings)
        return strings

    @cached_property
    def _subwords(self) -> written.Subwords:
        assert self._tokens is not None
        tokens, encoder, strings = self._tokens, self._tokens.encoder, self._strings
        cuts = encoder.cuts(learn_characters(self._index.chunks, strings))
        name, terms = f"tokens-forms-{encoder.fingerprint}", self._index.terms
        alike = self._index.cached(name, 1, lambda: {"alike": encoder.alike(strings, terms)})["alike"]
        return written.Subwords(tokens.terms, tokens.chunk_sizes, cuts, alike)

    @cached_property
    def _writer(self) -> written.RowWriter:
        """Of the documents."""
        return self._writer_of(self._documents, None if self._tokens is None else self._subwords)

    def _writer_of(self, source: Rows, subwords: written.Subwords | None = None) -> written.RowWriter:
        learn_characters(source.chunks)
        tables = source.chunks, source.sentences, source.words, source.unseen, source.terms, self._strings
        return written.RowWriter(*tables, CHARACTERS, self._index.lowercase, subwords)

    def texts(self, source: Rows, rows: np.ndarray, drawn: RaggedArray) -> list[str]:
        """The texts of `drawn`, the ids of the augmented `rows`, int64 (B,), of `source`."""
        writer = self._writer if source is self._documents else self._writer_of(source)
        texts = writer.write(rows, drawn.values, drawn.indptr).texts()
        if None in texts:
            raise InputError(
                'surface="kept": the word tokenizer made words of '
                f"{source.sentence(rows[texts.index(None)])!r} that the text does not hold, or not in this order: "
                'give surface="paper"'
            )
        return texts

    def fill(
        self, kernel: RowKernel, rows: np.ndarray, key: SampleKey, ids: np.ndarray, mask: np.ndarray, left: np.ndarray
    ) -> None:
        """Fill input ids and mask, int64 (B, L), with the documents `rows` that the `kernel` draws.

        left: uint8 (B,), filled with 1 for a line that the tokenizer has to encode, else 0.
        """
        assert self._tokens is not None
        frame, sentences = self._tokens.frame, self._tokens.sentences
        drawn, bounds = kernel.terms(rows, key.epoch, key.sample_index)
        negatives = self._writer.write(rows, drawn, bounds, ids.shape[1] - frame.n_special)
        numbers, known = self._units.number(*negatives.units())
        units, kept = (numbers, known.values, known.indptr), (sentences.values, sentences.indptr)
        fill = written.fill_rows[f"{sentences.values.dtype}_t"]
        fill(negatives, self._subwords, *units, *kept, rows, frame, ids, mask, left)


class UnitIds:
    """The sub-words of strings; each is encoded once, and remembered until all of them take more than MOST_BYTES.

    Then they are forgotten, and each is encoded again when it comes. A string that only a whole text can tell the ids
    of, has none. Threads may share one object.
    """

    def __init__(self, encoder: SubwordEncoder):
        self._encoder, self._lock = encoder, threading.Lock()
        self._forget()

    def _forget(self) -> None:
        self._strings, self.n_bytes, self._n_encoded = StringSet(), 0, 0
        self._values, self._bounds = np.empty(2**10, dtype=ID), np.zeros(2**10, dtype=POINTER)

    def number(self, text: np.ndarray, starts: np.ndarray, stops: np.ndarray) -> tuple[np.ndarray, RaggedArray]:
        """The number, int32 (n,), of each string ``text[starts[i]:stops[i]]``, and the ids of the strings by number.

        Where ids depend on what precedes a string, it begins with a space, or with a newline for the start of a text.
        """
        with self._lock:
            if self.n_bytes > MOST_BYTES or len(self._strings) > self._n_encoded:  # a call was interrupted
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
            self._n_encoded = len(self._strings)
            return numbers, RaggedArray(self._values, self._bounds[: len(self._strings) + 1])

    def _add(self, n_known: int, ids: RaggedArray) -> None:
        """Append the ids of new strings. Arrays that other threads read are never written below their ends."""
        n, used = n_known + len(ids), int(self._bounds[n_known])
        self._bounds, self._values = _grown(self._bounds, n + 1), _grown(self._values, used + len(ids.values))
        self._values[used : used + len(ids.values)] = ids.values
        self._bounds[n_known + 1 : n + 1] = used + ids.indptr[1:]
        self.n_bytes += 4 * len(ids.values)


def _grown(array: np.ndarray, n: int) -> np.ndarray:
    """The array with room for n items: itself, or a copy of at least twice its length."""
    return array if n <= len(array) else np.concatenate([array, np.empty(n, dtype=array.dtype)])


def learn_characters(*tables: StringTable) -> list[str]:
    """Fill in CHARACTERS for the characters of all tables; returns these characters, each once."""
    used = sorted(set().union(*(table.utf8.tobytes().decode("utf-8") for table in tables)))
    for character in used:
        if not CHARACTERS[ord(character)]:
            CHARACTERS[ord(character)] = (
                KNOWN
                | ord(character.lower()[0])
                | stands_apart(character) * written.APART
                | (character.lower() != character.upper()) * written.CASED
                | character.islower() * written.LOWER
                | character.isupper() * written.UPPER
                | (unicodedata.category(character) == "Lt") * written.TITLE
            )
    return used


def stands_apart(character: str) -> bool:
    """Whether a word may stand beside this character without a space.

    It is punctuation, as BERT's tokenizer has it (of Unicode, or any other visible character of ASCII but letters and
    digits), or of a script without spaces between words.
    """
    is_mark = unicodedata.category(character).startswith("P") or ("!" <= character <= "~" and not character.isalnum())
    return is_mark or WITHOUT_SPACES.match(character) is not None
