"""Functions and classes by import path: a table of names and help texts loads without what its rows do."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def load(path: str) -> Any:
    """The function or class of an import path, "module:name"."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)
