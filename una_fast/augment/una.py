"""Sentences -> hard negatives (steps 2 and 3 of the paper), as text or as token ids."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from una_fast._kernels.draws.negatives import UnaRows
from una_fast.augment.base import KernelAugmentation, check_choices, check_index
from una_fast.augment.counter_rng import SampleKey
from una_fast.augment.explain import Explanation, explain_words
from una_fast.augment.rows import Rows
from una_fast.augment.settings import KeptWords, Sampler, kept_probabilities
from una_fast.errors import InputError, counted, integer, suggests_keywords, warn_user
from una_fast.index.index import Index
from una_fast.tokens.ids import RowNumbers

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
            index such as "1%"; None means 1% of V, at most 4,000 (the paper uses 4,000 of 451,691 terms). The attribute
            `radius` is the resulting number.
        seed: any integer.
        select: "tfidf" (step 2), or "random" (ablation): every term with probability `beta`, but at least one term.
            So a negative always differs from its sentence, unless all its words are kept.
        replace: "tfidf" (step 3), or "random": uniform over the vocabulary (ablation).
        variant: "paper", or "released": the probabilities and draws of the authors' code.
        tokenizer: a Hugging Face tokenizer; only `negative_ids` needs it.
        surface: "kept": the sentence as written, except that a replacement takes the case of the word that it replaces;
            or "paper": the words as the index spells them, joined by spaces, with quotation marks as NLTK's `` and '',
            as in the paper and its code. variant="released" always uses "paper".
        keep_punctuation: False, as in the paper: punctuation is replaced and drawn like any word. True: words without a
            letter or digit are neither replaced nor drawn, and equations 3 and 4 are applied to the other words. Scores
            (equation 2) and windows do not change, but a window without a candidate is widened by one rank on both
            sides until it has one. A sentence of only punctuation is not changed. Not with variant="released".
        keep_words: names, product numbers, stop words: a file with one word per line, or an iterable of words, spelled
            as in the index (in any case if it lower-cases). They are kept like punctuation with `keep_punctuation`.
        same_script: True: with surface="kept", a word of a script without spaces (Chinese and Japanese, Thai, Lao,
            Burmese, Khmer) is replaced only by words of that script, which replace no other words; a window without
            one is widened as above. False: a replacement may be of any script, and both surfaces have the same draws.
        keep_probabilities: True: with a tokenizer, the replacement probability of each word of the index is stored in
            the index's folder, 4 bytes per word, and memory-mapped by all processes, so that `negative_ids` need not
            compute it. Nothing is stored if that takes more than half of the free memory. The draws do not change.
        n_jobs: threads for large batches; all cores that this process may use if None.

    Raises:
        InputError: a setting is out of range, the file of `keep_words` cannot be read, or fewer than two terms may be
            replaced.

    Warns:
        InputWarning: the windows of a given `radius` contain more than a tenth of the terms.
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
        check_index(index)
        check_choices(Augmenter.__init__, law | given)
        if variant == "released":
            given["surface"] = "paper"
        kept = KeptWords.of(keep_punctuation, keep_words, index.lowercase)
        sampler = Sampler(index, kept, **law | {"same_script": same_script and given["surface"] == "kept"})

        def make_kernel(source: Rows) -> UnaRows:
            is_mapped = keep_probabilities and tokenizer is not None and source.keys is None
            return sampler.kernel(source, kept_probabilities(index, sampler.config, n_jobs) if is_mapped else None)

        given |= {"keep_words": kept.words, "tokenizer": tokenizer, "n_jobs": n_jobs}
        super().__init__(index, make_kernel, **law, **given)
        self.kept_words, self._sampler = kept, sampler
        self._warn_of_divided_words()

    def _warn_of_divided_words(self) -> None:
        unknown = (word for word in sorted(self.kept_words.words) if word not in self.index.term_ids)
        divided = [(word, words) for word in unknown if (words := self._split.words(word)) != [word]]
        if divided:
            word, words = divided[0]
            found = f"{counted(len(divided), 'word')} not found: this index splits {word!r} into {words}"
            warn_user(f"keep_words: {found}: list those words instead")

    def negatives(self, rows: RowNumbers, epoch: int = 0, *, sample_index: int = 0) -> list[str]:
        """Make the negative of each document in `rows`, integers (B,): an alias of `texts`."""
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
        """Make the token ids of the negatives of `rows`: an alias of `token_ids`."""
        return self.token_ids(rows, epoch, max_length, out, sample_index=sample_index)

    @property
    def radius(self) -> int:
        """The resolved `radius`: the number of ranks on either side of a term."""
        return self._sampler.config.radius

    def replacement_probabilities(self, sentence: str) -> tuple[list[str], np.ndarray]:
        """Return the words of `sentence` and the probability that each is replaced: float64 (n,), equations 3 and 4."""
        source = self._read([sentence])
        return source.strings(source.words.values), self._sampler.weigh(source)[2]

    def window(self, term: str | int) -> tuple[int, int]:
        """Return (start, stop): the candidates of `term`, including itself, have the ids ``start .. stop - 1``.

        Raises:
            InputError: `term` is not in the index (`explain` shows the window of an unseen word in its sentence).
        """
        term_id = self.index.term_ids.get(term, -1) if isinstance(term, str) else integer("term", term)
        if not 0 <= term_id < self.index.n_terms:
            raise InputError(f"{term!r} is not a term of the index, which has {self.index.n_terms:,}")
        return self._sampler.config.window(term_id)

    def explain(self, sentence: str, epoch: int = 0, *, sample_index: int = 0) -> Explanation:
        """Explain why each word of `augment([sentence], epoch)` was replaced or kept; prints as a table."""
        source, row, key = self._read([sentence]), np.zeros(1, dtype=np.int64), SampleKey(epoch, sample_index)
        drawn = self._draw(source, row, key)
        words = explain_words(self.index, self._sampler, source, drawn.values, key)
        return Explanation(words, *self._surface.texts(source, row, drawn))

    def _shown_settings(self) -> dict[str, Any]:
        n_kept = len(self.kept_words.words)
        return {**super()._shown_settings(), "radius": self.radius, "keep_words": f"{n_kept} words" if n_kept else ()}
