"""Index and tokenizer -> the sub-word ids of every sentence and term: made once, and compared at every bind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from una_fast._kernels.ids.written import UNKNOWN
from una_fast.arrays import ID, POINTER, RaggedArray, StringTable, check_id_range, row_bounds
from una_fast.parallel import map_threads
from una_fast.storage.array_folder import Arrays
from una_fast.tokens.pipelines import NotByWordError
from una_fast.tokens.subwords import SubwordEncoder

if TYPE_CHECKING:
    from una_fast.index.index import Index

VERSION = 6  # of the layout of the token ids
ROWS_A_TASK = 2**14  # sentences that a thread assembles at a time
N_COMPARED = 256  # sentences, and as many texts of random terms: 30 ms
TERMS_A_TEXT = 8
LONGEST_COMPARED = 2**14  # characters of a text: one word of 300,000 letters among few terms took 22 s


def bind(index: Index, encoder: SubwordEncoder, n_jobs: int) -> tuple[RaggedArray, RaggedArray, np.ndarray]:
    """Return the ids of the sentences and terms, and the number of ids of each chunk; stored in the index's folder.

    Returns:
        sentences: `RaggedArray`, uint16 or int32 (N rows); terms: `RaggedArray` int32, in the order of `encode_placed`;
        sizes: uint16, of the chunks in that order, UNKNOWN for a chunk with unknown or too many ids.
    """

    def make() -> Arrays:
        sentences, sizes = encode_sentences(index, encoder, n_jobs)
        terms, _ = encode_placed(index.terms, np.ones(len(index.terms), dtype=bool), encoder, n_jobs)
        check_id_range(len(terms.values), "sub-words of its terms")
        return {
            "sentences_values": sentences.values,
            "sentences_indptr": sentences.indptr,
            "terms_values": terms.values,
            "terms_indptr": terms.indptr,
            "sizes": sizes,
        }

    places = 1 if encoder.pipeline.context_free else 2
    lengths = {"sentences_indptr": len(index) + 1, "terms_indptr": places * index.n_terms + 1}
    lengths["sizes"] = places * len(index.chunks)
    types = {"sentences_values": encoder.dtype, "terms_values": ID, "sizes": np.uint16}

    def fits(kept: Arrays) -> bool:
        has_types = all(kept[name].dtype == dtype for name, dtype in types.items())
        return has_types and all(kept[name].shape == (n,) for name, n in lengths.items())

    arrays = index.cached(f"tokens-{VERSION}-{encoder.fingerprint}", VERSION, make, fits)
    sentences = RaggedArray(arrays["sentences_values"], arrays["sentences_indptr"])
    return sentences, RaggedArray(arrays["terms_values"], arrays["terms_indptr"]), arrays["sizes"]


def encode_sentences(index: Index, encoder: SubwordEncoder, n_jobs: int) -> tuple[RaggedArray, np.ndarray]:
    """Encode each sentence by its chunks, or as a whole if the ids of a chunk are not known.

    Returns the ids, and the number of ids of each chunk, as `bind` does.
    """
    is_first = np.zeros(len(index.chunks), dtype=bool)
    is_first[index.sentences.values[index.sentences.indptr[:-1][index.sentences.lengths() > 0]]] = True
    by_chunk, known = encode_placed(index.chunks, is_first, encoder, n_jobs)
    first, dtype = len(by_chunk) - len(index.chunks), encoder.dtype

    def encode(start: int) -> RaggedArray:
        bounds = index.sentences.indptr[start : start + ROWS_A_TASK + 1]
        chunks = index.sentences.values[bounds[0] : bounds[-1]].astype(POINTER)
        bounds = bounds - bounds[0]
        chunks[bounds[:-1][bounds[1:] > bounds[:-1]]] += first
        ids = by_chunk.take(chunks)
        ids = RaggedArray(ids.values.astype(dtype), ids.indptr[bounds])
        whole = np.unique(np.searchsorted(bounds, np.flatnonzero(~known[chunks]), side="right") - 1)
        if not len(whole):
            return ids
        order = np.arange(len(ids))
        order[whole] = len(ids) + np.arange(len(whole))
        texts = encoder.encode_texts([index.sentence(start + row) for row in whole.tolist()])  # 20 times as long
        return ids.followed_by(RaggedArray(texts.values.astype(dtype), texts.indptr)).take(order)

    starts = range(0, len(index.sentences), ROWS_A_TASK)
    parts = list(map_threads(encode, starts, n_jobs))
    bounds = row_bounds(np.concatenate([part.lengths() for part in parts]))
    values = np.empty(bounds[-1], dtype=dtype)
    for start in starts:  # each part is freed after it is copied, so that memory holds the ids once
        part = parts.pop(0).values
        values[bounds[start] : bounds[start] + len(part)] = part
    lengths = by_chunk.lengths()
    return RaggedArray(values, bounds), np.where(known & (lengths < UNKNOWN), lengths, UNKNOWN).astype(np.uint16)


def encode_placed(
    table: StringTable, is_first: np.ndarray, encoder: SubwordEncoder, n_jobs: int
) -> tuple[RaggedArray, np.ndarray]:
    """Encode n strings at their places in a text: int32 ids, and which are known, bool. Rows of unknown ids are empty.

    Row i is string i after a space. If the tokenizer distinguishes them, row n + i is string i at the start of a text,
    where `is_first`, bool (n,), asks for it.
    """
    n = len(table)
    if encoder.pipeline.context_free:
        return encoder.encode(table, np.zeros(n, dtype=bool), n_jobs)
    firsts = np.flatnonzero(is_first)
    rows = np.concatenate([np.arange(n), firsts])
    ids, known = encoder.encode(table.take(rows), np.arange(len(rows)) >= n, n_jobs)
    order = np.tile(np.arange(n), 2)
    order[n + firsts] = n + np.arange(len(firsts))
    return ids.take(order), known[order]


def compare_with_tokenizer(
    sentences: RaggedArray, terms: RaggedArray, index: Index, encoder: SubwordEncoder, tokenizer: Callable[..., Any]
) -> None:
    """Compare the ids of a fixed sample of sentences, and of texts of random terms, with the tokenizer's own ids.

    Very long texts are left out. Raises NotByWordError for a difference, with the text.
    """
    samples = [pair for pair in _samples(sentences, terms, index) if len(pair[0]) <= LONGEST_COMPARED]
    expected = tokenizer([text for text, _ in samples], truncation=False, padding=False, verbose=False)
    prefix, suffix = encoder.prefix.tolist(), encoder.suffix.tolist()
    for i, (text, ids) in enumerate(samples):
        wrong_types = "token_type_ids" in expected and any(expected["token_type_ids"][i])
        if expected["input_ids"][i] != prefix + ids.tolist() + suffix or wrong_types:
            raise NotByWordError(f"the ids of the text {text[:80]!r} are not those of its words one by one")


def _samples(sentences: RaggedArray, terms: RaggedArray, index: Index) -> Iterator[tuple[str, np.ndarray]]:
    for row in np.unique(np.linspace(0, len(index) - 1, N_COMPARED).astype(int)).tolist():
        yield index.sentence(row), sentences[row]
    lengths, first = terms.lengths(), len(terms) - len(index.terms)
    known = np.flatnonzero((lengths[: len(index.terms)] > 0) & (lengths[first:] > 0))
    for line in np.random.default_rng(0).choice(known, (N_COMPARED if len(known) else 0, TERMS_A_TEXT)).tolist():
        ids = np.concatenate([terms[first + line[0]], *(terms[i] for i in line[1:])])
        yield " ".join(index.terms[i] for i in line), ids
