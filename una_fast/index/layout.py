"""What the folder of a saved index holds, and the checks of its content."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from una_fast.arrays import ID, MAX_IDS, POINTER, SCORE, RaggedArray, StringTable
from una_fast.corpus.word_tokenizers import Probe, Split, tokenizer_name
from una_fast.errors import InputError

KIND, VERSION = "index", 1
SCORE_LAW = 2  # how scores are rounded: correctly, so equal on all processors

# The arrays of the folder, each one-dimensional.
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
SCORES = ("document_frequency", "idf", "max_tfidf")
META = {"sources": list, "word_tokenizer": str, "lowercase": bool, "score_law": int}


def index_meta(
    sources: list[dict[str, Any]], word_tokenizer: str | Split, word_probe: Probe | None, lowercase: bool
) -> dict[str, Any]:
    """The metadata in the manifest of an index."""
    made = {"sources": sources, "word_tokenizer": tokenizer_name(word_tokenizer), "word_probe": word_probe}
    return {**made, "lowercase": lowercase, "score_law": SCORE_LAW}


def tables_of(arrays: dict[str, np.ndarray]) -> tuple[StringTable, StringTable, RaggedArray, RaggedArray]:
    """Chunks, terms, the chunk ids and the term ids of each document."""
    chunks, terms = (StringTable(arrays[f"{name}_utf8"], arrays[f"{name}_offsets"]) for name in ("chunks", "terms"))
    rows, words = (RaggedArray(arrays[f"{name}_values"], arrays[f"{name}_indptr"]) for name in ("sentences", "words"))
    return chunks, terms, rows, words


def check_content(folder: Path, meta: dict[str, Any], arrays: dict[str, np.ndarray], verify: bool) -> None:
    """Check types and lengths of an index; all values too with `verify`, 0.05 s for a million sentences.

    After `verify` no kernel reads outside of an array, whoever wrote it. Raises InputError with what is wrong.
    """
    for name, is_right in chain(_type_checks(meta, arrays), _value_checks(arrays) if verify else ()):
        if not is_right:
            raise InputError(f"{folder}: damaged, or not written by this una_fast: wrong {name}; build it again")


def _type_checks(meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> Iterator[tuple[str, bool]]:
    """The name of each field and array, and whether it is right; each check relies on those before it."""
    for name, kind in META.items():
        yield name, type(meta.get(name)) is kind
    yield "score_law", meta["score_law"] == SCORE_LAW
    yield "list of arrays", arrays.keys() == DTYPES.keys()
    for name, dtype in DTYPES.items():
        yield name, arrays[name].dtype == dtype and arrays[name].ndim == 1
    chunks, terms, sentences, words = tables_of(arrays)
    tables = {"chunks": vars(chunks), "terms": vars(terms), "sentences": vars(sentences), "words": vars(words)}
    for name, (values, bounds) in ((name, table.values()) for name, table in tables.items()):
        yield name, len(bounds) > 0 and bounds[0] == 0 and bounds[-1] == len(values)
    yield "terms", 0 < len(terms) <= MAX_IDS
    for name in SCORES:
        yield name, len(arrays[name]) == len(terms)
    yield "sentences", len(sentences) == len(words)


def _value_checks(arrays: dict[str, np.ndarray]) -> Iterator[tuple[str, bool]]:
    chunks, terms, sentences, words = tables_of(arrays)
    yield "chunks", _never_falls(chunks.offsets) and chunks.is_utf8()
    yield "terms", _never_falls(terms.offsets) and terms.is_utf8()
    for name, rows, strings in (("sentences", sentences, chunks), ("words", words, terms)):
        largest = rows.values.view(np.uint32).max(initial=0)  # a negative id becomes larger than any valid one
        yield name, _never_falls(rows.indptr) and (len(rows.values) == 0 or largest < len(strings))
    for name, low, high in (("document_frequency", 1, len(words)), *((name, 0, sys.float_info.max) for name in SCORES)):
        yield name, low <= arrays[name].min() and arrays[name].max() <= high  # False for NaN
    yield "max_tfidf", _never_falls(-arrays["max_tfidf"])


def _never_falls(values: np.ndarray) -> bool:
    return not (values[1:] < values[:-1]).any()
