"""Documents -> chunks -> words: a corpus as ids of distinct chunks and of distinct words.

A chunk is what lies between two spaces (U+0020) of a document. There are few distinct ones, so words are made once for
each, not for each occurrence. That is exact, because every rule of the Treebank tokenizer stays inside a chunk but for
these (nltk.tokenize.destructive; `_` is a space here):

- `^"` and `([_([{<])("|'')`: what a chunk starts with is treated by whether a space or the start of the line is before
  it. So is the character that `([^.])(\\.)`, `([^'])'_` and `([^'_])('s)_` need before them.
- `([:,])([^\\d])`, `([^'])'_` and the clitics take the space after a chunk, or the end of the line, as their last
  character. Only `([^'])'_` could miss that space as its own first character, and then it would only have doubled it.
- `([:,])$` is for the end of the line.
- The two final-period rules match `.`, closing brackets and quotes and white space up to the end of the line. So they
  reach over spaces if the last chunk is made of closers alone: then the *entry* to tokenise runs from the last chunk
  that is not to the end of the line.
- `\\b`, `(?<!\\w)` and `(?=\\s)` look one character ahead or back, and a space is like the start or end of a line to them.
- `\\s+` and str.split only drop spaces.

So an entry's words follow from its text and from whether it starts or ends its line. The kernel tokenises it on a line
of its own, with an `x` where it has neighbours. Lower-casing a chunk is lower-casing the line: of all characters only
the final sigma looks at its neighbours, and it looks no further than a space.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

import numpy as np
from tqdm import tqdm

from una_fast._kernels.contexts import closing_chunks, count_words, gather_words, number_entries, tokenize_entries
from una_fast._kernels.strings import StringSet, split_chunks
from una_fast._kernels.treebank import treebank_words
from una_fast.arrays import ID, POINTER, Ragged, StringTable, check_id_range
from una_fast.errors import InputError
from una_fast.sources import Block, Source, open_sources, source_digests

__all__ = ["ParsedCorpus", "WordTokenizer", "n_cores", "parse_corpus", "source_digests", "word_tokenizer"]

ENTRIES_PER_TASK = 1 << 15
ROWS_PER_TASK = 1 << 16

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class ParsedCorpus:
    """N documents as ids of C distinct chunks and of V distinct words, both numbered by first appearance.

    chunks: C texts, as written; sentences: int32 chunk ids of each document, so that
    ``" ".join(chunks[i] for i in sentences[row])`` is the document; vocabulary: V words; words: int32 word ids of each
    document in order, none for a blank one; sources: name, n_documents and xxh3_128 of each source.
    """

    chunks: StringTable
    sentences: Ragged
    vocabulary: StringTable
    words: Ragged
    sources: list[dict[str, Any]]


@dataclass(frozen=True)
class WordTokenizer:
    """How a sentence becomes words; `function` gets the sentence, lower-cased first if `lowercase`."""

    name: str
    function: Callable[[str], Sequence[str]]
    lowercase: bool

    @classmethod
    def of(cls, tokenizer: str | Callable[[str], Sequence[str]], lowercase: bool) -> WordTokenizer:
        """A tokenizer by name, or one made of any function of a str that returns a list of str."""
        named = {"treebank": treebank_words, "whitespace": str.split}
        if isinstance(tokenizer, str) and tokenizer in named:
            return cls(tokenizer, named[tokenizer], lowercase)
        if callable(tokenizer):
            return cls("custom", tokenizer, lowercase)
        raise InputError(f"there is no word tokenizer {tokenizer!r}: give {', '.join(map(repr, named))} or a function")

    def words(self, text: str) -> list[str]:
        """The words of one sentence. Raises InputError where a caller's function returns no list of words."""
        words = self.function(text.lower() if self.lowercase else text)
        if self.name == "custom" and not (isinstance(words, (list, tuple)) and all(isinstance(w, str) and w for w in words)):
            raise InputError(f"the word tokenizer made {words!r} of {text!r}, not a list of str without empty ones")
        return list(words)

    def words_batch(self, texts: Iterable[str]) -> list[list[str]]:
        """The words of each sentence."""
        return [self.words(text) for text in texts]


def parse_corpus(
    corpus: Any,
    word_tokenizer: str | Callable[[str], Sequence[str]] = "treebank",
    lowercase: bool = True,
    column: str = "text",
    n_jobs: int | None = None,
    progress: bool = False,
) -> ParsedCorpus:
    """Read a corpus once (see una_fast.sources for what it can be) and split it into words.

    word_tokenizer: "treebank" (NLTK's word_tokenize with preserve_line=True, word for word), "whitespace", or a function
    of a str; column: the column of tables and datasets; n_jobs: threads, by default one a core. The result does not
    depend on n_jobs. Raises InputError for bad input, and for a corpus without a single word.
    """
    tokenizer = WordTokenizer.of(word_tokenizer, lowercase)
    sources = open_sources(corpus, column)
    with (
        ThreadPoolExecutor(n_cores(n_jobs)) as pool,
        tqdm(unit=" sentences", unit_scale=True, disable=not progress) as bar,
    ):
        reader = _Reader(pool, bar, tokenizer)
        summaries = [reader.read(source) for source in sources]
        chunks, sentences = reader.chunks(), reader.sentences()
        if tokenizer.name == "custom":
            vocabulary, words = reader.custom.result()
        else:
            vocabulary, words = _words(pool, chunks, sentences, tokenizer)
    if len(vocabulary) == 0:
        raise InputError(f"the corpus has no word: each of its {len(sentences):,} sentences is blank")
    return ParsedCorpus(chunks, sentences, vocabulary, words, summaries)


def word_tokenizer(tokenizer: str | Callable[[str], Sequence[str]] = "treebank", lowercase: bool = True) -> WordTokenizer:
    """The tokenizer that `parse_corpus` uses for these arguments, for single sentences."""
    return WordTokenizer.of(tokenizer, lowercase)


def n_cores(n_jobs: int | None) -> int:
    """`n_jobs`, or the number of cores this process may use."""
    if n_jobs is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if n_jobs < 1:
        raise InputError(f"n_jobs is {n_jobs}: give at least 1, or None for all cores")
    return n_jobs


class _Reader:
    """Reads blocks, encodes them in the pool, and numbers chunks in the order of the blocks."""

    def __init__(self, pool: ThreadPoolExecutor, bar: tqdm, tokenizer: WordTokenizer):
        self.pool = pool
        self.bar = bar
        self.custom = _CustomWords(tokenizer)
        self._chunks = StringSet()
        self._ids: list[np.ndarray] = []
        self._lengths: list[np.ndarray] = []

    def read(self, source: Source) -> dict[str, Any]:
        """Add all documents of `source`; returns its summary."""
        n_documents = 0
        for block, (utf8, offsets, ids, lengths) in _in_order(self.pool, _encode_block, source.blocks()):
            numbers = self._chunks.add(utf8, offsets[:-1], offsets[1:])
            check_id_range(len(self._chunks), "chunks")
            self._ids.append(numbers[ids])
            self._lengths.append(lengths)
            if self.custom.tokenizer.name == "custom":
                self.custom.add(block)
            n_documents += len(lengths)
            self.bar.update(len(lengths))
        if n_documents == 0:
            raise InputError(f"{source.name} holds no sentence")
        return {"name": source.name, "n_documents": n_documents, "xxh3_128": source.digest()}

    def chunks(self) -> StringTable:
        """The distinct chunks."""
        return StringTable(*self._chunks.strings())

    def sentences(self) -> Ragged:
        """The chunk ids of all documents."""
        return Ragged(np.concatenate(self._ids), _indptr(np.concatenate(self._lengths)))


class _CustomWords:
    """Words by a function of the caller, called for one sentence after the other."""

    def __init__(self, tokenizer: WordTokenizer):
        self.tokenizer = tokenizer
        self._numbers: dict[str, int] = {}
        self._words: list[np.ndarray] = []
        self._lengths: list[int] = []

    def add(self, block: Block) -> None:
        """Tokenise the documents of a block."""
        numbers = self._numbers
        found: list[int] = []
        for start, stop in zip(block.starts.tolist(), block.stops.tolist(), strict=True):
            words = self.tokenizer.words(block.data[start:stop].tobytes().decode("utf-8"))
            found += [numbers.setdefault(word, len(numbers)) for word in words]
            self._lengths.append(len(words))
        self._words.append(np.array(found, dtype=ID))

    def result(self) -> tuple[StringTable, Ragged]:
        """Vocabulary and words of all blocks."""
        check_id_range(len(self._numbers), "words")
        lengths = np.array(self._lengths, dtype=POINTER)
        return StringTable.from_strings(list(self._numbers)), Ragged(np.concatenate(self._words), _indptr(lengths))


def _encode_block(block: Block) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(utf8, offsets) of the block's distinct chunks, their numbers in order, and the chunks of each document."""
    starts, stops, indptr = split_chunks(block.data, block.starts, block.stops)
    chunks = StringSet()
    ids = chunks.add(block.data, starts, stops)
    return *chunks.strings(), ids, np.diff(indptr)


def _words(
    pool: ThreadPoolExecutor, chunks: StringTable, sentences: Ragged, tokenizer: WordTokenizer
) -> tuple[StringTable, Ragged]:
    """Vocabulary and words of all documents, each entry tokenised once (see above)."""
    utf8, spans = _lower(chunks) if tokenizer.lowercase else (chunks.utf8, _spans(chunks.offsets))
    treebank = tokenizer.name == "treebank"
    closing = closing_chunks(utf8, spans) if treebank else np.zeros(len(chunks), dtype=np.uint8)
    pieces, piece_indptr, entries = number_entries(sentences.values, sentences.indptr, closing)
    vocabulary = StringSet()
    ids, lengths = [], []

    def tokenize(part: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return tokenize_entries(utf8, spans, sentences.values, part, treebank)

    tasks = (entries[i : i + ENTRIES_PER_TASK] for i in range(0, len(entries), ENTRIES_PER_TASK))
    for _, (words, offsets, indptr) in _in_order(pool, tokenize, tasks):
        ids.append(vocabulary.add(words, offsets[:-1], offsets[1:]))
        lengths.append(np.diff(indptr))
        check_id_range(len(vocabulary), "words")
    entry_words = Ragged(np.concatenate(ids), _indptr(np.concatenate(lengths)))
    return StringTable(*vocabulary.strings()), _gather(pool, Ragged(pieces, piece_indptr), entry_words)


def _gather(pool: ThreadPoolExecutor, pieces: Ragged, entry_words: Ragged) -> Ragged:
    """The words of each document: those of its entries."""
    lengths = np.empty(len(pieces), dtype=POINTER)
    bounds = range(0, len(pieces), ROWS_PER_TASK)

    def count(row: int) -> None:
        part = slice(row, row + ROWS_PER_TASK)
        count_words(pieces.values, pieces.indptr[row : row + ROWS_PER_TASK + 1], entry_words.indptr, lengths[part])

    list(pool.map(count, bounds))
    indptr = _indptr(lengths)
    values = np.empty(indptr[-1], dtype=ID)

    def fill(row: int) -> None:
        rows = pieces.indptr[row : row + ROWS_PER_TASK + 1]
        out = values[indptr[row] : indptr[min(row + ROWS_PER_TASK, len(pieces))]]
        gather_words(pieces.values, rows, entry_words.indptr, entry_words.values, out)

    list(pool.map(fill, bounds))
    return Ragged(values, indptr)


def _lower(chunks: StringTable) -> tuple[np.ndarray, np.ndarray]:
    """(utf8, spans): lower-cased chunk i is ``utf8[spans[i, 0]:spans[i, 1]]``."""
    utf8, spans = chunks.utf8, _spans(chunks.offsets)
    capital = (utf8 >= ord("A")) & (utf8 <= ord("Z"))
    lowered = utf8 + (capital * np.uint8(32))
    beyond_ascii = np.unique(np.searchsorted(chunks.offsets, np.flatnonzero(utf8 >= 0x80), side="right") - 1)
    texts = " ".join(chunks[i] for i in beyond_ascii.tolist()).lower().split(" ")
    table = StringTable.from_strings(texts if len(beyond_ascii) else [])
    spans[beyond_ascii] = len(utf8) + _spans(table.offsets)
    return np.concatenate([lowered, table.utf8]), spans


def _spans(offsets: np.ndarray) -> np.ndarray:
    return np.stack([offsets[:-1], offsets[1:]], axis=1)


def _indptr(lengths: np.ndarray) -> np.ndarray:
    indptr = np.zeros(len(lengths) + 1, dtype=POINTER)
    np.cumsum(lengths, out=indptr[1:])
    return indptr


def _in_order(
    pool: ThreadPoolExecutor, function: Callable[[Item], Result], items: Iterable[Item]
) -> Iterator[tuple[Item, Result]]:
    """Each item with its result, in order; a few are in work ahead, so that neither threads nor memory run out."""
    waiting: deque[tuple[Item, Future[Result]]] = deque()
    iterator = iter(items)
    while True:
        for item in islice(iterator, 2 * pool._max_workers + 1 - len(waiting)):
            waiting.append((item, pool.submit(function, item)))
        if not waiting:
            return
        item, future = waiting.popleft()
        yield item, future.result()
