"""Turns the words that were drawn for a sentence into text and token ids."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from una_fast._kernels.draws.rows import RowKernel
from una_fast._kernels.ids import rewrite
from una_fast._kernels.ids.emit import TermTokens
from una_fast.arrays import RaggedArray, StringTable, row_bounds
from una_fast.augment.counter_rng import SampleKey
from una_fast.augment.split_sentences import SplitSentences
from una_fast.corpus.word_tokenizers import NAMED, SCRIPTS
from una_fast.errors import InputError
from una_fast.index.index import Index
from una_fast.storage.array_folder import Arrays
from una_fast.tokens.ids import TokenIds

QUOTES = ("``", "''")  # the words that the Treebank tokenizer writes for quotation marks
OPENING = "¿¡"  # Spanish marks, which the Treebank tokenizer does not split off
WITHOUT_SPACES = re.compile(f"[{''.join(SCRIPTS.values())}]")
ASCII = bytes(range(128))
CHARACTERS = np.zeros(0x110000, dtype=np.uint32)  # properties of each code point; 0 until `learn_characters` sets them
IS_SET = 1 << 31  # marks the items of CHARACTERS that are set

# A function (rows, key, ids, mask) that draws new words for the sentences `rows`, and fills `ids` and `mask`, int64
# (n_rows, max_length), with the token ids and the attention mask of the new texts. It returns bool (n_rows,): True for
# a text that the tokenizer must encode, because its ids depend on the whole text. Threads may share the function.
WriteIds = Callable[[np.ndarray, SampleKey, np.ndarray, np.ndarray], np.ndarray]


class PaperSurface:
    """Writes a text as its words in the spelling of the index, joined with spaces."""

    def __init__(self, index: Index):
        self._n_terms = index.n_terms

    def texts(self, source: SplitSentences, rows: np.ndarray, drawn: RaggedArray) -> list[str]:
        """Return the augmented text of each sentence ``rows[i]`` of `source`, whose new word ids are ``drawn[i]``."""
        return [*source.spell(drawn)]

    def id_writer(self, kernel: RowKernel, tokens: TokenIds) -> WriteIds:
        """Return a `WriteIds` function that draws new words with `kernel` and writes their token ids."""
        terms = TermTokens(tokens.terms, self._n_terms, tokens.frame)

        def write(rows: np.ndarray, key: SampleKey, ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
            unwritten: np.ndarray = kernel.token_ids(rows, key.epoch, key.sample_index, terms, ids, mask)
            return unwritten

        return write


class KeptSurface:
    """Writes the new words into the original sentence, and preserves its case and spacing.

    A new word gets the old word's capitalisation, and opening marks before the old word are kept ("¿Cuánto"). A space
    is added where two words would join: if "album" replaces the comma of "song,", the text is "song album".
    """

    def __init__(self, index: Index, documents: SplitSentences):
        self._index, self._documents = index, documents

    @cached_property
    def forms(self) -> StringTable:
        """All terms, then all terms capitalised, then all in upper case. `` and '' become quotation marks."""
        quotes = QUOTES if self._index.word_tokenizer == "treebank" else ()
        openings = OPENING if self._index.word_tokenizer in NAMED else ""
        terms, n = self._index.terms, self._index.n_terms
        forms = forms_of_ascii(terms)
        special = terms.matching(r"[^\x00-\x7F]|^(``|'')$")
        words = ['"' if word in quotes else word.lstrip(openings) or word for word in terms.take(special)]
        capitalised = (word[:1].upper() + word[1:].lower() for word in words)
        table = StringTable.from_strings([*words, *capitalised, *map(str.upper, words)])
        order = np.arange(3 * n)
        order[np.concatenate([special, special + n, special + 2 * n])] = 3 * n + np.arange(len(table))
        forms = forms.followed_by(table).take(order)
        learn_characters(forms)
        return forms

    @cached_property
    def _document_writer(self) -> rewrite.RowWriter:
        return self._row_writer(self._documents)

    def _row_writer(self, source: SplitSentences, subwords: rewrite.Subwords | None = None) -> rewrite.RowWriter:
        """Make a text writer for `source`. With `subwords` (only for an index's sentences), it writes token ids too."""
        learn_characters(source.chunks)
        tables = source.chunks, source.sentences, source.words, source.unseen, source.terms, self.forms
        return rewrite.RowWriter(*tables, CHARACTERS, self._index.lowercase, subwords)

    def texts(self, source: SplitSentences, rows: np.ndarray, drawn: RaggedArray) -> list[str]:
        """Return the augmented texts, as `PaperSurface.texts` does."""
        writer = self._document_writer if source.are_documents else self._row_writer(source)
        texts: list[Any] = writer.write(rows, drawn.values, drawn.indptr).texts()
        if None in texts:
            (sentence,) = source.texts(rows[[texts.index(None)]])
            raise InputError(
                f'surface="kept": the word tokenizer returned words for {sentence!r} that are not in the text, or not '
                'in this order: give surface="paper"'
            )
        return texts

    def id_writer(self, kernel: RowKernel, tokens: TokenIds) -> WriteIds:
        """Return a `WriteIds` that copies the stored token ids of every chunk in which no word was replaced."""
        subwords = self.subwords(tokens)
        writer = self._row_writer(self._documents, subwords)

        def write(rows: np.ndarray, key: SampleKey, ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
            drawn, bounds = kernel.terms(rows, key.epoch, key.sample_index)
            written = writer.write(rows, drawn, bounds, ids.shape[1] - tokens.frame.n_special)
            return fill_ids(written, subwords, tokens, rows, ids, mask)

        return write

    def subwords(self, tokens: TokenIds) -> rewrite.Subwords:
        """Return the sub-words of the index's terms and chunks, for a `RowWriter` that writes token ids."""
        encoder, forms = tokens.encoder, self.forms
        cuts = encoder.cuts(learn_characters(self._index.chunks, forms))
        name, terms = f"tokens-forms-{encoder.fingerprint}", self._index.terms

        def fits(stored: Arrays) -> bool:
            alike = stored["alike"]
            return alike.dtype == np.uint8 and alike.shape == (len(forms),) and alike.max(initial=0) <= 1

        stored = self._index.cached(name, 1, lambda: {"alike": encoder.alike(forms, terms)}, fits)
        return rewrite.Subwords(tokens.terms, tokens.chunk_sizes, cuts, stored["alike"])


def forms_of_ascii(terms: StringTable) -> StringTable:
    """Return all terms unchanged, then all capitalised, then all in upper case. Only ASCII letters change.

    This takes 10 ms for 168,000 terms. Converting the terms one by one takes 0.2 s.
    """
    text, starts = terms.utf8.tobytes(), terms.offsets[:-1]
    upper, title = np.frombuffer(text.upper(), np.uint8), np.frombuffer(bytearray(text.lower()), np.uint8)
    title[starts] = upper[starts]
    return StringTable(np.concatenate([terms.utf8, title, upper]), row_bounds(np.tile(np.diff(terms.offsets), 3)))


def learn_characters(*tables: StringTable) -> list[str]:
    """Store in CHARACTERS the case and other properties of each character of `tables`. Return these characters."""
    others = (table.utf8.tobytes().translate(None, ASCII).decode("utf-8") for table in tables)
    of_ascii = (chr(byte) for table in tables for byte in np.flatnonzero(np.bincount(table.utf8, minlength=128)[:128]))
    used = sorted({*of_ascii}.union(*others))
    for character in used:
        if not CHARACTERS[ord(character)]:
            CHARACTERS[ord(character)] = (
                IS_SET
                | ord(character.lower()[0])
                | stands_apart(character) * rewrite.APART
                | (character.lower() != character.upper()) * rewrite.CASED
                | character.islower() * rewrite.LOWER
                | character.isupper() * rewrite.UPPER
                | (unicodedata.category(character) == "Lt") * rewrite.TITLE
            )
    return used


def stands_apart(character: str) -> bool:
    """Return whether a word can be next to this character without a space between them.

    True for punctuation, as BERT's tokenizer defines it, and for characters of a script without spaces.
    """
    is_mark = unicodedata.category(character).startswith("P") or ("!" <= character <= "~" and not character.isalnum())
    return is_mark or WITHOUT_SPACES.match(character) is not None


def fill_ids(
    written: rewrite.WrittenRows,
    subwords: rewrite.Subwords,
    tokens: TokenIds,
    rows: np.ndarray,
    ids: np.ndarray,
    mask: np.ndarray,
) -> np.ndarray:
    """Fill `ids` and `mask` with the rows of an index as a `RowWriter` wrote them. Return as a `WriteIds` does."""
    fragments, original = tokens.cache.look_up(*written.fragments())[:3], tokens.sentences
    fill_rows = rewrite.fill_rows[f"{original.values.dtype}_t"]
    needs_text: np.ndarray = fill_rows(
        written, subwords, *fragments, original.values, original.indptr, rows, tokens.frame, ids, mask
    )
    return needs_text
