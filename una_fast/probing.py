"""How near an encoder puts near-misses of one's own text: no training, no labels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from una_fast.augment.base import TextAugmentation
from una_fast.augment.una import Augmenter
from una_fast.errors import InputError, counted, suggests_keywords
from una_fast.index.index import Index
from una_fast.pair_scores import Encode, unit_embeddings

THRESHOLDS = (0.70, 0.80, 0.85, 0.90, 0.95)  # cosines at which caches and searches usually cut
BINS, WIDTH = 20, 40  # of the histogram: intervals of cosine, and characters of the longest bar
SAME = 1e-6  # mean 1 - cosine of usual pairs, below which all embeddings are one vector but for rounding in float32


@dataclass(frozen=True)
class Probe:
    """Cosines of an encoder on sentences of a text.

    Attributes:
        near_misses: float64 (n,), of a sentence with its near-miss.
        usual: float64 (n,), of a sentence with another one of the text.
        share: The share of the near-misses that `threshold` may let pass.
    """

    near_misses: NDArray[np.float64]
    usual: NDArray[np.float64]
    share: float

    @property
    def threshold(self) -> float | None:
        """The ceil((n + 1) * (1 - share))-th smallest cosine of near-misses; None if n is too small for the share.

        A near-miss made in the same way from another sentence of the text lies above it with a chance of at most
        `share` (split conformal prediction). For near-misses that people write it is an estimate.
        """
        n = len(self.near_misses)
        place = math.ceil(round((n + 1) * (1 - self.share), 9))  # 10 (1 - 0.7) is 3.0000000000000004
        return float(np.sort(self.near_misses)[place - 1]) if place <= n else None

    def passing(self, threshold: float) -> float:
        """Share of the near-misses with a cosine above `threshold`."""
        return float(np.mean(self.near_misses > threshold))

    @property
    def above_usual(self) -> float:
        """Share of near-misses with a higher cosine than all but `share` of the usual pairs have."""
        return float(np.mean(self.near_misses > np.quantile(self.usual, 1 - self.share)))

    @property
    def distance(self) -> float:
        """Mean 1 - cosine of near-misses, divided by that mean for usual pairs: 0 is no difference, 1 a usual one."""
        return float((1 - self.near_misses.mean()) / (1 - self.usual.mean()))

    def to_dict(self) -> dict[str, Any]:
        """All figures, of JSON types."""
        edges, near_misses, usual = map(np.ndarray.tolist, self._histogram())
        return {
            "n": len(self.near_misses),
            "share": self.share,
            "threshold": self.threshold,
            "passing": {f"{threshold:.2f}": self.passing(threshold) for threshold in THRESHOLDS},
            "above_usual": self.above_usual,
            "distance": self.distance,
            "mean_near_misses": float(self.near_misses.mean()),
            "mean_usual": float(self.usual.mean()),
            "histogram": {"edges": edges, "near_misses": near_misses, "usual": usual},
        }

    def __str__(self) -> str:
        cut = f"{len(self.near_misses):,} near-misses are too few for a threshold that lets {self.share:.0%} pass"
        if (threshold := self.threshold) is not None:
            cut = f"{self.share:.0%} of such near-misses pass a threshold of {threshold:.3f}"
        passing = ", ".join(f"{threshold:.2f}: {self.passing(threshold):.1%}" for threshold in THRESHOLDS)
        return "\n".join([
            f"mean cosine of a sentence with its near-miss {self.near_misses.mean():.3f}, "
            f"with another sentence {self.usual.mean():.3f}: distance {self.distance:.3f} of a usual one",
            f"near-misses that a threshold lets pass: {passing}",
            f"{self.above_usual:.1%} of the near-misses lie above {1 - self.share:.0%} of the usual pairs",
            cut,
            "",
            *self._bars(),
        ])  # fmt: skip

    def _histogram(self) -> tuple[NDArray, NDArray, NDArray]:
        """Edges (BINS + 1,) of cosines, and the share of near-misses and of usual pairs in each interval (BINS,)."""
        near, usual = self.near_misses, self.usual
        edges = np.linspace(min(near.min(), usual.min(), 0.99), max(near.max(), usual.max(), 1.0), BINS + 1)
        return edges, np.histogram(near, edges)[0] / len(near), np.histogram(usual, edges)[0] / len(usual)

    def _bars(self) -> list[str]:
        """The histogram in text: a line an interval, from the highest cosine down; # near-misses, . usual pairs."""
        edges, near, usual = self._histogram()
        longest = WIDTH / max(near.max(), usual.max())
        digits = 1 - math.floor(math.log10(edges[1] - edges[0]))  # the ends of an interval differ by at least 10 units
        lines = [f"{'cosine':<{2 * digits + 10}}  # near-misses, . usual pairs"]
        for i in reversed(range(BINS)):
            bars = "#" * round(longest * near[i]), "." * round(longest * usual[i])
            label = f"{edges[i]:{digits + 4}.{digits}f} to {edges[i + 1]:.{digits}f}"
            lines.append(f"{label}  {' '.join(filter(None, bars))}".rstrip())
        return lines


@suggests_keywords
def probe(
    encode: Encode,
    index: Index,
    n: int = 2000,
    share: float = 0.05,
    seed: int = 42,
    augmenter: TextAugmentation | None = None,
) -> Probe:
    """The cosines that an encoder gives near-misses of sentences of the index, and usual pairs of them.

    A near-miss is the sentence with its most important word replaced by a word of like importance (`Augmenter` with
    ``beta=0``, the sentence's case, spacing and punctuation kept). A usual pair is two sentences of the sample.

    Args:
        encode: list[str] -> embeddings (n, D), such as ``SentenceTransformer(NAME).encode``. It is called once with the
            sentences and once with their near-misses.
        index: of the text.
        n: sentences of the sample, drawn by the seed; all that have a near-miss if the text has fewer.
        share: of near-misses that `Probe.threshold` may let pass, above 0 and below 1.
        seed: any integer.
        augmenter: makes the near-misses in another way.

    Raises:
        InputError: n or share out of its range, fewer than two sentences that have a near-miss, embeddings that are
            not n rows of finite numbers, or one embedding for all texts.
    """
    if n < 2:
        raise InputError(f"n={n}: must be at least 2")
    if not 0 < share < 1:
        raise InputError(f"share={share}: must be above 0 and below 1")
    augmenter = augmenter or Augmenter(index, beta=0.0, seed=seed, surface="kept", keep_punctuation=True)
    sentences, near_misses = _sample(index, augmenter, n, seed)
    here, there = (unit_embeddings(encode, texts) for texts in (sentences, near_misses))
    near, usual = (np.einsum("nd,nd->n", here, other) for other in (there, np.roll(here, 1, axis=0)))
    if 1 - usual.mean() < SAME:
        raise InputError(
            f"encode gives all {len(usual):,} sentences the same vector, so no cosine tells one from another: check "
            "that the encoder's weights and its pooling are those that it was trained with"
        )
    return Probe(near, usual, share)


def _sample(index: Index, augmenter: TextAugmentation, n: int, seed: int) -> tuple[list[str], list[str]]:
    """Up to n sentences in random order, and the near-miss of each; a sentence without one is passed over."""
    order = np.random.default_rng(np.random.SeedSequence(seed % 2**64)).permutation(len(index))
    pairs: dict[str, str] = {}
    for start in range(0, len(order), n):
        rows = order[start : start + n]
        for row, near_miss in zip(rows.tolist(), augmenter.texts(rows), strict=True):
            if near_miss and near_miss != (sentence := index[row]) and len(pairs) < n:
                pairs.setdefault(sentence, near_miss)
        if len(pairs) == n:
            break
    if len(pairs) < 2:
        raise InputError(f"the text has {counted(len(pairs), 'sentence')} with a near-miss: at least 2 are needed")
    return list(pairs), list(pairs.values())
