r"""Chunks -> words: a corpus as ids of distinct chunks and of distinct words.

A corpus has far fewer distinct chunks than chunks, so each distinct chunk is split into words once. That is exact,
because the rules of the Treebank tokenizer stay inside a chunk except for these (nltk.tokenize.destructive; `_` is a
space here):

- `^"` and `([_([{<])("|'')`: how a chunk's first quote is read depends on whether a space or the start of the line is
  before it. The same holds for the character that `([^.])(\.)` and `([^'])'_` want before theirs.
- `([:,])([^\d])`, `([^'])'_` and the clitics take the space after a chunk, or find the end of the line, as their last
  character. Of these only `([^'])'_` can also start with a space, which the previous match may have taken already; but
  such a match would only double that space.
- `([:,])$` looks for the end of the line.
- `\b`, `(?<!\w)` and `(?=\w)` look one character back or ahead, and treat the ends of the line like spaces.
- `(?=\s)` and `_('t)(is)` want a space, and the rules before have put one at both ends of the line.
- `\s+` and str.split only drop spaces.
- The two final-period rules match `.`, then closers (brackets, quotes, white space) up to the end of the line. So they
  reach over spaces where the last chunk is nothing but closers. There the *entry* to tokenise is not the chunk but all
  that follows the start of the last chunk with another character: the period is in it, or nothing is matched.

So an entry's words depend only on its text and on whether it starts or ends its line; the kernel tokenises it on a line
of its own with an `x` in place of each neighbour. A chunk can also be lower-cased alone: only the lower case of the
capital sigma depends on its neighbours, and no further than to the next space.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any, TypeVar

import numpy as np
from tqdm import tqdm

from una_fast._kernels.csr import relabel
from una_fast._kernels.words.entries import EntryWords, find_entries, tokenize_entries
from una_fast._kernels.words.strings import StringSet
from una_fast.arrays import ID, POINTER, RaggedArray, StringTable, check_id_range, row_bounds
from una_fast.corpus.source import Reading, block_of
from una_fast.corpus.sources import all_blank, open_sources, read_blocks
from una_fast.corpus.word_tokenizers import NAMED, Split, WordTokenizer, word_tokenizer
from una_fast.errors import InputError
from una_fast.parallel import Workers

logger = logging.getLogger(__name__)
ENTRIES_PER_TASK = 1 << 15
ROWS_PER_TASK = 1 << 16
CLOSING = re.compile(r"""(?:[])}>"'»”’]|[^\S\x1c-\x1f])*""")  # `regex` has no white space from \x1c to \x1f
CLOSING_BYTES = b"])}>\"' \t\n\r\v\f\xc2\xe1\xe2\xe3"  # with which its characters begin in UTF-8
FEW = 16  # fewer texts are split one by one, because the tables of `Parser` take 0.5 ms to set up


@dataclass(frozen=True)
class ParsedCorpus:
    """N documents as ids of C distinct chunks and of V distinct words, both numbered by first appearance.

    chunks: C texts, as written; sentences: int32 chunk ids of each document, so that
    ``" ".join(chunks[i] for i in sentences[row])`` is the document; vocabulary: V words; words: int32 word ids of each
    document in order, none for a blank one; sources: name, n_documents and xxh3_128 of each source.
    """

    chunks: StringTable
    sentences: RaggedArray
    vocabulary: StringTable
    words: RaggedArray
    sources: list[dict[str, Any]]


def parse_corpus(
    corpus: Any,
    tokenizer: str | Split = "treebank",
    lowercase: bool = True,
    reading: Reading | None = None,
    n_jobs: int | None = None,
    progress: bool = False,
) -> ParsedCorpus:
    """Read a corpus once (una_fast.corpus.sources says what it can be) and split its sentences into words.

    tokenizer: "treebank" (NLTK's word_tokenize with preserve_line=True, word for word), "whitespace", a segmenter of
    `word_tokenizers`, or a function of a str; reading: how files and tables are read; n_jobs: threads, by default one
    a core. The result does not depend on n_jobs. Raises InputError for bad input, and for a corpus without a single
    word.
    """
    parser, summaries = Parser(word_tokenizer(tokenizer, lowercase)), list[dict[str, Any]]()
    sources = open_sources(corpus, reading or Reading())
    with Workers(n_jobs) as workers, tqdm(unit=" sentences", unit_scale=True, disable=not progress) as bar:
        parser.add(read_blocks(sources, summaries, workers.read_ahead), workers, bar.update)
        chunks, sentences, vocabulary, words = parser.result(workers)
    logger.info("corpus read: %d sentences, %d distinct words", len(sentences), len(vocabulary))
    if not len(vocabulary):
        raise all_blank(len(sentences))
    return ParsedCorpus(chunks, sentences, vocabulary, words, summaries)


Item = TypeVar("Item")
Progress = Callable[[int], Any]
Number = Callable[[StringSet, int, Item], tuple[np.ndarray, np.ndarray]]


class NumberedRows:
    """Distinct strings that several threads find, numbered by first appearance, and rows of them. what: they are.

    Each thread numbers strings in a set of its own. A string is added there with its place: the number of the task in
    the upper 32 bits, in which a thread's tasks ascend. So the sets can be joined in the order of the places, and the
    numbers depend neither on the threads nor on where the work is cut.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._sets: dict[int, StringSet] = {}
        self._parts: list[tuple[StringSet, np.ndarray, np.ndarray]] = []

    def extend(self, workers: Workers, items: Iterable[Item], number: Number[Item]) -> Iterator[Item]:
        """Add the rows of each item, and yield the item.

        number: called with the set of its thread, a place, and the item; it adds the item's strings there, from that
        place on, and returns their numbers, int32 (t,), and the lengths of the rows, int64 (n,).
        """

        def task(numbered: tuple[int, Item]) -> tuple[StringSet, np.ndarray, np.ndarray]:
            thread = threading.get_ident()
            if thread not in self._sets:
                self._sets[thread] = StringSet()
            return self._sets[thread], *number(self._sets[thread], numbered[0] << 32, numbered[1])

        for (_, item), part in workers.map(task, enumerate(items, len(self._parts))):
            check_id_range(len(part[0]), self._what)
            self._parts.append(part)
            yield item

    def result(self, workers: Workers) -> tuple[StringTable, RaggedArray]:
        """The distinct strings, and all rows in the order in which they were added, int32. Nothing is left of both."""
        strings, numbers = self._joined()
        check_id_range(len(strings), self._what)
        parts, self._parts = self._parts, []
        bounds = row_bounds([len(ids) for _, ids, _ in parts])
        ids = np.empty(bounds[-1], dtype=ID)

        def fill(i: int) -> None:
            relabel(parts[i][1], numbers[parts[i][0]], ids[bounds[i] : bounds[i + 1]])

        list(workers.map(fill, range(len(parts))))
        return strings, RaggedArray(
            ids, row_bounds(np.concatenate([np.empty(0, dtype=POINTER), *(n for *_, n in parts)]))
        )

    def _joined(self) -> tuple[StringTable, dict[StringSet, np.ndarray]]:
        """The distinct strings of all sets, and for each set the number of each of its strings in them, int32."""
        sets, self._sets = list(self._sets.values()), {}
        if len(sets) == 1:
            return StringTable(*sets[0].strings()), {sets[0]: np.arange(len(sets[0]), dtype=ID)}
        together = StringTable.from_strings([]).followed_by(*(StringTable(*strings.strings()) for strings in sets))
        places = np.concatenate([np.empty(0, dtype=POINTER), *(strings.first_places() for strings in sets)])
        order, joined = np.argsort(places, kind="stable"), StringSet(len(places))
        numbers = np.empty(len(order), dtype=ID)
        numbers[order] = joined.add(together.utf8, together.offsets[:-1][order], together.offsets[1:][order])
        bounds = row_bounds([len(strings) for strings in sets])
        return StringTable(*joined.strings()), {
            strings: numbers[bounds[i] : bounds[i + 1]] for i, strings in enumerate(sets)
        }


class Parser:
    """Documents -> ids of chunks and words. Add blocks, then take the result, once."""

    def __init__(self, tokenizer: WordTokenizer):
        self.tokenizer = tokenizer
        self._chunks = NumberedRows("chunks")
        self._words = NumberedRows("words") if tokenizer.name not in NAMED else None

    def add(self, blocks: Iterable[StringTable], workers: Workers, progress: Progress = lambda n: None) -> None:
        """Add the documents of all blocks. progress: called with the number of documents that are done."""

        def number(chunks: StringSet, place: int, block: StringTable) -> tuple[np.ndarray, np.ndarray]:
            return chunks.add_chunks(block.utf8, block.offsets[:-1], block.offsets[1:], place)

        for block in self._chunks.extend(workers, blocks, number):
            if self._words is None:
                progress(len(block))
            else:
                add_sentence_words(self._words, block, self.tokenizer, progress)

    def result(self, workers: Workers) -> tuple[StringTable, RaggedArray, StringTable, RaggedArray]:
        """Chunks, sentences, vocabulary and words, as `ParsedCorpus` has them."""
        chunks, sentences = self._chunks.result(workers)
        if self._words is not None:
            return chunks, sentences, *self._words.result(workers)
        return chunks, sentences, *document_words(workers, chunks, sentences, self.tokenizer)


def add_sentence_words(
    rows: NumberedRows, block: StringTable, tokenizer: WordTokenizer, progress: Progress = lambda n: None
) -> None:
    """Add the words of the documents of a block to `rows`.

    The tokenizer is called for each document, because its words may depend on all of it, and in the caller's thread.
    """

    def number(words: StringSet, place: int, block: StringTable) -> tuple[np.ndarray, np.ndarray]:
        lists = []
        for text in block:
            lists.append(tokenizer.words(text))
            progress(1)
        try:
            table = StringTable.from_strings([*chain.from_iterable(lists)])
        except UnicodeEncodeError as error:
            raise InputError(f"the word tokenizer made a word with a lone surrogate, {error.object!r}") from error
        return words.add(table.utf8, table.offsets[:-1], table.offsets[1:], place), np.array([*map(len, lists)])

    list(rows.extend(Workers(1), [block], number))


def document_words(
    workers: Workers, chunks: StringTable, sentences: RaggedArray, tokenizer: WordTokenizer
) -> tuple[StringTable, RaggedArray]:
    """Vocabulary and words of all documents. Entries are listed by first appearance, so words are numbered by it."""
    utf8, spans = _lower(chunks) if tokenizer.lowercase else (chunks.utf8, _spans(chunks.offsets))
    treebank = tokenizer.name == "treebank"
    closing = _closing_chunks(utf8, spans) if treebank else np.zeros(len(chunks), dtype=np.uint8)
    entries = _distinct_entries(workers, sentences, closing)
    numbered = NumberedRows("words")

    def tokenize(words: StringSet, place: int, start: int) -> tuple[np.ndarray, np.ndarray]:
        part = entries[start : start + ENTRIES_PER_TASK]
        text, offsets, indptr = tokenize_entries(utf8, spans, sentences.values, part, treebank)
        return words.add(text, offsets[:-1], offsets[1:], place), np.diff(indptr)

    list(numbered.extend(workers, range(0, len(entries), ENTRIES_PER_TASK), tokenize))
    vocabulary, words = numbered.result(workers)
    table = EntryWords(sentences.values, entries, closing, words.values, words.indptr)
    return vocabulary, _gather(workers, sentences, table)


def _closing_chunks(utf8: np.ndarray, spans: np.ndarray) -> np.ndarray:
    """uint8 (C,): 1 for each chunk that may stand between a final period and the end of its document, else 0.

    Such a chunk is empty, or holds only closing brackets, quotes and white space. utf8, spans: as `_lower` has them.
    """
    may_close = np.isin(np.arange(256), list(CLOSING_BYTES))[np.append(utf8, np.uint8(0))[spans[:, 0]]]
    closing = spans[:, 0] == spans[:, 1]
    for i in np.flatnonzero(may_close & ~closing).tolist():
        closing[i] = CLOSING.fullmatch(utf8[spans[i, 0] : spans[i, 1]].tobytes().decode("utf-8")) is not None
    return closing.astype(np.uint8)


def _distinct_entries(workers: Workers, sentences: RaggedArray, closing: np.ndarray) -> np.ndarray:
    """int64 (E, 3), the distinct entries of all documents, as `find_entries` lists them; a thread for each part."""
    cuts = np.linspace(0, len(sentences), workers.n_jobs + 1).astype(POINTER)
    found, seen = [np.empty((0, 3), dtype=POINTER)], np.zeros(len(closing), dtype=np.uint8)

    def find(rows: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        return find_entries(sentences.values, sentences.indptr[rows[0] : rows[1] + 1], closing)

    for _, (entries, seen_there) in workers.map(find, pairwise(cuts.tolist())):
        known = seen[sentences.values[entries[:, 0]]] >> entries[:, 2].astype(np.uint8) & 1
        found.append(entries[(known == 0) | (entries[:, 1] - entries[:, 0] > 1)])
        seen |= seen_there
    return np.concatenate(found)


def _lower(chunks: StringTable) -> tuple[np.ndarray, np.ndarray]:
    """(utf8, spans int64 (C, 2)): lower-cased chunk i is ``utf8[spans[i, 0]:spans[i, 1]]``."""
    utf8, spans = chunks.utf8, _spans(chunks.offsets)
    capitals = (utf8 >= ord("A")) & (utf8 <= ord("Z"))
    beyond_ascii = chunks.rows_from(0x80)
    strings = chunks.take(beyond_ascii)
    text = np.insert(strings.utf8, strings.offsets[1:], ord(" ")).tobytes().decode("utf-8")
    lowered = np.frombuffer(text.lower().encode("utf-8"), dtype=np.uint8)
    stops = np.flatnonzero(lowered == ord(" "))
    starts = np.concatenate([[0], stops[:-1] + 1])[: len(stops)]
    spans[beyond_ascii] = len(utf8) + np.stack([starts, stops], axis=1)
    return np.concatenate([utf8 + capitals * np.uint8(32), lowered]), spans


def _spans(offsets: np.ndarray) -> np.ndarray:
    return np.stack([offsets[:-1], offsets[1:]], axis=1)


def _gather(workers: Workers, sentences: RaggedArray, words: EntryWords) -> RaggedArray:
    """The words of each document. sentences: int32 chunk ids."""
    lengths = np.empty(len(sentences), dtype=POINTER)
    parts = [slice(row, min(row + ROWS_PER_TASK, len(sentences))) for row in range(0, len(sentences), ROWS_PER_TASK)]

    def gather(rows: slice, out: np.ndarray | None = None) -> None:
        words.gather(sentences.values, sentences.indptr[rows.start : rows.stop + 1], lengths[rows], out)

    list(workers.map(gather, parts))
    indptr = row_bounds(lengths)
    values = np.empty(indptr[-1], dtype=ID)
    list(workers.map(lambda rows: gather(rows, values[indptr[rows.start] : indptr[rows.stop]]), parts))
    return RaggedArray(values, indptr)


def split_texts(texts: Sequence[bytes], tokenizer: WordTokenizer) -> tuple[StringTable, RaggedArray]:
    """The distinct words of `texts` (UTF-8) by first appearance, and int32 ids of each text's words, in order.

    The words equal `tokenizer.words` of each text. It runs in the caller's thread.
    """
    here, block = Workers(1), block_of(texts)
    if tokenizer.name not in NAMED or len(texts) < FEW:
        rows = NumberedRows("words")
        add_sentence_words(rows, block, tokenizer)
        return rows.result(here)
    parser = Parser(tokenizer)
    parser.add([block], here)
    return parser.result(here)[2:]
