"""What stands in the place of UNA's negatives in a control of equal compute."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from una_fast.augment.row_draws import DrawSet, RowDraws
from una_fast.augment.text_augmentation import TextAugmentation
from una_fast.index.index import Index


class OtherSentence(TextAugmentation):
    """Another document of the index in place of an altered one, all equally likely; drawn by (seed, epoch, row)."""

    def __init__(self, index: Index, seed: int = 42, tokenizer: Any = None, n_jobs: int | None = None) -> None:
        super().__init__(index, tokenizer, n_jobs, {"seed": seed})
        self._seed = seed

    def others(self, rows: NDArray[np.int64], draws: DrawSet) -> NDArray[np.int64]:
        """int64 (B,): for each of `rows` (B,) another row of the index."""
        found = RowDraws(self._seed, draws.epoch, rows, draws.number).below(self.index.n_documents - 1, 1)[:, 0]
        return found + (found >= rows)

    def explain(self, sentence: str, epoch: int = 0, *, draw_set: int = 0) -> str:
        """The document that stands in the place of `sentence`."""
        return self.augment([sentence], epoch, draw_set=draw_set)[0]

    def _augment_texts(self, sentences: Iterable[str], draws: DrawSet) -> list[str]:
        keys = self._reader.read(sentences).keys
        found = RowDraws(self._seed, draws.epoch, keys, draws.number).below(self.index.n_documents, 1)[:, 0]
        return [self.index.sentence(row) for row in found.tolist()]

    def _augment_rows(self, rows: NDArray[np.int64], draws: DrawSet) -> list[str]:
        return [self.index.sentence(row) for row in self.others(rows, draws).tolist()]
