"""Decides whether a tokenizer can encode a text chunk by chunk.

A text consists of chunks separated by one space (see `una_fast.corpus.words`). The first chunk is encoded alone. The
ids of any other chunk are those that follow the ids of "a" in the encoding of "a " + chunk. The ids of all chunks, one
after the other, equal the ids of the whole text under three conditions:

1. The normaliser changes a chunk in the same way whatever its neighbours are. Most steps change single characters, or
   runs that end at a space. Some steps can look further: a SentencePiece character map works on grapheme clusters, and
   stripping and collapsing work on runs of white space. With such a step, every chunk that is not plain ASCII is
   normalised with and without neighbours, and the results are compared.
2. A new word begins at each space between chunks. The pre-tokenizer or the model's vocabulary ensures this. Each row of
   PIPELINES describes a kind of tokenizer for which this is true, and states how a chunk must begin and end.
3. The text contains no added token ("[MASK]"). Added tokens are matched in the whole text and can remove white space.

`Pipeline.independent` tests these conditions for each chunk. A text that contains a chunk that fails is encoded as a
whole, as are all texts if no row of PIPELINES fits the tokenizer.
"""

from __future__ import annotations

import json
import re
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from una_fast.arrays import RaggedArray, StringTable
from una_fast.errors import InputError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Step = dict[str, Any]  # one step of a normaliser or pre-tokenizer, as tokenizer.json describes it
SPACE_MARK = "▁"  # what SentencePiece writes for a space
SPACE_DROPPERS = {"BertPreTokenizer", "Whitespace", "WhitespaceSplit"}
# In Unicode normalisation, a space composes with nothing.
LOCAL_NORMALIZERS = {"BertNormalizer", "Lowercase", "NFC", "NFD", "NFKC", "NFKD", "Nmt", "StripAccents"}
TESTED_NORMALIZERS = {"Precompiled", "Prepend", "Replace", "Strip"}  # they can look beyond the ends of a chunk
COLLAPSING = {" {2,}", r"\s{2,}|[\n\r\t]"}  # expressions that match a run of white space
PLAIN = "".join(map(chr, range(0x21, 0x7F)))  # printable ASCII

_CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_WHITE_SPACE = r"\s*[\r\n]+|\s+(?!\S)|\s+"
# Each alternative allows a space only as its first character, or matches only white space.
_OF_LETTERS = r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*|"
_OF_LETTERS_AND_MARKS = r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|"
WORD_EXPRESSIONS = {
    "Qwen 2, Qwen 3": _CONTRACTION + _OF_LETTERS % "" + _WHITE_SPACE,
    "Qwen 3.5": _CONTRACTION + _OF_LETTERS_AND_MARKS + _WHITE_SPACE,
    "GPT-4, Llama 3": _CONTRACTION + _OF_LETTERS % "{1,3}" + _WHITE_SPACE,
}
SPACE_TO_MARK = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE_MARK}
MARK_FIRST = {"type": "Prepend", "prepend": SPACE_MARK}


@dataclass(frozen=True)
class PipelineSpec:
    """A kind of tokenizer pipeline in which a word begins at each space, so texts can be encoded chunk by chunk."""

    name: str  # in docs/tokenizers.md
    reason: str  # why a word begins at each space
    # whether the pre-tokenizer's steps, the normaliser's steps and the model, from tokenizer.json, are of this kind
    fits: Callable[[Sequence[Step], Sequence[Step], Step], bool]
    needs_visible_ends: bool = True  # a normalised chunk must begin and end with a visible character other than ▁
    checks_normalizers: bool = False  # `fits` also checks the normaliser's steps; else `_check_normalizers` does


def _splits_by_expression(splits: Sequence[Step], normalizers: Sequence[Step], model: Step) -> bool:
    if _types_of(splits) != ["Split", "ByteLevel"]:
        return False
    split, byte_level = splits
    known = split["pattern"].get("Regex") in WORD_EXPRESSIONS.values()
    plain = split["behavior"] == "Isolated" and not split["invert"] and not byte_level["add_prefix_space"]
    return known and plain and not byte_level.get("use_regex", True)


def _is_one_word(splits: Sequence[Step], normalizers: Sequence[Step], model: Step) -> bool:
    """Return whether a tokenizer writes ▁ for each space, does not split the text, and never merges across a space."""
    marked = list(normalizers) in ([SPACE_TO_MARK], [MARK_FIRST, SPACE_TO_MARK])
    splits_nothing = not splits or (_types_of(splits) == ["Split"] and splits[0]["pattern"] == {"String": " "})
    unsplit_mark = not normalizers and _types_of(splits) == ["Metaspace"] and not splits[0].get("split", True)
    unsplit_mark = unsplit_mark and splits[0]["replacement"] == SPACE_MARK
    return ((marked and splits_nothing) or unsplit_mark) and model["type"] == "BPE" and not _crosses_marks(model)


def _types_of(steps: Sequence[Step]) -> list[str]:
    return [step["type"] for step in steps]


def _crosses_marks(model: Step) -> bool:
    """Return whether a BPE model can merge a character with a ▁ after it, or has no ▁ in its vocabulary."""
    if SPACE_MARK not in model["vocab"] or model.get("continuing_subword_prefix") or model.get("end_of_word_suffix"):
        return True
    merges = (merge.split(" ") if isinstance(merge, str) else merge for merge in model["merges"])
    made = model["vocab"] if model.get("ignore_merges") else ("".join(merge) for merge in merges)
    inner_mark = re.compile(f"[^{SPACE_MARK}]{SPACE_MARK}")
    return any(inner_mark.search(subword) for subword in made if SPACE_MARK in subword)


PIPELINES = (
    PipelineSpec(
        "BertPreTokenizer, Whitespace or WhitespaceSplit",
        "white space is removed and always ends a word",
        lambda splits, *_: bool(splits) and splits[0]["type"] in SPACE_DROPPERS,
        needs_visible_ends=False,
    ),
    PipelineSpec(
        "Metaspace",
        "every space becomes ▁, and a word begins at every ▁",
        lambda splits, *_: _types_of(splits) == ["Metaspace"] and splits[0].get("split", True),
        needs_visible_ends=False,
    ),
    PipelineSpec(
        "ByteLevel with its regex",
        "the regex starts a new match at every space between visible characters",
        lambda splits, *_: _types_of(splits) == ["ByteLevel"] and splits[0].get("use_regex", True),
    ),
    PipelineSpec(
        "Split by a known regex, ByteLevel",
        "the regex starts a new match at every space between visible characters",
        _splits_by_expression,
    ),
    PipelineSpec(
        "spaces as ▁ without a split, BPE",
        "no merge puts ▁ after another character, so no sub-word crosses a space",
        _is_one_word,
        checks_normalizers=True,
    ),
)


class NotByWordError(InputError):
    """Raised if a tokenizer must encode whole texts, because its ids cannot be made word by word."""

    def __init__(self, reason: str):
        super().__init__(f"tokenizer: {reason}, so its ids cannot be made word by word")
        self.reason = reason


class Pipeline:
    """The parts of a tokenizer that decide whether texts can be encoded chunk by chunk.

    description: the tokenizer.json, parsed.

    Attributes:
        kind: the row of PIPELINES that fits the tokenizer.
        normalize: the normaliser, as a function from a text to the normalised text.
        context_free: whether every chunk has the same sub-words after a space as at the start of a text.
        marks: the ASCII punctuation marks, contained in no added token, at which BertPreTokenizer may split a chunk.
            With other pre-tokenizers, a sub-word can contain a mark and its neighbours, so `marks` is empty.
        raw: the added tokens that are matched before normalising, in UTF-8.

    Raises NotByWordError unless encoding chunk by chunk is known to equal encoding the whole text.
    """

    def __init__(self, backend: Tokenizer, description: dict[str, Any]):
        normalizers = _steps_of(description["normalizer"], "normalizers")
        splits = _steps_of(description["pre_tokenizer"], "pretokenizers")
        if dropout := description["model"].get("dropout"):
            raise InputError(
                f"tokenizer: BPE dropout {dropout} gives a text different ids at every call: set it to None"
            )
        self.kind = _kind_of(splits, normalizers, description["model"])
        if not self.kind.checks_normalizers:
            _check_normalizers(normalizers)
        self.normalize = backend.normalizer.normalize_str if normalizers else str
        self._normal_a = self.normalize("a")
        self._normal_space_a = self.normalize("a a")[len(self._normal_a) :]  # what " a" adds to a normalised text
        self._tests_chunks = any(step["type"] in TESTED_NORMALIZERS for step in normalizers)
        self._needs_visible_ends = self.kind.needs_visible_ends
        self._read_added_tokens(description)
        first_matters = any(step.get("prepend_scheme") == "first" for step in splits)
        self.context_free = not (self._tests_chunks or first_matters) and self.kind is PIPELINES[0]
        is_bert = _types_of(splits) == ["BertPreTokenizer"]
        is_bert &= {*_types_of(normalizers)} <= {"BertNormalizer", "Lowercase"}
        in_added = "".join(token["content"] + self.normalize(token["content"]) for token in description["added_tokens"])
        # added tokens that are single words treat "_" as a letter
        self.marks = [mark for mark in string.punctuation if is_bert and mark not in in_added + "_"]
        # `independent` does not test chunks of plain ASCII, because each ASCII character is tested here as a chunk
        if dependent := [c for c in PLAIN if not self._is_independent(c)]:
            raise NotByWordError(f"its normaliser changes {dependent[0]!r} depending on the text around it")

    def independent(self, table: StringTable, ids: RaggedArray) -> np.ndarray:
        """Return whether the ids of each string are independent of the text around the string: bool (n_strings,)."""
        independent = np.ones(len(table), dtype=bool)
        if self._tests_chunks or self._needs_visible_ends:
            not_plain = np.flatnonzero((table.utf8 < 0x21) | (table.utf8 > 0x7E))
            independent[np.searchsorted(table.offsets, not_plain, side="right") - 1] = False
            independent &= np.diff(table.offsets) > 0
            for row in np.flatnonzero(~independent).tolist():
                independent[row] = all(map(self._is_independent, table[row].split(" ")))
        text = table.utf8.tobytes()
        if any(searched in text for searched in self._searched):  # a search of each string takes 50 us more
            independent[table.containing(*self._searched)] = False
        nearest = self._added_ids[np.searchsorted(self._added_ids, ids.values, side="right") - 1]
        added = np.flatnonzero(nearest == ids.values)
        independent[np.searchsorted(ids.indptr, added, side="right") - 1] = False
        return independent

    def _is_independent(self, chunk: str) -> bool:
        """Test conditions 1 and 2 (see the top of this file) for a chunk."""
        first, after_word = self.normalize(chunk), self.normalize("a " + chunk)
        later = after_word[len(self._normal_a) :]
        if self._tests_chunks and not (
            after_word.startswith(self._normal_a + self._normal_space_a[:1])
            and self.normalize(chunk + " a") == first + self._normal_space_a
            and self.normalize("a " + chunk + " a") == after_word + self._normal_space_a
        ):
            return False
        visible = later[1:].strip().strip(SPACE_MARK)
        return not self._needs_visible_ends or (bool(visible) and visible == later[1:] and first.endswith(visible))

    def _read_added_tokens(self, description: dict[str, Any]) -> None:
        """Decide how each added token is recognised: by its id, or by a search in the text, which takes 0.8 ms per MB.

        The model also emits the id of the unknown token for unknown text. So the unknown token is searched for if it is
        an added token that is matched before normalising. All other added tokens are recognised by their ids.
        """
        added = description["added_tokens"]
        self.raw = [token["content"].encode() for token in added if not token["normalized"]]
        blank = [token for token in added if not token["content"].strip(" ")]
        spaced = [token["content"] for token in added if token not in blank and self._spans_words(token)]
        if spaced or any(token["content"] == " " for token in blank):
            raise NotByWordError(f"its added token {(spaced or [' '])[0]!r} contains or tests a space")
        self._needs_visible_ends |= bool(blank)  # runs of spaces are tokens, so no chunk may be empty
        model = description["model"]
        unknown = model.get("unk_token")
        if model["type"] == "Unigram" and model["unk_id"] is not None:
            unknown = model["vocab"][model["unk_id"]][0]
        searched = [token for token in added if token["content"] == unknown and not token["normalized"]]
        self._searched = [token["content"].encode() for token in searched]
        self._added_ids = np.sort([-1, *(token["id"] for token in added if token not in searched)])

    def _spans_words(self, token: dict[str, Any]) -> bool:
        """Return whether a match of an added token can contain a space, or depends on the text before a space."""
        content = token["content"]
        if token["normalized"] and token["single_word"] and self.normalize(content).startswith((SPACE_MARK, " ")):
            return True  # whether it is a single word depends on the word before it
        if token["normalized"] and self.kind.checks_normalizers:  # this kind turns spaces into ▁
            content = re.sub(f"(?<=[^{SPACE_MARK}]){SPACE_MARK}", " ", self.normalize(content))
        return " " in content


def _steps_of(step: Step | None, key: str) -> list[Step]:
    """Return the steps of a normaliser or a pre-tokenizer as a flat list. key: where a "Sequence" has its steps."""
    if step is None:
        return []
    if step["type"] == "Sequence":
        return [inner for child in step[key] for inner in _steps_of(child, key)]
    return [step]


def _kind_of(splits: Sequence[Step], normalizers: Sequence[Step], model: Step) -> PipelineSpec:
    for kind in PIPELINES:
        if kind.fits(splits, normalizers, model):
            return kind
    names = " then ".join(_types_of(splits)) or "none"
    raise NotByWordError(f"its pre-tokenizer ({names}) is not known to begin a new word at each space")


def _check_normalizers(steps: Sequence[Step]) -> None:
    for step in steps:
        known = step["type"] in (LOCAL_NORMALIZERS | TESTED_NORMALIZERS) - {"Prepend"}
        if not known or (step["type"] == "Replace" and not _keeps_words_apart(step)):
            raise NotByWordError(
                f"its normaliser has the step {json.dumps(step)[:120]}, which may look beyond the ends of a word"
            )


def _keeps_words_apart(replace: Step) -> bool:
    """Return True if a Replace step only collapses white space, or if it neither removes nor inserts spaces."""
    pattern, content = replace["pattern"], replace["content"]
    if "Regex" in pattern:
        return pattern["Regex"] in COLLAPSING
    return " " not in pattern["String"] and content.split() == [content]
