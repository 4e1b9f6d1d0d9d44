"""Import of an object by its path "module:name": of rows of tables that load without the modules they name, and of
functions and classes that a user names.
"""

from __future__ import annotations

import sys
import traceback
from functools import reduce
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from una_fast.errors import InputError
from una_fast.extras import missing_package


def import_object(path: str) -> Any:
    """The function or class of an import path, "module:name"; the module may be a file of the working folder.

    Raises:
        InputError: there is no such module or name, the module cannot be imported, or the object cannot be called.
    """
    name, _, attribute = path.partition(":")
    if not name or not attribute:
        raise InputError(f"{path!r} is no import path: write MODULE:NAME, as in my_module:my_function")
    module = _import(name, path)
    try:
        found = reduce(getattr, attribute.split("."), module)
    except AttributeError as error:
        place = getattr(module, "__file__", None) or "built in"
        raise InputError(f"{path!r}: the module {name} ({place}) has no {attribute!r}") from error
    if not callable(found):
        raise InputError(f"{path!r} is of type {type(found).__name__}: name a function or a class")
    return found


def _import(name: str, path: str) -> ModuleType:
    try:
        return _import_here(name)
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(f"{error.name}.")):
            raise InputError(
                f"{path!r}: there is no module {error.name!r}: name one of the folder {Path.cwd()}, of an installed "
                "package or of a folder in PYTHONPATH"
            ) from error
        raise missing_package(error) or _broken(path, error) from error
    except Exception as error:  # whatever the module raises when it is run
        raise _broken(path, error) from error


def _import_here(name: str) -> ModuleType:
    """The module, also from the working folder, where `python -m` looks and the script `una-fast` does not."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name.split(".")[0] or str(Path.cwd()) in sys.path:
            raise
        sys.path.append(str(Path.cwd()))  # last, so that a file there hides no package
        return import_module(name)


def _broken(path: str, error: Exception) -> InputError:
    """The error for a module that fails when it is imported, with the place where it fails."""
    if isinstance(error, SyntaxError):
        place = f"{error.filename}, line {error.lineno}"
    else:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{frame.filename}, line {frame.lineno}"
    return InputError(f"{path!r} cannot be imported: {place}: {type(error).__name__}: {error}")
