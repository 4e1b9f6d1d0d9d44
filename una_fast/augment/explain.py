"""Why each word of a sentence was replaced or kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from una_fast._kernels.draws.law import Law
from una_fast.augment.term_rows import TermRows
from una_fast.index.index import Index


@dataclass(frozen=True)
class WordExplanation:
    """One word of the sentence.

    word: as tokenised; seen: whether the index knows it; tfidf: its score z in this sentence (equation 2); probability:
    p (equation 3); window: (start, stop), the ids of its candidates; draw: uniform in [0, 1), the word is replaced
    where it is below p; replacement: the word that stands in the negative, None if it was kept. Under variant "paper"
    a term has one draw, that of its first place.
    """

    word: str
    seen: bool
    tfidf: float
    probability: float
    window: tuple[int, int]
    draw: float
    replacement: str | None


@dataclass(frozen=True)
class Explanation:
    """A sentence's words and what happened to each; `str` makes a table of it, `to_dict` plain data for JSON."""

    words: list[WordExplanation]
    negative: str

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, numbers and strings."""
        return asdict(self)

    def __str__(self) -> str:
        header = ("word", "tf-idf", "p", "window", "draw", "replacement")
        rows = [
            (
                word.word if word.seen else f"{word.word} (unseen)",
                f"{word.tfidf:.4f}",
                f"{word.probability:.4f}",
                "{}-{}".format(*word.window),
                f"{word.draw:.4f}",
                word.replacement or "",
            )
            for word in self.words
        ]
        return "\n".join([*_aligned([header, *rows]), "", self.negative])


def explain_words(index: Index, law: Law, text: TermRows, replaced: Sequence[str], epoch: int) -> Explanation:
    """The explanation of the one row of `text`, whose negative has the words `replaced`."""
    words = []
    for k, (word, new) in enumerate(zip(text.words[0], replaced, strict=True)):
        term, z, p = int(text.ids[k]), float(text.z[k]), float(text.p[k])
        position = k if law.released else int(text.first[k])
        draw = (law.draw(int(text.keys[0]), epoch, position, 0) >> 11) * 2.0**-53
        replacement = new if draw < p else None
        words.append(WordExplanation(word, term >= 0, z, p, law.window(term, z), draw, replacement))
    return Explanation(words, " ".join(replaced))


def _aligned(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    numbers = (1, 2, 3, 4)
    return [
        "  ".join(
            cell.rjust(width) if i in numbers else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
