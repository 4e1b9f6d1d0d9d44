"""The kinds of tokenizer pipeline that are known to begin a new word at each space: one row each, with the reason.

A row says which pre-tokenizer it is for, which first and last characters of a chunk the reason holds for, and which
normaliser steps may come before. If no row fits, the tokenizer encodes each text as a whole
(see `una_fast.tokens.whole_text`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

Step = dict[str, Any]  # one step of a normaliser or pre-tokenizer, as tokenizer.json describes it
SPACE_MARK = "▁"  # what SentencePiece writes for a space
SPACE_DROPPERS = {"BertPreTokenizer", "Whitespace", "WhitespaceSplit"}

_CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_WHITE_SPACE = r"\s*[\r\n]+|\s+(?!\S)|\s+"
# each alternative holds a space as its first character only, or nothing but white space
_OF_LETTERS = r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*|"
_OF_LETTERS_AND_MARKS = r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|"
WORD_EXPRESSIONS = {
    "Qwen 2, Qwen 3": _CONTRACTION + _OF_LETTERS % "" + _WHITE_SPACE,
    "Qwen 3.5": _CONTRACTION + _OF_LETTERS_AND_MARKS + _WHITE_SPACE,
    "GPT-4, Llama 3": _CONTRACTION + _OF_LETTERS % "{1,3}" + _WHITE_SPACE,
}
SPACE_TO_MARK = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE_MARK}
MARK_FIRST = {"type": "Prepend", "prepend": SPACE_MARK}


class Ends(Enum):
    """The characters that a normalised chunk may begin and end with."""

    ANY = "any character"
    VISIBLE = "a visible character"
    UNMARKED = "a character other than space and ▁"


@dataclass(frozen=True)
class PipelineRow:
    """A kind of pipeline. name: as docs/tokenizers.md has it; ends: see `Ends`; reason: why a word begins at a space.

    fits: whether pre-tokenizer steps, normaliser steps and model (as tokenizer.json describes them) are of this kind.
    own_normalizers: True if `fits` also checks the steps of the normaliser.
    """

    name: str
    ends: Ends
    reason: str
    fits: Callable[[Sequence[Step], Sequence[Step], Step], bool]
    own_normalizers: bool = False


def _drops_spaces(splits: Sequence[Step], normalizers: Sequence[Step], model: Step) -> bool:
    return bool(splits) and splits[0]["type"] in SPACE_DROPPERS


def _splits_at_marks(splits: Sequence[Step], normalizers: Sequence[Step], model: Step) -> bool:
    return len(splits) == 1 and splits[0]["type"] == "Metaspace" and splits[0].get("split", True)


def _is_byte_level(splits: Sequence[Step], normalizers: Sequence[Step], model: Step) -> bool:
    return len(splits) == 1 and splits[0]["type"] == "ByteLevel" and splits[0].get("use_regex", True)


def _splits_by_expression(splits: Sequence[Step], normalizers: Sequence[Step], model: Step) -> bool:
    if [step["type"] for step in splits] != ["Split", "ByteLevel"]:
        return False
    split, byte_level = splits
    known = split["pattern"].get("Regex") in WORD_EXPRESSIONS.values()
    plain = split["behavior"] == "Isolated" and not split["invert"] and not byte_level["add_prefix_space"]
    return known and plain and not byte_level.get("use_regex", True)


def _is_one_word(splits: Sequence[Step], normalizers: Sequence[Step], model: Step) -> bool:
    """Whether spaces become ▁ and the text is not split, and no merge of the model makes a sub-word across a ▁."""
    marked = list(normalizers) in ([SPACE_TO_MARK], [MARK_FIRST, SPACE_TO_MARK])
    splits_nothing = not splits or (len(splits) == 1 and splits_at_space(splits[0]))
    unsplit_mark = (
        not normalizers
        and len(splits) == 1
        and splits[0]["type"] == "Metaspace"
        and splits[0]["replacement"] == SPACE_MARK
        and not splits[0].get("split", True)
    )
    return ((marked and splits_nothing) or unsplit_mark) and model["type"] == "BPE" and not _crosses_marks(model)


def splits_at_space(step: Step) -> bool:
    """Whether a step of a pre-tokenizer splits at each space alone."""
    return step["type"] == "Split" and step["pattern"] == {"String": " "}


def _crosses_marks(model: Step) -> bool:
    """Whether BPE may make a sub-word that holds ▁ after another character, or may not know ▁ itself."""
    if SPACE_MARK not in model["vocab"] or model.get("continuing_subword_prefix") or model.get("end_of_word_suffix"):
        return True
    merges = (merge.split(" ") if isinstance(merge, str) else merge for merge in model["merges"])
    made = model["vocab"] if model.get("ignore_merges") else ("".join(merge) for merge in merges)
    inner_mark = re.compile(f"[^{SPACE_MARK}]{SPACE_MARK}")
    return any(inner_mark.search(subword) for subword in made if SPACE_MARK in subword)


PIPELINES = (
    PipelineRow(
        "BertPreTokenizer, Whitespace or WhitespaceSplit",
        Ends.ANY,
        "white space is dropped, and a word ends there",
        _drops_spaces,
    ),
    PipelineRow("Metaspace", Ends.ANY, "a word begins at every ▁, and every space is one", _splits_at_marks),
    PipelineRow(
        "ByteLevel with its expression",
        Ends.VISIBLE,
        "the expression matches a space between visible characters only as the first of a word",
        _is_byte_level,
    ),
    PipelineRow(
        "Split by a known expression, ByteLevel",
        Ends.VISIBLE,
        "the expression matches a space between visible characters only as the first of a word",
        _splits_by_expression,
    ),
    PipelineRow(
        "spaces as ▁ without a split, BPE",
        Ends.UNMARKED,
        "no merge of the vocabulary makes a sub-word with ▁ after another character, so none crosses a space",
        _is_one_word,
        own_normalizers=True,
    ),
)
