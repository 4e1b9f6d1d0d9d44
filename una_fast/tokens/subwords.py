"""A Hugging Face fast tokenizer as a function from chunks to sub-word ids."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import xxhash

from una_fast._kernels.ids.frame import Frame
from una_fast.arrays import ID, POINTER, TOKEN, RaggedArray, StringTable, row_bounds
from una_fast.errors import InputError
from una_fast.imports import import_extra
from una_fast.tokens.pipelines import NotByWordError, Pipeline

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerBase

BLOCK = 2**15  # chunks held as Python strings at a time, by each thread
GROUP = 128  # chunks in one input of the Rust library: 4 us a chunk if joined, 7.5 us if kept apart
NO_IDS = np.zeros(0, dtype=ID)
BEFORE = "a"  # the text that stands before the space when the ids of a chunk after a space are made
JOINTS = "^\\`{}~|<>_@#*+=%;!?&$"  # rare characters first: a chunk that holds the joint is kept apart


class SubwordEncoder:
    """Ids of chunks and of whole texts, without special tokens, truncation or padding.

    It works on a copy of the tokenizer, so nothing of the user's is changed.

    tokenizer: one that `check_settings` takes. frame: the special tokens before and after a text, and the padding;
    prefix, suffix: int64, those tokens; fingerprint: str, of everything the ids depend on; pipeline: `Pipeline`.

    Raises:
        NotByWordError: a tokenizer whose ids cannot be made word by word; the message says why.
        InputError: a setting that cannot be used; the message says what to set.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase):
        _check_by_word(tokenizer)
        self._backend = _copy(tokenizer)
        description = self._backend.to_str()
        self.pipeline = Pipeline(self._backend, json.loads(description))
        settings = [import_extra("tokenizers").__version__, self._backend.encode_special_tokens, description]
        self.fingerprint = xxhash.xxh3_128_hexdigest(json.dumps(settings).encode())
        self.prefix, self.suffix = self._special_tokens()
        self.frame = frame_of(tokenizer, self.prefix, self.suffix)
        self._before = np.array(self._backend.encode(BEFORE).ids, dtype=ID)
        self._joint, self._joint_id = self._find_joint()

    @cached_property
    def n_ids(self) -> int:
        """One more than the largest id that the tokenizer can make."""
        return max(self._backend.get_vocab(with_added_tokens=True).values()) + 1

    def encode(
        self, table: StringTable, is_first: np.ndarray | None = None, n_jobs: int = 1
    ) -> tuple[RaggedArray, np.ndarray]:
        """int32 ids of each string, and where they are known, bool (n,).

        They are those after a space: what follows "a" in the text "a " + string, so that they do not show what a
        normaliser or pre-tokenizer does at the beginning of a text. `is_first`, bool (n,), says which strings have the
        ids of the first word of a text instead. A string whose ids depend on what is around it has none.
        """
        regular = self.pipeline.regular(table)
        is_first = np.zeros(len(table), dtype=bool) if is_first is None else is_first

        def encode(start: int) -> RaggedArray:
            block = slice(start, min(start + BLOCK, len(table)))
            strings = table[block]
            joined = regular[block] & ~is_first[block] & bool(self._joint)
            order = [np.flatnonzero(chosen) for chosen in (joined, regular[block] & ~joined, ~regular[block])]
            later, rest, without = ([strings[i] for i in places.tolist()] for places in order)
            ids = _joined([self._encode_joined(later), self._encode_apart(rest, is_first[block][order[1]])])
            ids = ids.followed_by(RaggedArray(NO_IDS, np.zeros(len(without) + 1, dtype=POINTER)))
            return ids.take(np.argsort(np.concatenate(order)))

        blocks = range(0, len(table), BLOCK)
        if len(blocks) <= 1:  # to start a thread takes as long as 20 strings
            ids = _joined([*map(encode, blocks)])
        else:
            with ThreadPoolExecutor(n_jobs) as threads:
                ids = _joined([*threads.map(encode, blocks)])
        return self._without(ids, regular)

    def _without(self, ids: RaggedArray, regular: np.ndarray) -> tuple[RaggedArray, np.ndarray]:
        """`ids` without those of rows that hold a negative number or an added token, and which rows are left."""
        wrong = np.flatnonzero((ids.values < 0) | self.pipeline.holds_added_token(ids.values))
        regular[np.searchsorted(ids.indptr, wrong, side="right") - 1] = False
        if not len(wrong):
            return ids, regular
        lengths = ids.lengths()
        return RaggedArray(ids.values[np.repeat(regular, lengths)], row_bounds(lengths * regular)), regular

    def alike(self, forms: StringTable, terms: StringTable) -> np.ndarray:
        """uint8 (3 V,): whether a form of one of V terms, in each of three cases, has the ids of the term.

        It has if it is the term once both are normalised, and holds no added token that is searched before that.
        """
        normalize = self.pipeline.normalize
        alike = np.zeros(len(forms), dtype=np.uint8)
        if normalize("A") == normalize("a"):
            normal = [*map(normalize, terms)]
            alike[:] = [normalize(form) == normal[i % len(normal)] for i, form in enumerate(forms)]
            alike[forms.rows_with(*self.pipeline.raw)] = 0
        else:
            alike[:] = [form == term for form, term in zip(forms, itertools.cycle(terms))]
        return alike

    def checked_cuts(self, characters: Sequence[str]) -> str:
        """The `cuts` of the pipeline beside which each of `characters` has the ids that it has alone."""
        chosen, known = self.encode(StringTable.from_strings(characters))
        usable = [characters[i] for i in np.flatnonzero(known).tolist()]
        marks, _ = self.encode(StringTable.from_strings([*self.pipeline.cuts]))
        alone = [*chosen.take(np.flatnonzero(known))]
        texts = [mark.join(["", *usable, ""]) for mark in self.pipeline.cuts]
        if not texts:
            return ""
        expected = [np.concatenate([mark, *(part for ids in alone for part in (ids, mark))]) for mark in marks]
        return "".join(
            mark
            for mark, ids, wanted in zip(self.pipeline.cuts, self.encode_texts(texts), expected, strict=True)
            if np.array_equal(ids, wanted)
        )

    def encode_texts(self, texts: Sequence[str]) -> RaggedArray:
        """int32 ids of whole texts, regular or not, by one call of the tokenizer."""
        ids = [np.array(encoding.ids, dtype=ID) for encoding in self._backend.encode_batch_fast(texts)]
        return RaggedArray(np.concatenate(ids), row_bounds([*map(len, ids)]))

    def _encode_joined(self, strings: list[str]) -> RaggedArray:
        """Ids of regular strings after a space; a negative number among those of a string whose ids are not known.

        The strings of a group are one text, with the joint between. If the normalised text holds the joint's character
        only where it was put, and the ids hold the joint's id as often, then every joint is a sub-word of its own, and
        the ids between two of them are those of the string there. Otherwise the group is encoded again, kept apart.
        """
        groups, parts = [strings[i : i + GROUP] for i in range(0, len(strings), GROUP)], []
        texts = [f" {self._joint} ".join([BEFORE, *group]) for group in groups]
        for group, text, encoding in zip(groups, texts, self._backend.encode_batch_fast(texts), strict=True):
            ids = np.array(encoding.ids, dtype=ID)
            joints = np.flatnonzero(ids == self._joint_id)
            is_parted = self.pipeline.normalize(text).count(self._joint) == len(joints) == len(group)
            if is_parted and np.array_equal(ids[: joints[0]], self._before):
                ends = np.append(joints, len(ids)) - np.arange(len(group) + 1)
                parts.append(RaggedArray(np.delete(ids, joints)[joints[0] :], ends - joints[0]))
            else:
                parts.append(self._encode_apart(group, np.zeros(len(group), dtype=bool)))
        return _joined(parts)

    def _encode_apart(self, strings: list[str], is_first: np.ndarray) -> RaggedArray:
        """As `_encode_joined`, and where `is_first`, bool (n,), as the first of a text.

        The strings are passed as pre-split words, each of which is encoded alone.
        """
        heads = ["" if first else f"{BEFORE} " for first in is_first.tolist()]
        words = [head + string for head, string in zip(heads, strings, strict=True)]
        groups, parts = [words[i : i + GROUP] for i in range(0, len(words), GROUP)], []
        for group, encoding in zip(groups, self._backend.encode_batch(groups, is_pretokenized=True), strict=True):
            counts = np.bincount(np.array(encoding.word_ids, dtype=ID), minlength=len(group))
            parts.append(RaggedArray(np.array(encoding.ids, dtype=ID), row_bounds(counts)))
        ids = _joined(parts)
        n_heads, lengths = np.where(is_first, 0, len(self._before)), ids.lengths()
        begins_well = lengths >= n_heads
        for k, expected in enumerate(self._before.tolist()):
            rows = np.flatnonzero(begins_well & ~is_first)
            begins_well[rows] = ids.values[ids.indptr[rows] + k] == expected
        n_heads = np.where(begins_well, n_heads, 0)
        kept = np.arange(len(ids.values)) - np.repeat(ids.indptr[:-1] + n_heads, lengths) >= 0
        ids = RaggedArray(ids.values[kept], row_bounds(lengths - n_heads))
        wrong = np.flatnonzero(~begins_well)
        return RaggedArray(np.insert(ids.values, ids.indptr[wrong], -1), row_bounds(ids.lengths() + ~begins_well))

    def _find_joint(self) -> tuple[str, int]:
        """A rare character that is one sub-word after a space, and that sub-word's id; ("", -1) if there is none.

        No other character has that id, and no added token holds the character.
        """
        for character in JOINTS:
            ids = self._backend.encode(f"a {character} a").ids
            alone = self._backend.encode(f"a {character}").ids
            is_one = len(ids) == 3 and alone == ids[:2] and ids[1] not in (ids[0], ids[2])
            in_added = any(character in content for content in self.pipeline.added)
            if is_one and not in_added and character in (self._backend.id_to_token(ids[1]) or ""):
                return character, ids[1]
        return "", -1

    def _special_tokens(self) -> tuple[np.ndarray, np.ndarray]:
        """The tokens before and after a text, read from an encoding of "a". From then on none are added."""
        whole = self._backend.encode("a")
        self._backend.post_processor = None
        text = self._backend.encode("a").ids
        special = np.array(whole.special_tokens_mask, dtype=bool)
        n_prefix = int(np.argmin(special)) if len(special) else 0
        ids = np.array(whole.ids, dtype=TOKEN)
        end = n_prefix + len(text)
        is_plain = text and ids[n_prefix:end].tolist() == text and special[end:].all()
        if not is_plain or any(whole.type_ids):
            raise NotByWordError(
                f"it makes {whole.tokens} of the text 'a', more than special tokens of type 0 before and after the text"
            )
        return ids[:n_prefix], ids[end:]


def check_settings(tokenizer: PreTrainedTokenizerBase) -> None:
    """Raise `InputError` for a tokenizer without a padding token or an attention mask, or for no tokenizer."""
    name = type(tokenizer).__name__
    if not isinstance(tokenizer, import_extra("transformers").PreTrainedTokenizerBase):
        raise InputError(f"tokenizer: expected a Hugging Face tokenizer, got {name}; use AutoTokenizer.from_pretrained")
    if tokenizer.pad_token_id is None:
        raise InputError(
            f"tokenizer: {name} has no padding token; set one it knows, e.g. tokenizer.pad_token = tokenizer.eos_token"
        )
    if "attention_mask" not in tokenizer.model_input_names:
        raise InputError(
            f"tokenizer: {name} returns no attention mask; add 'attention_mask' to its model_input_names, which are"
            f" {tokenizer.model_input_names}"
        )


def frame_of(tokenizer: PreTrainedTokenizerBase, prefix: np.ndarray, suffix: np.ndarray) -> Frame:
    """The frame of a tokenizer's texts. prefix, suffix: int64, the special tokens before and after a text."""
    return Frame(prefix, suffix, int(tokenizer.pad_token_id), tokenizer.padding_side == "left")


def _check_by_word(tokenizer: PreTrainedTokenizerBase) -> None:
    name = type(tokenizer).__name__
    if not tokenizer.is_fast:
        raise NotByWordError(f"{name} is a slow (Python) one")
    if tokenizer.truncation_side != "right":
        raise NotByWordError(f"truncation_side is {tokenizer.truncation_side!r} and not 'right'")
    if "token_type_ids" in tokenizer.model_input_names and tokenizer.pad_token_type_id != 0:
        raise NotByWordError(f"{name} pads token_type_ids with {tokenizer.pad_token_type_id} and not 0")


def _copy(tokenizer: PreTrainedTokenizerBase) -> Tokenizer:
    """The Rust tokenizer behind `tokenizer`, without truncation and padding."""
    try:
        backend = import_extra("tokenizers").Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    except Exception as error:  # what the Rust library raises is a bare Exception
        raise NotByWordError(f"it cannot be serialised ({error}), since a part of it is written in Python") from error
    backend.no_truncation()
    backend.no_padding()
    backend.encode_special_tokens = tokenizer.split_special_tokens
    return backend


def _joined(parts: Sequence[RaggedArray]) -> RaggedArray:
    """The rows of all parts."""
    values = [NO_IDS, *(part.values for part in parts)]
    return RaggedArray(
        np.concatenate(values), row_bounds(np.concatenate([NO_IDS, *(part.lengths() for part in parts)]))
    )
