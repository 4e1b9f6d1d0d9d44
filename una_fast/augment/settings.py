"""The settings of an `Augmenter` -> the `SamplingConfig` of its kernels, and the probabilities kept beside an index."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xxhash

from una_fast._kernels.draws.probability import (
    ANY,
    FIXED,
    SamplingConfig,
    fill_weighted,
    id_bits,
    replacement_probabilities,
)
from una_fast.arrays import RaggedArray, StringTable
from una_fast.augment.radius import is_number, resolve_radius
from una_fast.corpus.word_tokenizers import PUNCTUATION, SCRIPTS
from una_fast.errors import InputError, counted, integer, warn_user
from una_fast.index.index import Index
from una_fast.index.scores import inverse_document_frequency
from una_fast.parallel import free_memory, map_threads
from una_fast.storage.folder import Arrays

WIDE = 10  # a window of more than one term in WIDE reaches words of unlike importance

EAST_ASIAN = ("Chinese", "Japanese")  # a Japanese word may be of Chinese characters
GROUPS = ["".join(SCRIPTS[name] for name in EAST_ASIAN) + PUNCTUATION]
GROUPS += [letters for name, letters in SCRIPTS.items() if name not in EAST_ASIAN]
LETTERS = re.compile("|".join(f"([{letters}])" for letters in GROUPS))

VERSION = 4  # of the layout of a weighted word
MOST_ID_BITS = 24  # with 7 bits of the probability, a fifth of the sentences has a word that they cannot decide
ROWS_A_TASK = 2**13  # whose probabilities, 4 MB, stay in the second-level cache
WORDS_A_CHECK = 2**20
LARGE_SHARE = 0.5  # of the free memory: a larger table would take the memory of the arrays that it saves reading


def make_config(
    index: Index,
    kept: KeptWords,
    surface: str,
    *,
    beta: float,
    radius: float | str | None,
    seed: int,
    select: str,
    replace: str,
    variant: str,
    same_script: bool,
) -> SamplingConfig:
    """Make what the kernels of an `Augmenter` read: its settings, which it explains, and the scores of the terms.

    kept: by the settings `keep_punctuation` and `keep_words`.

    Raises:
        InputError: a setting out of its range, or fewer than two terms that are not kept.
    """
    if not is_number(beta) or not 0 <= beta <= 1:  # NaN fails too
        raise InputError(f"beta={beta!r}: give a number in [0, 1], a mean probability; the paper takes 0.5")
    fixed = _fixed_terms(index, variant, kept)
    ranks = resolve_radius(radius, index.n_terms)
    widest = min(2 * ranks + 1, index.n_terms)
    if radius is not None and replace != "random" and widest * WIDE > index.n_terms:
        warn_user(
            f"radius={radius!r}: a window holds up to {widest:,} of the {index.n_terms:,} terms, so replacements need "
            'not be of like importance: give radius="1%", or give no radius'
        )
    return SamplingConfig(
        index.idf,
        index.max_tfidf,
        unseen_idf=float(inverse_document_frequency(1, index.n_documents)),
        beta=beta,
        radius=ranks,
        seed=integer("seed", seed) % 2**64,
        released=variant == "released",
        random_select=select == "random",
        random_replace=replace == "random",
        groups=term_groups(index.terms, fixed, keeps_script=same_script and surface == "kept"),
    )


def _fixed_terms(index: Index, variant: str, kept: KeptWords) -> np.ndarray:
    """The terms that are kept: bool (V,)."""
    if kept and variant == "released":
        setting = "keep_punctuation=True" if kept.punctuation else "keep_words"
        raise InputError(f'{setting}: the released code replaces all words: give variant="paper"')
    fixed = kept.terms(index)
    if (n_others := index.n_terms - np.count_nonzero(fixed)) < 2:
        raise InputError(
            f"{n_others} of the {counted(index.n_terms, 'term')} of the index may be replaced, and by nothing: give a "
            "larger corpus, or keep fewer words"
        )
    return fixed


@dataclass(frozen=True)
class KeptWords:
    """Which words are kept: punctuation, and those of a list. It is false if it keeps none.

    punctuation: whether words without a letter or digit are kept; words: further ones, as an index has them.
    """

    punctuation: bool = False
    words: frozenset[str] = frozenset()

    @classmethod
    def of(cls, punctuation: bool, source: str | Path | Iterable[str], lowercase: bool) -> KeptWords:
        """The setting `keep_punctuation`, and `keep_words` as `Augmenter` takes it. lowercase: of the index."""
        words = read_words(source)
        return cls(punctuation, frozenset(word.lower() for word in words) if lowercase else words)

    def __bool__(self) -> bool:
        return self.punctuation or bool(self.words)

    def among(self, words: Sequence[str]) -> np.ndarray:
        """Whether each word is kept: bool (n,). Punctuation has no letter and no digit of any script."""
        kept = (word in self.words or (self.punctuation and not any(map(str.isalnum, word))) for word in words)
        return np.fromiter(kept, bool, len(words))

    def terms(self, index: Index) -> np.ndarray:
        """Whether each term of an index is kept: bool (V,)."""
        return self.among([*index.terms]) if self else np.zeros(index.n_terms, dtype=bool)

    def rows(self, index: Index) -> np.ndarray:
        """int64, ascending: the documents of an index without a word that may be replaced, blank ones among them."""
        if not self:
            return index.word_ids.empty_rows()
        words = index.word_ids
        n_others = np.searchsorted(np.flatnonzero(~self.terms(index)[words.values]), words.indptr)  # before each row
        return np.flatnonzero(n_others[1:] == n_others[:-1])


def read_words(source: str | Path | Iterable[str]) -> frozenset[str]:
    """The words of `source`: a file with a word a line, in UTF-8, or an iterable of str; "" is no file.

    Raises:
        InputError: the file cannot be read, or an item is not one word.
    """
    if isinstance(source, Path) or (isinstance(source, str) and source):
        place, words = (
            f"{source}, line",
            dict(read_lines("keep_words", source, "a file with a word a line, or a list of words")),
        )
    else:
        place, words = "item", dict(enumerate(source, 1))
    for number, word in words.items():
        if not isinstance(word, str) or len(word.split()) != 1:
            raise InputError(
                f"keep_words: {place} {number}: {word!r} is not one word: give words as Index.words has them"
            )
    return frozenset(map(str.strip, words.values()))


def read_lines(setting: str, file: str | Path, what: str) -> list[tuple[int, str]]:
    """The lines of a file in UTF-8 that are not blank, with their numbers, from 1. what: the file should be.

    Raises:
        InputError: the file cannot be read; it names the `setting`.
    """
    try:
        lines = Path(file).read_bytes().decode("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror or error if isinstance(error, OSError) else "not UTF-8"
        raise InputError(f"{setting}: {file}: {reason}: give {what}") from error
    return [(number, line) for number, line in enumerate(lines, 1) if line.strip()]


def scripts_of(words: Sequence[str]) -> np.ndarray:
    """uint8 (n,): 0 for a word of letters with spaces between words, else the number of the script in which it is."""
    matches = (LETTERS.search(word) for word in words)
    return np.array([match.lastindex if match else 0 for match in matches], dtype=np.uint8)


def term_groups(terms: StringTable, fixed: np.ndarray, keeps_script: bool) -> np.ndarray | None:
    """uint8 (V,), the `groups` of a `SamplingConfig`; None if each term may be drawn for any other.

    FIXED where `fixed`, bool (V,), says so; else with `keeps_script` as `scripts_of`, but ANY for terms that no other
    of their script can replace.
    """
    scripts, drawn = np.zeros(len(terms), dtype=np.uint8), np.empty(0, dtype=np.intp)
    if keeps_script and LETTERS.search(terms.utf8.tobytes().decode("utf-8")):
        scripts = scripts_of(terms)
        drawn = np.flatnonzero(np.bincount(scripts[~fixed]) >= 2)
    groups = grouped(scripts, fixed, drawn)
    return None if (groups == ANY).all() else groups


def grouped(scripts: np.ndarray, fixed: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """uint8 (n,), the groups of words: FIXED, bool (n,), or else their script, ANY where it is not one of `drawn`."""
    groups = np.where(np.isin(scripts, drawn), scripts, np.uint8(ANY))
    groups[fixed] = FIXED
    return groups


def kept_probabilities(index: Index, config: SamplingConfig, n_jobs: int | None) -> np.ndarray | None:
    """uint32 (T,), the words of each row with their probabilities (see `fill_weighted`).

    None if memory is short, or the index has more than 2**24 terms. They are mapped from the index's folder, where they
    are written when they are first made: 0.2 s of processor time for a million sentences.
    """
    n_words, free = len(index.word_ids.values), free_memory()
    is_large = free is not None and np.dtype(np.uint32).itemsize * n_words > LARGE_SHARE * free
    if is_large or id_bits(index.n_terms) > MOST_ID_BITS:
        return None
    fixed = xxhash.xxh3_128_hexdigest((np.asarray(config.groups) == FIXED).tobytes())
    settings = (config.beta, config.random_select, config.released, fixed)  # all that change a probability
    name = f"probabilities-{VERSION}-{xxhash.xxh3_128_hexdigest(repr(settings).encode())}"

    def fits(kept: Arrays) -> bool:
        """Whether the lower bits are the index's words, in parts that fit the cache: 20 ms for 24 million words."""
        mask, ids, words = np.uint32((1 << id_bits(index.n_terms)) - 1), index.word_ids.values, kept["words"]
        parts = (slice(start, start + WORDS_A_CHECK) for start in range(0, n_words, WORDS_A_CHECK))
        return (
            words.dtype == np.uint32
            and len(words) == n_words
            and all(np.array_equal(words[part] & mask, ids[part]) for part in parts)
        )

    return index.cached(name, VERSION, lambda: {"words": weighted_words(index, config, n_jobs)}, fits)["words"]


def weighted_words(index: Index, config: SamplingConfig, n_jobs: int | None) -> np.ndarray:
    """All words of an index with their probabilities: uint32 (T,)."""
    values, indptr = index.word_ids.values, index.word_ids.indptr
    out = np.empty(len(values), dtype=np.uint32)

    def fill(start: int) -> None:
        bounds = indptr[start : start + ROWS_A_TASK + 1]
        part = slice(bounds[0], bounds[-1])
        words = RaggedArray(values[part], bounds - bounds[0])
        first, _, p = replacement_probabilities(config, words)
        fill_weighted(config, words.values, words.indptr, first, p, out[part])

    list(map_threads(fill, range(0, index.n_documents, ROWS_A_TASK), n_jobs))
    return out
