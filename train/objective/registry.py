"""The losses and the noises on embeddings by name: a new one is a function and a row here.

`load` imports a function when it is needed, because the options of training are made from these tables.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from una_fast.errors import InputError
from una_fast.imports import import_object

if TYPE_CHECKING:
    from torch import Tensor

    from train.objective.draws import EmbeddingDraws

    LossFunction = Callable[[Tensor, float], Tensor]
    NoiseFunction = Callable[[Tensor, Tensor, EmbeddingDraws, float], Tensor]


class LossRow(NamedTuple):
    """A loss: what it compares, for --help; how often it takes the negative as a view; its function as "module:name".

    The function takes embeddings (V, B, D) and the temperature, as `una_fast.losses` says, and returns a scalar.
    """

    meaning: str
    negative_views: int
    path: str

    def load(self) -> LossFunction:
        """The function."""
        return import_object(self.path)


class NoiseRow(NamedTuple):
    """A noise on embeddings: what it does, for --help, and its function as "module:name".

    The function takes (z, pool, draws, strength): embeddings z, float (B, D) with B >= 2; the same without gradients;
    an `EmbeddingDraws`, from which all random numbers come; and the number of --noise-strength. It returns embeddings
    (B, D). `train.objective.noise` has examples.
    """

    meaning: str
    path: str

    def load(self) -> NoiseFunction:
        """The function."""
        return import_object(self.path)


LOSSES = {
    "pairs": LossRow("every row of the step against all others", 2, "una_fast.losses:pairs"),
    "triplet": LossRow("anchors against all positives and all negatives", 1, "una_fast.losses:triplet"),
    "simcse": LossRow("anchors against all positives", 0, "una_fast.losses:simcse"),
    "decoupled": LossRow("equation 1 of the paper as printed", 2, "una_fast.losses:decoupled"),
}


def loss_row(name: str) -> LossRow:
    """The loss of a name of `LOSSES`, or the function of an import path "module:function".

    Such a function takes the negative as one view, or as many times as its attribute `negative_views` says.

    Raises:
        InputError: there is no such function, or it takes the negative another number of times.
    """
    if name in LOSSES:
        return LOSSES[name]
    n_views = getattr(import_object(name), "negative_views", 1)
    if n_views not in (0, 1, 2):
        raise InputError(f"{name!r}: its negative_views is {n_views!r}: a loss takes the negative 0, 1 or 2 times")
    return LossRow("a function of your own", n_views, name)


NOISES = {
    "gaussian": NoiseRow("normal noise", "train.objective.noise:gaussian"),
    "interpolation": NoiseRow("towards the nearest other sentence of the step", "train.objective.noise:interpolation"),
    "extrapolation": NoiseRow("away from the mean of the step", "train.objective.noise:extrapolation"),
    "linear": NoiseRow("along the difference of two random sentences of the step", "train.objective.noise:linear"),
    "pca-jitter": NoiseRow("along the principal components of the step", "train.objective.noise:pca_jitter"),
}
NOISE_VIEWS = {"anchor": (0,), "positive": (1,), "negative": (2, 3), "all": (0, 1, 2, 3)}  # places among a loss's views
