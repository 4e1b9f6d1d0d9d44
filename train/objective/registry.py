"""The losses that --loss names. To add one, write a function in `una_fast/losses.py` and add a row here.

A function is imported only when it is needed: the command line reads this table, and should not wait for torch.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from una_fast.errors import InputError
from una_fast.imports import import_object


@dataclass(frozen=True)
class LossSpec:
    """A loss function and what it needs.

    Attributes:
        meaning: text for --help.
        path: import path of the function, such as "una_fast.losses:pairs".
        negative_views: number of views of the negative that the function needs: 0, 1 or 2.
        options: for each other parameter of the function, the name of the `Run` field that contains its value.
        takes_start: whether the function has a parameter `start`, for embeddings by the initial encoder.
    """

    meaning: str
    path: str
    negative_views: int = 1
    options: Mapping[str, str] = field(default_factory=dict)
    takes_start: bool = False

    def load(self) -> Callable[..., Any]:
        """Import the function."""
        return import_object(self.path)

    def arguments(self, run: Any) -> dict[str, Any]:
        """Return the values in `run` for the function's parameters in `options`, by parameter name."""
        return {parameter: getattr(run, option) for parameter, option in self.options.items()}


BOUNDS = {"least": "margin_least", "most": "margin_most"}  # parameters of the losses with a margin
LOSSES = {
    "pairs": LossSpec("every embedding of the step against all others", "una_fast.losses:pairs", 2),
    "triplet": LossSpec("anchors against all positives and all negatives", "una_fast.losses:triplet"),
    "simcse": LossSpec("anchors against all positives", "una_fast.losses:simcse", 0),
    "decoupled": LossSpec("equation 1 of the paper as printed", "una_fast.losses:decoupled", 2),
    "soft": LossSpec(
        "simcse, plus --margin-weight times a margin on each anchor's own negative",
        "una_fast.losses:soft",
        options={"weight": "margin_weight", **BOUNDS},
    ),
    "margin": LossSpec("only the margin of soft", "una_fast.losses:margin", options=BOUNDS),
}


def loss_spec(name: str) -> LossSpec:
    """Find a loss by its name in `LOSSES`, or a user's function by its import path "module:function".

    A user's function is called as ``f(views, temperature)``. Its attribute `negative_views`, by default 1, is the
    number of views of the negative that the function needs. If it has a parameter `start`, it also receives the
    embeddings of the first and the last view by the initial encoder.

    Raises:
        InputError: the function does not exist, it needs other arguments, or its `negative_views` is not 0, 1 or 2.
    """
    if name in LOSSES:
        return LOSSES[name]
    function = import_object(name)
    n_views = getattr(function, "negative_views", 1)
    if n_views not in (0, 1, 2):
        raise InputError(f"{name!r}: its negative_views is {n_views!r}: it must be 0, 1 or 2")
    takes_start = "start" in inspect.signature(function).parameters
    try:
        inspect.signature(function).bind(None, temperature=1.0, **({"start": None} if takes_start else {}))
    except TypeError as error:
        raise InputError(f"{name!r}: {error}: a loss is called as f(views, temperature=0.05)") from None
    return LossSpec("your own function", name, n_views, takes_start=takes_start)
