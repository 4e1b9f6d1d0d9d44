"""Text augmentations by a compiled kernel: threads, workspaces, and the rows that only the tokenizer can encode."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from una_fast._kernels.draws.rows import RowKernel, Workspace
from una_fast._kernels.ids.emit import TermTokens
from una_fast.arrays import ID, POINTER, Ragged, StringTable
from una_fast.augment.draw_set import DrawSet
from una_fast.augment.spelling import spell
from una_fast.augment.text_augmentation import TextAugmentation
from una_fast.augment.text_rows import TextRows
from una_fast.index.index import Index
from una_fast.parallel import RowThreads, n_cores

if TYPE_CHECKING:
    import torch

ROWS_A_THREAD = 1024  # below it, handing rows to another thread (50 us) costs more than it saves


class KernelAugmentation(TextAugmentation):
    """An augmentation whose kernel draws rows of the index; `_draw_text` does the same for any other text."""

    growth = 1  # the most words that a word of a row can become

    def __init__(self, index: Index, tokenizer: Any, n_jobs: int | None, settings: dict[str, Any]):
        super().__init__(index, tokenizer, n_jobs, settings)
        self._n_jobs = n_cores(n_jobs)
        self._longest_row = int(index.word_ids.lengths().max())
        self._workspaces: list[Workspace] = []
        self._threads = RowThreads(self._n_jobs, ROWS_A_THREAD)
        self._irregular = np.zeros(0, dtype=ID)  # ids whose sub-words depend on the words around them
        self._by_text = np.zeros(0, dtype=POINTER)  # documents whose texts are made one by one, ascending
        self._kernel = self._make_kernel()

    @abstractmethod
    def _make_kernel(self) -> RowKernel:
        """The kernel that draws rows of the index."""

    @abstractmethod
    def _make_workspace(self) -> Workspace:
        """The buffers that one thread needs for the kernel."""

    @abstractmethod
    def _draw_text(self, text: TextRows, draws: DrawSet) -> Ragged:
        """int32 ids of the augmented rows of `text`; negative ids are its unseen words."""

    @property
    def _strings(self) -> StringTable:
        """The string of each id that the kernel draws."""
        return self.index.terms

    def _augment_texts(self, sentences: Iterable[str], draws: DrawSet) -> list[str]:
        text = self._read(sentences)
        return self._spell_text(text, self._draw_text(text, draws))

    def _augment_rows(self, rows: np.ndarray, draws: DrawSet) -> list[str]:
        return self._spell_rows(rows, self._draw_rows(rows, draws))

    def _fill(self, rows: np.ndarray, draws: DrawSet, out: dict[str, torch.Tensor]) -> None:
        """Write token ids into `out`: by the kernel, or by the tokenizer where they depend on neighbouring words."""
        self._write_ids(rows, draws, out["input_ids"].numpy(), out["attention_mask"].numpy())
        if len(self._irregular) or len(self._by_text):
            self._write_irregular(rows, draws, out)

    def _write_ids(self, rows: np.ndarray, draws: DrawSet, input_ids: np.ndarray, attention_mask: np.ndarray) -> None:
        """Fill input_ids and attention_mask, int64 (B, L), by the kernel."""

        def fill(part: slice) -> None:
            workspace = self._take_workspace()
            self._kernel.token_ids(
                rows[part], draws.epoch, workspace, input_ids[part], attention_mask[part], draws.number
            )
            self._workspaces.append(workspace)

        self._threads.run(fill, len(rows))

    def _read(self, sentences: Iterable[str]) -> TextRows:
        """The rows of any text."""
        return self._reader.read(sentences)

    def _spell_rows(self, rows: np.ndarray, drawn: Ragged) -> list[str]:
        """The texts of `drawn`, the ids of the augmented `rows`."""
        return spell(drawn, self._strings)

    def _spell_text(self, text: TextRows, drawn: Ragged) -> list[str]:
        """The texts of `drawn`, the ids of the augmented rows of `text`."""
        return spell(drawn, self._strings, text.unseen)

    def _draw_rows(self, rows: np.ndarray, draws: DrawSet) -> Ragged:
        """int32 ids of the augmented `rows`."""
        indptr = self.index.word_ids.indptr
        out = np.empty(self.growth * int((indptr[rows + 1] - indptr[rows]).sum()), dtype=ID)
        workspace = self._take_workspace()
        bounds = self._kernel.terms(rows, draws.epoch, workspace, out, draws.number)
        self._workspaces.append(workspace)
        return Ragged(out[: bounds[-1]], bounds)

    def _write_irregular(self, rows: np.ndarray, draws: DrawSet, batch: dict[str, torch.Tensor]) -> None:
        """Overwrite, by the tokenizer, the rows whose text holds a term with ids that depend on its neighbours.

        The documents `_by_text` are overwritten too.
        """
        assert self.tokens is not None
        chosen = np.flatnonzero(np.isin(rows, self._by_text))
        if not self.tokens.by_word:
            chosen = np.arange(len(rows))
        elif len(self._irregular):
            chosen = np.union1d(chosen, self._draw_rows(rows, draws).rows_with(self._irregular))
        texts = self._augment_rows(rows[chosen], draws) if len(chosen) else []
        self.tokens.write_texts(texts, chosen, batch)

    def _term_tokens(self) -> TermTokens | None:
        """The sub-words of each id, for the kernel; None without a tokenizer."""
        if self.tokens is None:
            return None
        self._irregular = self.tokens.irregular
        return TermTokens(self.tokens.terms, self.tokens.first_terms, self.tokens.frame, self._irregular)

    def _take_workspace(self) -> Workspace:
        """A workspace that no other thread has: a list's pop and append are atomic."""
        try:
            return self._workspaces.pop()
        except IndexError:
            return self._make_workspace()
