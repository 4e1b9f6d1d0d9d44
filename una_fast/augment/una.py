"""Sentences -> hard negatives (steps 2 and 3 of the paper), as text or as token ids."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from una_fast._kernels.draws.negatives import Negatives, Workspace
from una_fast._kernels.draws.replace import replace_terms
from una_fast._kernels.ids.emit import TermTokens
from una_fast.arrays import ID, Ragged, row_bounds
from una_fast.augment.explain import Explanation, explain_words
from una_fast.augment.settings import checked_epoch, make_law
from una_fast.augment.term_rows import TermRows, read_terms
from una_fast.corpus.word_tokenizers import word_tokenizer
from una_fast.errors import InputError
from una_fast.index.index import Index
from una_fast.parallel import n_cores
from una_fast.tokens.ids import TokenIds, checked_rows, token_tensors

if TYPE_CHECKING:
    import torch

ROWS_A_THREAD = 1024  # below it, handing rows to another thread (50 us) costs more than it saves


class Augmenter:
    """Makes negatives of sentences by replacing important words with words of like importance.

    Every draw is a function of (seed, epoch, row, position, number) alone: the negatives of a row are the same for any
    batch, order, number of threads, processes or ranks. Text that is given rather than indexed takes the hash of its
    words for a row, so equal sentences have equal negatives within an epoch.

    Args:
        index: the corpus that says how important each term is.
        beta: mean replacement probability, in [0, 1] (equation 3).
        radius: how far around a term its candidates reach: ranks on either side (window="rank", an integer of at least
            1), or a distance in highest tf-idf (window="score", above 0).
        seed: any integer.
        select: "tfidf" (step 2), or "random": every term with probability `beta`, none for certain (ablation).
        replace: "tfidf" (step 3), or "random": uniform over the vocabulary (ablation).
        variant: "paper", or "released" for the law of the authors' code.
        tokenizer: a Hugging Face fast tokenizer; only `negative_ids` needs it.
        window: what `radius` counts.
        n_jobs: threads for large batches; all cores this process may use if None.

    Raises:
        InputError: a setting out of its range, or a vocabulary of one term, which nothing could replace.

    """

    def __init__(
        self,
        index: Index,
        beta: float = 0.5,
        radius: float = 4000,
        seed: int = 42,
        select: Literal["tfidf", "random"] = "tfidf",
        replace: Literal["tfidf", "random"] = "tfidf",
        variant: Literal["paper", "released"] = "paper",
        tokenizer: Any = None,
        *,
        window: Literal["rank", "score"] = "rank",
        n_jobs: int | None = None,
    ):
        law: dict[str, Any] = {
            "beta": beta,
            "radius": radius,
            "seed": seed,
            "select": select,
            "replace": replace,
            "variant": variant,
            "window": window,
        }
        self._law = make_law(index, **law)
        self._settings = {**law, "tokenizer": tokenizer, "n_jobs": n_jobs}
        self.index = index
        self.tokens = None if tokenizer is None else TokenIds(index, tokenizer, n_jobs)
        self._n_jobs = n_cores(n_jobs)
        self._kernel = Negatives(index.word_ids, self._law, self._term_tokens())
        self._split = word_tokenizer(index.word_tokenizer, index.lowercase)
        self._longest_row = int(index.word_ids.lengths().max())
        self._workspaces: list[Workspace] = []
        self._threads: ThreadPoolExecutor | None = None
        self._threads_of = 0  # the process

    def replacement_probabilities(self, sentence: str) -> tuple[list[str], np.ndarray]:
        """The words of `sentence` and the probability that each is replaced: float64 (n,), equations 3 and 4."""
        text = self._read([sentence])
        return text.words[0], text.p

    def window(self, term: str | int) -> tuple[int, int]:
        """(start, stop): the ids of the candidates of `term`, itself among them, are ``start .. stop - 1``.

        Raises:
            InputError: not a term of the index (`explain` shows the window of an unseen word in its sentence).

        """
        term_id = self.index.term_ids.get(term, -1) if isinstance(term, str) else operator.index(term)
        if not 0 <= term_id < self.index.n_terms:
            raise InputError(f"{term!r} is not a term of the index, which has {self.index.n_terms:,}")
        return self._law.window(term_id)

    def augment(self, sentences: Iterable[str], epoch: int = 0) -> list[str]:
        """A negative of each sentence: its words, some of them replaced, joined by spaces. Blank text gives "".

        Words that the index has not seen count as terms of one document (df 1).
        """
        text = self._read(sentences)
        return [" ".join(words) for words in self._replaced_words(text, epoch)]

    def negatives(self, rows: Sequence[int] | np.ndarray | torch.Tensor, epoch: int = 0) -> list[str]:
        """A negative of each document in `rows`, as text; a blank document gives ""."""
        drawn = self._draw(checked_rows(rows, self.index.n_documents), checked_epoch(epoch))
        return [self._spell(drawn[row]) for row in range(len(drawn))]

    def negative_ids(
        self,
        rows: Sequence[int] | np.ndarray | torch.Tensor,
        epoch: int = 0,
        max_length: int = 32,
        out: dict[str, torch.Tensor] | None = None,
    ) -> dict[str, torch.Tensor]:
        """The token ids of `negatives(rows, epoch)`, equal to the tokenizer's on that text, cut and padded.

        Args:
            rows: integers (B,), documents of the index.
            epoch: draws differ from epoch to epoch.
            max_length: tokens a row, L, special tokens included; at least 3.
            out: tensors to fill, as an earlier call returned them; new ones if None.

        Returns:
            {"input_ids", "attention_mask"[, "token_type_ids"]}: torch.int64 (B, L).

        Raises:
            InputError: no tokenizer was given, a row is out of range, or `out` does not fit.

        """
        if self.tokens is None:
            raise InputError("negative_ids needs a tokenizer: Augmenter(index, tokenizer=AutoTokenizer...)")
        rows = checked_rows(rows, self.index.n_documents)
        out = token_tensors(len(rows), max_length, self.tokens, out)
        input_ids, attention_mask = out["input_ids"].numpy(), out["attention_mask"].numpy()
        epoch = checked_epoch(epoch)

        def fill(part: slice) -> None:
            workspace = self._take_workspace()
            self._kernel.token_ids(rows[part], epoch, workspace, input_ids[part], attention_mask[part])
            self._workspaces.append(workspace)

        n_parts = min(self._n_jobs, len(rows) // ROWS_A_THREAD)
        if n_parts < 2:
            fill(slice(None))
        else:
            bounds = [len(rows) * i // n_parts for i in range(n_parts + 1)]
            list(self._thread_pool().map(fill, map(slice, bounds, bounds[1:])))
        if len(self.tokens.irregular):
            self._write_irregular(rows, epoch, out)
        return out

    def explain(self, sentence: str, epoch: int = 0) -> Explanation:
        """Why each word of `augment([sentence], epoch)` was replaced or kept; prints as a table."""
        text = self._read([sentence])
        (replaced,) = self._replaced_words(text, epoch)
        return explain_words(self.index, self._law, text, replaced, epoch)

    def _draw(self, rows: np.ndarray, epoch: int) -> Ragged:
        """int32 terms of the negatives of `rows`."""
        indptr = row_bounds(self.index.word_ids.indptr[rows + 1] - self.index.word_ids.indptr[rows])
        terms = np.empty(indptr[-1], dtype=ID)
        workspace = self._take_workspace()
        self._kernel.terms(rows, epoch, workspace, terms)
        self._workspaces.append(workspace)
        return Ragged(terms, indptr)

    def _spell(self, terms: np.ndarray) -> str:
        return " ".join([self.index.terms[i] for i in terms.tolist()])

    def _write_irregular(self, rows: np.ndarray, epoch: int, batch: dict[str, torch.Tensor]) -> None:
        """Write again, by the tokenizer, the negatives that hold a term whose ids depend on its neighbours."""
        assert self.tokens is not None
        drawn = self._draw(rows, epoch)
        chosen = self.tokens.rows_by_text(drawn)
        self.tokens.write_texts([self._spell(drawn[i]) for i in chosen.tolist()], chosen, batch)

    def _term_tokens(self) -> TermTokens | None:
        if self.tokens is None:
            return None
        tokens = self.tokens
        return TermTokens(tokens.terms, tokens.first_terms, tokens.frame)

    def _take_workspace(self) -> Workspace:
        """A workspace that no other thread has: a list's pop and append are atomic."""
        try:
            return self._workspaces.pop()
        except IndexError:
            return Workspace(self._longest_row)

    def _thread_pool(self) -> ThreadPoolExecutor:
        if self._threads is None or self._threads_of != os.getpid():  # threads do not follow into a forked process
            self._threads = ThreadPoolExecutor(self._n_jobs, thread_name_prefix="una_fast")
            self._threads_of = os.getpid()
        return self._threads

    def _read(self, sentences: Iterable[str]) -> TermRows:
        return read_terms(self.index, self._law, self._split, sentences)

    def _replaced_words(self, text: TermRows, epoch: int) -> list[list[str]]:
        out = np.empty_like(text.ids)
        replace_terms(
            self._law, text.keys, checked_epoch(epoch), text.ids, text.indptr, text.first, text.z, text.p, out
        )
        return text.spell(out, self.index.terms)

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(Augmenter, self.index, **self._settings), ()
