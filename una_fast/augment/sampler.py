"""Turns the settings of an `Augmenter` into the kernels that draw its negatives."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np

from una_fast._kernels.draws.negatives import UnaRows
from una_fast._kernels.draws.probability import ANY, FIXED, SamplingConfig, replacement_probabilities
from una_fast.augment.kept_words import KeptWords
from una_fast.augment.split_sentences import SplitSentences
from una_fast.corpus.word_tokenizers import PUNCTUATION, SCRIPTS
from una_fast.errors import InputError, counted, integer, is_number, warn_user
from una_fast.index.index import Index

PAPER_RADIUS = 4000  # ranks, 0.9% of the paper's 451,691 terms
TERMS_PER_RANK = 100  # the default radius is one rank per TERMS_PER_RANK terms, at most PAPER_RADIUS
WIDE = 10  # a window of more than 1 / WIDE of the terms contains words of different importance, so `Sampler` warns

EAST_ASIAN = ("Chinese", "Japanese")  # one group, because a Japanese word may have Chinese characters
LETTER_GROUPS = ["".join(SCRIPTS[name] for name in EAST_ASIAN) + PUNCTUATION]
LETTER_GROUPS += [letters for name, letters in SCRIPTS.items() if name not in EAST_ASIAN]
LETTER = re.compile("|".join(f"([{letters}])" for letters in LETTER_GROUPS))


class Sampler:
    """The settings of an `Augmenter`, checked. The arguments are named as in `Augmenter`.

    A word's group decides what replaces it (see `SamplingConfig`). Kept words have the group FIXED. Any other word
    has the number of its script, or ANY (see `_groups`).
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
        is_kept = kept.terms(index)
        if (n_others := index.n_terms - np.count_nonzero(is_kept)) < 2:
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
        self.kept, self._scripts = kept, np.empty(0, np.intp)
        if same_script and LETTER.search(index.terms.utf8.tobytes().decode("utf-8")):
            self._scripts = np.flatnonzero(np.bincount(scripts_of(index.terms)[~is_kept]) >= 2)
        groups = self._groups(index.terms, is_kept)
        self.config = SamplingConfig(
            index.idf,
            index.max_tfidf,
            n_documents=index.n_documents,
            beta=beta,
            radius=ranks,
            seed=integer("seed", seed) % 2**64,
            released=variant == "released",
            random_select=select == "random",
            random_replace=replace == "random",
            groups=None if (groups == ANY).all() else groups,
        )

    def _groups(self, words: Sequence[str], is_kept: np.ndarray) -> np.ndarray:
        """Return each word's group (FIXED, ANY or the number of its script): uint8 (n_words,).

        Without `same_script`, or if a word's script has fewer than two replaceable terms, the word's group is ANY.
        """
        scripts = scripts_of(words) if len(self._scripts) else np.zeros(len(words), dtype=np.uint8)
        groups = np.where(np.isin(scripts, self._scripts), scripts, np.uint8(ANY))
        groups[is_kept] = FIXED
        return groups

    def unseen_groups(self, source: SplitSentences) -> np.ndarray:
        """Return the group (see `SamplingConfig`) of each unseen word of `source`: uint8 (n_unseen,)."""
        words = [*source.unseen]
        return self._groups(words, self.kept.among(words))

    def kernel(self, source: SplitSentences, packed: np.ndarray | None = None) -> UnaRows:
        """Make the kernel that draws negatives of `source`. packed: the output of `pack_words`, or None."""
        streams = None if source.are_documents else source.hashes
        return UnaRows(source.words, self.config, packed, streams, self.unseen_groups(source))

    def probabilities(self, source: SplitSentences) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the arrays `first`, `z` and `p`, each with one value per word of `source`.

        first: the position in the sentence where the word's term first occurs. z: tf-idf. p: replacement probability.
        """
        first, z, p = replacement_probabilities(self.config, source.words, self.unseen_groups(source))
        return first, z, p


def resolve_radius(radius: float | str | None, n_terms: int) -> int:
    """Convert the `radius` of `Augmenter` to a number of ranks from 1 to `n_terms`. A share is rounded down."""
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


def scripts_of(words: Sequence[str]) -> np.ndarray:
    """Return each word's script as a number: uint8 (n_words,). It is 0 for scripts with spaces between words."""
    matches = (LETTER.search(word) for word in words)
    return np.array([match.lastindex if match else 0 for match in matches], dtype=np.uint8)
