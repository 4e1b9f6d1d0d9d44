"""Measures an encoder's cosines of your own sentences with their near-misses, without training or labels."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from una_fast.augment.base import TextAugmentation
from una_fast.augment.near_misses import NearMisses, check_edits
from una_fast.augment.una import Augmenter
from una_fast.errors import InputError, InputWarning, counted, suggests_keywords, warn_user
from una_fast.index.index import Index
from una_fast.pair_scores import Z95, Encode, Floats, unit_embeddings
from una_fast.text_table import aligned

Fits = Callable[[NDArray[np.int64]], NDArray[np.bool_]]  # rows of an index -> which of them an edit fits
THRESHOLDS = (0.70, 0.80, 0.85, 0.90, 0.95)  # cosines that caches and searches usually choose
SAME = 1e-6  # if the mean 1 - cosine of usual pairs is lower, all embeddings are equal up to rounding in float32
SEARCH_FACTOR = 20  # at most SEARCH_FACTOR * n sentences are searched for n sentences that an edit fits
ABOUT_POLARITY = (
    "Opposites usually have higher cosines than paraphrases, so no threshold separates the two: score labelled pairs "
    "of your own with --pairs."
)


@dataclass(frozen=True)
class Probe:
    """An encoder's cosines of n sentences with their near-misses, and with other sentences.

    Attributes:
        near_misses: float64 (n,), cosine of each sentence with its near-miss.
        usual: float64 (n,), cosine of each sentence with another of the n sentences.
        share: the largest share of near-misses that may have a cosine above `threshold`.
        name: the edit that made the near-misses, such as "polarity", or the class of the augmentation.
        edits: a `Probe` of each requested edit, measured on sentences that the edit fits.
    """

    near_misses: Floats
    usual: Floats
    share: float
    name: str = "word"
    edits: tuple[Probe, ...] = ()

    @property
    def threshold(self) -> float | None:
        """A cosine that a new near-miss exceeds with probability at most `share`. None if n is too small for `share`.

        It is the ceil((n + 1) * (1 - share))-th smallest cosine of the n near-misses (split conformal prediction). The
        bound holds for near-misses made in the same way from other sentences of the corpus, not for those that people
        write.
        """
        n = len(self.near_misses)
        place = math.ceil(round((n + 1) * (1 - self.share), 9))  # 10 (1 - 0.7) is 3.0000000000000004
        return float(np.sort(self.near_misses)[place - 1]) if place <= n else None

    def passing(self, threshold: float) -> float:
        """Return the share of near-misses with a cosine above `threshold`, from 0 to 1."""
        return float(np.mean(self.near_misses > threshold))

    @property
    def distance(self) -> float:
        """The mean of ``1 - near_misses``, divided by the mean of ``1 - usual``.

        It is 0 if a near-miss has the same embedding as the sentence from which it was made, and 1 if it is as far from
        that sentence as other sentences are.
        """
        return float((1 - self.near_misses.mean()) / (1 - self.usual.mean()))

    def interval(self, before: Probe) -> tuple[float, float]:
        """Return the two ends of the 95% interval of ``self.distance - before.distance``.

        Args:
            before: the same sentences, measured with another encoder.
        """
        now, then = (  # the error of a ratio of means is the mean of these, to first order
            ((1 - one.near_misses) - one.distance * (1 - one.usual)) / (1 - one.usual.mean()) for one in (self, before)
        )
        middle, reach = self.distance - before.distance, Z95 * float(np.std(now - then)) / math.sqrt(len(now))
        return middle - reach, middle + reach

    def to_dict(self) -> dict[str, Any]:
        """Return all figures as plain data for JSON. "edits" maps the name of each edit to its figures."""
        return {
            "n": len(self.near_misses),
            "share": self.share,
            "threshold": self.threshold,
            "passing": {f"{threshold:.2f}": self.passing(threshold) for threshold in THRESHOLDS},
            "distance": self.distance,
            "mean_near_misses": float(self.near_misses.mean()),
            "mean_usual": float(self.usual.mean()),
            "edits": {one.name: one.to_dict() for one in self.edits},
        }

    def __repr__(self) -> str:
        edits = f", edits {', '.join(one.name for one in self.edits)}" if self.edits else ""
        limit = "none" if self.threshold is None else f"{self.threshold:.3f}"
        return (
            f"<una_fast.Probe of {len(self.near_misses):,} near-misses ({self.name}): distance {self.distance:.3f}, "
            f"threshold {limit} at {self.share:.0%}{edits}>"
        )

    def __str__(self) -> str:
        above = [f"above {threshold:.2f}" for threshold in THRESHOLDS]
        rows = [["edit", "near-misses", "mean cosine", *above, "threshold"]]
        for one in (self, *self.edits):
            shares = [f"{one.passing(threshold):.1%}" for threshold in THRESHOLDS]
            limit = "too few" if one.threshold is None else f"{one.threshold:.3f}"
            rows.append([one.name, f"{len(one.near_misses):,}", f"{one.near_misses.mean():.3f}", *shares, limit])
        usual = f"mean cosine of two sentences {self.usual.mean():.3f}; distance of near-misses {self.distance:.3f}"
        notes = [f"At most {self.share:.0%} of near-misses that are made in the same way pass the threshold."]
        polarity = [one.near_misses.mean() for one in self.edits if one.name == "polarity"]
        notes += [ABOUT_POLARITY for cosine in polarity if cosine > THRESHOLDS[1]]  # unless training lowered it
        return "\n".join([usual, "", *aligned(rows, left=(0,)), "", *notes])


@suggests_keywords
def probe(
    encode: Encode,
    index: Index,
    n: int = 2000,
    share: float = 0.05,
    seed: int = 42,
    augmenter: TextAugmentation | None = None,
    edits: Iterable[str] = (),
) -> Probe:
    """Measure an encoder's cosines of sentences with their near-misses, and of usual pairs of sentences.

    A near-miss is the sentence with its most important word replaced by a word of similar importance (`Augmenter` with
    ``beta=0``, which keeps the sentence's case, spacing and punctuation). A usual pair is two sentences of the sample.

    Args:
        encode: a function from a list of texts to their embeddings, an array (n_texts, width), such as
            ``SentenceTransformer(NAME).encode``. It is called with the sentences, then with their near-misses.
        index: the index of the text.
        n: size of the sample. If the text has fewer sentences with a near-miss, all of them are used.
        share: the largest share of near-misses whose cosine may exceed `Probe.threshold`. Must be above 0 and below 1.
        seed: any integer.
        augmenter: an augmentation that makes the near-misses instead of `Augmenter`.
        edits: edits of `NearMisses` to measure one by one, such as ["polarity", "number"], for `Probe.edits`.

    Returns:
        The cosines, and the threshold, shares and distance that follow from them. It prints as a table.

    Raises:
        InputError: an argument is invalid, fewer than two sentences have a near-miss, `encode` does not return one row
            of finite numbers per text, or it returns the same embedding for all texts.

    Warns:
        InputWarning: an edit fits fewer than two sentences, and is left out.
    """
    if n < 2:
        raise InputError(f"n={n}: must be at least 2")
    if not 0 < share < 1:
        raise InputError(f"share={share}: must be above 0 and below 1")
    name = type(augmenter).__name__ if augmenter else "word"
    augmenter = augmenter or Augmenter(index, beta=0.0, seed=seed, surface="kept", keep_punctuation=True)
    makers: list[tuple[str, TextAugmentation, Fits | None]] = [(name, augmenter, None)]
    for edit in check_edits(edits) if edits else ():
        if edit != name:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", InputWarning)  # an edit that fits few sentences gives a warning below
                near_misses = NearMisses(index, edits=[edit], seed=seed)
            makers.append((edit, near_misses, near_misses.fits))
    probes: list[Probe] = []
    for name, maker, fits in makers:
        pairs = _sample(index, maker, n, seed, fits)
        if len(pairs) >= 2:
            probes.append(Probe(*_cosines(encode, pairs), share, name))
        elif fits:
            warn_user(f"edits: {name} fits {counted(len(pairs), 'sentence')}: left out, because at least 2 are needed")
        else:
            raise InputError(f"the text has {counted(len(pairs), 'sentence')} with a near-miss: at least 2 are needed")
    return replace(probes[0], edits=tuple(probes[1:]))


def _cosines(encode: Encode, pairs: dict[str, str]) -> tuple[Floats, Floats]:
    """Return the cosines of each sentence with its near-miss, and with another sentence. pairs: from `_sample`."""
    here, there = (unit_embeddings(encode, [*texts]) for texts in (pairs, pairs.values()))
    near, usual = (np.einsum("nd,nd->n", here, other) for other in (there, np.roll(here, 1, axis=0)))
    if 1 - usual.mean() < SAME:
        raise InputError(
            f"encode gives all {len(usual):,} sentences the same vector, so cosines cannot distinguish them: check "
            "that the encoder has its trained weights, and the pooling that it was trained with"
        )
    return near, usual


def _sample(index: Index, augmenter: TextAugmentation, n: int, seed: int, fits: Fits | None) -> dict[str, str]:
    """Draw up to n sentences that `fits` accepts and that have a near-miss. Return {sentence: near-miss}."""
    order = np.random.default_rng(np.random.SeedSequence(seed % 2**64)).permutation(len(index))
    searched = len(order) if fits is None else min(len(order), SEARCH_FACTOR * n)
    pairs: dict[str, str] = {}
    for start in range(0, searched, n):
        rows = order[start : start + n]
        rows = rows if fits is None else rows[fits(rows)]
        for row, near_miss in zip(rows.tolist(), augmenter.texts(rows), strict=True):
            if near_miss and near_miss != (sentence := index[row]) and len(pairs) < n:
                pairs.setdefault(sentence, near_miss)
        if len(pairs) == n:
            break
    return pairs
