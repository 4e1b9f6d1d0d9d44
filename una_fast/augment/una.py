"""Sentences -> hard negatives (steps 2 and 3 of the paper), as text or as token ids."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from una_fast._kernels.draws.negatives import UnaRows
from una_fast._kernels.draws.probability import replacement_probabilities
from una_fast.augment.base import KernelAugmentation, RowNumbers, check_arguments
from una_fast.augment.counter_rng import SampleKey
from una_fast.augment.explain import Explanation, explain_words
from una_fast.augment.rows import Rows
from una_fast.augment.settings import KeptWords, grouped, kept_probabilities, make_config, scripts_of
from una_fast.errors import InputError, counted, integer, suggests_keywords, warn_user
from una_fast.index.index import Index

if TYPE_CHECKING:
    import torch


class Augmenter(KernelAugmentation):
    """Makes negatives of sentences by replacing important words with words of similar importance.

    Every draw is a function of only (seed, epoch, sample index, row, position, number). So the negatives of a row are
    the same in any batch and order, and with any number of threads, processes or ranks. For text that is not in the
    index, the hash of its words replaces the row, so equal sentences have equal negatives within an epoch.

    Args:
        index: the corpus that determines how important each term is.
        beta: mean replacement probability, in [0, 1] (equation 3).
        radius: how many ranks above and below a term its candidates are: a number, or a share of the V terms of the
            index such as "1%"; None is 1% of V, at most 4,000 (the paper takes 4,000 of 451,691 terms). The attribute
            `radius` is the resulting number.
        seed: any integer.
        select: "tfidf" (step 2), or "random" (ablation): every term with probability `beta`, or one term if that
            chooses none. So a negative always differs from its sentence, unless all its words are kept.
        replace: "tfidf" (step 3), or "random": uniform over the vocabulary (ablation).
        variant: "paper", or "released" for the probabilities and draws of the authors' code.
        tokenizer: a Hugging Face tokenizer; only `negative_ids` needs it.
        surface: "kept": the sentence as written, except that a replacement takes the case of the word that it replaces;
            or "paper": the words as the index spells them, joined by spaces, with quotation marks as NLTK's `` and '',
            as in the paper and its code. variant="released" always uses "paper".
        keep_punctuation: False, as in the paper: punctuation is replaced and drawn like any word. True: words without a
            letter or digit are neither replaced nor drawn. Equations 3 and 4 are applied to the other words of the
            sentence: minimum, mean and highest score leave punctuation out. Scores (equation 2) and windows do not
            change. A window without a candidate is widened by one rank on both sides until it has one. A sentence of
            only punctuation is not changed. Not with variant="released".
        keep_words: names, product numbers, stop words: a file with one word per line, or an iterable of words, spelled
            as in the index (in any case if it lower-cases). They are kept like punctuation with `keep_punctuation`.
        same_script: True: with surface="kept", a word of a script without spaces (Chinese and Japanese, Thai, Lao,
            Burmese, Khmer) is replaced only by words of that script, which replace no other words; a window without
            one is widened as above. False: a replacement may be of any script, and both surfaces have the same draws.
        keep_probabilities: True: with a tokenizer, the replacement probability of each word of the index is stored in
            the index's folder, 4 bytes per word, and memory-mapped by all processes, so that `negative_ids` need not
            compute it; unless that takes more than half of the free memory. False: each call computes it. The draws
            are the same.
        n_jobs: threads for large batches; all cores that this process may use if None.

    Raises:
        InputError: a setting out of its range, a file of `keep_words` that cannot be read, or fewer than two terms
            that are not kept.

    Warns:
        InputWarning: the windows of a given `radius` have more than a tenth of the terms.
    """

    training_options = (
        "beta", "radius", "select", "replace", "variant", "surface", "keep_punctuation", "keep_words", "same_script",
    )  # fmt: skip

    @suggests_keywords
    def __init__(
        self,
        index: Index,
        beta: float = 0.3,
        radius: int | float | str | None = None,
        seed: int = 42,
        select: Literal["tfidf", "random"] = "tfidf",
        replace: Literal["tfidf", "random"] = "tfidf",
        variant: Literal["paper", "released"] = "paper",
        tokenizer: Any = None,
        *,
        surface: Literal["kept", "paper"] = "kept",
        keep_punctuation: bool = False,
        keep_words: str | Path | Iterable[str] = (),
        same_script: bool = True,
        keep_probabilities: bool = True,
        n_jobs: int | None = None,
    ):
        law: dict[str, Any] = {"beta": beta, "radius": radius, "seed": seed, "select": select, "replace": replace}
        law |= {"variant": variant, "same_script": same_script}
        given: dict[str, Any] = {"surface": surface, "keep_punctuation": keep_punctuation}
        given |= {"keep_probabilities": keep_probabilities}
        check_arguments(Augmenter.__init__, index, law | given)
        if variant == "released":
            given["surface"] = "paper"
        kept = KeptWords.of(keep_punctuation, keep_words, index.lowercase)
        config = make_config(index, kept, given["surface"], **law)
        unseen_groups = partial(groups_of_unseen, kept, np.unique(config.groups))
        is_mapped = keep_probabilities and tokenizer is not None

        def make_kernel(source: Rows) -> UnaRows:
            of_index = is_mapped and source.keys is None
            weighted = kept_probabilities(index, config, n_jobs) if of_index else None
            return UnaRows(source.words, config, weighted, source.keys, unseen_groups(source))

        given |= {"keep_words": kept.words, "tokenizer": tokenizer, "n_jobs": n_jobs}
        super().__init__(index, make_kernel, **law, **given)
        self.kept_words, self._config, self._unseen_groups = kept, config, unseen_groups
        self._warn_of_divided_words()

    def _warn_of_divided_words(self) -> None:
        unknown = (word for word in sorted(self.kept_words.words) if word not in self.index.term_ids)
        divided = [(word, words) for word in unknown if (words := self._split.words(word)) != [word]]
        if divided:
            word, words = divided[0]
            found = f"{counted(len(divided), 'word')} not found: this index splits {word!r} into {words}"
            warn_user(f"keep_words: {found}: list those words instead")

    def negatives(self, rows: RowNumbers, epoch: int = 0, *, sample_index: int = 0) -> list[str]:
        """Make the negative of each document in `rows`, integers (B,): another name of `texts`."""
        return self.texts(rows, epoch, sample_index=sample_index)

    def negative_ids(
        self,
        rows: RowNumbers,
        epoch: int = 0,
        max_length: int = 32,
        out: dict[str, torch.Tensor] | None = None,
        *,
        sample_index: int = 0,
    ) -> dict[str, torch.Tensor]:
        """Make the token ids of the negatives of `rows`: another name of `token_ids`."""
        return self.token_ids(rows, epoch, max_length, out, sample_index=sample_index)

    @property
    def radius(self) -> int:
        """The setting `radius` as a number of ranks on either side of a term."""
        return self._config.radius

    def replacement_probabilities(self, sentence: str) -> tuple[list[str], np.ndarray]:
        """Return the words of `sentence` and the probability that each is replaced: float64 (n,), equations 3 and 4."""
        source = self._read([sentence])
        return source.strings(source.words.values), self._weigh(source)[2]

    def window(self, term: str | int) -> tuple[int, int]:
        """Return (start, stop): the candidates of `term`, including itself, have the ids ``start .. stop - 1``.

        Raises:
            InputError: it is not a term of the index (`explain` shows the window of an unseen word in its sentence).
        """
        term_id = self.index.term_ids.get(term, -1) if isinstance(term, str) else integer("term", term)
        if not 0 <= term_id < self.index.n_terms:
            raise InputError(f"{term!r} is not a term of the index, which has {self.index.n_terms:,}")
        return self._config.window(term_id)

    def explain(self, sentence: str, epoch: int = 0, *, sample_index: int = 0) -> Explanation:
        """Explain why each word of `augment([sentence], epoch)` was replaced or kept; prints as a table."""
        source, row, key = self._read([sentence]), np.zeros(1, dtype=np.int64), SampleKey(epoch, sample_index)
        drawn = self._draw(source, row, key)
        return Explanation(explain_words(self, source, drawn.values, key), *self._surface.texts(source, row, drawn))

    def _shown_settings(self) -> dict[str, Any]:
        n_kept = len(self.kept_words.words)
        return {**super()._shown_settings(), "radius": self.radius, "keep_words": f"{n_kept} words" if n_kept else ()}

    def _weigh(self, source: Rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return of each word the first place of its term, int32 (T,), its tf-idf and its p, both float64 (T,)."""
        return replacement_probabilities(self._config, source.words, self._unseen_groups(source))


def groups_of_unseen(kept: KeptWords, drawn: np.ndarray, source: Rows) -> np.ndarray:
    """Return the group of each unseen word of `source`, uint8: as in `term_groups`, or ANY if it is not in `drawn`."""
    words = [*source.unseen]
    return grouped(scripts_of(words), kept.among(words), drawn)
