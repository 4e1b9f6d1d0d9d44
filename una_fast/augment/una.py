"""Makes hard negatives of sentences (steps 2 and 3 of the paper), as text or as token ids.

`Augmenter.negative_ids` calls `TextAugmentation.token_ids` (base.py). That method passes the row numbers to a
`WriteIds` function, which the surface's `id_writer` made (surface.py). The `WriteIds` function draws the new words with
`UnaRows` (_kernels/draws/negatives.pyx), and writes the token ids with _kernels/ids/rewrite.pyx for surface="kept" or
_kernels/ids/emit.pyx for surface="paper". The tokenizer encodes only the few texts whose ids depend on the whole text,
or all texts if `TokenIds.by_word` is False (`TokenIds.write_texts` in tokens/ids.py).
"""

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
from una_fast.augment.settings import KeptWords, Sampler, stored_probabilities
from una_fast.errors import InputError, counted, integer, suggests_keywords, warn_user
from una_fast.index.index import Index
from una_fast.tokens.ids import RowNumbers

if TYPE_CHECKING:
    import torch


class Augmenter(KernelAugmentation):
    """Makes negatives of sentences by replacing important words with words of similar importance.

    Every random number is a function of only the seed, the epoch, the sample index, the row number, the word's position
    and a counter at this position. So the negatives of a row are the same in any batch and order, and with any number
    of threads, processes or ranks. For text that is not in the index, a hash of its words replaces the row number, so
    equal sentences have equal negatives within an epoch.

    Args:
        index: the corpus that determines how important each term is.
        beta: mean replacement probability, in [0, 1] (equation 3).
        radius: how many ranks a replacement can be above or below the term that it replaces: a number of ranks, or a
            share of the number of terms such as "1%". None means 1%, but at most 4,000 ranks. The paper uses 4,000
            ranks for 451,691 terms.
        seed: any integer.
        select: which terms are replaced. "tfidf" follows step 2 of the paper. "random" (ablation) replaces every term
            with probability `beta`, and at least one term.
        replace: which replacements are drawn. "tfidf" follows step 3 of the paper. "random" (ablation) draws uniformly
            from the vocabulary.
        variant: "paper" follows the paper. "released" has the probabilities and draws of the authors' code.
        tokenizer: a Hugging Face tokenizer; only `negative_ids` needs it.
        surface: how a negative is written. "kept" is the original sentence with some words replaced, and a replacement
            gets the case of the old word. "paper" is the words as the index spells them, joined with spaces, with
            NLTK's `` and '' for quotation marks. variant="released" always uses "paper".
        keep_punctuation: if True, words without a letter or digit are neither replaced nor used as replacements.
            Equations 3 and 4 are then applied to the other words, and a window without a candidate is widened until it
            contains one. A sentence that is only punctuation is not changed. Not possible with variant="released".
        keep_words: other words that are neither replaced nor used as replacements, such as names, product numbers or
            stop words: a file with one word per line, or an iterable of words. Spell them as the index does; case is
            ignored if the index lower-cases words.
        same_script: whether words of a script without spaces (Chinese and Japanese, Thai, Lao, Burmese, Khmer) are
            replaced only by words of the same script, and replace only words of the same script. This has no effect
            with surface="paper". If False, both surfaces have the same draws.
        keep_probabilities: whether to store the replacement probability of each word, if there is a tokenizer. This
            makes `negative_ids` faster and does not change the draws. It takes 4 bytes per word in the index's folder,
            which all processes memory-map. Nothing is stored if these bytes exceed half of the free memory.
        n_jobs: threads for large batches; all cores that this process may use if None.

    Raises:
        InputError: a setting is out of range, the file of `keep_words` cannot be read, or fewer than two terms are
            replaceable.

    Warns:
        InputWarning: a window of the given `radius` contains more than a tenth of the terms, or the index splits some
            of `keep_words`.
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
        sampling: dict[str, Any] = {"beta": beta, "radius": radius, "seed": seed}
        sampling |= {"select": select, "replace": replace, "variant": variant}
        others: dict[str, Any] = {"surface": surface, "keep_punctuation": keep_punctuation, "same_script": same_script}
        others |= {"keep_probabilities": keep_probabilities}
        check_index(index)
        check_choices(Augmenter.__init__, sampling | others)
        if variant == "released":
            others["surface"] = "paper"
        kept = KeptWords.of(keep_punctuation, keep_words, index.lowercase)
        sampler = Sampler(index, kept, **sampling, same_script=same_script and others["surface"] == "kept")

        def make_kernel(source: Rows) -> UnaRows:
            is_stored = keep_probabilities and tokenizer is not None and source.hashes is None
            return sampler.kernel(source, stored_probabilities(index, sampler.config, n_jobs) if is_stored else None)

        others |= {"keep_words": kept.words, "tokenizer": tokenizer, "n_jobs": n_jobs}
        super().__init__(index, make_kernel, **sampling, **others)
        self.kept_words, self._sampler = kept, sampler
        self._warn_of_divided_words()

    def _warn_of_divided_words(self) -> None:
        """Warn if the index splits some of `keep_words`."""
        unknown = (word for word in sorted(self.kept_words.words) if word not in self.index.term_ids)
        divided = [(word, words) for word in unknown if (words := self._split.words(word)) != [word]]
        if divided:
            word, words = divided[0]
            found = f"{counted(len(divided), 'word')} not found: this index splits {word!r} into {words}"
            warn_user(f"keep_words: {found}: list those words instead")

    def negatives(self, rows: RowNumbers, epoch: int = 0, *, sample_index: int = 0) -> list[str]:
        """Return the negative of each document in `rows`, row numbers of the index. This is the same as `texts`."""
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
        """Return the token ids of the negatives of `rows`. This is the same as `token_ids`."""
        return self.token_ids(rows, epoch, max_length, out, sample_index=sample_index)

    @property
    def radius(self) -> int:
        """The argument `radius` as a number of ranks, even if it was given as a share or as None."""
        return self._sampler.config.radius

    def replacement_probabilities(self, sentence: str) -> tuple[list[str], np.ndarray]:
        """Return the words of `sentence`, and the replacement probability of each (equations 3 and 4): float64."""
        source = self._read([sentence])
        return source.strings(source.words.values), self._sampler.probabilities(source)[2]

    def window(self, term: str | int) -> tuple[int, int]:
        """Return (start, stop): the window of `term` contains the terms with the ids ``start .. stop - 1``.

        Replacements of `term` are drawn from this window. It includes `term` itself.

        Args:
            term: a term, or the id of one.

        Raises:
            InputError: `term` is not in the index (`explain` shows the window of an unseen word in its sentence).
        """
        term_id = self.index.term_ids.get(term, -1) if isinstance(term, str) else integer("term", term)
        if not 0 <= term_id < self.index.n_terms:
            raise InputError(
                f"term={term!r}: must be a term of the index, or an id from 0 to {self.index.n_terms - 1:,}"
            )
        return self._sampler.config.window(term_id)

    def explain(self, sentence: str, epoch: int = 0, *, sample_index: int = 0) -> Explanation:
        """Explain why `augment([sentence], epoch)` replaced or kept each word. The result prints as a table."""
        source, row, key = self._read([sentence]), np.zeros(1, dtype=np.int64), SampleKey(epoch, sample_index)
        drawn = self._draw(source, row, key)
        words = explain_words(self.index, self._sampler, source, drawn.values, key)
        return Explanation(words, *self._surface.texts(source, row, drawn))

    def _shown_settings(self) -> dict[str, Any]:
        n_kept = len(self.kept_words.words)
        return {**super()._shown_settings(), "radius": self.radius, "keep_words": f"{n_kept} words" if n_kept else ()}
