"""Which texts a step compares: a sentence, its positive and its negative; and what changes their embeddings.

The token ids of a source depend on (row, epoch) alone, so a text is the same for any number of ranks and any batch. The
same holds for a noise on embeddings: it is drawn by (seed, epoch, row), never by rank.

Letters: B sentences of a step over all ranks, b those of one rank, V views, L tokens, D width.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from train.config.run import Run
from train.objective.embedding_noise import EmbeddingNoise

Ids = dict[str, Tensor]  # token ids, mask and what else the tokenizer gives, int64 (b, L)


class Augmentation(Protocol):
    """The interface of a text augmentation, such as una_fast.Augmenter and una_fast.EDA."""

    def token_ids(self, rows: NDArray, epoch: int = 0, max_length: int = 32) -> Ids:
        """Token ids of the altered sentences of rows."""


class AnchorSource(Protocol):
    """The interface of una_fast.tokens.ids.TokenIds that is used here."""

    def anchor_ids(self, rows: NDArray, max_length: int = 32) -> Ids:
        """Token ids of the sentences of rows."""


class Source(Protocol):
    """A text for every row."""

    def __call__(self, rows: NDArray[np.int64], epoch: int, max_length: int) -> Ids:
        """Token ids of the texts of rows."""


class StepNoise(Protocol):
    """A change of the embeddings of a step before the loss."""

    def __call__(self, views: Tensor, epoch: int, rows: NDArray[np.int64]) -> Tensor:
        """Embeddings (V, B, D) from those of the whole step; rows: int64 (B,), of the index."""


def noise_of(run: Run) -> StepNoise | None:
    """The noise on embeddings of a run, None with --noise none."""
    return None if run.noise == "none" else EmbeddingNoise(run.noise, run.noise_strength, run.noise_view, run.seed)


@dataclass(frozen=True)
class Sentences:
    """The sentence of a row, or the one `offset` rows further: its paraphrase, where those follow the sentences."""

    tokens: AnchorSource
    offset: int = 0

    def __call__(self, rows: NDArray[np.int64], epoch: int, max_length: int) -> Ids:
        """Token ids of the sentences, the same in every epoch."""
        return self.tokens.anchor_ids(rows + self.offset, max_length)


@dataclass(frozen=True)
class Altered:
    """The sentence of a row with words replaced, moved, added or left out, drawn afresh in every epoch."""

    augmentation: Augmentation

    def __call__(self, rows: NDArray[np.int64], epoch: int, max_length: int) -> Ids:
        """Token ids of the altered sentences."""
        return self.augmentation.token_ids(rows, epoch, max_length)


@dataclass(frozen=True)
class Views:
    """Makes the views of each step.

    positive: None if a sentence is its own positive, under another dropout mask. negative: None if the run has none.
    negative_views: how often the loss takes the negative as a view: 0, 1 or 2 times. alpha: optimiser steps that it
    divides, counted from 0, have negatives; 0: no step has.
    """

    anchor: Source
    positive: Source | None
    negative: Source | None
    max_length: int
    alpha: int
    negative_views: int

    def uses_negatives(self, step: int) -> bool:
        """True on the optimiser steps that alpha divides, counted from 0."""
        return bool(self.negative and self.negative_views and self.alpha and step % self.alpha == 0)

    def __call__(self, step: int, epoch: int, rows: NDArray[np.int64]) -> list[Ids]:
        """Token ids (b, L) of each view: the anchor, its positive, and on some steps the negative once or twice."""
        anchors = self.anchor(rows, epoch, self.max_length)
        views = [anchors, self.positive(rows, epoch, self.max_length) if self.positive else anchors]
        if self.negative and self.uses_negatives(step):
            views += [self.negative(rows, epoch, self.max_length)] * self.negative_views
        return views
