"""The losses that --loss names. A loss is imported when it is used, so that --help does not wait for torch."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from una_fast.errors import InputError
from una_fast.imports import import_object


@dataclass(frozen=True)
class LossSpec:
    """A loss function and what it needs."""

    meaning: str  # text for --help
    path: str  # import path of the function
    options: Mapping[str, str]  # parameter of the function -> field of `Run`

    @cached_property
    def negative_views(self) -> int:
        """Number of views of the negative that the function needs: 0, 1 or 2."""
        return getattr(self.load(), "negative_views", 1)

    @cached_property
    def takes_start(self) -> bool:
        """Whether the function has a parameter `start`, for embeddings by the initial encoder."""
        return "start" in inspect.signature(self.load()).parameters

    def load(self) -> Callable[..., Any]:
        """Import the loss function."""
        return import_object(self.path)


TEMPERATURE = {"temperature": "temperature"}
BOUNDS = {"least": "margin_least", "most": "margin_most"}  # parameters of the losses with a margin
LOSSES = {
    "pairs": LossSpec("every embedding of the step against all others", "una_fast.losses:pairs", TEMPERATURE),
    "triplet": LossSpec("anchors against all positives and all negatives", "una_fast.losses:triplet", TEMPERATURE),
    "simcse": LossSpec("anchors against all positives", "una_fast.losses:simcse", TEMPERATURE),
    "decoupled": LossSpec("equation 1 of the paper as printed", "una_fast.losses:decoupled", TEMPERATURE),
    "soft": LossSpec(
        "simcse, plus --margin-weight times a margin on each anchor's own negative",
        "una_fast.losses:soft",
        {"weight": "margin_weight", **TEMPERATURE, **BOUNDS},
    ),
    "margin": LossSpec("only the margin of soft", "una_fast.losses:margin", BOUNDS),
}


def loss_spec(name: str) -> LossSpec:
    """Find a loss by its name in `LOSSES`, or a user's function by its import path "module:function".

    A user's function is called as ``f(views, temperature)``. Its attribute `negative_views`, by default 1, is the
    number of copies of the negatives in `views`, each under another dropout mask. A function with a parameter `start`
    also receives the initial encoder's embeddings of the first and the last view, (2, B, D).
    """
    if name in LOSSES:
        return LOSSES[name]
    spec = LossSpec("your own function", name, TEMPERATURE)
    if spec.negative_views not in (0, 1, 2):
        raise InputError(f"{name!r}: its negative_views is {spec.negative_views!r}: it must be 0, 1 or 2")
    try:
        inspect.signature(spec.load()).bind(None, temperature=1.0, **({"start": None} if spec.takes_start else {}))
    except TypeError as error:
        raise InputError(f"{name!r}: {error}: a loss is called as f(views, temperature=0.05)") from None
    return spec
