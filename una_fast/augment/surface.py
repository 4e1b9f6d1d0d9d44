"""Writes drawn ids as text and as token ids.

With surface="kept" the text is the sentence as written, except for its replaced words. A new word is capitalised like
the word that it replaces, and opening marks before it are kept ("¿Cuánto"). A space is added where a new word and its
neighbour would look like one word: if "album" replaces the comma of "song,", the text is "song album".
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import cached_property

import numpy as np

from una_fast._kernels.draws.rows import RowKernel
from una_fast._kernels.ids import written
from una_fast._kernels.ids.emit import TermTokens
from una_fast.arrays import RaggedArray, StringTable, row_bounds
from una_fast.augment.counter_rng import SampleKey
from una_fast.augment.rows import Rows
from una_fast.corpus.word_tokenizers import NAMED, SCRIPTS
from una_fast.errors import InputError
from una_fast.index.index import Index
from una_fast.storage.array_folder import Arrays
from una_fast.tokens.ids import TokenIds

QUOTES = ("``", "''")  # the words of the Treebank tokenizer for quotation marks
OPENING = "¿¡"  # Spanish marks, which the Treebank tokenizer does not split off
WITHOUT_SPACES = re.compile(f"[{''.join(SCRIPTS.values())}]")
ASCII = bytes(range(128))
KNOWN = 1 << 31
CHARACTERS = np.zeros(0x110000, dtype=np.uint32)  # properties of each character, for the kernel; 0: not set yet


WriteIds = Callable[[np.ndarray, SampleKey, np.ndarray, np.ndarray], np.ndarray]


class PaperSurface:
    """Writes each word as the index spells it, separated by spaces."""

    def __init__(self, index: Index, documents: Rows):
        self._n_terms = index.n_terms

    def texts(self, source: Rows, rows: np.ndarray, drawn: RaggedArray) -> list[str]:
        """Write the texts of `drawn`, the ids of the augmented `rows`, int64 (B,), of `source`."""
        return [*source.spell(drawn)]

    def id_writer(self, kernel: RowKernel, tokens: TokenIds) -> WriteIds:
        """Make the function that writes the token ids of the documents that the kernel augments.

        Its arguments are rows, int64 (B,), the key of their draws, and the ids and mask to fill, int64 (B, L). It
        returns bool (B,): whether a row's ids depend on its whole text, which must then be tokenised. Threads may share
        the function.
        """
        terms = TermTokens(tokens.terms, self._n_terms, tokens.frame)

        def write(rows: np.ndarray, key: SampleKey, ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
            return kernel.token_ids(rows, key.epoch, key.sample_index, terms, ids, mask)

        return write


class KeptSurface:
    """Writes each text like its original sentence. documents: those of the index."""

    def __init__(self, index: Index, documents: Rows):
        self._index, self._documents = index, documents

    @cached_property
    def strings(self) -> StringTable:
        """3 V strings: all terms unchanged, then capitalised, then in upper case."""
        quotes = QUOTES if self._index.word_tokenizer == "treebank" else ()
        openings = OPENING if self._index.word_tokenizer in NAMED else ""
        terms, n = self._index.terms, self._index.n_terms
        strings = forms_of_ascii(terms)
        special = terms.matching(r"[^\x00-\x7F]|^(``|'')$")
        words = ['"' if word in quotes else word.lstrip(openings) or word for word in terms.take(special)]
        capitalised = (word[:1].upper() + word[1:].lower() for word in words)
        table = StringTable.from_strings([*words, *capitalised, *map(str.upper, words)])
        order = np.arange(3 * n)
        order[np.concatenate([special, special + n, special + 2 * n])] = 3 * n + np.arange(len(table))
        strings = strings.followed_by(table).take(order)
        learn_characters(strings)
        return strings

    @cached_property
    def _document_writer(self) -> written.RowWriter:
        return self._row_writer(self._documents)

    def _row_writer(self, source: Rows, subwords: written.Subwords | None = None) -> written.RowWriter:
        """Make the writer of rows of `source`: it writes texts or, given `subwords`, the ids of documents."""
        learn_characters(source.chunks)
        tables = source.chunks, source.sentences, source.words, source.unseen, source.terms, self.strings
        return written.RowWriter(*tables, CHARACTERS, self._index.lowercase, subwords)

    def texts(self, source: Rows, rows: np.ndarray, drawn: RaggedArray) -> list[str]:
        """See `PaperSurface`. Raises InputError for a sentence that does not contain its words in order."""
        writer = self._document_writer if source.keys is None else self._row_writer(source)
        texts = writer.write(rows, drawn.values, drawn.indptr).texts()
        if None in texts:
            raise InputError(
                'surface="kept": the word tokenizer made words of '
                f"{source.sentence(rows[texts.index(None)])!r} that are not in the text, or not in this order: "
                'give surface="paper"'
            )
        return texts

    def id_writer(self, kernel: RowKernel, tokens: TokenIds) -> WriteIds:
        """See `PaperSurface`. A sentence keeps its ids, except where a word is replaced."""
        subwords, sentences, frame = self._subwords(tokens), tokens.sentences, tokens.frame
        writer = self._row_writer(self._documents, subwords)
        fill_rows = written.fill_rows[f"{sentences.values.dtype}_t"]

        def write(rows: np.ndarray, key: SampleKey, ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
            drawn, bounds = kernel.terms(rows, key.epoch, key.sample_index)
            negatives = writer.write(rows, drawn, bounds, ids.shape[1] - frame.n_special)
            numbers, unit_ids, unit_bounds, _ = tokens.cache.number(*negatives.units())
            kept = sentences.values, sentences.indptr
            return fill_rows(negatives, subwords, numbers, unit_ids, unit_bounds, *kept, rows, frame, ids, mask)

        return write

    def _subwords(self, tokens: TokenIds) -> written.Subwords:
        """Return the sub-words of the terms and chunks of the index for `RowWriter`."""
        encoder, strings = tokens.encoder, self.strings
        cuts = encoder.cuts(learn_characters(self._index.chunks, strings))
        name, terms = f"tokens-forms-{encoder.fingerprint}", self._index.terms

        def fits(kept: Arrays) -> bool:
            return kept["alike"].dtype == np.uint8 and kept["alike"].shape == (len(strings),)

        kept = self._index.cached(name, 1, lambda: {"alike": encoder.alike(strings, terms)}, fits)
        return written.Subwords(tokens.terms, tokens.chunk_sizes, cuts, kept["alike"])


SURFACES: dict[str, type[KeptSurface] | type[PaperSurface]] = {"kept": KeptSurface, "paper": PaperSurface}


def forms_of_ascii(terms: StringTable) -> StringTable:
    """Return 3 V strings: V terms unchanged, then capitalised, then in upper case. Only ASCII letters change.

    For 168,000 terms this takes 10 ms, instead of 0.2 s one by one.
    """
    text, starts = terms.utf8.tobytes(), terms.offsets[:-1]
    upper, title = np.frombuffer(text.upper(), np.uint8), np.frombuffer(bytearray(text.lower()), np.uint8)
    title[starts] = upper[starts]
    return StringTable(np.concatenate([terms.utf8, title, upper]), row_bounds(np.tile(np.diff(terms.offsets), 3)))


def learn_characters(*tables: StringTable) -> list[str]:
    """Set CHARACTERS for all characters in the tables, and return each of them once."""
    others = (table.utf8.tobytes().translate(None, ASCII).decode("utf-8") for table in tables)
    of_ascii = (chr(byte) for table in tables for byte in np.flatnonzero(np.bincount(table.utf8, minlength=128)[:128]))
    used = sorted({*of_ascii}.union(*others))
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
    """Return whether a word may follow or precede this character without a space.

    It may if the character is punctuation as BERT's tokenizer defines it (of Unicode, or a visible ASCII character that
    is not a letter or digit), or belongs to a script without spaces between words.
    """
    is_mark = unicodedata.category(character).startswith("P") or ("!" <= character <= "~" and not character.isalnum())
    return is_mark or WITHOUT_SPACES.match(character) is not None
