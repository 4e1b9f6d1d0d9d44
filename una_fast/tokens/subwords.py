"""Encodes an index's sentences and terms with a Hugging Face fast tokenizer, chunk by chunk where possible."""

from __future__ import annotations

import itertools
import json
import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import xxhash

from una_fast._kernels.ids.emit import Frame
from una_fast._kernels.ids.rewrite import UNKNOWN
from una_fast.arrays import ID, POINTER, TOKEN, RaggedArray, StringTable, check_id_range, row_bounds, rows_from
from una_fast.errors import InputError, first_line
from una_fast.imports import import_extra
from una_fast.parallel import map_threads
from una_fast.storage.array_folder import Arrays
from una_fast.tokens.pipelines import NotByWordError, Pipeline

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerBase

    from una_fast.index.index import Index

BLOCK = 2**15  # chunks that a thread converts to Python strings at a time
GROUP = 128  # chunks per input of the Rust library: 5 us per chunk, instead of 8 us one by one
VERSION = 6  # of the layout of the token ids
ROWS_A_TASK = 2**14  # sentences that a thread assembles at a time
N_COMPARED = 256  # sentences, and as many texts of random terms: comparing both takes 30 ms
TERMS_A_TEXT = 8
LONGEST_COMPARED = 2**14  # characters of a text: a word of 300,000 letters in hundreds of texts took 22 s
BEFORE = "a"  # to get the ids of a chunk after a space, this word, a space and the chunk are encoded


@contextmanager
def tokenizer_errors() -> Iterator[None]:
    """Turn the Rust library's bare Exceptions into InputErrors."""
    try:
        yield
    except Exception as error:
        if type(error) is not Exception:
            raise
        raise InputError(f"tokenizer: it cannot encode a text ({first_line(error)}): use another tokenizer") from error


class SubwordEncoder:
    """Encodes chunks and whole texts with a copy of a tokenizer, without special tokens, truncation or padding.

    Making one raises NotByWordError if the ids of the tokenizer cannot be made word by word.
    """

    @tokenizer_errors()
    def __init__(self, tokenizer: PreTrainedTokenizerBase):
        self._backend = _backend_of(tokenizer)
        description = self._backend.to_str()
        self.pipeline = Pipeline(self._backend, json.loads(description))
        # The ids depend on nothing else.
        settings = [import_extra("tokenizers").__version__, self._backend.encode_special_tokens, description]
        self.fingerprint = xxhash.xxh3_128_hexdigest(json.dumps(settings).encode())
        self.prefix, self.suffix = self._special_tokens()
        self.frame = Frame(self.prefix, self.suffix, tokenizer.pad_token_id, tokenizer.padding_side == "left")
        self._before = np.array(self._backend.encode(BEFORE).ids, dtype=ID)

    @cached_property
    def highest(self) -> int:
        """The highest id of the tokenizer."""
        return max(self._backend.get_vocab(with_added_tokens=True).values())

    @property
    def dtype(self) -> type[np.generic]:
        """The dtype of `TokenIds.sentences`: uint16 if every id of the tokenizer fits, else int32."""
        return np.uint16 if self.highest < 2**16 else ID

    def encode(self, table: StringTable, is_first: np.ndarray, n_jobs: int = 1) -> tuple[RaggedArray, np.ndarray]:
        """Encode string i as the start of a text if ``is_first[i]``, else as a chunk after a space.

        A tokenizer may treat the start of a text differently. So a chunk after a space is encoded as "a " + chunk, and
        the ids of "a" are removed.

        Returns the int32 `ids` of each string, and `known`, bool (n_strings,): whether these ids are independent of the
        text around the string. Row i of `ids` is empty unless ``known[i]``.
        """

        def encode(start: int) -> RaggedArray:
            heads = ["" if first else f"{BEFORE} " for first in is_first[start : start + BLOCK].tolist()]
            return self._encode_words([*map(operator.add, heads, table[start : start + BLOCK])])

        first, *others = map_threads(encode, range(0, len(table), BLOCK), n_jobs)
        ids = first.followed_by(*others)
        n, starts, lengths = len(self._before), ids.indptr[:-1], ids.lengths()
        heads = np.append(ids.values, np.full(n, -1, dtype=ID))[starts[:, None] + np.arange(n)]
        known = is_first | ((lengths >= n) & (heads == self._before).all(axis=1))
        skipped = np.where(is_first | ~known, 0, n)
        ids = rows_from(ids.values, starts + skipped, lengths - skipped)
        known &= self.pipeline.independent(table, ids)
        return rows_from(ids.values, ids.indptr[:-1], ids.lengths() * known), known

    @tokenizer_errors()
    def _encode_words(self, words: Sequence[str]) -> RaggedArray:
        """Return the int32 ids of each of `words`, encoded as if it were a whole text."""
        groups = [words[i : i + GROUP] for i in range(0, len(words), GROUP)]
        encodings = self._backend.encode_batch(groups, is_pretokenized=True)
        ids = [np.array(encoding.ids, dtype=ID) for encoding in encodings]
        counts = [
            np.bincount(np.array(encoding.word_ids, dtype=ID), minlength=len(group))
            for group, encoding in zip(groups, encodings, strict=True)
        ]
        return RaggedArray(np.concatenate(ids), row_bounds(np.concatenate(counts)))

    def alike(self, forms: StringTable, terms: StringTable) -> np.ndarray:
        """Return 1 for each of `KeptSurface.forms` that has the same ids as its term, else 0: uint8 (3 * n_terms,).

        The ids are the same if form and term normalise to the same string, and the form contains no added token that is
        matched before normalising.
        """
        normal = itertools.cycle([*map(self.pipeline.normalize, terms)])
        alike = np.array([*map(operator.eq, map(self.pipeline.normalize, forms), normal)], dtype=np.uint8)
        alike[forms.containing(*self.pipeline.raw)] = 0
        return alike

    def cuts(self, characters: Sequence[str]) -> np.ndarray:
        """Return uint8 (128,): 1 for an ASCII character at which chunks may be split and the parts encoded separately.

        Such a character is in `Pipeline.marks`. The tokenizer treats it as a separate word next to any of `characters`,
        which are all characters that a chunk may contain.
        """
        cuts = np.zeros(128, dtype=np.uint8)
        for mark in self.pipeline.marks:
            words = [mark, *itertools.chain.from_iterable((character, mark) for character in characters)]
            joined, apart = self.encode_texts(["".join(words), " ".join(words)])
            cuts[ord(mark)] = np.array_equal(joined, apart)
        return cuts

    @tokenizer_errors()
    def encode_texts(self, texts: Sequence[str]) -> RaggedArray:
        """Return the int32 ids of each text, encoded as a whole."""
        ids = [np.array(encoding.ids, dtype=ID) for encoding in self._backend.encode_batch_fast(texts)]
        return RaggedArray(np.concatenate(ids), row_bounds([*map(len, ids)]))

    def _special_tokens(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the ids of the special tokens before and after a text, and stop the backend from adding them."""
        whole, self._backend.post_processor = self._backend.encode("a"), None
        text = self._backend.encode("a").ids
        n_prefix = [*whole.special_tokens_mask, 0].index(0)
        end, ids = n_prefix + len(text), np.array(whole.ids, dtype=TOKEN)
        is_plain = text and whole.ids[n_prefix:end] == text and all(whole.special_tokens_mask[end:])
        if not is_plain or any(whole.type_ids):
            raise NotByWordError(
                f"it encodes the text 'a' as {whole.tokens}, with more than special tokens of type 0 before and after"
            )
        return ids[:n_prefix], ids[end:]


def bind(index: Index, encoder: SubwordEncoder, n_jobs: int) -> tuple[RaggedArray, RaggedArray, np.ndarray]:
    """Load `sentences`, `terms` and `sizes` from the index's folder, or make and store them.

    `TokenIds` describes the first two. `sizes` is uint16, in the order of `encode_first_and_later`: the number of ids
    of each chunk, or UNKNOWN if the ids depend on the whole text or are too many for uint16.
    """

    def make() -> Arrays:
        sentences, sizes = encode_sentences(index, encoder, n_jobs)
        terms, _ = encode_first_and_later(index.terms, np.ones(len(index.terms), dtype=bool), encoder, n_jobs)
        check_id_range(len(terms.values), "sub-words of its terms")
        return {
            "sentences_values": sentences.values,
            "sentences_indptr": sentences.indptr,
            "terms_values": terms.values,
            "terms_indptr": terms.indptr,
            "sizes": sizes,
        }

    n_places = 1 if encoder.pipeline.context_free else 2  # after a space, and at the start of a text
    shapes = {
        "sentences_indptr": (len(index) + 1,),
        "terms_indptr": (n_places * index.n_terms + 1,),
        "sizes": (n_places * len(index.chunks),),
    }
    types = {"sentences_values": encoder.dtype, "terms_values": ID, "sizes": np.uint16}

    def fits(stored: Arrays) -> bool:
        have_shapes = all(stored[name].shape == shape for name, shape in shapes.items())
        have_types = all(stored[name].dtype == dtype for name, dtype in types.items())
        ids = (stored[name].view(f"u{stored[name].itemsize}") for name in ("sentences_values", "terms_values"))
        return have_shapes and have_types and all(part.max(initial=0) <= encoder.highest for part in ids)

    stored = index.cached(f"tokens-{VERSION}-{encoder.fingerprint}", VERSION, make, fits)
    sentences = RaggedArray(stored["sentences_values"], stored["sentences_indptr"])
    return sentences, RaggedArray(stored["terms_values"], stored["terms_indptr"]), stored["sizes"]


def encode_sentences(index: Index, encoder: SubwordEncoder, n_jobs: int) -> tuple[RaggedArray, np.ndarray]:
    """Encode each sentence chunk by chunk, or as a whole if the ids of one of its chunks are not known.

    Returns `sentences` and `sizes` as `bind` describes them.
    """
    is_first = np.zeros(len(index.chunks), dtype=bool)
    is_first[index.chunk_ids.values[index.chunk_ids.indptr[:-1][index.chunk_ids.lengths() > 0]]] = True
    by_chunk, known = encode_first_and_later(index.chunks, is_first, encoder, n_jobs)
    first, dtype = len(by_chunk) - len(index.chunks), encoder.dtype

    def encode(start: int) -> RaggedArray:
        bounds = index.chunk_ids.indptr[start : start + ROWS_A_TASK + 1]
        chunks = index.chunk_ids.values[bounds[0] : bounds[-1]].astype(POINTER)
        bounds = bounds - bounds[0]
        chunks[bounds[:-1][bounds[1:] > bounds[:-1]]] += first
        ids = by_chunk.take(chunks)
        ids = RaggedArray(ids.values.astype(dtype), ids.indptr[bounds])
        whole = np.unique(np.searchsorted(bounds, np.flatnonzero(~known[chunks]), side="right") - 1)
        if not len(whole):
            return ids
        order = np.arange(len(ids))
        order[whole] = len(ids) + np.arange(len(whole))
        texts = encoder.encode_texts([index.sentence(start + row) for row in whole.tolist()])  # 20 times as slow
        return ids.followed_by(RaggedArray(texts.values.astype(dtype), texts.indptr)).take(order)

    starts = range(0, len(index.chunk_ids), ROWS_A_TASK)
    parts = list(map_threads(encode, starts, n_jobs))
    bounds = row_bounds(np.concatenate([part.lengths() for part in parts]))
    values = np.empty(bounds[-1], dtype=dtype)
    for start in starts:  # free each part after copying it, so that the ids are never twice in memory
        part = parts.pop(0).values
        values[bounds[start] : bounds[start] + len(part)] = part
    sizes = np.where(known, np.minimum(by_chunk.lengths(), UNKNOWN), UNKNOWN)
    return RaggedArray(values, bounds), sizes.astype(np.uint16)


def encode_first_and_later(
    table: StringTable, is_first: np.ndarray, encoder: SubwordEncoder, n_jobs: int
) -> tuple[RaggedArray, np.ndarray]:
    """Encode n strings as chunks after a space and, unless the pipeline is `context_free`, at the start of a text.

    Returns `ids` and `known` of `SubwordEncoder.encode`, with n or 2 n rows. Row i is string i after a space. Row n + i
    is string i at the start of a text if ``is_first[i]``, else a copy of row i.
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
    """Raise NotByWordError if stored ids differ from those that the tokenizer returns for whole texts.

    The texts are a fixed sample of sentences, and random terms joined with spaces.
    """
    samples = [pair for pair in _samples(sentences, terms, index) if len(pair[0]) <= LONGEST_COMPARED]
    expected = tokenizer([text for text, _ in samples], truncation=False, padding=False, verbose=False)
    prefix, suffix = encoder.prefix.tolist(), encoder.suffix.tolist()
    for i, (text, ids) in enumerate(samples):
        wrong_types = "token_type_ids" in expected and any(expected["token_type_ids"][i])
        if expected["input_ids"][i] != prefix + ids.tolist() + suffix or wrong_types:
            raise NotByWordError(f"the ids of the text {text[:80]!r} differ from those of its words one by one")


def _samples(sentences: RaggedArray, terms: RaggedArray, index: Index) -> Iterator[tuple[str, np.ndarray]]:
    for row in np.unique(np.linspace(0, len(index) - 1, N_COMPARED).astype(int)).tolist():
        yield index.sentence(row), sentences[row]
    lengths, first = terms.lengths(), len(terms) - len(index.terms)
    known = np.flatnonzero((lengths[: len(index.terms)] > 0) & (lengths[first:] > 0))
    for line in np.random.default_rng(0).choice(known, (N_COMPARED if len(known) else 0, TERMS_A_TEXT)).tolist():
        ids = np.concatenate([terms[first + line[0]], *(terms[i] for i in line[1:])])
        yield " ".join(index.terms[i] for i in line), ids


def check_settings(tokenizer: PreTrainedTokenizerBase) -> None:
    """Raise InputError unless `tokenizer` is a Hugging Face tokenizer with a padding token and an attention mask."""
    name = type(tokenizer).__name__
    if not isinstance(tokenizer, import_extra("transformers").PreTrainedTokenizerBase):
        raise InputError(f"tokenizer: is {name}, must be a Hugging Face tokenizer: use AutoTokenizer.from_pretrained")
    if tokenizer.pad_token_id is None:
        raise InputError(
            f"tokenizer: {name} has no padding token: set one of its tokens: tokenizer.pad_token = tokenizer.eos_token"
        )
    if "attention_mask" not in tokenizer.model_input_names:
        raise InputError(
            f"tokenizer: {name} returns no attention mask: add 'attention_mask' to its model_input_names, which are"
            f" {tokenizer.model_input_names}"
        )


def _backend_of(tokenizer: PreTrainedTokenizerBase) -> Tokenizer:
    """Copy the Rust tokenizer of `tokenizer`, without truncation and padding."""
    name = type(tokenizer).__name__
    if not tokenizer.is_fast:
        raise NotByWordError(f"{name} is a slow (Python) tokenizer")
    if tokenizer.truncation_side != "right":
        raise NotByWordError(f"truncation_side is {tokenizer.truncation_side!r}, not 'right'")
    if "token_type_ids" in tokenizer.model_input_names and tokenizer.pad_token_type_id != 0:
        raise NotByWordError(f"{name} pads token_type_ids with {tokenizer.pad_token_type_id}, not 0")
    try:
        backend: Tokenizer = import_extra("tokenizers").Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    except Exception as error:  # the Rust library raises a bare Exception
        raise NotByWordError(f"it cannot be serialised ({error}), since a part of it is written in Python") from error
    backend.no_truncation()
    backend.no_padding()
    backend.encode_special_tokens = tokenizer.split_special_tokens
    return backend
