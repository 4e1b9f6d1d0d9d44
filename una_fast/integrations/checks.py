"""Checks of settings that all integrations share."""

from __future__ import annotations

from typing import Any

from una_fast.errors import InputError


def negative_names(n: int) -> list[str]:
    """The names of the columns of `n` negatives, as sentence-transformers' losses expect them.

    Raises:
        InputError: `n` is no integer of at least 1.
    """
    if not isinstance(n, int) or n < 1:
        raise InputError(f"n={n!r}: give the number of negatives a sentence, an integer of at least 1")
    return ["negative"] if n == 1 else [f"negative_{number}" for number in range(1, n + 1)]


def check_saved(augmenter: Any) -> None:
    """Raise for an augmenter that would be pickled with its whole corpus for every worker.

    Raises:
        InputError: its index has no folder.
    """
    if augmenter.index.path is None:
        raise InputError(
            "the index is not saved, and each worker would get a copy of the whole corpus: call index.save(FOLDER), "
            "and make the Augmenter from that index"
        )
