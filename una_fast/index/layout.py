"""What the folder of a saved index lists, and the checks of its content when it is opened.

The checksums say that the files are as they were written; they cannot say who wrote them. After the checks here no
kernel reads outside of an array, whoever wrote it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from una_fast.arrays import ID, MAX_IDS, POINTER, SCORE, Ragged, StringTable
from una_fast.corpus.word_tokenizers import Probe, Split, is_probe, tokenizer_name
from una_fast.errors import InputError
from una_fast.storage.content import blocks, wrong_range, wrong_rows, wrong_strings

KIND, VERSION = "index", 1
SCORE_LAW = 2  # how scores are rounded: correctly, so equal on all processors
# kinds of folders inside it, each beside its arrays
TOKENS = "token ids"
PROBABILITIES = "probabilities"
KEPT = "kept ids"

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
SOURCE_FIELDS = {"name": str, "n_documents": int, "xxh3_128": str}


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


def check_content(folder: Path, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Check types, lengths, ranges and order of all that an index's folder holds; 0.05 s for a million sentences.

    A folder of more than 64 MiB is checked once on a machine, until a file of it changes (see `una_fast.storage`).

    Raises:
        InputError: with the first array or field that is wrong.
    """
    for check in (_wrong_meta(meta), _wrong_types(arrays), _wrong_values(arrays)):
        for name, found in check:
            if found:
                raise InputError(f"{folder}: damaged, or not written by una_fast: {name} {found}; build it again")


def _wrong_meta(meta: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The name of each field, and what is wrong with it or ""; the two checks below do the same for arrays."""
    types = {"word_tokenizer": str, "lowercase": bool, "sources": list}
    for name, kind in types.items():
        yield name, "" if type(meta.get(name)) is kind else f"is {meta.get(name)!r:.80}"
    probe = meta.get("word_probe")
    yield "word_probe", "" if probe is None or is_probe(probe) else f"is {probe!r:.80}"
    law = meta.get("score_law")
    yield "score_law", "" if type(law) is int and law == SCORE_LAW else f"is {law!r:.80}"
    for source in meta["sources"]:
        fits = isinstance(source, dict) and all(type(source.get(k)) is kind for k, kind in SOURCE_FIELDS.items())
        yield "sources", "" if fits else f"holds {source!r:.80}"


def _wrong_types(arrays: dict[str, np.ndarray]) -> Iterator[tuple[str, str]]:
    yield "the list of its arrays", "" if arrays.keys() == DTYPES.keys() else f"is {', '.join(sorted(arrays))}"
    for name, dtype in DTYPES.items():
        array = arrays[name]
        fits = array.dtype == dtype and array.ndim == 1
        yield name, "" if fits else f"is {array.dtype} of shape {array.shape}, not {np.dtype(dtype)} of one dimension"


def _wrong_values(arrays: dict[str, np.ndarray]) -> Iterator[tuple[str, str]]:
    chunks, terms, sentences, words = tables_of(arrays)
    n_documents = max(len(words.indptr) - 1, 0)
    yield "chunks", wrong_strings(chunks)
    yield "terms", wrong_strings(terms)
    yield "sentences", wrong_rows(sentences, n_documents, len(chunks))
    yield "words", wrong_rows(words, n_documents, len(terms))
    yield "terms", "" if 0 < len(terms) <= MAX_IDS else "is empty"
    for name in SCORES:
        yield name, "" if len(arrays[name]) == len(terms) else f"has not one value for each of the {len(terms):,} terms"
    wrong = wrong_range(arrays["document_frequency"], 1, n_documents)
    yield "document_frequency", f"is not from 1 to {n_documents:,} documents" if wrong else ""
    for name in ("idf", "max_tfidf"):
        wrong = wrong_range(arrays[name], 0, sys.float_info.max)
        yield name, "is not finite and at least 0" if wrong else ""
    wrong = any((part[1:] > part[:-1]).any() for part in blocks(arrays["max_tfidf"], overlap=1))
    yield "max_tfidf", "increases: terms stand from high to low" if wrong else ""
