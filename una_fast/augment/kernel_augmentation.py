"""Text augmentations by a compiled kernel: threads, workspaces, and the rows that the kernel cannot write."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from una_fast._kernels.draws.rows import RowKernel, Workspace
from una_fast.arrays import RaggedArray, StringTable
from una_fast.augment.counter_rng import SampleKey
from una_fast.augment.surface import Detokenizer
from una_fast.augment.text_augmentation import TextAugmentation
from una_fast.augment.text_rows import NO_STRINGS, TextRows
from una_fast.index.index import Index
from una_fast.parallel import RowThreads, n_cores

if TYPE_CHECKING:
    import torch

ROWS_A_THREAD = 1024  # below it, handing rows to another thread (50 us) costs more than it saves


class KernelAugmentation(TextAugmentation):
    """An augmentation whose kernel draws rows of the index; `_draw_text` does the same for any other text.

    Calls, in order:

        token_ids   kernel.token_ids draws all rows and writes their ids, with surface="kept" _draw_rows and
                    Detokenizer.fill; the rows that these leave: _draw_rows, Detokenizer.rows, and the tokenizer
        texts       _draw_rows, Detokenizer.rows
        augment     TextReader.read, _draw_text, Detokenizer.texts

    settings: of the augmentation, for its repr and its copies; surface: as `Detokenizer` takes it; extra: the strings
    of the ids that the kernel draws beside the terms.
    """

    def __init__(
        self,
        index: Index,
        tokenizer: Any,
        n_jobs: int | None,
        settings: dict[str, Any],
        *,
        surface: str,
        extra: StringTable = NO_STRINGS,
    ):
        super().__init__(index, tokenizer, n_jobs, settings)
        self._n_jobs = n_cores(n_jobs)
        self._workspaces: list[Workspace] = []
        self._threads = RowThreads(self._n_jobs, ROWS_A_THREAD)
        self._detokenizer = Detokenizer(index, surface, self.tokens, extra)
        self._kernel = self._make_kernel(self._detokenizer)

    @abstractmethod
    def _make_kernel(self, detokenizer: Detokenizer) -> RowKernel:
        """The kernel for rows of the index; the detokenizer has what it needs to write ids."""

    @abstractmethod
    def _draw_text(self, text: TextRows, draws: SampleKey) -> tuple[RaggedArray, StringTable]:
        """int32 ids of the augmented rows of `text`; and the strings of its negative ids, -1 being the first."""

    def _augment_texts(self, sentences: Iterable[str], draws: SampleKey) -> list[str]:
        text = self._reader.read(sentences)
        return self._detokenizer.texts(text, *self._draw_text(text, draws))

    def _augment_rows(self, rows: np.ndarray, draws: SampleKey) -> list[str]:
        return self._detokenizer.rows(rows, self._draw_rows(rows, draws))

    def _fill(self, rows: np.ndarray, draws: SampleKey, out: dict[str, torch.Tensor]) -> None:
        input_ids, attention_mask = out["input_ids"].numpy(), out["attention_mask"].numpy()
        left = np.ones(len(rows), dtype=np.uint8)

        def fill(part: slice) -> None:
            filled = input_ids[part], attention_mask[part], left[part]
            if self._detokenizer.writes_ids:
                self._detokenizer.fill(rows[part], self._draw_rows(rows[part], draws), *filled)
                return
            workspace = self._take_workspace()
            self._kernel.token_ids(rows[part], draws.epoch, workspace, *filled, draws.sample_index)
            self._workspaces.append(workspace)

        if self._detokenizer.writes_ids or self._kernel.tokens is not None:
            self._threads.run(fill, len(rows))
        if len(lines := np.flatnonzero(left)):
            self._threads.run(lambda part: self._write_texts(rows, lines[part], draws, out), len(lines))

    def _draw_rows(self, rows: np.ndarray, draws: SampleKey) -> RaggedArray:
        """int32 ids of the augmented `rows`."""
        workspace = self._take_workspace()
        drawn = self._kernel.terms(rows, draws.epoch, draws.sample_index, workspace)
        self._workspaces.append(workspace)
        return RaggedArray(*drawn)

    def _take_workspace(self) -> Workspace:
        """A workspace that no other thread has: a list's pop and append are atomic."""
        try:
            return self._workspaces.pop()
        except IndexError:
            return self._kernel.workspace()
