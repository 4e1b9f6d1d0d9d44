"""Makes hard negatives of sentences (steps 2 and 3 of the paper), as text or as token ids.

`token_ids` calls the `WriteIds` function of the surface (surface.py). The `WriteIds` function calls
_kernels/draws/negatives.pyx, which draws new words, and _kernels/ids, which writes the stored token ids of the words.
The tokenizer encodes only the texts that cannot be assembled from stored token ids.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import xxhash

from una_fast._kernels.draws.negatives import UnaRows
from una_fast._kernels.draws.probability import FIXED, SamplingConfig, id_bits, pack_words, replacement_probabilities
from una_fast.arrays import RaggedArray
from una_fast.augment.base import KernelAugmentation, check_choices, check_index
from una_fast.augment.counter_rng import SampleKey
from una_fast.augment.explain import NegativeExplanation, explain_words
from una_fast.augment.kept_words import KeptWords
from una_fast.augment.sampler import Sampler
from una_fast.augment.split_sentences import SplitSentences
from una_fast.errors import InputError, counted, integer, suggests_keywords, warn_user
from una_fast.index.index import Index
from una_fast.options import Draws, names_of
from una_fast.parallel import free_memory, map_threads
from una_fast.storage.array_folder import Arrays

VERSION = 4  # of the layout of packed words
MOST_ID_BITS = 24  # leaves 7 bits for the probability: too few to decide about every word in a fifth of the sentences
ROWS_A_TASK = 2**13  # their probabilities, 4 MB, fit the second-level cache
WORDS_A_CHECK = 2**20  # their ids, 4 MB, fit it too
LARGE_SHARE = 0.5  # of the free memory: a larger table would evict other arrays from the page cache


class Augmenter(KernelAugmentation):
    """Makes negatives of sentences by replacing important words with words of similar importance.

    Every random number depends only on the seed, the epoch, the sample index, the row number, the word's position and a
    counter. So the negatives of a row are the same in any batch and order, with any number of threads, processes or
    ranks. For text that is not in the index, a hash of its words replaces the row number.

    Args:
        index: the corpus that determines how important each term is.
        beta: mean replacement probability, in [0, 1] (equation 3).
        radius: how many ranks a replacement can be above or below the replaced term: a number of ranks, or a share of
            the number of terms such as "1%". None means 1%, but at most 4,000 ranks.
        seed: any integer.
        select: "tfidf" chooses the terms to replace by step 2 of the paper. "random" (ablation) replaces every term
            with probability `beta`, and at least one term.
        replace: "tfidf" draws replacements by step 3 of the paper. "random" (ablation) draws uniformly from the
            vocabulary.
        variant: "paper" follows the paper. "released" has the probabilities and draws of the authors' code.
        tokenizer: a Hugging Face tokenizer; only `token_ids` needs it.
        surface: "kept" preserves the original sentence around the replaced words, and a replacement gets the case of
            the old word. "paper" is the words in the index's spelling, joined with spaces; NLTK spells quotation marks
            as `` and ''. None means "kept", or "paper" with variant="released", which has no other.
        keep_punctuation: whether words without a letter or digit are neither replaced nor used as replacements.
            Equations 3 and 4 then apply to the other words, and a window without a candidate is widened until it
            contains one. Not possible with variant="released".
        keep_words: other words that are neither replaced nor used as replacements, such as product numbers: a file with
            one word per line, or an iterable of words. Case is ignored if the index lower-cases words.
        same_script: whether words of a script without spaces (Chinese and Japanese, Thai, Lao, Burmese, Khmer) are
            replaced only by words of the same script, and other words never by them. It has no effect with
            surface="paper". If False, both surfaces have the same draws.
        keep_probabilities: whether to store replacement probabilities in the index's folder if there is a tokenizer. It
            makes `token_ids` faster and does not change the draws. All processes memory-map the same file, with 4
            bytes for each word of each sentence. Nothing is stored if it would exceed half of the free memory.
        n_jobs: threads for large batches; all cores that this process may use if None.

    Raises:
        InputError: a setting is out of range, the file of `keep_words` cannot be read, or fewer than two terms are
            replaceable.

    Warns:
        InputWarning: a window of the given `radius` contains more than a tenth of the terms, or the index splits some
            of `keep_words`.
    """

    training_options = names_of(Draws)

    @suggests_keywords
    def __init__(
        self,
        index: Index,
        *,
        beta: float = 0.3,
        radius: int | float | str | None = None,
        seed: int = 42,
        select: Literal["tfidf", "random"] = "tfidf",
        replace: Literal["tfidf", "random"] = "tfidf",
        variant: Literal["paper", "released"] = "paper",
        tokenizer: Any = None,
        surface: Literal["kept", "paper"] | None = None,
        keep_punctuation: bool = False,
        keep_words: str | Path | Iterable[str] = (),
        same_script: bool = True,
        keep_probabilities: bool = True,
        n_jobs: int | None = None,
    ):
        check_index(index)
        check_choices(Augmenter.__init__, locals())
        if variant == "released" and surface == "kept":
            raise InputError('surface="kept": the released code joins words with spaces: give variant="paper"')
        surface = "paper" if variant == "released" else surface
        kept = KeptWords.of(keep_punctuation, keep_words, index.lowercase)
        sampling: dict[str, Any] = {"beta": beta, "radius": radius, "seed": seed}
        sampling |= {"select": select, "replace": replace, "variant": variant}
        sampler = Sampler(index, kept, **sampling, same_script=same_script and surface != "paper")

        def make_kernel(source: SplitSentences) -> UnaRows:
            is_stored = keep_probabilities and tokenizer is not None and source.are_documents
            return sampler.kernel(source, stored_probabilities(index, sampler.config, n_jobs) if is_stored else None)

        others: dict[str, Any] = {"surface": surface, "keep_words": kept.words or (), "same_script": same_script}
        others |= {"keep_punctuation": keep_punctuation, "keep_probabilities": keep_probabilities}
        super().__init__(index, make_kernel, **sampling, **others, tokenizer=tokenizer, n_jobs=n_jobs)
        self.kept_words, self._sampler = kept, sampler
        self._warn_of_divided_words()

    def _warn_of_divided_words(self) -> None:
        unknown = (word for word in sorted(self.kept_words.words) if word not in self.index.term_ids)
        divided = [(word, words) for word in unknown if (words := self._split.words(word)) != [word]]
        if divided:
            word, words = divided[0]
            found = f"{counted(len(divided), 'word')} not found: this index splits {word!r} into {words}"
            warn_user(f"keep_words: {found}: list those words instead")

    @property
    def radius(self) -> int:
        """The radius as a number of ranks, even if it was given as a share or as None."""
        return self._sampler.config.radius

    def replacement_probabilities(self, sentence: str) -> tuple[list[str], np.ndarray]:
        """Compute the probability with which each word of a sentence is replaced (equations 3 and 4).

        Args:
            sentence: any text of n words.

        Returns:
            The n words, and their probabilities as float64 (n,).

        Raises:
            InputError: `sentence` is not a str.
        """
        source = self._read([sentence])
        return source.strings(source.words.values), self._sampler.probabilities(source)[2]

    def window(self, term: str | int) -> tuple[int, int]:
        """Return (start, stop): replacements of `term` are drawn from the terms with the ids ``start .. stop - 1``.

        The window includes `term` itself. `explain` shows the window of an unseen word.

        Args:
            term: a term of the index, or its id.

        Raises:
            InputError: `term` is not in the index.
        """
        term_id = self.index.term_ids.get(term, -1) if isinstance(term, str) else integer("term", term)
        if not 0 <= term_id < self.index.n_terms:
            raise InputError(
                f"term={term!r}: must be a term of the index, or an id from 0 to {self.index.n_terms - 1:,}"
            )
        start, stop = self._sampler.config.window(term_id)
        return start, stop

    def explain(self, sentence: str, epoch: int = 0, *, sample_index: int = 0) -> NegativeExplanation:
        """Explain why `augment([sentence], epoch)` replaced or kept each word. The result prints as a table.

        Args:
            sentence: any text.
            epoch: as in `augment`.
            sample_index: as in `augment`.

        Returns:
            The negative as `result`, and one `WordExplanation` per word as `words`.

        Raises:
            InputError: `sentence` is not a str, or `epoch` or `sample_index` is out of range.
        """
        source, row, key = self._read([sentence]), np.zeros(1, dtype=np.int64), SampleKey(epoch, sample_index)
        drawn = self._draw(source, row, key)
        words = explain_words(self.index, self._sampler, source, drawn.values, key)
        (result,) = self._surface.texts(source, row, drawn)
        return NegativeExplanation(result, words)


def stored_probabilities(index: Index, config: SamplingConfig, n_jobs: int | None) -> np.ndarray | None:
    """Return the packed words of an index (see `pack_words`), memory-mapped from its folder: uint32 (n_words,).

    The first call computes them, which takes 0.2 s of processor time per million sentences. Returns None if they would
    take too much memory, or if the ids of terms leave too few bits for the probabilities.
    """
    n_words, free = len(index.word_ids.values), free_memory()
    is_large = free is not None and np.dtype(np.uint32).itemsize * n_words > LARGE_SHARE * free
    if is_large or id_bits(index.n_terms) > MOST_ID_BITS:
        return None
    fixed = xxhash.xxh3_128_hexdigest((np.asarray(config.groups) == FIXED).tobytes())
    settings = (config.beta, config.random_select, config.released, fixed)  # everything that changes a probability
    name = f"probabilities-{VERSION}-{xxhash.xxh3_128_hexdigest(repr(settings).encode())}"

    def fits(stored: Arrays) -> bool:
        """Return whether `stored` belongs to `index`, not to a newer index that another process saved in the folder."""
        mask, ids, words = np.uint32((1 << id_bits(index.n_terms)) - 1), index.word_ids.values, stored["words"]
        parts = (slice(start, start + WORDS_A_CHECK) for start in range(0, n_words, WORDS_A_CHECK))
        has_type = words.dtype == np.uint32 and len(words) == n_words
        return has_type and all(np.array_equal(words[part] & mask, ids[part]) for part in parts)

    return index.cached(name, VERSION, lambda: {"words": packed_words(index, config, n_jobs)}, fits)["words"]


def packed_words(index: Index, config: SamplingConfig, n_jobs: int | None) -> np.ndarray:
    """Compute, on several threads, the array that `stored_probabilities` stores."""
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
