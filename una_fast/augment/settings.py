"""Checks the settings of an `Augmenter`, and stores replacement probabilities in the folder of an index."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import TypeGuard

import numpy as np
import xxhash

from una_fast._kernels.draws.negatives import UnaRows
from una_fast._kernels.draws.probability import (
    ANY,
    FIXED,
    SamplingConfig,
    id_bits,
    pack_words,
    replacement_probabilities,
)
from una_fast.arrays import RaggedArray, StringTable
from una_fast.augment.rows import Rows
from una_fast.corpus.word_tokenizers import PUNCTUATION, SCRIPTS
from una_fast.errors import InputError, counted, integer, warn_user
from una_fast.index.index import Index
from una_fast.index.scores import inverse_document_frequency
from una_fast.parallel import free_memory, map_threads
from una_fast.storage.array_folder import Arrays

PAPER_RADIUS = 4000  # ranks, 0.9% of the paper's 451,691 terms
TERMS_PER_RANK = 100  # the default radius is one rank per TERMS_PER_RANK terms, at most PAPER_RADIUS
WIDE = 10  # a window of more than 1 / WIDE of the terms contains words of different importance, so `Sampler` warns

EAST_ASIAN = ("Chinese", "Japanese")  # one group, because a Japanese word may have Chinese characters
GROUPS = ["".join(SCRIPTS[name] for name in EAST_ASIAN) + PUNCTUATION]
GROUPS += [letters for name, letters in SCRIPTS.items() if name not in EAST_ASIAN]
LETTERS = re.compile("|".join(f"([{letters}])" for letters in GROUPS))

VERSION = 4  # of the layout of packed words
MOST_ID_BITS = 24  # leaves 7 bits for the probability: too few to decide about every word in a fifth of the sentences
ROWS_A_TASK = 2**13  # their probabilities, 4 MB, fit the second-level cache
WORDS_A_CHECK = 2**20
LARGE_SHARE = 0.5  # of the free memory: a larger table would evict other arrays from the page cache


class Sampler:
    """Checks the settings of an `Augmenter`, and makes its kernels.

    The arguments other than `index` and `kept` are as in `Augmenter`.

    Attributes:
        kept: the words that are neither replaced nor drawn as replacements.
        config: all settings, as the object that the kernels read.
    """

    def __init__(
        self,
        index: Index,
        kept: KeptWords,
        *,
        beta: float,
        radius: float | str | None = None,
        seed: int,
        select: str = "tfidf",
        replace: str = "tfidf",
        variant: str = "paper",
        same_script: bool = True,
    ):
        if not is_number(beta) or not 0 <= beta <= 1:  # NaN fails too
            raise InputError(f"beta={beta!r}: must be a number in [0, 1], a mean probability; the paper uses 0.5")
        if kept and variant == "released":
            setting = "keep_punctuation=True" if kept.punctuation else "keep_words"
            raise InputError(f'{setting}: the released code replaces every word: give variant="paper"')
        fixed = kept.terms(index)
        if (n_others := index.n_terms - np.count_nonzero(fixed)) < 2:
            raise InputError(
                f"{n_others} of the {counted(index.n_terms, 'term')} of the index may be replaced, but at least 2 are "
                "needed: give a larger corpus, or keep fewer words"
            )
        ranks = resolve_radius(radius, index.n_terms)
        widest = min(2 * ranks + 1, index.n_terms)
        if radius is not None and replace != "random" and widest * WIDE > index.n_terms:
            advice = "give a larger corpus" if ranks == 1 else 'give a smaller radius such as "1%", or a larger corpus'
            warn_user(
                f"radius={radius!r}: a window has up to {widest:,} of the {index.n_terms:,} terms, so replacements may "
                f"differ in importance: {advice}"
            )
        self.kept, self._scripts = kept, scripts_drawn(index.terms, fixed) if same_script else np.empty(0, np.intp)
        groups = self._groups(index.terms, fixed)
        self.config = SamplingConfig(
            index.idf,
            index.max_tfidf,
            unseen_idf=float(inverse_document_frequency(1, index.n_documents)),
            beta=beta,
            radius=ranks,
            seed=integer("seed", seed) % 2**64,
            released=variant == "released",
            random_select=select == "random",
            random_replace=replace == "random",
            groups=None if (groups == ANY).all() else groups,
        )

    def _groups(self, words: Sequence[str], fixed: np.ndarray) -> np.ndarray:
        """Return the group of each word: uint8 (n_words,).

        A word that is never replaced has the group FIXED. If only words of the same script can replace a word, its
        group is the number of this script (see `scripts_of`). Any other word has the group ANY. fixed: bool (n_words,),
        True for words that are never replaced.
        """
        scripts = scripts_of(words) if len(self._scripts) else np.zeros(len(words), dtype=np.uint8)
        groups = np.where(np.isin(scripts, self._scripts), scripts, np.uint8(ANY))
        groups[fixed] = FIXED
        return groups

    def unseen_groups(self, source: Rows) -> np.ndarray:
        """Return the group of each unseen word of `source`, as `_groups` does: uint8 (n_unseen,)."""
        words = [*source.unseen]
        return self._groups(words, self.kept.among(words))

    def kernel(self, source: Rows, packed: np.ndarray | None = None) -> UnaRows:
        """Make the kernel that draws negatives of the sentences of `source`.

        packed: the result of `stored_probabilities`, if `source` contains the documents of the index.
        """
        return UnaRows(source.words, self.config, packed, source.hashes, self.unseen_groups(source))

    def probabilities(self, source: Rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return three arrays (first, z, p) with one value for each word of all sentences of `source`.

        first: int32, the position in the sentence where the word first occurs. z: float64, the word's tf-idf (equation
        2). p: float64, the word's replacement probability (equations 3 and 4).
        """
        return replacement_probabilities(self.config, source.words, self.unseen_groups(source))


def resolve_radius(radius: float | str | None, n_terms: int) -> int:
    """Convert the `radius` of `Augmenter` to a number of ranks from 1 to `n_terms`. A share is rounded down.

    None gives the default. Raises InputError for an invalid `radius`.
    """
    if radius is None:
        return min(PAPER_RADIUS, max(1, n_terms // TERMS_PER_RANK))
    share = re.fullmatch(r"\s*(\d+|\d*\.\d+)\s*%\s*", radius, re.ASCII) if isinstance(radius, str) else None
    if share and 0 < float(share[1]) <= 100:
        return max(1, math.floor(n_terms * float(share[1]) / 100))
    if is_number(radius) and radius >= 1 and radius % 1 == 0:  # excludes infinity and NaN
        return int(min(radius, n_terms))  # ranks must fit an int64
    raise InputError(
        f"radius={radius!r}: must be an integer of at least 1 (the paper uses 4000 ranks), a share of the vocabulary "
        'above 0% and up to 100%, such as "1%", or None'
    )


def is_number(value: object) -> TypeGuard[float]:
    """Return whether `value` is one real number, not True or False."""
    return isinstance(value, Real) and not isinstance(value, bool)


@dataclass(frozen=True)
class KeptWords:
    """The words that are never replaced. ``bool(kept_words)`` is False if all words may be replaced.

    Attributes:
        punctuation: whether words without a letter or digit are never replaced.
        words: other words that are never replaced, spelled as in the index.
        replaceable: if not None, words other than these are never replaced.
    """

    punctuation: bool = False
    words: frozenset[str] = frozenset()
    replaceable: frozenset[str] | None = None

    @classmethod
    def of(cls, punctuation: bool, source: str | Path | Iterable[str], lowercase: bool) -> KeptWords:
        """Make the kept words from the arguments of `Augmenter`.

        punctuation: `keep_punctuation`. source: `keep_words`. lowercase: whether the index lower-cases words.
        """
        words = read_words(source)
        return cls(punctuation, frozenset(word.lower() for word in words) if lowercase else words)

    def __bool__(self) -> bool:
        return self.punctuation or bool(self.words) or self.replaceable is not None

    def among(self, words: Sequence[str]) -> np.ndarray:
        """Return whether each word is kept: bool (n_words,)."""
        kept = (
            word in self.words
            or (self.punctuation and not any(map(str.isalnum, word)))
            or (self.replaceable is not None and word not in self.replaceable)
            for word in words
        )
        return np.fromiter(kept, bool, len(words))

    def terms(self, index: Index) -> np.ndarray:
        """Return whether each term of an index is kept: bool (n_terms,)."""
        return self.among([*index.terms]) if self else np.zeros(index.n_terms, dtype=bool)

    def rows(self, index: Index) -> np.ndarray:
        """Return the row numbers of documents without a replaceable word, such as blank ones: int64, ascending."""
        if not self:
            return index.word_ids.empty_rows()
        words = index.word_ids
        others = np.flatnonzero(~self.terms(index)[words.values])
        n_others = np.searchsorted(others, words.indptr)  # how many replaceable words precede each row
        return np.flatnonzero(n_others[1:] == n_others[:-1])


def read_words(source: str | Path | Iterable[str]) -> frozenset[str]:
    """Read words from a UTF-8 file with one word per line, or from an iterable of str; "" means no words.

    Raises InputError for any other `source`, a file that cannot be read, or a line or item that is not one word.
    """
    what = "a file with one word per line, or a list of words"
    if not isinstance(source, (Path, Iterable)):
        raise InputError(f"keep_words={source!r}: give {what}")
    if isinstance(source, Path) or (isinstance(source, str) and source):
        place, words = f"{source}, line", read_lines("keep_words", source, what)
    else:
        place, words = "item", [*enumerate(source, 1)]
    for number, word in words:
        if not isinstance(word, str) or len(word.split()) != 1:
            raise InputError(f"keep_words: {place} {number}: {word!r} is not one word: spell words as Index.words does")
    return frozenset(word.strip() for _, word in words)


def read_lines(setting: str, file: str | Path, what: str) -> list[tuple[int, str]]:
    """Return (line number, line) for each line of a UTF-8 file that is not blank. The first line has number 1.

    Raises InputError if the file cannot be read. Its message contains `setting` (the name of the argument) and
    `what` (a description of the expected file).
    """
    try:
        lines = Path(file).read_bytes().decode("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror or error if isinstance(error, OSError) else "not UTF-8"
        raise InputError(f"{setting}: {file}: {reason}: give {what}") from error
    return [(number, line) for number, line in enumerate(lines, 1) if line.strip()]


def scripts_of(words: Sequence[str]) -> np.ndarray:
    """Return the number of each word's script: uint8 (n_words,).

    Scripts that write spaces between words, such as Latin, all have the number 0.
    """
    matches = (LETTERS.search(word) for word in words)
    return np.array([match.lastindex if match else 0 for match in matches], dtype=np.uint8)


def scripts_drawn(terms: StringTable, fixed: np.ndarray) -> np.ndarray:
    """Return which scripts have at least two replaceable terms, as script numbers (see `scripts_of`).

    Returns an empty array if every term has script number 0. fixed: bool (n_terms,), True for terms that are never
    replaced.
    """
    if not LETTERS.search(terms.utf8.tobytes().decode("utf-8")):
        return np.empty(0, dtype=np.intp)
    return np.flatnonzero(np.bincount(scripts_of(terms)[~fixed]) >= 2)


def stored_probabilities(index: Index, config: SamplingConfig, n_jobs: int | None) -> np.ndarray | None:
    """Load an array with one value per word of the corpus: uint32 (n_words,).

    A value contains the word's id and its replacement probability (see `pack_words`). The array is memory-mapped from
    the index's folder. The first call computes the array, which takes 0.2 s of processor time per million sentences.
    Returns None if the array would exceed half of the free memory, or if the index has more than 2**24 terms.
    """
    n_words, free = len(index.word_ids.values), free_memory()
    is_large = free is not None and np.dtype(np.uint32).itemsize * n_words > LARGE_SHARE * free
    if is_large or id_bits(index.n_terms) > MOST_ID_BITS:
        return None
    fixed = xxhash.xxh3_128_hexdigest((np.asarray(config.groups) == FIXED).tobytes())
    settings = (config.beta, config.random_select, config.released, fixed)  # everything that changes a probability
    name = f"probabilities-{VERSION}-{xxhash.xxh3_128_hexdigest(repr(settings).encode())}"

    def fits(stored: Arrays) -> bool:
        """Return whether `stored` contains the words of this index.

        Another process may have saved a new index to this index's folder. The words are compared in parts that fit
        the cache, which takes 20 ms for 24 million words.
        """
        mask, ids, words = np.uint32((1 << id_bits(index.n_terms)) - 1), index.word_ids.values, stored["words"]
        parts = (slice(start, start + WORDS_A_CHECK) for start in range(0, n_words, WORDS_A_CHECK))
        has_type = words.dtype == np.uint32 and len(words) == n_words
        return has_type and all(np.array_equal(words[part] & mask, ids[part]) for part in parts)

    return index.cached(name, VERSION, lambda: {"words": packed_words(index, config, n_jobs)}, fits)["words"]


def packed_words(index: Index, config: SamplingConfig, n_jobs: int | None) -> np.ndarray:
    """Compute, on several threads, the array that `stored_probabilities` loads: uint32 (n_words,)."""
    values, indptr = index.word_ids.values, index.word_ids.indptr
    out = np.empty(len(values), dtype=np.uint32)

    def fill(start: int) -> None:
        bounds = indptr[start : start + ROWS_A_TASK + 1]
        part = slice(bounds[0], bounds[-1])
        words = RaggedArray(values[part], bounds - bounds[0])
        first, _, p = replacement_probabilities(config, words)
        pack_words(config, words.values, words.indptr, first, p, out[part])

    list(map_threads(fill, range(0, index.n_documents, ROWS_A_TASK), n_jobs))
    return out
