"""Index and tokenizer -> the sub-word ids of every sentence and term: made once, and compared at every bind."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from una_fast._kernels.ids.written import UNKNOWN
from una_fast.arrays import ID, POINTER, RaggedArray, StringTable, row_bounds
from una_fast.errors import InputError
from una_fast.storage.folder import Arrays
from una_fast.tokens.pipelines import NotByWordError
from una_fast.tokens.subwords import SubwordEncoder

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from una_fast.index.index import Index

VERSION = 5  # of the layout of the token ids
ROWS_A_TASK = 2**14  # sentences that a thread puts together at a time
MOST_SUB_WORDS = 2**31 - 1  # of all terms together: `ids/emit` keeps their places as int32
N_COMPARED = 256  # sentences, and as many texts of random terms: 30 ms
TERMS_A_TEXT = 8
LONGEST_COMPARED = 2**14  # bytes of a sentence or a term: one word of 300,000 letters among few terms took 22 s


def bind(index: Index, encoder: SubwordEncoder, n_jobs: int) -> tuple[dict[str, RaggedArray], np.ndarray, int]:
    """The ids of "sentences", "terms", "irregular" and, where it differs from "terms", "first_terms" (see `TokenIds`).

    Besides, the number of ids of each chunk, uint16, UNKNOWN if it is not regular or has too many; and where in these
    numbers the chunks as the first of a sentence begin. All are kept in the index's folder once they are made (see
    `Index.cached`).

    Raises:
        InputError: terms of more than MOST_SUB_WORDS sub-words.
    """

    def make() -> Arrays:
        sentences, lengths = encode_sentences(index, encoder, n_jobs)
        ids = {"sentences": sentences, **encode_table(index.terms, encoder, n_jobs)}
        sizes = np.where((lengths < 0) | (lengths >= UNKNOWN), UNKNOWN, lengths).astype(np.uint16)
        parts = {f"{name}_{part}": array for name, rows in ids.items() for part, array in vars(rows).items()}
        return {**parts, "sizes": sizes}

    arrays = dict(index.cached(f"tokens-{VERSION}-{encoder.fingerprint}", VERSION, make))
    sizes = arrays.pop("sizes")
    names = sorted({name.rpartition("_")[0] for name in arrays})
    ids = {name: RaggedArray(arrays[f"{name}_values"], arrays[f"{name}_indptr"]) for name in names}
    for name in ids.keys() & {"terms", "first_terms"}:
        if (n := len(ids[name].values)) > MOST_SUB_WORDS:
            raise InputError(
                f"the tokenizer makes {n:,} sub-words of the index's terms, and at most {MOST_SUB_WORDS:,} can be "
                "bound: split the corpus, or use a tokenizer that makes fewer"
            )
    return ids, sizes, len(sizes) - len(index.chunks)


def encode_sentences(index: Index, encoder: SubwordEncoder, n_jobs: int) -> tuple[RaggedArray, np.ndarray]:
    """uint16 or int32 ids of each sentence: from the ids of its chunks, or as a whole if a chunk is not regular.

    Besides, the number of ids of each chunk, as `encode_chunks` has it.
    """
    chunk_ids, lengths, first_offset = encode_chunks(index, encoder, n_jobs)
    dtype = np.uint16 if encoder.n_ids <= 2**16 else ID

    def encode(start: int) -> RaggedArray:
        bounds = index.sentences.indptr[start : start + ROWS_A_TASK + 1]
        places = index.sentences.values[bounds[0] : bounds[-1]].astype(POINTER)
        bounds = bounds - bounds[0]
        places[bounds[:-1][bounds[1:] > bounds[:-1]]] += first_offset
        by_chunk = chunk_ids.take(places)
        ids = RaggedArray(by_chunk.values.astype(dtype), by_chunk.indptr[bounds])
        whole = np.unique(np.searchsorted(bounds, np.flatnonzero(lengths[places] < 0), side="right") - 1)
        if not len(whole):
            return ids
        order = np.arange(len(ids))
        order[whole] = len(ids) + np.arange(len(whole))
        texts = encoder.encode_texts([index.sentence(start + row) for row in whole.tolist()])  # 20 times as long
        return ids.followed_by(RaggedArray(texts.values.astype(dtype), texts.indptr)).take(order)

    with ThreadPoolExecutor(n_jobs) as threads:
        parts = [*threads.map(encode, range(0, len(index.sentences), ROWS_A_TASK))]
    bounds = row_bounds(np.concatenate([part.lengths() for part in parts]))
    values = np.empty(bounds[-1], dtype=dtype)
    for start in range(0, len(index.sentences), ROWS_A_TASK):  # each part is freed, so that no two copies are held
        part = parts.pop(0).values
        values[bounds[start] : bounds[start] + len(part)] = part
    return RaggedArray(values, bounds), lengths


def encode_table(table: StringTable, encoder: SubwordEncoder, n_jobs: int) -> dict[str, RaggedArray]:
    """int32 ids of each term of a table after a space, and as the first word where that differs for any term.

    "irregular" is one row, the terms whose ids depend on the words around them; they have no ids here.
    """
    regular, later, first = encode_both(table, np.ones(len(table), dtype=bool), encoder, n_jobs)
    irregular = np.flatnonzero(~regular).astype(ID)
    ids = {"terms": later, "irregular": RaggedArray(irregular, np.array([0, len(irregular)], dtype=POINTER))}
    same = np.array_equal(later.values, first.values) and np.array_equal(later.indptr, first.indptr)
    return ids if same else {**ids, "first_terms": first}


def encode_chunks(index: Index, encoder: SubwordEncoder, n_jobs: int) -> tuple[RaggedArray, np.ndarray, int]:
    """Ids of each distinct chunk in the contexts in which it stands.

    Returns:
        The ids (int32); the number of ids of each chunk, -1 if it is not regular (int32); and where in both the chunks
        as the first of a sentence begin, 0 if the tokenizer makes no difference there.
    """
    first_chunks = index.sentences.values[index.sentences.indptr[:-1][index.sentences.lengths() > 0]]
    is_first = np.zeros(len(index.chunks), dtype=bool)
    is_first[first_chunks] = True
    regular, later, first = encode_both(index.chunks, is_first, encoder, n_jobs)
    if first is later:
        return later, np.where(regular, later.lengths(), -1).astype(ID), 0
    ids = later.followed_by(first)
    return ids, np.where(np.tile(regular, 2), ids.lengths(), -1).astype(ID), len(index.chunks)


def encode_both(
    table: StringTable, is_first: np.ndarray, encoder: SubwordEncoder, n_jobs: int
) -> tuple[np.ndarray, RaggedArray, RaggedArray]:
    """Which strings are regular (bool), and their ids after a space and, where `is_first` (bool), as the first.

    The same object twice if the tokenizer makes no difference between the two.
    """
    later, regular = encoder.encode(table, n_jobs=n_jobs)
    if encoder.pipeline.context_free:
        return regular, later, later
    chosen = np.flatnonzero(is_first)
    first, known = encoder.encode(table.take(chosen), np.ones(len(chosen), dtype=bool), n_jobs)
    regular[chosen] &= known
    places = np.zeros(len(table), dtype=POINTER)
    places[chosen] = 1 + np.arange(len(chosen))
    none = RaggedArray(np.zeros(0, dtype=ID), np.zeros(2, dtype=POINTER))
    return regular, later, none.followed_by(first).take(places)


def compare_with_tokenizer(
    ids: dict[str, RaggedArray], index: Index, encoder: SubwordEncoder, tokenizer: PreTrainedTokenizerBase
) -> None:
    """Compare a fixed sample of sentences, and texts of random terms, with what the tokenizer itself makes of them.

    Raises:
        NotByWordError: a difference, with its text.
    """
    samples = [(index.sentence(row), ids["sentences"][row]) for row in sample_rows(index)] + _texts_of_terms(ids, index)
    with _state_kept(tokenizer):
        expected = tokenizer([text for text, _ in samples], truncation=False, padding=False, verbose=False)
    prefix, suffix = encoder.prefix.tolist(), encoder.suffix.tolist()
    for i, (text, text_ids) in enumerate(samples):
        wrong_types = "token_type_ids" in expected and any(expected["token_type_ids"][i])
        if expected["input_ids"][i] != prefix + text_ids.tolist() + suffix or wrong_types:
            raise NotByWordError(
                f"{type(tokenizer).__name__} makes other ids of the text {text[:80]!r} than of its words one by one"
            )


def sample_rows(index: Index) -> list[int]:
    """Rows spread evenly over the index, very long sentences left out; the first row if all are very long."""
    rows = np.unique(np.linspace(0, index.n_documents - 1, N_COMPARED).astype(int))
    chunks, offsets = index.sentences.take(rows), index.chunks.offsets
    bounds = row_bounds(offsets[chunks.values + 1] - offsets[chunks.values])[chunks.indptr]
    return rows[np.diff(bounds) <= LONGEST_COMPARED].tolist() or rows[:1].tolist()


def _texts_of_terms(ids: dict[str, RaggedArray], index: Index) -> list[tuple[str, np.ndarray]]:
    first, later = ids.get("first_terms", ids["terms"]), ids["terms"]
    regular = np.delete(np.arange(len(later)), ids["irregular"].values)
    regular = regular[np.diff(index.terms.offsets)[regular] * TERMS_A_TEXT <= LONGEST_COMPARED]
    if not len(regular):
        return []
    drawn = np.random.default_rng(0).choice(regular, (N_COMPARED, TERMS_A_TEXT)).tolist()
    return [
        (" ".join(index.terms[i] for i in line), np.concatenate([first[line[0]], *(later[i] for i in line[1:])]))
        for line in drawn
    ]


@contextmanager
def _state_kept(tokenizer: PreTrainedTokenizerBase) -> Iterator[None]:
    """Restore the settings of the Rust object, into which a call of a Hugging Face tokenizer writes its own."""
    backend = tokenizer.backend_tokenizer
    truncation, padding, special = backend.truncation, backend.padding, backend.encode_special_tokens
    try:
        yield
    finally:
        backend.no_truncation() if truncation is None else backend.enable_truncation(**truncation)
        backend.no_padding() if padding is None else backend.enable_padding(**padding)
        backend.encode_special_tokens = special
