"""Sentences -> hard negatives (steps 2 and 3 of the paper), as text or as token ids."""

from __future__ import annotations

import dataclasses
import operator
import warnings
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from una_fast._kernels.draws.negatives import Negatives, NegativesWorkspace
from una_fast._kernels.draws.probability import replacement_probabilities
from una_fast._kernels.draws.replace import replace_terms
from una_fast._kernels.draws.rows import RowKernel, Workspace
from una_fast._kernels.ids.emit import TermTokens
from una_fast.arrays import ID, SCORE, Ragged, StringTable
from una_fast.augment.draw_set import DrawSet
from una_fast.augment.explain import Explanation, Weights, explain_words
from una_fast.augment.kept_ids import KeptIds
from una_fast.augment.kept_text import KeptTexts
from una_fast.augment.kernel_augmentation import KernelAugmentation
from una_fast.augment.punctuation import is_punctuation
from una_fast.augment.settings import check_choice, make_law
from una_fast.augment.spelling import spell
from una_fast.augment.surface import Spellings, keep_surface, lower_surface
from una_fast.augment.text_rows import TextRows
from una_fast.augment.thresholds import kept_thresholds
from una_fast.errors import InputError, InputWarning
from una_fast.index.index import Index

if TYPE_CHECKING:
    import torch


class Augmenter(KernelAugmentation):
    """Makes negatives of sentences by replacing important words with words of like importance.

    Every draw is a function of (seed, epoch, draw set, row, position, number) alone: the negatives of a row are the
    same in any batch and order, and for any number of threads, processes or ranks. For text that is not in the index
    the hash of its words takes the place of the row, so equal sentences have equal negatives within an epoch.

    Args:
        index: the corpus that says how important each term is.
        beta: mean replacement probability, in [0, 1] (equation 3).
        radius: how far around a term its candidates reach. With window="rank": a number of ranks on either side, or a
            share of the V terms of the index such as "1%"; None is 1 % of V, at most 4,000 (the paper takes 4,000 of
            451,691 terms). With window="score": a distance in highest tf-idf, above 0. The attribute `radius` holds the
            resulting number.
        seed: any integer.
        select: "tfidf" (step 2), or "random": every term with probability `beta`, none for certain (ablation).
        replace: "tfidf" (step 3), or "random": uniform over the vocabulary (ablation).
        variant: "paper", or "released" for the probabilities and draws of the authors' code.
        tokenizer: a Hugging Face fast tokenizer; only `negative_ids` needs it.
        window: the unit of `radius`, "rank" or "score".
        surface: "lower": the words as the index has them, joined by spaces, and quotation marks as they are written (a
            drawn one is '"'); "paper": quotation marks too as the index has them, NLTK's `` and '', as in the paper and
            its code, so "lower" is the same with variant="released"; or "kept": the sentence as it is written, except
            for replaced words, which take the case of the word that they replace. The draws are the same.
        keep_punctuation: False, as in the paper: punctuation is replaced and drawn like any word. True: words without a
            letter or digit are neither replaced nor drawn. Their probability is 0, and equations 3 and 4 are applied to
            the other words of the sentence: minimum, mean and highest score are taken over those alone. The scores
            (equation 2) and the windows stay as they are; a window without any other word is widened, rank by rank on
            either side, until it holds one. A sentence of punctuation alone stays as it is. Not with
            variant="released".
        keep_probabilities: True: with a tokenizer, the replacement probability of each word of the index is kept beside
            the index, 4 bytes a word, mapped by all processes, so that `negative_ids` need not compute it; not where
            that takes more than half of the free memory. False: it is computed in each call. The draws are the same.
        n_jobs: threads for large batches; all cores this process may use if None.

    Raises:
        InputError: a setting out of its range, or a vocabulary of one term, for which there is no replacement; with
            `keep_punctuation`, of one term that has a letter or digit.

    Warns:
        InputWarning: a `radius` was given whose windows hold more than a tenth of the terms, or surface="lower" and a
            tokenizer that tells capital letters from small ones.

    """

    def __init__(
        self,
        index: Index,
        beta: float = 0.5,
        radius: int | float | str | None = None,
        seed: int = 42,
        select: Literal["tfidf", "random"] = "tfidf",
        replace: Literal["tfidf", "random"] = "tfidf",
        variant: Literal["paper", "released"] = "paper",
        tokenizer: Any = None,
        *,
        window: Literal["rank", "score"] = "rank",
        surface: Literal["lower", "kept", "paper"] = "lower",
        keep_punctuation: bool = False,
        keep_probabilities: bool = True,
        n_jobs: int | None = None,
    ):
        check_choice("surface", surface)
        law: dict[str, Any] = {
            "beta": beta,
            "radius": radius,
            "seed": seed,
            "select": select,
            "replace": replace,
            "variant": variant,
            "window": window,
            "keep_punctuation": keep_punctuation,
        }
        self._law, self.keeps_punctuation = make_law(index, **law), keep_punctuation
        self._keeps = surface == "kept"
        self._spellings = Spellings(index) if self._keeps or (surface == "lower" and variant == "paper") else None
        self._keeps_probabilities = bool(keep_probabilities)
        settings = {**law, "surface": surface, "keep_probabilities": keep_probabilities}
        super().__init__(index, tokenizer, n_jobs, settings)
        self._kept: KeptIds | None = None
        self._kept_texts: KeptTexts | None = None
        if self._keeps and self.tokens is not None and self.tokens.by_word:
            self._kept = KeptIds(index, self.tokens, self._strings, self._n_jobs)
        lower = self._spellings is not None and not self._keeps and index.lowercase
        if lower and self.tokens is not None and self.tokens.cased:
            warnings.warn(
                'tokenizer: it tells capital letters from small ones, and with surface="lower" negatives have small '
                'letters alone, which gives them away: give surface="kept", or an uncased tokenizer',
                InputWarning,
                stacklevel=2,
            )

    # names of UNA for two methods of every augmentation
    negatives = KernelAugmentation.texts
    negative_ids = KernelAugmentation.token_ids

    @property
    def radius(self) -> int | float:
        """The setting `radius` as a number: of ranks on either side of a term, or with window="score" a distance."""
        return self._law.radius if self._law.by_score else int(self._law.radius)

    def replacement_probabilities(self, sentence: str) -> tuple[list[str], np.ndarray]:
        """The words of `sentence` and the probability that each is replaced: float64 (n,), equations 3 and 4."""
        text = self._reader.read([sentence])
        words = [text.word(term, self.index.terms) for term in text.terms.values.tolist()]
        return words, self._weigh(text).p

    def window(self, term: str | int) -> tuple[int, int]:
        """(start, stop): the ids of the candidates of `term`, itself among them, are ``start .. stop - 1``.

        Raises:
            InputError: not a term of the index (`explain` shows the window of an unseen word in its sentence).

        """
        term_id = self.index.term_ids.get(term, -1) if isinstance(term, str) else operator.index(term)
        if not 0 <= term_id < self.index.n_terms:
            raise InputError(f"{term!r} is not a term of the index, which has {self.index.n_terms:,}")
        return self._law.window(term_id)

    def explain(self, sentence: str, epoch: int = 0, *, draw_set: int = 0) -> Explanation:
        """Why each word of `augment([sentence], epoch)` was replaced or kept; prints as a table."""
        text, draws = self._reader.read([sentence]), DrawSet(epoch, draw_set)
        weights = self._weigh(text)
        new = self._replace(text, weights, draws)
        explanation = explain_words(self.index, self._law, text, weights, new, draws)
        (negative,) = self._spell_text(text, Ragged(new, text.terms.indptr))
        return dataclasses.replace(explanation, negative=negative)

    def _shown_settings(self) -> dict[str, Any]:
        return {**super()._shown_settings(), "radius": self.radius}

    def _make_kernel(self) -> RowKernel:
        tokens, thresholds = self._term_tokens(), None
        if self._keeps_probabilities and self.tokens is not None and self.tokens.by_word:
            thresholds = kept_thresholds(self.index, self._law, self._n_jobs)
        return Negatives(self.index.word_ids, self._law, tokens, thresholds)

    def _term_tokens(self) -> TermTokens | None:
        if self.tokens is None or self._spellings is None:
            return super()._term_tokens()
        if self._keeps and self.tokens.by_word:
            return None  # `KeptIds` writes the ids
        terms, first_terms, irregular = self.tokens.with_terms(self._spellings.extra)
        order = self._spellings.order
        self._irregular = np.flatnonzero(np.isin(order, irregular)).astype(ID)
        self._by_text = self._spellings.by_text
        spelled = terms.take(order)
        first_spelled = spelled if first_terms is terms else first_terms.take(order)
        return TermTokens(spelled, first_spelled, self.tokens.frame, self._irregular)

    def _fill(self, rows: np.ndarray, draws: DrawSet, out: dict[str, torch.Tensor]) -> None:
        kept, tokens = self._kept, self.tokens
        if kept is None or tokens is None:
            super()._fill(rows, draws, out)
            return
        input_ids, attention_mask = out["input_ids"].numpy(), out["attention_mask"].numpy()

        def fill(part: slice) -> None:
            drawn = self._draw_rows(rows[part], draws)
            left = kept.write(rows[part], drawn, input_ids[part], attention_mask[part])
            texts = self._spell_rows(rows[part][left], drawn.take(left)) if len(left) else []
            tokens.write_texts(texts, left + (part.start or 0), out)

        self._threads.run(fill, len(rows))

    def _make_workspace(self) -> Workspace:
        return NegativesWorkspace(self._longest_row)

    def _draw_text(self, text: TextRows, draws: DrawSet) -> Ragged:
        return Ragged(self._replace(text, self._weigh(text), draws), text.terms.indptr)

    @property
    def _strings(self) -> StringTable:
        return self.index.terms if self._spellings is None else self._spellings.strings

    def _spell_rows(self, rows: np.ndarray, drawn: Ragged) -> list[str]:
        if self._keeps:
            if self._kept_texts is None:
                self._kept_texts = KeptTexts(self.index, self._strings)
            found = zip(self._kept_texts.spell(rows, drawn), rows.tolist(), strict=True)
            return [self._write_row(row, drawn[i]) if one is None else one for i, (one, row) in enumerate(found)]
        texts = spell(drawn, self._strings)
        if self._spellings is not None:
            for i in np.flatnonzero(np.isin(rows, self._spellings.by_text)).tolist():
                texts[i] = self._write_row(int(rows[i]), drawn[i])
        return texts

    def _spell_text(self, text: TextRows, drawn: Ragged) -> list[str]:
        if self._keeps:
            return [self._write_text(text, i, drawn[i]) for i in range(len(drawn))]
        if self._spellings is None:
            return spell(drawn, self._strings, text.unseen)
        texts = spell(drawn, self._strings, self._spellings.respell(text.unseen))
        for i, sentence in enumerate(text.texts):
            if any(mark in sentence for mark in self._spellings.marks):
                texts[i] = self._write_text(text, i, drawn[i])
        return texts

    def _write_row(self, row: int, new: np.ndarray) -> str:
        """The negative of a document, with the ids `new`, int32 (n,), written from its text."""
        old = self.index.word_ids[row]
        return self._write(self.index.sentence(row), [self.index.terms[i] for i in old.tolist()], old, new)

    def _write_text(self, text: TextRows, i: int, new: np.ndarray) -> str:
        """As `_write_row`, for row i of `text`."""
        old = text.terms[i]
        words = [text.word(term, self.index.terms) for term in old.tolist()]
        return self._write(text.texts[i].decode("utf-8"), words, old, new)

    def _write(self, sentence: str, words: list[str], old: np.ndarray, new: np.ndarray) -> str:
        """`sentence` with its `words`, whose ids are `old`, replaced where the ids `new` differ."""
        terms, write = self.index.terms, keep_surface if self._keeps else lower_surface
        drawn = [None if i == j else terms[j] for i, j in zip(old.tolist(), new.tolist(), strict=True)]
        return write(sentence, words, drawn, self.index.lowercase)

    def _weigh(self, text: TextRows) -> Weights:
        terms, fixed = text.terms, self._fixed_unseen(text)
        first = np.empty_like(terms.values)
        z, p = np.empty((2, len(terms.values)), dtype=SCORE)
        replacement_probabilities(self._law, terms.values, terms.indptr, first, z, p, fixed)
        return Weights(first, z, p)

    def _fixed_unseen(self, text: TextRows) -> np.ndarray:
        """uint8: 1 for each unseen word of `text` that is never replaced."""
        n = len(text.unseen)
        return (is_punctuation(list(text.unseen)) if self._law.fixes else np.zeros(n, dtype=bool)).astype(np.uint8)

    def _replace(self, text: TextRows, weights: Weights, draws: DrawSet) -> np.ndarray:
        """int32 (T,): the ids of the negatives, one for each word."""
        out = np.empty(len(text.terms.values), dtype=ID)
        first, z, p = weights.first, weights.z, weights.p
        terms = text.terms
        replace_terms(self._law, text.keys, draws.epoch, terms.values, terms.indptr, first, z, p, out, draws.number)
        return out
