"""What the folder of a saved index holds, and the checks of its content."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from una_fast.arrays import ID, MAX_IDS, POINTER, SCORE, Ragged, StringTable
from una_fast.corpus.word_tokenizers import Probe, Split, is_probe, tokenizer_name
from una_fast.errors import InputError
from una_fast.storage.content import wrong_rows, wrong_strings

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
SOURCE = {"name": str, "n_documents": int, "xxh3_128": str}


def index_meta(
    sources: list[dict[str, Any]], word_tokenizer: str | Split, word_probe: Probe | None, lowercase: bool
) -> dict[str, Any]:
    """The metadata in the manifest of an index."""
    made = {"sources": sources, "word_tokenizer": tokenizer_name(word_tokenizer), "word_probe": word_probe}
    return {**made, "lowercase": lowercase, "score_law": SCORE_LAW}


def tables_of(arrays: dict[str, np.ndarray]) -> tuple[StringTable, StringTable, Ragged, Ragged]:
    """Chunks, terms, the chunk ids and the term ids of each document."""
    chunks, terms = (StringTable(arrays[f"{name}_utf8"], arrays[f"{name}_offsets"]) for name in ("chunks", "terms"))
    rows, words = (Ragged(arrays[f"{name}_values"], arrays[f"{name}_indptr"]) for name in ("sentences", "words"))
    return chunks, terms, rows, words


def check_content(folder: Path, meta: dict[str, Any], arrays: dict[str, np.ndarray], verify: bool) -> None:
    """Check fields, types and lengths of an index; all values too with `verify`, 0.05 s for a million sentences.

    After `verify` no kernel reads outside of an array, whoever wrote it.

    Raises:
        InputError: with the first array or field that is wrong.
    """
    checks = [_wrong_meta(meta), _wrong_types(arrays), *([_wrong_values(arrays)] if verify else [])]
    for name, wrong in (pair for check in checks for pair in check):
        if wrong:
            raise InputError(f"{folder}: damaged, or not written by una_fast: {name} {wrong}; build it again")


def _wrong_meta(meta: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The name of each field, and what is wrong with it or ""; the two checks below do the same for arrays."""
    for name, kind in META.items():
        yield name, "" if type(meta.get(name)) is kind else f"is {meta.get(name)!r:.80}"
    yield "score_law", "" if meta["score_law"] == SCORE_LAW else f"is {meta['score_law']}"
    probe = meta.get("word_probe")
    yield "word_probe", "" if probe is None or is_probe(probe) else f"is {probe!r:.80}"
    for source in meta["sources"]:
        fits = isinstance(source, dict) and all(type(source.get(name)) is kind for name, kind in SOURCE.items())
        yield "sources", "" if fits else f"holds {source!r:.80}"


def _wrong_types(arrays: dict[str, np.ndarray]) -> Iterator[tuple[str, str]]:
    yield "the list of its arrays", "" if arrays.keys() == DTYPES.keys() else f"is {', '.join(sorted(arrays))}"
    for name, dtype in DTYPES.items():
        array = arrays[name]
        fits = array.dtype == dtype and array.ndim == 1
        yield name, "" if fits else f"is {array.dtype} of shape {array.shape}, not {np.dtype(dtype)} of one dimension"
    chunks, terms, sentences, words = tables_of(arrays)
    ragged = {"chunks": vars(chunks), "terms": vars(terms), "sentences": vars(sentences), "words": vars(words)}
    for name, (values, bounds) in ((name, parts.values()) for name, parts in ragged.items()):
        fits = len(bounds) > 0 and bounds[0] == 0 and bounds[-1] == len(values)
        yield name, "" if fits else f"has no bounds of {len(values):,} values"
    yield "terms", "" if 0 < len(terms) <= MAX_IDS else "is empty"
    for name in SCORES:
        yield name, "" if len(arrays[name]) == len(terms) else f"has not one value for each of the {len(terms):,} terms"
    yield "sentences", "" if len(sentences) == len(words) else f"has {len(sentences):,} rows, and words {len(words):,}"


def _wrong_values(arrays: dict[str, np.ndarray]) -> Iterator[tuple[str, str]]:
    chunks, terms, sentences, words = tables_of(arrays)
    yield "chunks", wrong_strings(chunks)
    yield "terms", wrong_strings(terms)
    yield "sentences", wrong_rows(sentences, len(words), len(chunks))
    yield "words", wrong_rows(words, len(words), len(terms))
    limits = {
        "document_frequency": (1, len(words)),
        "idf": (0, sys.float_info.max),
        "max_tfidf": (0, sys.float_info.max),
    }
    for name, (low, high) in limits.items():
        fits = low <= arrays[name].min() and arrays[name].max() <= high  # False for NaN
        yield name, "" if fits else f"is not from {low:,} to {high:,}"
    increases = (arrays["max_tfidf"][1:] > arrays["max_tfidf"][:-1]).any()
    yield "max_tfidf", "increases: terms stand from high to low" if increases else ""
