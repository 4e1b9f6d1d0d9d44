"""Checks of arguments, and the error and warning for bad input. Messages state what is wrong, where, and what to do."""

from __future__ import annotations

import inspect
import operator
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from numbers import Real
from typing import Any, ParamSpec, TypeGuard, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class InputError(ValueError):
    """Input is invalid. Commands print the message without a traceback and exit with code 2."""


class InputWarning(UserWarning):
    """Input is valid, but probably not what the user meant. Commands print the message on one line."""


def warn_user(message: str) -> None:
    """Issue an InputWarning that points to the line of the user's program that called una_fast."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals["__name__"].partition(".")[0] == "una_fast":
        frame, level = frame.f_back, level + 1
    warnings.warn(message, InputWarning, stacklevel=level)


def first_line(error: BaseException) -> str:
    """Return the first line of an exception's message, or the name of its type if the message is empty."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def failed(place: object, action: str, error: BaseException) -> InputError:
    """Make the error "PLACE cannot be ACTION: REASON", such as "corpus.txt cannot be read: Permission denied"."""
    return InputError(f"{place} cannot be {action}: {getattr(error, 'strerror', None) or first_line(error)}")


@contextmanager
def as_input_errors(place: object, action: str) -> Iterator[None]:
    """Turn any exception in a with block into the error that `failed` makes. An InputError is not changed."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # the libraries' errors have no common base class
        raise failed(place, action, error) from error


def counted(n: int, one: str) -> str:
    """Return a number with a noun in the singular or plural, such as "1 line" or "2,000 lines"."""
    return f"{n:,} {one}{'' if n == 1 else 's'}"


def integer(name: str, value: Any) -> int:
    """Convert the value of the argument `name` to int, or raise InputError."""
    try:
        return operator.index(value)
    except TypeError:
        raise InputError(f"{name}={value!r}: give an integer") from None


def is_number(value: object) -> TypeGuard[float]:
    """Return whether `value` is one real number, not True or False."""
    return isinstance(value, Real) and not isinstance(value, bool)


def check_flag(name: str, value: Any) -> None:
    """Raise InputError if the value of the argument `name` is neither True nor False."""
    if type(value).__name__ not in ("bool", "bool_"):  # numpy's is "bool_" before version 2
        raise InputError(f"{name}={value!r}: must be True or False")


def nearest(name: str, names: Iterable[str]) -> str:
    """Return "did you mean X?" for the most similar of `names`, or "" if none is similar."""
    import difflib  # imported here, because it takes 5 ms and only a misspelt name needs it

    close = difflib.get_close_matches(name, list(names), n=1)
    return f"did you mean {close[0]}?" if close else ""


def check_keywords(function: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raise InputError if a keyword in `given` is not in `known`, the argument names of `function`."""
    known = [name for name in known if name != "self"]
    for name in given:
        if name not in known:
            answer = nearest(name, known) or f"choose from {', '.join(known)}"
            raise InputError(f"{function} has no argument {name!r}: {answer}")


def suggests_keywords(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function so that an unknown keyword argument raises an InputError that suggests a similar name."""
    known = inspect.signature(function).parameters

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        if not kwargs.keys() <= known.keys():
            check_keywords(function.__qualname__.removesuffix(".__init__"), kwargs, known)
        return function(*args, **kwargs)

    return checked
