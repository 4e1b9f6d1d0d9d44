"""Why each word of a sentence was replaced or kept."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from una_fast._kernels.draws.law import Law
from una_fast.augment.draws import Draws
from una_fast.augment.text_rows import TextRows
from una_fast.index.index import Index


class Weights(NamedTuple):
    """What decides over each of T words.

    first: int32 (T,), where in its row it stands first; z: float64 (T,), its tf-idf (equation 2); p: float64 (T,), its
    replacement probability (equation 3).
    """

    first: np.ndarray
    z: np.ndarray
    p: np.ndarray


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


def explain_words(
    index: Index, law: Law, text: TextRows, weights: Weights, new: np.ndarray, draws: Draws
) -> Explanation:
    """The explanation of the one row of `text`, whose negative has the ids `new`: int32 (T,)."""
    words, replaced = [], [text.word(term, index.terms) for term in new.tolist()]
    for k, term in enumerate(text.terms.values.tolist()):
        z, p = float(weights.z[k]), float(weights.p[k])
        position = k if law.released else int(weights.first[k])
        bits = law.draw(int(text.keys[0]), draws.epoch, position, 0, draws.set)
        draw = (bits >> 11) * 2.0**-53
        replacement = replaced[k] if draw < p else None
        word = text.word(term, index.terms)
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
