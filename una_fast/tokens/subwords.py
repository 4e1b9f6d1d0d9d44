"""A Hugging Face fast tokenizer as a function from chunks to sub-word ids."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import xxhash

from una_fast._kernels.ids.frame import Frame
from una_fast.arrays import ID, POINTER, TOKEN, Ragged, StringTable, row_bounds
from una_fast.errors import InputError
from una_fast.imports import import_extra
from una_fast.tokens.joins import WordJoins
from una_fast.tokens.pipelines import NotByWordError, Pipeline, steps_of

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerBase

BLOCK = 2**15  # chunks held as Python strings at a time, by each thread
GROUP = 128  # chunks in one input of the Rust library: 3.5 us a chunk if joined, 4.9 us if kept apart, 14 us one by one
BEFORE = "a"  # the text that stands before the space when the ids of a chunk after a space are made
JOINTS = "^\\`{}~|<>_@#*+=%;!?&$"  # rare characters first: a group that holds the joint is encoded again, kept apart


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

    def joins(self) -> WordJoins:
        """Where a new sub-word begins within a chunk; it takes up to a second for a large vocabulary."""
        description = json.loads(self._backend.to_str())
        splits = steps_of(description["pre_tokenizer"], "pretokenizers")
        return WordJoins(splits, description["model"], self.pipeline.normalize)

    def encode_chunks(self, table: StringTable, wanted: np.ndarray, after_space: bool, n_jobs: int = 1) -> Ragged:
        """int32 ids of each wanted string of `table`, after a space or as the first of a text; no ids of the others.

        The ids after a space are those that follow "a" in the text "a " + string. So they do not show what a normaliser
        or pre-tokenizer does at the beginning of a text, such as adding or removing a space.

        wanted: bool (n,), True for regular strings only (see `Pipeline`). Memory is one block of strings a thread.
        """

        def encode(start: int) -> tuple[np.ndarray, np.ndarray]:
            chosen = np.flatnonzero(wanted[start : start + BLOCK])
            bounds = table.offsets[start : start + BLOCK + 1]
            strings = [*StringTable(table.utf8[bounds[0] : bounds[-1]], bounds - bounds[0])]
            found = [strings[i] for i in chosen.tolist()]
            joined = after_space and self._joint
            values, counts = self._encode_joined(found) if joined else self._encode_apart(found, after_space)
            lengths = np.zeros(len(strings), dtype=POINTER)
            lengths[chosen] = counts
            return values, lengths

        blocks = range(0, len(table), BLOCK)
        if len(blocks) <= 1:  # to start a thread takes as long as 20 strings
            return _ragged(map(encode, blocks))
        with ThreadPoolExecutor(n_jobs) as threads:
            return _ragged(threads.map(encode, blocks))

    def encode_texts(self, texts: Sequence[str]) -> Ragged:
        """int32 ids of whole texts, regular or not, by one call of the tokenizer."""
        ids = [np.array(encoding.ids, dtype=ID) for encoding in self._backend.encode_batch_fast(texts)]
        return Ragged(np.concatenate(ids), row_bounds([*map(len, ids)]))

    def _encode_joined(self, strings: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """Ids of strings after a space, in one array, and the number of ids of each.

        The strings of a group are one text, with the joint between: each is regular, so it has the same ids there. If
        the joint's id is not found exactly between them (a string holds it), the group is encoded again, kept apart.
        """
        groups, n_before = _groups(strings), len(self._before)
        encodings = self._backend.encode_batch_fast([f"{BEFORE} " + f" {self._joint} ".join(g) for g in groups])
        parts = []
        for group, encoding in zip(groups, encodings, strict=True):
            ids = np.array(encoding.ids, dtype=ID)
            begins_well = np.array_equal(ids[:n_before], self._before)
            ids = ids[n_before:]
            joints = np.flatnonzero(ids == self._joint_id)
            if begins_well and len(joints) == len(group) - 1:
                parts.append((np.delete(ids, joints), np.diff(joints, prepend=-1, append=len(ids)) - 1))
            else:
                parts.append(self._encode_apart(group, after_space=True))
        return _concatenate(parts)

    def _encode_apart(self, strings: list[str], after_space: bool) -> tuple[np.ndarray, np.ndarray]:
        """As `_encode_joined`, for any strings: they are passed as pre-split words, each of which is encoded alone."""
        before, n_before = (f"{BEFORE} ", len(self._before)) if after_space else ("", 0)
        groups = _groups(strings)
        encodings = self._backend.encode_batch([[before + s for s in g] for g in groups], is_pretokenized=True)
        parts = []
        for group, encoding in zip(groups, encodings, strict=True):
            counts = np.bincount(np.array(encoding.word_ids, dtype=ID), minlength=len(group))
            starts = row_bounds(counts)[:-1]
            ids = np.delete(np.array(encoding.ids, dtype=ID), np.add.outer(starts, np.arange(n_before)).ravel())
            parts.append((ids, counts - n_before))
        return _concatenate(parts)

    def _find_joint(self) -> tuple[str, int]:
        """A rare character that is one sub-word after a space, and that sub-word's id; ("", -1) if there is none."""
        unknown = self.pipeline.unknown_id
        for character in JOINTS:
            ids = self._backend.encode(f"a {character} a").ids
            alone = self._backend.encode(f"a {character}").ids
            if len(ids) == 3 and alone == ids[:2] and ids[1] not in (ids[0], ids[2], unknown):
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


def _groups(strings: list[str]) -> list[list[str]]:
    return [strings[i : i + GROUP] for i in range(0, len(strings), GROUP)]


def _concatenate(parts: Iterable[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Consecutive (ids, row lengths) as one."""
    values, lengths = zip((np.zeros(0, dtype=ID), np.zeros(0, dtype=POINTER)), *parts, strict=True)
    return np.concatenate(values), np.concatenate(lengths)


def _ragged(parts: Iterable[tuple[np.ndarray, np.ndarray]]) -> Ragged:
    values, lengths = _concatenate(parts)
    return Ragged(values, row_bounds(lengths))
