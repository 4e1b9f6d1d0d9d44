"""Why each word of a sentence was replaced or kept."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from una_fast._kernels.draws.probability import ANY, SamplingConfig
from una_fast.augment.counter_rng import CounterRNG, SampleKey
from una_fast.augment.kept_words import KeptWords
from una_fast.augment.text_rows import TextRows
from una_fast.index.index import Index
from una_fast.text_table import aligned

SHOWN = 5  # candidates of a word


class Weights(NamedTuple):
    """For each of T words, what decides whether it is replaced.

    first: int32 (T,), the place in its row where its term stands first; z: float64 (T,), its tf-idf (equation 2); p:
    float64 (T,), its replacement probability (equation 3).
    """

    first: np.ndarray
    z: np.ndarray
    p: np.ndarray


@dataclass(frozen=True)
class WordExplanation:
    """One word of the sentence.

    word: as tokenised; seen: whether the index knows it; tfidf: its score z in this sentence (equation 2); probability:
    p (equation 3); reason: why p is what it is; window: (start, stop), the ids of its candidates; candidates: some of
    them, spread evenly over the window, with their scores s, the weights of the draw; draw: uniform in [0, 1), the
    word is replaced where it is below p; replacement: the word that stands in the negative, None if it was kept. Under
    variant "paper" a term has one draw, at its first place.
    """

    word: str
    seen: bool
    tfidf: float
    probability: float
    reason: str
    window: tuple[int, int]
    candidates: list[tuple[str, float]]
    draw: float
    replacement: str | None


@dataclass(frozen=True)
class Explanation:
    """The words of a sentence, and what happened to each; `str` gives a table, `to_dict` plain data for JSON."""

    words: list[WordExplanation]
    negative: str

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, numbers and strings."""
        return asdict(self)

    def __str__(self) -> str:
        header = ("word", "tf-idf", "p", "window", "draw", "replacement", "why p", "some candidates and their scores")
        rows = [
            (
                word.word if word.seen else f"{word.word} (unseen)",
                f"{word.tfidf:.4f}",
                f"{word.probability:.4f}",
                "{}-{}".format(*word.window),
                f"{word.draw:.4f}",
                word.replacement or "",
                word.reason,
                ", ".join(f"{term} {score:.3g}" for term, score in word.candidates),
            )
            for word in self.words
        ]
        lines = aligned([header, *rows], left=(0, 5, 6, 7))
        return "\n".join([*map(str.rstrip, lines), "", self.negative])


def explain_words(
    index: Index,
    config: SamplingConfig,
    text: TextRows,
    weights: Weights,
    new: np.ndarray,
    key: SampleKey,
    unseen_scripts: np.ndarray | None,
    kept: KeptWords,
) -> list[WordExplanation]:
    """The words of the one row of `text`, whose negative has the ids `new`: int32 (T,).

    unseen_scripts: uint8, the script of each unseen word; None: replacements are of any script. kept: the words that
    are never replaced.
    """
    words, replacements = (text.words(ids, index.terms) for ids in (text.terms.values, new))
    fixed, explanations = kept.among(words), []
    draws = CounterRNG(config.seed, key.epoch, text.keys, key.sample_index).units(len(words))[0]
    for k, (term, word) in enumerate(zip(text.terms.values.tolist(), words, strict=True)):
        z, p = float(weights.z[k]), float(weights.p[k])
        draw = float(draws[k if config.released else weights.first[k]])
        replacement = replacements[k] if draw < p else None
        script = ANY if unseen_scripts is None else config.script(term) if term >= 0 else int(unseen_scripts[-1 - term])
        window = config.window(term, z, script)
        ids = config.candidates(window, -1 if config.released else term, script)  # without those that cannot be drawn
        shown = ids[np.unique(np.linspace(0, len(ids) - 1, SHOWN).round().astype(int))].tolist()
        near = [(index.terms[i], float(index.max_tfidf[i])) for i in shown]
        if fixed[k]:
            reason = "a word of keep_words" if word in kept.words else "punctuation is kept"
        else:
            reason = _reason(config, weights, fixed, k)
        explanations.append(WordExplanation(word, term >= 0, z, p, reason, window, near, draw, replacement))
    return explanations


def _reason(config: SamplingConfig, weights: Weights, fixed: np.ndarray, k: int) -> str:
    """Why word `k`, which is not kept, has its replacement probability. fixed: bool (T,), the words that are kept."""
    z, p = np.where(fixed, np.nan, weights.z), float(weights.p[k])
    highest = int(np.nanargmax(z))  # the first of them
    if config.random_select:
        return "select is random: beta"
    if (k if config.released else weights.first[k]) == highest:
        return "highest tf-idf"
    if np.nanmin(z) == z[highest]:
        return "all tf-idf equal: beta"
    if p == 1.0:
        return "equation 3, cut at 1"
    return "lowest tf-idf" if z[k] == np.nanmin(z) else "equation 3"
