"""Options that several commands share. Each class is a group of options, and its docstring is the heading in --help."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

from una_fast.command import option
from una_fast.corpus.documents import MAX_SENTENCE_BYTES
from una_fast.errors import InputError


@dataclass(frozen=True)
class Files:
    """How files are read."""  # the fields of `Reading`

    column: str = option("column of the sentences in all files except .txt", "text", metavar="NAME")
    quoting: bool | None = option("quoted cells may contain line ends and delimiters; default: only in .csv", None)
    max_sentence_bytes: int = option("longest sentence, in bytes of UTF-8; 0: any length", MAX_SENTENCE_BYTES,
                                     least=0, role="running")  # fmt: skip


@dataclass(frozen=True)
class Words:
    """How sentences are split into words."""

    word_tokenizer: str = option(
        "how to split sentences into words: treebank, whitespace, rjieba (Chinese), fugashi (Japanese), pythainlp "
        "(Thai), or your own MODULE:FUNCTION",
        "treebank", metavar="NAME",
    )  # fmt: skip
    lowercase: bool = option("lower-case sentences before they are split into words", True)


@dataclass(frozen=True)
class Draws:
    """How hard negatives are drawn."""  # by an `Augmenter`, whose constructor has the same arguments

    beta: float = option("mean probability that a word is replaced", 0.3, least=0, most=1)
    radius: int | float | str | None = option(
        "largest distance in ranks from a word to its replacements, or a share such as 1%; default: 1%, at most 4000",
        None, above=0, metavar="N_OR_SHARE",
    )  # fmt: skip
    select: Literal["tfidf", "random"] = option(
        "replace important words more often (tfidf), or all words equally often (random)", "tfidf"
    )
    replace: Literal["tfidf", "random"] = option(
        "replace by words of similar importance (tfidf), or by any word (random)", "tfidf"
    )
    variant: Literal["paper", "released"] = option("method of the paper, or of its authors' code", "paper")
    surface: Literal["kept", "paper"] | None = option(
        "form of a negative. kept: case, spacing and quotes of its sentence; paper: lower-case words joined by spaces; "
        "default kept, or paper with --variant released",
        None,
    )
    keep_punctuation: bool = option("never replace or draw words without a letter or digit", False)
    keep_words: str = option("file of words, one per line, that are never replaced or drawn", "", metavar="FILE")
    same_script: bool = option(
        "with --surface kept, replace Chinese words by Chinese words, Thai words by Thai words, and so on", True
    )


@dataclass(frozen=True)
class Edits:
    """How hard negatives are drawn."""  # by `NearMisses`; one heading in --help with those of `Draws`

    edits: str = option("edits of --augment near-misses and their weights: polarity, number, name, swap, word",
                        "polarity:1,number:4", metavar="NAME:WEIGHT,...")  # fmt: skip
    word_lists: tuple[str, ...] = option(
        "files with the opposites, negations and other words of your language for --augment near-misses; their format "
        "is that of una_fast/augment/english.txt", (), metavar="FILE",
    )  # fmt: skip


def names_of(group: type) -> tuple[str, ...]:
    """Return the names of the options in one of the classes above."""
    return tuple(field.name for field in fields(group))


def parse_edits(text: str) -> dict[str, float]:
    """Parse the value of --edits, such as "polarity:1,number:4". An edit without a number has weight 1."""
    weights = {}
    for part in text.split(","):
        name, colon, weight = (item.strip() for item in part.partition(":"))
        try:
            weights[name] = float(weight) if colon else 1.0
        except ValueError:
            raise InputError(f"--edits {text}: the weight of {name} is {weight!r}: give a number above 0") from None
    return weights
