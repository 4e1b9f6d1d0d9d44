"""A dataclass as options: of a command line and of a YAML file, by one conversion of values.

The comment on a field's line is its help text.
"""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import inspect
import re
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NoReturn

import yaml

from una_fast.errors import InputError


@dataclass(frozen=True)
class Option:
    """One field as an option: its type taken apart."""

    name: str
    default: Any
    help: str
    base: type  # str, int, float or bool
    choices: tuple[str, ...] | None
    many: bool  # takes one or several values
    optional: bool  # None stands for "not given"

    @property
    def flag(self) -> str:
        """The name on the command line."""
        return "--" + self.name.replace("_", "-")


def options_of(kind: type) -> dict[str, Option]:
    """The options that the fields of a dataclass are, by field name, in order."""
    comments = dict(re.findall(r"^    (\w+): .*?  # (.+)$", inspect.getsource(kind), re.MULTILINE))
    hints = typing.get_type_hints(kind)
    return {f.name: _option(f.name, f.default, hints[f.name], comments[f.name]) for f in dataclasses.fields(kind)}


def _option(name: str, default: Any, hint: Any, help: str) -> Option:
    optional = typing.get_origin(hint) in (typing.Union, types.UnionType)
    if optional:
        hint = next(arm for arm in typing.get_args(hint) if arm is not types.NoneType)
    many = typing.get_origin(hint) is tuple
    if many:
        hint = typing.get_args(hint)[0]
    choices = typing.get_args(hint) if typing.get_origin(hint) is Literal else None
    return Option(name, default, help, str if choices else hint, choices, many, optional)


class Parser(argparse.ArgumentParser):
    """A parser whose errors are InputErrors."""

    def error(self, message: str) -> NoReturn:
        """Raise what argparse found wrong."""
        raise InputError(f"{message} (see --help)")


def add_options(parser: argparse.ArgumentParser, options: Iterable[Option]) -> None:
    """Give `parser` the options."""
    for option in options:
        if option.base is bool:
            parser.add_argument(option.flag, action=argparse.BooleanOptionalAction, help=option.help)
            continue
        shown = "" if option.default in (None, "", ()) else f" [{option.default}]"
        listed = option.many and option.base is int  # one value, numbers with commas between
        parser.add_argument(
            option.flag,
            type=whole_numbers if listed else option.base,
            choices=option.choices,
            nargs="+" if option.many and not listed else None,
            metavar=None if option.choices else "N,N,..." if listed else option.base.__name__.upper(),
            help=option.help.replace("%", "%%") + shown,
        )


def whole_numbers(text: str) -> tuple[int, ...]:
    """The numbers of "42,0,1"."""
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no list of whole numbers: write them as 42,0,1") from None


def read_file(path: Path, known: Mapping[str, Option]) -> dict[str, Any]:
    """Values of the known options in a YAML file, by field name; keys may be written with - or _.

    Raises:
        InputError: no YAML file, an unknown key, a value of the wrong kind; it names --config.
    """
    try:
        loaded = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"--config {path}: {error.strerror}: give a YAML file of options") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(f"--config {path}: not YAML: {' '.join(str(error).split())}") from error
    if loaded is None:
        return {}
    if not isinstance(loaded, dict):
        raise InputError(f"--config {path}: holds a {type(loaded).__name__}: write one 'option: value' a line")
    values = {}
    for key, value in loaded.items():
        name = str(key).replace("-", "_")
        if name not in known:
            raise InputError(f"--config {path}: {unknown_name('key', str(key), list(known))}")
        values[name] = _from_yaml(known[name], value, path)
    return values


def _from_yaml(option: Option, value: Any, path: Path) -> Any:
    """`value` as the type of `option`, by the same conversions as the command line."""
    if value is None and option.optional:
        return None
    if option.many:
        items = [str(item) for item in (value if isinstance(value, list) else [value])]
        return tuple(items) if option.base is str else _numbers_from_yaml(option, items, path)
    if option.base is bool and isinstance(value, bool):
        return value
    try:
        if option.base is bool or isinstance(value, (list, dict, bool)) or value is None:
            raise ValueError
        converted = option.base(str(value))
    except ValueError:
        kind = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}[option.base]
        raise InputError(f"--config {path}: {option.name} is {value!r}, and must be {kind}") from None
    if option.choices and converted not in option.choices:
        raise InputError(f"--config {path}: {option.name} is {value!r}: choose from {', '.join(option.choices)}")
    return converted


def _numbers_from_yaml(option: Option, items: list[str], path: Path) -> tuple[int, ...]:
    try:
        return whole_numbers(",".join(items))
    except argparse.ArgumentTypeError as error:
        raise InputError(f"--config {path}: {option.name}: {error}") from None


def unknown_name(what: str, name: str, known: Sequence[str]) -> str:
    """What to say of an option or key that is not among the known ones: the closest of them, if one is close."""
    if not name.startswith("-") and what == "option":
        return f"unexpected argument {name!r}: options start with --"
    close = difflib.get_close_matches(name.replace("_", "-") if what == "option" else name, known, n=1)
    hint = f": did you mean {close[0]}?" if close else ": see --help for all there are"
    return f"unknown {what} {name}{hint}"
