"""Import of an object by its path "module:name": of rows of tables that load without the modules they name, and of
functions and classes that a user names.
"""

from __future__ import annotations

from functools import reduce
from importlib import import_module
from typing import Any

from una_fast.errors import InputError


def import_object(path: str) -> Any:
    """The function or class of an import path, "module:name".

    Raises:
        InputError: nothing can be imported there, or it cannot be called.
    """
    module, _, name = path.partition(":")
    try:
        found = reduce(getattr, name.split("."), import_module(module))
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(f"{path!r} cannot be imported: {error}") from error
    if not callable(found):
        raise InputError(f"{path!r} is of type {type(found).__name__}: name a function or a class")
    return found
