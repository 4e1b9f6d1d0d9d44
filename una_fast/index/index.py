"""The index of a corpus: its sentences, their words, and the scores of every term. Saves and loads it."""

from __future__ import annotations

import logging
import operator
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import xxhash

from una_fast._kernels.words.strings import StringSet
from una_fast.arrays import ID, MAX_IDS, POINTER, SCORE, RaggedArray, StringTable
from una_fast.corpus.word_tokenizers import (
    NAMED,
    SEGMENTERS,
    SIGNATURE_SENTENCES,
    SplitWords,
    WordTokenizer,
    resolve_tokenizer,
)  # fmt: skip
from una_fast.errors import InputError, counted, suggests_keywords, warn_user
from una_fast.index.scores import TermScores, term_frequency
from una_fast.storage.array_folder import Arrays, cached_arrays, find_manifest, load_arrays, resolved, save_arrays
from una_fast.storage.files import checksum_of

if TYPE_CHECKING:
    import scipy.sparse

logger = logging.getLogger(__name__)
LEAST_TERMS = 7000  # with fewer, a window contains less than a hundred words: docs/choosing.md
KIND, LAYOUT = "index", 1  # of an index's folder, and the version of its layout
SCORE_VERSION = 2  # version of the scores' rounding; version 2 rounds correctly, so scores are equal on all processors

# the arrays of an index by name, all one-dimensional
DTYPES: dict[str, type[np.generic]] = {
    "chunks_utf8": np.uint8,
    "chunks_offsets": POINTER,
    "sentences_values": ID,
    "sentences_indptr": POINTER,
    "terms_utf8": np.uint8,
    "terms_offsets": POINTER,
    "words_values": ID,
    "words_indptr": POINTER,
    "document_frequency": POINTER,
    "idf": SCORE,
    "max_tfidf": SCORE,
}
SCORES = TermScores._fields
SOURCE_TYPES = {"name": str, "n_documents": int, "xxh3_128": str}
META_TYPES = {"sources": list, "word_tokenizer": str, "lowercase": bool, "score_law": int}


class Index:
    """A corpus of N sentences over a vocabulary of V terms, made by `build_index` or `load_index`.

    ``len(index)`` is N, ``index[row]`` is the original text of a sentence, ``index[start:stop]`` is a list of texts.
    Iterating yields the text of every sentence in order. The pickle of a saved index refers to its folder and contains
    no arrays, so all processes of a machine share one copy.

    Attributes:
        terms: Sequence[str], V terms, highest `max_tfidf` first, ties by first appearance. A term's id is its position.
        document_frequency: int64 (V,), N_t, the number of sentences that contain the term.
        idf: float64 (V,), -ln(N_t / N).
        max_tfidf: float64 (V,), s, the highest tf-idf of the term in any sentence, sorted from high to low.
        word_ids: `RaggedArray`. ``word_ids[row]`` contains the words of a sentence as term ids, int32, in order.
        chunks: Sequence[str], the distinct chunks of all sentences. A chunk is a piece of text between two spaces.
        chunk_ids: `RaggedArray`. ``chunk_ids[row]`` contains a sentence's chunks as positions in `chunks`, int32.
        sources: the name, the number of sentences and the digest of each source of the corpus.
        path: the absolute path of the folder where the index is saved, or None.
    """

    def __init__(
        self, arrays: Arrays, meta: dict[str, Any], word_tokenizer: str | SplitWords, path: Path | None = None
    ):
        self._arrays, self._meta = arrays, meta
        self.chunks = StringTable(arrays["chunks_utf8"], arrays["chunks_offsets"])
        self.terms = StringTable(arrays["terms_utf8"], arrays["terms_offsets"])
        self.chunk_ids = RaggedArray(arrays["sentences_values"], arrays["sentences_indptr"])
        self.word_ids = RaggedArray(arrays["words_values"], arrays["words_indptr"])
        self.document_frequency, self.idf, self.max_tfidf = (arrays[name] for name in SCORES)
        self.sources, self.lowercase = meta["sources"], meta["lowercase"]
        self.word_tokenizer, self.path = word_tokenizer, path

    @property
    def n_documents(self) -> int:
        """N, the number of sentences, including blank ones. They are the documents of tf-idf."""
        return len(self.word_ids)

    @property
    def n_terms(self) -> int:
        """V, the number of terms."""
        return len(self.terms)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the corpus and the settings, as 32 hexadecimal digits. Equal fingerprints mean equal arrays.

        The word tokenizers "treebank" and "whitespace" never change, so the hash covers their names. With any other
        word tokenizer, the hash covers all words of the index.
        """
        tokenizer = self._meta["word_tokenizer"]
        if self._meta.get("word_probe") is not None:
            names = sorted(name for name in DTYPES if name.startswith(("terms_", "words_")))
            tokenizer = checksum_of(self._arrays[name].data for name in names)
        made_from = [[source["xxh3_128"] for source in self.sources], tokenizer, self.lowercase, SCORE_VERSION]
        return xxhash.xxh3_128_hexdigest(repr(made_from).encode())

    @cached_property
    def counts(self) -> scipy.sparse.csr_array:
        """How often each sentence contains each term, sparse int32 (N, V). Within a row, the term ids ascend."""
        import scipy.sparse  # imported here, because it takes 0.2 s and negatives do not need it

        ones, shape = np.ones(len(self.word_ids.values), dtype=ID), (self.n_documents, self.n_terms)
        counts = scipy.sparse.csr_array((ones, self.word_ids.values, self.word_ids.indptr), shape=shape, copy=True)
        counts.sum_duplicates()
        return counts

    @cached_property
    def term_ids(self) -> TermIds:
        """The id of each term."""
        return TermIds(self.terms)

    def tfidf(self) -> scipy.sparse.csr_array:
        """Compute Z of equation 2: the tf-idf of each term in each sentence.

        The tf-idf is ``ln(1 + n_t / n) * idf[t]`` if term t occurs n_t times in a sentence of n words.

        Returns:
            Sparse float64 (N, V), with an entry wherever `counts` has one.
        """
        import scipy.sparse

        counts = self.counts
        lengths = np.repeat(self.word_ids.lengths(), np.diff(counts.indptr))
        data = term_frequency(counts.data, lengths) * self.idf[counts.indices]
        return scipy.sparse.csr_array((data, counts.indices, counts.indptr), shape=counts.shape)

    def words(self, row: int) -> list[str]:
        """Return the words of sentence `row` in order, as the word tokenizer made them.

        Args:
            row: the number of a sentence, from 0 to N - 1, or from -N to -1.

        Raises:
            IndexError: the index has no such sentence.
        """
        return [self.terms[i] for i in self.word_ids[self._checked(row)]]

    def sentence(self, row: int) -> str:
        """Return the original text of sentence `row`, as ``index[row]`` does.

        Args:
            row: as in `words`.

        Raises:
            IndexError: the index has no such sentence.
        """
        return " ".join(self.chunks[i] for i in self.chunk_ids[self._checked(row)])

    def save(self, path: str | Path) -> None:
        """Save the index, completely or not at all. Processes that have opened an older index can still read it.

        Args:
            path: a folder that does not exist, is empty, or contains an index, which is replaced.

        Raises:
            InputError: the folder cannot be written or contains anything else.
        """
        folder = resolved(path)
        save_arrays(folder, KIND, LAYOUT, self._meta, self._arrays)
        self.path = folder
        logger.info("index saved: %s", folder)

    def cached(self, name: str, version: int, make: Callable[[], Arrays], fits: Callable[[Arrays], bool]) -> Arrays:
        """Return arrays that are computed from this index. A saved index stores them.

        Args:
            name: the subfolder for the arrays. They may depend only on the index and on what `name` stands for.
            version: of the arrays. If the stored version differs, the arrays are computed again.
            make: computes the arrays.
            fits: returns whether stored arrays are valid. They are computed again if it returns False or raises.

        Returns:
            The arrays by name, memory-mapped if they are stored.
        """
        folder = self.path / name if self.path and find_manifest(self.path) else None
        return cached_arrays(folder, version, f"{name} of {self.fingerprint}", make, fits)

    def _checked(self, row: int) -> int:
        n, number = len(self), operator.index(row)
        if not -n <= number < n:
            raise IndexError(f"row {number:,} of an index of {counted(n, 'sentence')}: give 0 to {n - 1:,}")
        return number % n

    def __len__(self) -> int:
        return self.n_documents

    @overload
    def __getitem__(self, row: int) -> str: ...
    @overload
    def __getitem__(self, row: slice) -> list[str]: ...
    def __getitem__(self, row: int | slice) -> str | list[str]:
        if isinstance(row, slice):
            return [self.sentence(i) for i in range(*row.indices(len(self)))]
        return self.sentence(row)

    def __iter__(self) -> Iterator[str]:
        return map(self.sentence, range(len(self)))

    def __reduce__(self) -> Any:
        if self.path is None:
            return super().__reduce__()
        function = self.word_tokenizer if callable(self.word_tokenizer) else None
        return _reopen, (self.path, function, self.fingerprint)

    def __repr__(self) -> str:
        return f"<una_fast.Index of {counted(self.n_documents, 'sentence')}, {counted(self.n_terms, 'term')}>"


class TermIds(Mapping[str, int]):
    """A mapping from each term to its id, which is its position in `terms`."""

    def __init__(self, terms: StringTable):
        self._terms, self._set = terms, StringSet(len(terms))
        self._set.add(terms.utf8, terms.offsets[:-1], terms.offsets[1:])

    def find(self, words: StringTable) -> np.ndarray:
        """Return the ids of `words`, int32 (len(words),). The id of a word that is not a term is -1."""
        ids: np.ndarray = self._set.find(words.utf8, words.offsets[:-1], words.offsets[1:])
        return ids

    def __getitem__(self, word: str) -> int:
        number = int(self.find(StringTable.from_strings([word]))[0])
        if number < 0:
            raise KeyError(word)
        return number

    def __iter__(self) -> Iterator[str]:
        return iter(self._terms)

    def __len__(self) -> int:
        return len(self._terms)

    def __reduce__(self) -> Any:
        return TermIds, (self._terms,)


@suggests_keywords
def load_index(path: str | Path, word_tokenizer: str | SplitWords | None = None, *, verify: bool = False) -> Index:
    """Open a saved index, memory-mapped, so that all processes of a machine share one copy.

    Opening detects missing and truncated files, bounds and ids out of range, and text that is not UTF-8. This takes 60
    ms per million sentences.

    Args:
        path: the folder given to `Index.save`.
        word_tokenizer: if a function split the corpus into words, this function or its import path.
        verify: check every byte, including stored token ids, to detect damage by a failing disk.

    Returns:
        An index of the sentences, equal to the one that was saved.

    Raises:
        InputError: the folder is not an index, is damaged or has a layout of another version, or another word tokenizer
            made its words.
    """
    folder = resolved(path)
    meta, arrays = load_arrays(folder, KIND, LAYOUT, verify)
    _check_content(folder, meta, arrays)
    tokenizer = _checked_tokenizer(folder, meta, word_tokenizer)
    return Index(arrays, meta, tokenizer, folder)


def _check_content(folder: Path, meta: dict[str, Any], arrays: Arrays) -> None:
    """Raise InputError if `meta` or an array is invalid, because a kernel could then read outside an array."""
    wrong = "types"
    with suppress(Exception):  # values of wrong types may raise anything
        wrong = next((name for name, is_right in _checks(meta, arrays) if not is_right), "")
    if wrong:
        raise InputError(f"{folder}: damaged, or not written by this una_fast: wrong {wrong}; build it again")


def _checks(meta: dict[str, Any], arrays: Arrays) -> Iterator[tuple[str, bool]]:
    """Yield the name of each field and array, and whether it is valid. Each check relies on the ones before it."""
    for name, kind in META_TYPES.items():
        yield name, type(meta.get(name)) is kind
    yield "sources", all({key: type(one[key]) for key in SOURCE_TYPES} == SOURCE_TYPES for one in meta["sources"])
    yield "word_probe", meta.get("word_probe") is None or len(meta["word_probe"]) == len(SIGNATURE_SENTENCES)
    yield "score_law", meta["score_law"] == SCORE_VERSION
    yield "list of arrays", arrays.keys() == DTYPES.keys()
    for name, dtype in DTYPES.items():
        yield name, arrays[name].dtype == dtype and arrays[name].ndim == 1
    index = Index(arrays, meta, "")
    chunks, terms, sentences, words = index.chunks, index.terms, index.chunk_ids, index.word_ids
    yield "chunks", chunks.is_utf8()
    yield "terms", 0 < len(terms) <= MAX_IDS and terms.is_utf8() and bool(np.diff(terms.offsets).all())
    yield "sentences", len(sentences) == len(words) == sum(source["n_documents"] for source in meta["sources"])
    for name, rows, strings in (("sentences", sentences, chunks), ("words", words, terms)):
        largest = rows.values.view(np.uint32).max(initial=0)  # as uint32, a negative id exceeds any valid id
        yield name, len(rows.values) == 0 or largest < len(strings)
    for name, low, high in (("document_frequency", 1, len(words)), *((name, 0, sys.float_info.max) for name in SCORES)):
        values = arrays[name]
        yield name, len(values) == len(terms) and low <= values.min() and values.max() <= high  # False for NaN
    yield "max_tfidf", bool((arrays["max_tfidf"][1:] <= arrays["max_tfidf"][:-1]).all())


def _checked_tokenizer(folder: Path, meta: dict[str, Any], from_user: str | SplitWords | None) -> str | SplitWords:
    """Return the word tokenizer of a saved index. Raises InputError if `from_user` splits differently."""
    name: str = meta["word_tokenizer"]
    tokenizer = name if from_user is None else resolve_tokenizer(from_user)
    if name in NAMED or from_user in NAMED:
        if tokenizer != name:
            raise InputError(f"{folder}: its words were made by {name!r}; do not give another word_tokenizer")
        return name
    if meta.get("word_probe") is None:
        raise InputError(f"{folder}: it lacks the words that identify {name!r}: build the index again")
    if from_user is not None or name in SEGMENTERS:
        WordTokenizer(tokenizer).check_signature(str(folder), meta["word_probe"])
    return tokenizer


def _reopen(folder: Path, word_tokenizer: SplitWords | None, fingerprint: str) -> Index:
    index = load_index(folder, word_tokenizer=word_tokenizer)
    if index.fingerprint != fingerprint:
        raise InputError(f"{folder}: another index was saved there since this one was opened; load it again")
    return index


def index_meta(sources: list[dict[str, Any]], tokenizer: WordTokenizer) -> dict[str, Any]:
    """Return the metadata that the manifest of an index contains."""
    words = {"word_tokenizer": tokenizer.name, "word_probe": tokenizer.signature(), "lowercase": tokenizer.lowercase}
    return {"sources": sources, **words, "score_law": SCORE_VERSION}


def warn_of_few_terms(index: Index) -> None:
    """Warn if an index has too few terms for replacements of similar importance."""
    if index.n_terms < LEAST_TERMS:
        warn_user(
            f"the index has {counted(index.n_terms, 'term')}: with fewer than {LEAST_TERMS:,}, words have few "
            "replacements of similar importance: use a larger corpus (docs/choosing.md)"
        )


def empty_index() -> Index:
    """Return an index without documents and terms."""
    arrays = {name: np.zeros(int(name.endswith(("offsets", "indptr"))), dtype) for name, dtype in DTYPES.items()}
    return Index(arrays, index_meta([], WordTokenizer("treebank")), "treebank")
