"""Explains why `Augmenter` replaced or kept each word of a sentence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from una_fast.augment.base import Explanation
from una_fast.augment.counter_rng import CounterRNG, SampleKey
from una_fast.augment.sampler import Sampler
from una_fast.augment.split_sentences import SplitSentences
from una_fast.index.index import Index
from una_fast.text_table import aligned

SHOWN = 5  # candidates per word


@dataclass(frozen=True)
class WordExplanation:
    """Why one word of the sentence was replaced or kept.

    The word is replaced if its draw is below its p. If no draw of the sentence is below its p, the word with the
    smallest draw is replaced. In the variant "paper", all occurrences of a term share a draw.
    """

    word: str  # as the word tokenizer returns it
    seen: bool  # whether the index contains it
    tfidf: float  # z, in this sentence (equation 2)
    probability: float  # p, of its replacement (equation 3)
    reason: str  # why p has this value
    window: tuple[int, int]  # (start, stop): the replacement is drawn from the terms with the ids start .. stop - 1
    candidates: list[tuple[str, float]]  # some terms of the window that can replace it, with their scores
    draw: float  # uniform in [0, 1)
    replacement: str | None  # None if the word was kept


@dataclass(frozen=True)
class NegativeExplanation(Explanation):
    """A negative, and what happened to each word of its sentence. It prints as a table."""

    words: list[WordExplanation]

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
        return "\n".join([*map(str.rstrip, lines), "", self.result])


def explain_words(
    index: Index, sampler: Sampler, source: SplitSentences, new: np.ndarray, key: SampleKey
) -> list[WordExplanation]:
    """Explain each word of `source`, a single sentence. new: the word ids of its negative."""
    config, unseen_groups, (first, z, p) = sampler.config, sampler.unseen_groups(source), sampler.probabilities(source)
    words, replacements = (source.strings(ids) for ids in (source.words.values, new))
    rng = CounterRNG(config.seed, key.epoch, source.streams(np.zeros(1, dtype=int)), key.sample_index)
    first = np.arange(len(words)) if config.released else first  # for each word, the position of the draw that decides
    draws, reasons = rng.units(len(words))[0][first], _reasons(sampler, first, z, p, words)
    chosen = draws < p
    if not chosen.any():
        chosen = new != source.words.values
        reasons = np.where(chosen, "select is random: no draw below beta, and this is the smallest", reasons)
    explanations = []
    for k, (term, word) in enumerate(zip(source.words.values.tolist(), words, strict=True)):
        window = config.window(term, float(z[k]), unseen_groups)
        ids = config.candidates(window, term, unseen_groups)  # only those that can be drawn
        shown = ids[np.unique(np.linspace(0, len(ids) - 1, SHOWN).round().astype(int))].tolist()
        explanation = WordExplanation(
            word,
            seen=term < index.n_terms,
            tfidf=float(z[k]),
            probability=float(p[k]),
            reason=str(reasons[k]),
            window=window,
            candidates=[(index.terms[i], float(index.max_tfidf[i])) for i in shown],
            draw=float(draws[k]),
            replacement=replacements[k] if chosen[k] else None,
        )
        explanations.append(explanation)
    return explanations


def _reasons(sampler: Sampler, first: np.ndarray, z: np.ndarray, p: np.ndarray, words: list[str]) -> np.ndarray:
    """Return the reason for each probability p, such as "lowest tf-idf". first, z, p: see `Sampler.probabilities`."""
    fixed = sampler.kept.among(words)
    lowest, highest = np.min(z, where=~fixed, initial=np.inf), np.max(z, where=~fixed, initial=-np.inf)
    first_highest = np.flatnonzero(~fixed & (z == highest))[:1]
    conditions = {  # the first true one applies
        "a word of keep_words": [word in sampler.kept.words for word in words],
        "punctuation is kept": fixed,
        "select is random: beta": sampler.config.random_select,
        "highest tf-idf": np.isin(first, first_highest),
        "all tf-idf equal: beta": lowest == highest,
        "equation 3, capped at 1": p == 1,
        "lowest tf-idf": z == lowest,
    }
    return np.select([np.array(holds, dtype=bool) for holds in conditions.values()], [*conditions], "equation 3")
