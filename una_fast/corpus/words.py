r"""Parses a corpus into the ids of its distinct chunks and of its distinct words.

A chunk is a piece of text between two spaces. Most chunks of a corpus occur many times, so each distinct chunk is split
into words only once. This gives the same words as splitting whole lines, because the rules of the Treebank tokenizer
(nltk.tokenize.destructive) see little of the text around a chunk (`_` is a space):

- `^"` and `([_([{<])("|'')` treat a chunk's first quote differently after a space and at the start of the line.
- `([^.])(\.)` and `([^'])'_` need a character before the period or quote. This character is a space at the start
  of a chunk, and is missing at the start of a line.
- `([:,])([^\d])`, `([^'])'_` and the clitics can end with the space after a chunk. `([:,])$` needs the end of the line.
- Only `([^'])'_` can both start and end with a space. In a line with `a'_'_`, the first match consumes the space that
  the second one needs. In separate chunks both match, but the second match only adds a space, which changes no word.
- `\b`, `(?<!\w)` and `(?=\w)` look one character back or ahead, and treat the ends of the line like spaces.
- `(?=\s)` and `_('t)(is)` need a space. An earlier step has put one at both ends of the line.
- The two final-period rules match a period that only closers (brackets, quotes, white space) follow, up to the end of
  the line. Such a match contains several chunks if the last chunks consist of closers.

So the words of an *entry* depend only on its text and on whether it starts or ends the line. An entry is a single chunk
or, if the last chunks of the line consist of closers, these chunks and the chunk before them. The kernel tokenises each
entry separately.

A chunk can also be lower-cased separately: the lower case of a character depends on other characters only for the
capital sigma, and only up to the next space.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

from una_fast._kernels.words.entries import EntryWords, find_entries, tokenize_entries
from una_fast._kernels.words.strings import StringSet
from una_fast.arrays import ID, POINTER, RaggedArray, StringTable, check_id_range, row_bounds
from una_fast.corpus.documents import Reading
from una_fast.corpus.sources import all_blank, open_sources, read_blocks
from una_fast.corpus.word_tokenizers import WordTokenizer
from una_fast.errors import InputError
from una_fast.parallel import map_threads, n_cores, read_ahead

logger = logging.getLogger(__name__)
ENTRIES_PER_TASK = 1 << 15
ROWS_PER_TASK = 1 << 16
# Chunks that may follow a final period: closing brackets, quotes, and white space as `\s` of the package `regex`
# matches it, that is without \x1c to \x1f
CLOSING = r"""^[\])}>"'»”’\t-\r \x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]*$"""
TREEBANK = WordTokenizer("treebank")
FEW = 32  # fewer texts are split one by one, because setting up the tables of `parse` would take longer


class Parsed(NamedTuple):
    """Sentences as the int32 ids of distinct chunks and of distinct words, both numbered by first appearance."""

    chunks: StringTable  # not lower-cased
    sentences: RaggedArray  # a sentence is " ".join(chunks[i] for i in sentences[row])
    vocabulary: StringTable
    words: RaggedArray  # a blank sentence has none


def parse_corpus(
    corpus: Any,
    tokenizer: WordTokenizer = TREEBANK,
    reading: Reading | None = None,
    n_jobs: int | None = None,
    progress: bool = False,
) -> tuple[Parsed, list[dict[str, Any]]]:
    """Read a corpus and split its sentences into words. `una_fast.build_index` documents the arguments.

    The second result has a dict for each source: its `name`, `n_documents` and digest `xxh3_128`.
    """
    summaries: list[dict[str, Any]] = []
    sources = open_sources(corpus, reading or Reading())
    ahead = read_ahead if n_cores(n_jobs) > 1 else iter
    with tqdm(unit=" sentences", unit_scale=True, disable=not progress) as bar:
        parsed = parse(read_blocks(sources, summaries, ahead), tokenizer, n_jobs, bar.update)
    logger.info("corpus read: %d sentences, %d distinct words", len(parsed.sentences), len(parsed.vocabulary))
    if not len(parsed.vocabulary):
        raise all_blank(len(parsed.sentences))
    return parsed, summaries


def parse(
    blocks: Iterable[StringTable],
    tokenizer: WordTokenizer,
    n_jobs: int | None,
    report: Callable[[int], Any] = lambda n_documents: None,
) -> Parsed:
    """Divide the sentences of all blocks into chunks and words. Call `report` with the size of each block."""
    chunks, words = NumberedStrings("chunks"), NumberedStrings("words")
    for block in blocks:
        chunks.add_documents(block)
        if not tokenizer.is_named:
            add_sentence_words(words, block, tokenizer)
        report(len(block))
    texts, sentences = chunks.result()
    del chunks  # its hash table and its parts are as large as the result
    found = _document_words(texts, sentences, tokenizer, n_jobs) if tokenizer.is_named else words.result()
    return Parsed(texts, sentences, *found)


class NumberedStrings:
    """Gives distinct strings the ids 0, 1, ... by first appearance, and stores rows of strings as ids."""

    def __init__(self, plural_noun: str) -> None:
        self._plural_noun, self._set = plural_noun, StringSet()
        self._ids, self._lengths = [np.empty(0, dtype=ID)], [np.empty(0, dtype=POINTER)]

    def add_documents(self, block: StringTable) -> None:
        """Add the chunks of each sentence of a block as a row. Two consecutive spaces enclose an empty chunk."""
        spaces = np.flatnonzero(block.utf8 == ord(" "))
        cuts = np.searchsorted(spaces, block.offsets)  # the number of spaces before each sentence
        starts = np.insert(spaces + 1, cuts[:-1], block.offsets[:-1])
        stops = np.insert(spaces, cuts[1:], block.offsets[1:])
        self._append(self._set.add(block.utf8, starts, stops), np.diff(cuts) + 1)

    def add_rows(self, strings: StringTable, lengths: np.ndarray) -> None:
        """Add one row per item of `lengths`: row i consists of the next lengths[i] strings of `strings`."""
        self._append(self._set.add(strings.utf8, strings.offsets[:-1], strings.offsets[1:]), lengths)

    def _append(self, ids: np.ndarray, lengths: np.ndarray) -> None:
        check_id_range(len(self._set), self._plural_noun)
        self._ids.append(ids)
        self._lengths.append(lengths)

    def result(self) -> tuple[StringTable, RaggedArray]:
        """Return the distinct strings by id, and the int32 ids of each row."""
        bounds = row_bounds(np.concatenate(self._lengths))
        return StringTable(*self._set.strings()), RaggedArray(np.concatenate(self._ids), bounds)


def add_sentence_words(rows: NumberedStrings, block: StringTable, tokenizer: WordTokenizer) -> None:
    """Split each sentence of a block as a whole, not chunk by chunk, and add its words to `rows` as one row."""
    lists = [tokenizer.words(text) for text in block]
    try:
        table = StringTable.from_strings([*chain.from_iterable(lists)])
    except UnicodeEncodeError as error:
        raise InputError(f"the word tokenizer made a word with a lone surrogate, {error.object!r}") from error
    rows.add_rows(table, np.array([*map(len, lists)], dtype=POINTER))


def _document_words(
    chunks: StringTable, sentences: RaggedArray, tokenizer: WordTokenizer, n_jobs: int | None
) -> tuple[StringTable, RaggedArray]:
    """Return the vocabulary and the word ids of all sentences, for a tokenizer in NAMED."""
    texts = _lower(chunks) if tokenizer.lowercase else chunks
    treebank = tokenizer.tokenizer == "treebank"
    closing = np.zeros(len(chunks), dtype=np.uint8)
    if treebank:
        closing[texts.matching(CLOSING)] = 1
    entries = find_entries(sentences.values, sentences.indptr, closing)
    rows = NumberedStrings("words")

    def tokenize(start: int) -> tuple[StringTable, np.ndarray]:
        part = entries[start : start + ENTRIES_PER_TASK]
        text, offsets, indptr = tokenize_entries(texts.utf8, texts.offsets, sentences.values, part, treebank)
        return StringTable(text, offsets), np.diff(indptr)

    for part in map_threads(tokenize, range(0, len(entries), ENTRIES_PER_TASK), n_jobs):
        rows.add_rows(*part)
    vocabulary, words = rows.result()
    del rows
    table = EntryWords(sentences.values, entries, closing, words.values, words.indptr)
    return vocabulary, _gather(sentences, table, n_jobs)


def _lower(chunks: StringTable) -> StringTable:
    """Lower-case the chunks. Chunks in ASCII are converted together, and the others one by one."""
    text = chunks.utf8.tobytes()
    lowered = StringTable(np.frombuffer(text.lower(), dtype=np.uint8), chunks.offsets)
    if text.isascii():
        return lowered
    beyond_ascii = chunks.matching(r"[^\x00-\x7F]")
    others = StringTable.from_strings([chunk.lower() for chunk in chunks.take(beyond_ascii)])
    order = np.arange(len(chunks))
    order[beyond_ascii] = len(chunks) + np.arange(len(others))
    return lowered.followed_by(others).take(order)


def _gather(sentences: RaggedArray, words: EntryWords, n_jobs: int | None) -> RaggedArray:
    """Return each sentence's word ids. words: the word ids of the entries, into which sentences are divided."""
    lengths = np.empty(len(sentences), dtype=POINTER)
    parts = [slice(row, min(row + ROWS_PER_TASK, len(sentences))) for row in range(0, len(sentences), ROWS_PER_TASK)]

    def gather(rows: slice, out: np.ndarray | None = None) -> None:
        words.gather(sentences.values, sentences.indptr[rows.start : rows.stop + 1], lengths[rows], out)

    list(map_threads(gather, parts, n_jobs))
    indptr = row_bounds(lengths)
    values = np.empty(indptr[-1], dtype=ID)
    list(map_threads(lambda rows: gather(rows, values[indptr[rows.start] : indptr[rows.stop]]), parts, n_jobs))
    return RaggedArray(values, indptr)


def split_texts(texts: StringTable, tokenizer: WordTokenizer) -> tuple[StringTable, RaggedArray]:
    """Return the distinct words of some texts, and the word ids of each text. Starts no threads."""
    if tokenizer.is_named and len(texts) >= FEW:
        parsed = parse([texts], tokenizer, 1)
        return parsed.vocabulary, parsed.words
    rows = NumberedStrings("words")
    add_sentence_words(rows, texts, tokenizer)
    return rows.result()
