"""What a tokenizer does at a space: when a chunk's sub-words do not depend on the chunks around it.

A text is chunks with one space between (see `una_fast.corpus.words`). Let n be the tokenizer's normaliser. Encoding
chunk by chunk, ``ids(c0) + ids(" " + c1) + ...``, equals encoding the whole text if

1. the normalised text is ``n(c0) + n(" " + c1) + ...``: every step of n works on characters or on runs that a space
   ends (a space is a starter in Unicode normalisation and composes with nothing). The steps that look further (a
   SentencePiece character map works on grapheme clusters, stripping and collapsing on runs of spaces) are asked, for
   every chunk that is not plain ASCII, whether they look past this chunk's ends;
2. the pre-tokenizer begins a new piece at each of these spaces. One that drops white space always does, Metaspace
   begins a piece at every space, and the byte-level expression does where no other white space touches the space;
3. no added token ("[MASK]") is found: they are searched in the whole text and may eat the white space around them.

`Pipeline.regular` says of each chunk whether 1 to 3 hold for it. A text of regular chunks only is encoded by chunks.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from una_fast.arrays import StringTable
from una_fast.errors import InputError

LOCAL_NORMALIZERS = {"BertNormalizer", "Lowercase", "NFC", "NFD", "NFKC", "NFKD", "Nmt", "StripAccents"}
ASKING_NORMALIZERS = {"Precompiled", "Replace", "Strip"}  # those that may look past a chunk's ends
SPACE_DROPPERS = {"BertPreTokenizer", "Whitespace", "WhitespaceSplit"}
MODELS = {"BPE", "Unigram", "WordLevel", "WordPiece"}
PLAIN = "".join(map(chr, range(0x21, 0x7F)))  # printable ASCII


class Pipeline:
    """The parts of a `tokenizers.Tokenizer` that decide what happens at a space.

    context_free: a chunk has the same sub-words after a space as at the beginning of a text, always. unknown_id: the id
    of unknown sub-words, -1 if there is none among the added tokens.

    Raises:
        InputError: for this kind of pipeline chunk by chunk is not known to equal the whole text.
    """

    def __init__(self, backend: Tokenizer, description: dict[str, Any]):
        normalizers = _flat(description["normalizer"], "normalizers")
        pre_tokenizers = _flat(description["pre_tokenizer"], "pretokenizers")
        self._normalize = backend.normalizer.normalize_str if normalizers else str
        self._asks = any(step["type"] in ASKING_NORMALIZERS for step in normalizers)
        self._edges = _needs_clean_edges(pre_tokenizers)
        _check_normalizers(normalizers)
        _check_model(description["model"])
        self._read_added_tokens(description)
        first_matters = any(step.get("prepend_scheme") == "first" for step in pre_tokenizers)
        self.context_free = not (self._asks or first_matters) and pre_tokenizers[0]["type"] in SPACE_DROPPERS
        self._check_plain_ascii()

    def regular(self, table: StringTable) -> np.ndarray:
        """Where, bool (n,), a string's sub-words do not depend on what precedes and follows it in a text."""
        regular = np.ones(len(table), dtype=bool)
        if self._asks or self._edges:
            for row in _rows_not_plain(table).tolist():
                regular[row] = all(map(self._is_regular, table[row].split(" ")))
        for content in self._contents:
            regular[_rows_with(table, content)] = False
        return regular

    def holds_added_token(self, ids: np.ndarray) -> np.ndarray:
        """Where, as bool, the ids of added tokens: a chunk with one among its sub-words is not regular."""
        return np.isin(ids, self._added_ids)

    def _is_regular(self, chunk: str) -> bool:
        first, later, rest = self._normalize(chunk), self._normalize(" " + chunk), self._normalize(" a")
        if self._asks and not (
            later.startswith(" ")
            and self._normalize(chunk + " a") == first + rest
            and self._normalize("a " + chunk + " a") == self._normalize("a") + later + rest
        ):
            return False
        clean = len(first) > 0 and not first[0].isspace() and not first[-1].isspace()
        return not self._edges or (clean and later == " " + first)

    def _check_plain_ascii(self) -> None:
        """Plain ASCII chunks are not asked one by one, so each of their characters is asked here."""
        dependent = [c for c in PLAIN if not self._is_regular(c)]
        if dependent:
            raise _refusal(f"its normaliser changes {dependent[0]!r} by what is around it")

    def _read_added_tokens(self, description: dict[str, Any]) -> None:
        """Contents to search in a text, and ids that betray a token found in the normalised text.

        The model itself gives the id of "unknown", which so betrays nothing unless it is searched after normalising.
        """
        added = description["added_tokens"]
        blank = [token for token in added if not token["content"].strip(" ")]
        spaced = [token["content"] for token in added if " " in token["content"] and token not in blank]
        if spaced or any(token["content"] == " " for token in blank):
            raise _refusal(f"its added token {(spaced or [' '])[0]!r} holds a space")
        self._edges = self._edges or bool(blank)  # runs of spaces are tokens: no chunk may be empty
        self._contents = [token["content"].encode() for token in added if token not in blank]
        unknown = _unknown_token(description["model"])
        self.unknown_id = next((token["id"] for token in added if token["content"] == unknown), -1)
        self._added_ids = np.array(
            [token["id"] for token in added if token["normalized"] or token["content"] != unknown],
            dtype=np.int64,
        )


def _flat(step: dict[str, Any] | None, key: str) -> list[dict[str, Any]]:
    """The steps of a (nested) sequence in order."""
    if step is None:
        return []
    if step["type"] == "Sequence":
        return [inner for child in step[key] for inner in _flat(child, key)]
    return [step]


def _check_normalizers(steps: list[dict[str, Any]]) -> None:
    for step in steps:
        known = step["type"] in LOCAL_NORMALIZERS | ASKING_NORMALIZERS
        if not known or (step["type"] == "Replace" and not _keeps_words_apart(step)):
            raise _refusal(f"its normaliser has the step {json.dumps(step)[:120]}, which may look past a word's ends")


def _keeps_words_apart(replace: dict[str, Any]) -> bool:
    """A run of spaces collapsed, or characters replaced by others, none of which is a space."""
    pattern, content = replace["pattern"], replace["content"]
    if "Regex" in pattern:
        return pattern["Regex"] == " {2,}"
    return " " not in pattern["String"] and content.split() == [content]


def _unknown_token(model: dict[str, Any]) -> str | None:
    if model["type"] == "Unigram":
        return None if model["unk_id"] is None else model["vocab"][model["unk_id"]][0]
    return model.get("unk_token")


def _check_model(model: dict[str, Any]) -> None:
    if model["type"] not in MODELS:
        raise InputError(f"tokenizer: a model of type {model['type']!r} is not supported; use one of {sorted(MODELS)}")
    if model.get("dropout"):
        raise InputError(
            f"tokenizer: BPE dropout {model['dropout']} gives the same text other ids at every call; set it to None"
        )


def _needs_clean_edges(steps: list[dict[str, Any]]) -> bool:
    """Whether white space at a chunk's ends would join the space beside it.

    Raises:
        InputError: a pre-tokenizer that may not begin a piece at each space.
    """
    if steps and steps[0]["type"] in SPACE_DROPPERS:
        return False
    if len(steps) == 1 and steps[0]["type"] == "Metaspace" and steps[0].get("split", True):
        return False
    if len(steps) == 1 and steps[0]["type"] == "ByteLevel" and steps[0].get("use_regex", True):
        return True
    kinds = " then ".join(step["type"] for step in steps) or "none"
    raise _refusal(f"its pre-tokenizer ({kinds}) is not known to begin a new piece at each space")


def _refusal(reason: str) -> InputError:
    return InputError(
        f"tokenizer: {reason}, so sub-words cannot be made word by word;"
        " use a tokenizer of the BERT, RoBERTa or XLM-R kind"
    )


def _rows_not_plain(table: StringTable) -> np.ndarray:
    """int64, rows of the strings that are empty or hold anything but printable ASCII, in order."""
    positions = np.flatnonzero((table.utf8 < 0x21) | (table.utf8 > 0x7E))
    rows = np.searchsorted(table.offsets, positions, side="right") - 1
    return np.union1d(rows, np.flatnonzero(np.diff(table.offsets) == 0))


def _rows_with(table: StringTable, content: bytes) -> np.ndarray:
    """int64, rows of the strings that hold `content`."""
    buffer, at = table.utf8.tobytes(), -1
    positions = []
    while (at := buffer.find(content, at + 1)) >= 0:
        positions.append(at)
    starts = np.array(positions, dtype=np.int64)
    rows = np.searchsorted(table.offsets, starts, side="right") - 1
    return rows[starts + len(content) <= table.offsets[rows + 1]]  # not half in one string and half in the next
