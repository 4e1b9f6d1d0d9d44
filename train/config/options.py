"""Options as dataclass fields: a field states default, bounds, role and heading of its option, and below it its text.

Python does not keep the text below a field, so `options_of` reads it in the source of the class.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import textwrap
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import ge, gt, le, lt
from os.path import expanduser
from typing import Any, Literal

from train.config.names import today, why_not
from una_fast.errors import InputError

BOUNDS = {"least": (ge, "at least"), "above": (gt, "above"), "most": (le, "at most"), "below": (lt, "below")}
LARGEST = 2.0**64  # no number that an option takes is as large
NOUNS = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}
PATHS = ("FILE", "FILE.yaml", "FOLDER", "NAME_OR_FOLDER", "ADDRESS", "RUN")  # placeholders of paths, where ~ is read
Role = Literal["result", "source", "running", "call"]
"""What a change of an option means to --resume and to a report.

result: the run computes something else, so --resume refuses it.
source: a corpus, a model or a dev set has another name; --resume knows them by content, and a report compares them.
running: the run is carried out elsewhere or otherwise; --resume accepts it, and a report compares runs without it.
call: it concerns one call of the command, so a --config file must not hold it; else as running.
"""


@dataclass(frozen=True)
class Group:
    """A heading of --help, what stands below it, and the role of its options that state no other."""

    title: str
    about: str = ""
    role: Role = "result"

    def option(self, default: Any, *, choices: Mapping[str, str] | Sequence[str] = (), **stated: Any) -> Any:
        """A dataclass field that is an option under this heading; the string below the field is its text in --help.

        Args:
            default: Its value where it is not given.
            choices: The values of a text, or a mapping from each to its meaning.
            stated: Further attributes of `Option`.
        """
        meanings = "; ".join(f"{name}: {choices[name]}" for name in choices) if isinstance(choices, Mapping) else ""
        stated = {"group": self, "role": self.role, "help": meanings, **stated, "choices": (*choices,)}
        return dataclasses.field(default=default, metadata={"option": Option(default, **stated)})


option = Group("").option  # under the docstring of its dataclass


@dataclass(frozen=True)
class Option:
    """An option as its dataclass field states it.

    Attributes:
        least, above, most, below: Bounds of a number, or of each of several.
        metavar: Placeholder of the value in --help; by default a word for the type.
        choices: The values that are allowed, () for any; a Literal type lists them itself. One with a colon, as
            "MODULE:CLASS", stands for every import path.
        required: It must not be empty.
        positional: It stands on the command line without a name.
        group: Its heading; by default the first line of the dataclass' docstring, with the rest of it below.
        help: The text below the field, and what is stated here behind a colon.
        name, many: Name of the field, and whether it is a tuple, which takes several values.
        kinds: Types of the field; a text becomes the first that accepts it.
    """

    default: Any
    least: float | None = None
    above: float | None = None
    most: float | None = None
    below: float | None = None
    role: Role = "result"
    metavar: str = ""
    choices: tuple[str, ...] = ()
    required: bool = False
    positional: bool = False
    group: Group = Group("")
    name: str = ""
    help: str = ""
    many: bool = False
    kinds: tuple[type, ...] = ()

    @property
    def flag(self) -> str:
        """The name on the command line."""
        return self.metavar if self.positional else "--" + self.name.replace("_", "-")

    @property
    def bounds(self) -> dict[str, float]:
        """The bounds that are stated, by name."""
        return {name: bound for name in BOUNDS if (bound := getattr(self, name)) is not None}

    def read(self, value: Any) -> Any:
        """The value that a text, an entry of a YAML file or an argument of Python stands for; None is not given.

        Raises:
            InputError: It has another type, breaks a bound or is no choice; the message says what is allowed.
        """
        if not self.many or value is None:
            return self._read(value)
        values = value if isinstance(value, (tuple, list)) else [value]
        if str not in self.kinds:
            values = [part for value in values for part in (value.split(",") if isinstance(value, str) else [value])]
        return tuple(map(self._read, values))

    def _read(self, value: Any) -> Any:
        if value is None or (isinstance(value, bool) and self.kinds == (bool,)):
            return value
        for kind in () if isinstance(value, (bool, dict, list)) or bool in self.kinds else self.kinds:
            try:
                read: Any = kind(str(value))
            except ValueError:
                continue
            return self._checked_text(read) if kind is str else self._within_bounds(read)
        several = ": write them as 42,0,1" if self.many else ""
        raise InputError(f"{self.flag} is {value!r}, and must be {NOUNS[self.kinds[-1]]}{several}")

    def _checked_text(self, text: str) -> str:
        text = today(self.flag, text) if self.choices else text
        if self.choices and text not in self.choices and not (":" in text and ":" in "".join(self.choices)):
            answer = why_not(self.flag, text) or f"choose from {', '.join(self.choices)}"
            raise InputError(f"{self.flag} is {text!r}: {answer}")
        return expanduser(text) if self.metavar in PATHS else text  # noqa: PTH111  Path makes "" a "."

    def _within_bounds(self, number: float) -> float:
        for name, bound in {**self.bounds, "below": self.below or LARGEST}.items():
            allows, word = BOUNDS[name]
            if not allows(number, bound):  # NaN never is
                raise InputError(f"{self.flag} is {number}: it must be {word} {bound:g}")
        return number

    def words(self, value: Any) -> list[str]:
        """The words of a command line that give this value; none for None."""
        if value is None or isinstance(value, bool):
            return [] if value is None else [self.flag if value else self.flag.replace("--", "--no-", 1)]
        return [self.flag, *map(str, value)] if self.many else [f"{self.flag}={value}"]


def options_of(kind: type, *groups: Group) -> dict[str, Option]:
    """The option of each field of a dataclass, by field name and in their order; with groups, the options of these."""
    source: Any = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    texts = {
        ast.unparse(field.target): " ".join(ast.literal_eval(text.value).split())
        for field, text in pairwise(source.body)
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr)
    }
    title, _, about = inspect.cleandoc(kind.__doc__ or "").partition("\n")
    hints, heading = typing.get_type_hints(kind), Group(title.rstrip("."), " ".join(about.split()))
    options = {}
    for field in dataclasses.fields(kind):
        stated: Option = field.metadata["option"]
        leaves = _leaves(hints[field.name])
        options[field.name] = dataclasses.replace(
            stated,
            name=field.name,
            help=": ".join(filter(None, [texts[field.name], stated.help])),
            group=stated.group if stated.group.title else heading,
            choices=stated.choices or tuple(leaf for leaf in leaves if isinstance(leaf, str)),
            kinds=tuple(leaf for leaf in leaves if isinstance(leaf, type) and leaf is not types.NoneType) or (str,),
            many=Ellipsis in leaves,
        )
    return {name: option for name, option in options.items() if not groups or option.group in groups}


def _leaves(hint: Any) -> list[Any]:
    """The types in a type hint, the values of a Literal in it, and the Ellipsis of a tuple."""
    return [leaf for part in typing.get_args(hint) for leaf in _leaves(part)] or [hint]


def complete(options: Mapping[str, Option], given: Mapping[str, Any]) -> dict[str, Any]:
    """A checked value of every option by field name: the given one, else its default.

    Raises:
        InputError: A required value is missing, or a given one cannot be used.
    """
    every = {**{name: option.default for name, option in options.items()}, **given}
    values = {name: options[name].read(value) for name, value in every.items()}
    for name, option in options.items():
        if option.required and not values[name]:
            raise InputError(f"{option.flag} is missing: give the {option.help.split(':')[0]}")
    return values


def words_of(options: Iterable[Option], values: Mapping[str, Any]) -> list[str]:
    """The words of a command line that gives the options, by field name, which are not at their default."""
    changed = [option for option in options if option.read(values[option.name]) != option.default]
    return [word for option in changed for word in option.words(values[option.name])]
