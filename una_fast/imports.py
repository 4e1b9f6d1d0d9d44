"""Import of an object by its path, so that a table of names and help texts loads without the modules it names."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def import_object(path: str) -> Any:
    """The function or class of an import path, "module:name"."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)
