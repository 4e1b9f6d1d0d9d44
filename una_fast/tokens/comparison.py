"""A check at every bind: ids of some sentences, and of texts of random terms, against the tokenizer's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from una_fast.arrays import Ragged
from una_fast.tokens.regularity import NotByWordError
from una_fast.tokens.subwords import SubwordEncoder

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from una_fast.index.index import Index

N_COMPARED = 256  # sentences, and as many texts of random terms: 30 ms
TERMS_A_TEXT = 8
LONGEST_COMPARED = 2**14  # bytes of a sentence or a term: one word of 300,000 letters among few terms took 22 s


def compare_with_tokenizer(
    ids: dict[str, Ragged], index: Index, encoder: SubwordEncoder, tokenizer: PreTrainedTokenizerBase
) -> None:
    """Compare a fixed sample of sentences, and texts of random terms, with what the tokenizer itself makes of them.

    Raises:
        NotByWordError: a difference, with its text.
    """
    samples = _sentences(ids, index) + _texts_of_terms(ids, index)
    with _state_kept(tokenizer):
        expected = tokenizer([text for text, _ in samples], truncation=False, padding=False, verbose=False)
    prefix, suffix = encoder.prefix.tolist(), encoder.suffix.tolist()
    for i, (text, found) in enumerate(samples):
        wrong_types = encoder.has_token_type_ids and any(expected["token_type_ids"][i])
        if expected["input_ids"][i] != prefix + found.tolist() + suffix or wrong_types:
            raise NotByWordError(
                f"{type(tokenizer).__name__} makes other ids of the text {text[:80]!r} than of its words one by one"
            )


def sample_rows(index: Index) -> list[int]:
    """Rows spread evenly over the index, very long sentences left out; the first row if all are very long."""
    rows = np.unique(np.linspace(0, index.n_documents - 1, N_COMPARED).astype(int)).tolist()
    return [row for row in rows if _n_bytes(index, row) <= LONGEST_COMPARED] or rows[:1]


def _n_bytes(index: Index, row: int) -> int:
    """The UTF-8 bytes of a sentence, the spaces between its chunks left out."""
    chunks = index.sentences[row]
    return int((index.chunks.offsets[chunks + 1] - index.chunks.offsets[chunks]).sum())


def _sentences(ids: dict[str, Ragged], index: Index) -> list[tuple[str, np.ndarray]]:
    return [(index.sentence(row), ids["sentences"][row]) for row in sample_rows(index)]


def _texts_of_terms(ids: dict[str, Ragged], index: Index) -> list[tuple[str, np.ndarray]]:
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
