"""Measures how well an encoder's cosines separate pairs of sentences with the same meaning from near-misses."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.special import stdtrit  # scipy.stats takes a second to import

from una_fast.errors import InputError, failed, is_number, suggests_keywords

Encode = Callable[[list[str]], Any]  # texts -> embeddings (n_texts, width), an array or a tensor on the CPU
Pair = tuple[str, str, int] | tuple[str, str, int, str]  # two sentences, the label, and the group if there are groups
Floats = NDArray[np.floating]  # float64 in this module

COLUMNS = ("sentence1", "sentence2", "label")
LABELS = {"0": 0, "0.0": 0, "false": 0, "1": 1, "1.0": 1, "true": 1}  # in files, in any case; pandas writes 1.0
WORD = re.compile(r"\w+")
Z95 = 1.959964  # 95% of a normal distribution is within this many standard deviations of its mean
INDEPENDENT = 4  # of n pairs of the rarer label, an AUC has at most the precision of a share of INDEPENDENT * n draws


@dataclass(frozen=True)
class PairScores:
    """The cosines of n labelled pairs of sentences, and figures of how well they separate the two labels.

    `auc` and `recall` are NaN if all pairs have the same label, and `threshold` is NaN without a near-miss. m is the
    number of near-misses.

    Attributes:
        cosines: float64 (n,).
        same: bool (n,), True for a pair with the same meaning, False for a near-miss.
        groups: str (n,), "" for a pair without a group.
        share: the largest share of near-misses that may have a cosine above `threshold`.
        half: bool (n,), True for the second of two random halves. Pairs that share a sentence are in the same half. If
            None, the pairs alternate between the halves.
    """

    cosines: Floats
    same: NDArray[np.bool_]
    groups: NDArray[np.str_]
    share: float = 0.05
    half: NDArray[np.bool_] | None = None

    @classmethod
    def of(cls, same: Floats, near_misses: Floats, share: float = 0.05) -> PairScores:
        """Make scores, without groups, from the cosines of pairs.

        Args:
            same: float64 (k,), cosines of pairs with the same meaning.
            near_misses: float64 (m,), cosines of near-misses.
            share: as in `score_pairs`.
        """
        n = len(same) + len(near_misses)
        return cls(np.concatenate([same, near_misses]), np.arange(n) < len(same), np.full(n, ""), share)

    @property
    def auc(self) -> float:
        """Probability that a pair with the same meaning has a higher cosine than a near-miss. Ties count half."""
        return float(self._placements[0].mean()) if self._has_both_labels() else math.nan

    @property
    def threshold(self) -> float:
        """The (floor(share * m) + 1)-th highest of the m cosines of near-misses: at most share * m are above it."""
        near_misses = self.cosines[~self.same]
        return _threshold(near_misses, self.share) if len(near_misses) else math.nan

    @property
    def recall(self) -> float:
        """Share of the pairs with the same meaning that have a cosine above `threshold`."""
        return float(np.mean(self.cosines[self.same] > self.threshold)) if self._has_both_labels() else math.nan

    def passing(self, threshold: float) -> tuple[float, float]:
        """Return two shares, from 0 to 1: of the pairs with the same meaning above `threshold`, and of the near-misses.

        Args:
            threshold: a cosine, such as the one that your cache uses.
        """
        same, near_misses = (float(np.mean(side > threshold)) if len(side) else math.nan for side in self._split())
        return same, near_misses

    def held_out_hits(self, share: float) -> NDArray[np.bool_]:
        """Choose a threshold on each half, and tell which pairs of the other half are above it.

        Args:
            share: the largest share of a half's near-misses that may be above the threshold chosen on this half.

        Returns:
            bool (n,).

        Raises:
            InputError: one half has no near-misses, for example because most pairs contain the same sentence.
        """
        half = np.arange(len(self.same)) % 2 > 0 if self.half is None else self.half
        first, second = self.cosines[~self.same & ~half], self.cosines[~self.same & half]
        if not len(first) or not len(second):
            raise InputError(
                "one half has no near-misses, because pairs that share a sentence stay together: give more pairs"
            )
        return self.cosines > np.where(half, _threshold(first, share), _threshold(second, share))

    def interval(self, before: PairScores | None = None) -> tuple[float, float]:
        """Return the two ends of the 95% confidence interval of `auc`, or of ``auc - before.auc``.

        It is Wilson's interval of a share of so many draws that their variance is that of DeLong (1988), with a t
        distribution of Welch's degrees of freedom. For normal cosines, 94% to 99% of the intervals contain the true
        AUC with 5 to 500 pairs per label. A difference combines two intervals (Zou and Donner 2008). Both ends are NaN
        if all pairs have the same label.

        Args:
            before: another encoder's scores of the same pairs.
        """
        if not self._has_both_labels():
            return math.nan, math.nan
        low, high = self._interval
        if before is None:
            return low, high
        if np.array_equal(self.cosines, before.cosines):  # one encoder twice: nothing is uncertain
            return 0.0, 0.0
        (low_before, high_before), change = before._interval, self.auc - before.auc
        correlation = self._covariance(before) / (math.sqrt(self._covariance(self) * before._covariance(before)) or 1)

        def reach(own: float, other: float) -> float:
            return math.sqrt(max(0.0, own**2 + other**2 - 2 * correlation * own * other))

        below = reach(self.auc - low, high_before - before.auc)
        return change - below, change + reach(high - self.auc, before.auc - low_before)

    @cached_property
    def _interval(self) -> tuple[float, float]:
        n_rarer = min(map(len, self._placements))
        parts = [float(np.var(part, ddof=1)) / len(part) if len(part) > 1 else math.inf for part in self._placements]
        freedom, n_draws, variance = n_rarer - 1.0, float(n_rarer), sum(parts)
        if 0 < variance < math.inf:
            shares = (part**2 / (len(of) - 1) for part, of in zip(parts, self._placements, strict=True))
            freedom = variance**2 / sum(shares)
            n_draws = min(self.auc * (1 - self.auc) / variance, INDEPENDENT * n_rarer)
        z = float(stdtrit(max(freedom, 1.0), 0.975))
        n_draws = max(n_draws, 1.0)
        middle = (self.auc + z**2 / (2 * n_draws)) / (1 + z**2 / n_draws)
        reach = z * math.sqrt(self.auc * (1 - self.auc) / n_draws + (z / (2 * n_draws)) ** 2) / (1 + z**2 / n_draws)
        return max(0.0, middle - reach), min(1.0, middle + reach)

    def _covariance(self, other: PairScores) -> float:
        """Return the covariance of two encoders' AUCs on the same pairs (DeLong 1988); 0 for a label with one pair."""
        both = zip(self._placements, other._placements, strict=True)
        return sum(float(np.cov(a, b)[0, 1]) / len(a) for a, b in both if len(a) > 1)

    def by_group(self) -> dict[str, PairScores]:
        """Return the scores of each group by name.

        If all pairs of a group have the same label, they are scored together with all pairs of the other label.
        """
        names, first, numbers = np.unique(self.groups, return_index=True, return_inverse=True)
        by_label = {label: np.flatnonzero(self.same == label) for label in (True, False)}
        rows_of = np.split(np.argsort(numbers, kind="stable"), np.cumsum(np.bincount(numbers))[:-1])
        found = {}
        for i in np.argsort(first):
            if names[i]:
                missing = [label for label in by_label if not (self.same[rows_of[i]] == label).any()]
                rows = np.sort(np.concatenate([rows_of[i], *(by_label[label] for label in missing)]))
                half = None if self.half is None else self.half[rows]
                scores = PairScores(self.cosines[rows], self.same[rows], self.groups[rows], self.share, half)
                found[str(names[i])] = scores
        return found

    def curve(self) -> tuple[Floats, Floats]:
        """Return the ROC curve as two arrays: one for the near-misses, and one for the pairs with the same meaning.

        Each distinct cosine is a threshold, highest first. An array has the share of its pairs above each threshold.
        """
        same, near_misses = map(np.sort, self._split())
        thresholds = np.unique(self.cosines)[::-1]
        above = [1 - np.searchsorted(side, thresholds, "right") / len(side) for side in (near_misses, same)]
        return above[0], above[1]

    def to_dict(self) -> dict[str, Any]:
        """Return the figures of all pairs, and of each group, as plain data for JSON."""
        return {**self._figures(), "share": self.share, "threshold": self.threshold} | {
            "groups": {name: group._figures() for name, group in self.by_group().items()}
        }

    def _figures(self) -> dict[str, Any]:
        (low, high), n_same = self.interval(), int(self.same.sum())
        counts = {"same": n_same, "near_misses": len(self.same) - n_same}
        return {**counts, "auc": self.auc, "auc_low": low, "auc_high": high, "recall": self.recall}

    def _has_both_labels(self) -> bool:
        return 0 < int(self.same.sum()) < len(self.same)

    def _split(self) -> tuple[Floats, Floats]:
        return self.cosines[self.same], self.cosines[~self.same]

    @cached_property
    def _placements(self) -> tuple[Floats, Floats]:
        """Return two arrays. The mean of each array is the AUC.

        The first contains, for each paraphrase, the share of near-misses whose cosine is lower. The second contains,
        for each near-miss, the share of paraphrases whose cosine is higher. Ties count half.
        """
        same, near_misses = self._split()
        return _share_below(same, near_misses), 1 - _share_below(near_misses, same)

    def __repr__(self) -> str:
        return f"<una_fast.PairScores of {len(self.same):,} pairs: {self}>"

    def __str__(self) -> str:
        low, high = self.interval()
        auc, allowed = f"AUC {self.auc:.1%} (95% interval {low:.1%} to {high:.1%})", f"{self.share:.0%} false positives"
        if self.recall == 0:
            return f"{auc}; no usable threshold: at {allowed}, no pair with the same meaning passes"
        return f"{auc}; recall {self.recall:.1%} at {allowed}, threshold {math.ceil(1000 * self.threshold) / 1000:.3f}"


@suggests_keywords
def score_pairs(encode: Encode, pairs: Iterable[Pair], share: float = 0.05) -> PairScores:
    """Score how well an encoder separates pairs with the same meaning from near-misses.

    Args:
        encode: a function from a list of texts to their embeddings, an array (n_texts, width), such as
            ``SentenceTransformer(NAME).encode``. It is called once, with all distinct sentences.
        pairs: tuples (sentence1, sentence2, label[, group]). The label is 1 for the same meaning, 0 for a near-miss.
        share: the largest share of near-misses that may have a cosine above the threshold, at least 0 and below 1.

    Returns:
        The cosines, and the AUC, threshold and recall that follow from them, also by group. It prints as one line.

    Raises:
        InputError: `share` or a label is invalid, all pairs have the same label, or `encode` does not return one row of
            finite numbers per text.
    """
    if not is_number(share) or not 0 <= share < 1:
        raise InputError(f"share={share!r}: must be at least 0 and below 1")
    rows = [_checked_pair(pair) for pair in pairs]
    same = np.array([label for _, _, label, _ in rows], bool)
    if not 0 < same.sum() < len(same):
        raise InputError(f"{len(same):,} pairs, {same.sum():,} of label 1: give pairs of label 1 and pairs of label 0")
    ids: dict[str, int] = {}
    sentence_ids = np.array([[ids.setdefault(text, len(ids)) for text in row[:2]] for row in rows])  # (n, 2)
    units = unit_embeddings(encode, [*ids])
    cosines = np.einsum("nd,nd->n", *(units[column] for column in sentence_ids.T))
    return PairScores(cosines, same, np.array([group for *_, group in rows], str), share, _halves(sentence_ids))


def _checked_pair(pair: Any) -> tuple[str, str, int, str]:
    """Return (sentence1, sentence2, label, group). The group is "" if `pair` has none."""
    is_pair = isinstance(pair, tuple | list) and len(pair) in (3, 4)
    if not is_pair or not all(isinstance(text, str) for text in pair[:2]):
        raise InputError(f"pairs: {pair!r}: must be (sentence1, sentence2, label) or (..., label, group)")
    first, second, label, group = (*pair, "")[:4]
    if label not in (0, 1):
        raise InputError(f"pairs: label {label!r}: must be 1 (same meaning) or 0 (near-miss)")
    return first, second, int(label), str(group)


def score_overlap(pairs: Iterable[Pair], share: float = 0.05) -> PairScores:
    """Score pairs without any model: a pair counts as the more similar, the fewer words its sentences share.

    An encoder that scores lower than this baseline may still know more: the set can be won by counting changed words.
    """
    rows = [_checked_pair(pair) for pair in pairs]
    words = [[set(WORD.findall(text.lower())) for text in row[:2]] for row in rows]
    changed = [1 - len(first & second) / max(1, len(first | second)) for first, second in words]
    same, groups = (np.array([row[place] for row in rows], kind) for place, kind in ((2, bool), (3, str)))
    return PairScores(np.array(changed), same, groups, share)


def _halves(sentence_ids: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Divide n pairs into two random halves; return bool (n,), True for the second half.

    Pairs that share a sentence, directly or through other pairs, are in the same half. sentence_ids: (n, 2).
    """
    n_pairs, n_sentences = len(sentence_ids), sentence_ids.max() + 1
    graph = coo_array((np.ones(n_pairs), sentence_ids.T), shape=(n_sentences, n_sentences))
    component = connected_components(graph, directed=False)[1][sentence_ids[:, 0]]  # of each pair
    sizes = np.bincount(component)
    order = np.random.default_rng(0).permutation(len(sizes))
    in_second = np.empty(len(sizes), bool)
    in_second[order] = 2 * np.cumsum(sizes[order]) > n_pairs
    halves: NDArray[np.bool_] = in_second[component]
    return halves


def paired_change(before: NDArray[Any], after: NDArray[Any]) -> tuple[float, float, float]:
    """Return the mean of ``after - before`` and the two ends of its 95% confidence interval. Both arrays are (n,)."""
    change = after.astype(float) - before
    middle, reach = float(change.mean()), Z95 * float(change.std()) / math.sqrt(len(change))
    return middle, middle - reach, middle + reach


def _share_below(cosines: Floats, others: Floats) -> Floats:
    """Return, for each of `cosines`, the share of `others` that are lower. Ties count half."""
    ordered = np.sort(others)
    below, below_or_equal = (np.searchsorted(ordered, cosines, side) for side in ("left", "right"))
    return (below + below_or_equal) / (2 * len(others))


def _threshold(near_misses: Floats, share: float) -> float:
    """Return the (floor(share * m) + 1)-th highest of m cosines, so at most share * m cosines are above it."""
    return float(np.sort(near_misses)[-(math.floor(round(share * len(near_misses), 9)) + 1)])


def unit_embeddings(encode: Encode, texts: list[str]) -> Floats:
    """Encode texts, and scale each embedding to length 1, except zero vectors. Return float64 (n_texts, width)."""
    if not callable(encode) or hasattr(encode, "encode"):  # a SentenceTransformer is callable, but not with texts
        raise InputError(f"encode: is {type(encode).__name__}, must be a function of texts: give MODEL.encode")
    embeddings = encode(texts)
    if hasattr(embeddings, "detach"):  # a tensor, perhaps of bfloat16, which numpy lacks
        embeddings = embeddings.detach().double()
    try:
        rows = np.asarray(embeddings, np.float64)
    except (TypeError, ValueError) as error:
        kind = type(embeddings).__name__
        raise InputError(f"encode returned {kind}: it must return an array of numbers: {error}") from None
    if rows.ndim != 2 or len(rows) != len(texts) or not np.isfinite(rows).all():
        found = f"shape {rows.shape} for {len(texts):,} texts"
        raise InputError(f"encode returned {found}: it must return one row of finite numbers per text")
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1)


def read_pairs(path: str | Path) -> list[tuple[str, str, int, str]]:
    """Read labelled pairs from a table with the columns sentence1, sentence2, label and, optionally, group.

    Args:
        path: a .parquet file, a .csv file, which may have quoted cells, or any other file, which is tab-separated and
            without quoting. The first line of a text file names the columns.

    Returns:
        Tuples (sentence1, sentence2, label, group). The group is "" for a pair without a group.

    Raises:
        InputError: the file cannot be read, lacks a column, or contains an empty sentence, or a label that is neither 0
            (also 0.0 or False) nor 1 (also 1.0 or True).
    """
    path = Path(path)
    pairs: list[tuple[str, str, int, str]] = []
    try:
        with _table(path) as (columns, rows):
            if missing := [name for name in COLUMNS if name not in columns]:
                expected = ", ".join(COLUMNS)
                raise InputError(f"{path}: its first line has no column {missing[0]!r}: it must name {expected}")
            for place, row in rows:
                for name in COLUMNS:
                    if not (row[name] or "").strip():
                        raise InputError(f"{path}, {place}: nothing in column {name!r}: fill it, or delete the {place}")
                first, second, label = (row[name] for name in COLUMNS)
                if (same := LABELS.get(label.strip().lower())) is None:
                    raise InputError(f"{path}, {place}: label {label!r}: must be 1 (same meaning) or 0 (near-miss)")
                pairs.append((first, second, same, row.get("group") or ""))
    except (OSError, UnicodeDecodeError, csv.Error, pa.ArrowException) as error:
        raise failed(path, "read", error) from None
    return pairs


@contextmanager
def _table(path: Path) -> Iterator[tuple[Sequence[str], Iterator[tuple[str, Mapping[str, Any]]]]]:
    """Open a table of texts. Yields its column names, and an iterator of ("line 2" or "row 1", cells by column)."""
    if path.suffix.lower() == ".parquet":
        with pq.ParquetFile(path) as table:
            rows = chain.from_iterable(batch.to_pylist() for batch in table.iter_batches())
            texts = ({name: cell if cell is None else str(cell) for name, cell in row.items()} for row in rows)
            yield table.schema_arrow.names, ((f"row {number}", row) for number, row in enumerate(texts, start=1))
        return
    kind: dict[str, Any] = {} if path.suffix.lower() == ".csv" else {"delimiter": "\t", "quoting": csv.QUOTE_NONE}
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file, strict=True, **kind)
        yield reader.fieldnames or (), ((f"line {reader.line_num}", row) for row in reader)
