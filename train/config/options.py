"""Options as dataclass fields: a field states the default, help text, limits, role and heading of its option."""

from __future__ import annotations

import dataclasses
import inspect
import math
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from una_fast.errors import InputError

Role = Literal["result", "source", "running", "call"]
"""How an option affects a run.

result: the run computes something else if it changes, so --resume refuses another value.
source: names a corpus, a model or a dev set. A checkpoint knows corpus and model by their content, so the name may
    change on --resume (a folder that was moved); runs of different sources are different runs in a report.
running: says where and how the run is carried out. It may change on --resume, and a report compares runs without it.
call: concerns one call of the command, so a --config file must not hold it. It may change on --resume.
"""


@dataclass(frozen=True)
class Limits:
    """The bounds of a number: it may equal `least` and `most`, but not `above` and `below`."""

    least: float | None = None
    above: float | None = None
    most: float | None = None
    below: float | None = None

    def __str__(self) -> str:
        parts = [f"{name} {bound:g}" for name, bound in self._finite().items()]
        return " and ".join(parts).replace("least", "at least").replace("most", "at most")

    def allow(self, value: float) -> bool:
        """Whether `value` is a finite number within the limits; NaN never is."""
        return (
            math.isfinite(value)
            and (self.least is None or value >= self.least)
            and (self.above is None or value > self.above)
            and (self.most is None or value <= self.most)
            and (self.below is None or value < self.below)
        )

    def _finite(self) -> dict[str, float]:
        return {name: bound for name, bound in vars(self).items() if bound is not None}


@dataclass(frozen=True)
class Group:
    """A heading of --help. about: what stands below it."""

    title: str
    about: str = ""

    def option(self, default: Any, help: str, **stated: Any) -> Any:
        """As the function `option`, under this heading."""
        return option(default, help, group=self, **stated)


def option(
    default: Any,
    help: str,
    *,
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
    below: float | None = None,
    role: Role = "result",
    metavar: str = "",
    choices: Mapping[str, str] | Sequence[str] = (),
    own: str = "",
    group: Group | None = None,
) -> Any:
    """A dataclass field that is an option. The limits hold for numbers, and for each of several numbers.

    metavar: the placeholder of the value in --help; if empty, a word for the type. choices: the values that a field
    of type str takes, or a mapping from each value to its meaning; a Literal type lists its values itself. own: what
    may stand there besides the choices, by its import path, as "MODULE:CLASS". group: its heading in --help; None: the
    first line of the dataclass' docstring, with the rest of it below.
    """
    limits = Limits(least, above, most, below)
    if isinstance(choices, Mapping):
        help += ": " + "; ".join(f"{name}: {meaning}" for name, meaning in choices.items())
    if own:
        help += f"; {own}: one of your own, by its import path"
    stated = {"help": help, "limits": limits, "role": role, "metavar": metavar, "choices": (*choices,), "own": own}
    return dataclasses.field(default=default, metadata=stated | {"group": group})


@dataclass(frozen=True)
class Option:
    """An option as its dataclass field states it; `kinds`, `choices` and `many` come from the field's type."""

    name: str
    default: Any
    help: str
    limits: Limits
    role: Role
    metavar: str
    group: Group
    kinds: tuple[type, ...]  # some of str, int, float, bool; the first one that accepts a text converts it
    choices: tuple[str, ...]  # () if every value of the kinds is allowed
    own: str  # the form of an import path that is allowed besides the choices; "" if none is
    many: bool  # takes one or several values

    @property
    def flag(self) -> str:
        """The name on the command line."""
        return "--" + self.name.replace("_", "-")

    def convert(self, text: str) -> Any:
        """Convert one word of the command line; ValueError if none of the kinds accepts it."""
        for kind in self.kinds:
            try:
                return kind(text)
            except ValueError:
                continue
        raise ValueError(text)

    def check(self, value: Any) -> None:
        """Refuse a value that is outside the limits or not among the choices.

        Raises:
            InputError: the message names the option, the value and what is allowed.
        """
        for one in value if self.many else (value,):
            if self.choices and one is not None and one not in self.choices and not (self.own and ":" in one):
                own = f", or name one of your own as {self.own}" if self.own else ""
                raise InputError(f"{self.flag} is {one!r}: choose from {', '.join(self.choices)}{own}")
            if isinstance(one, (int, float)) and not self.limits.allow(one):
                allowed = f" {self.limits}" if str(self.limits) else " a finite number"
                raise InputError(f"{self.flag} is {one}: it must be{allowed}")


def options_of(kind: type, *groups: Group) -> dict[str, Option]:
    """The option of each field of a dataclass, by field name and in their order; with groups, the options of these."""
    hints, own = typing.get_type_hints(kind), _heading(kind)
    found = {field.name: _option(field, hints[field.name], own) for field in dataclasses.fields(kind)}
    return {name: option for name, option in found.items() if not groups or option.group in groups}


def _option(field: dataclasses.Field[Any], hint: Any, heading: Group) -> Option:
    arms = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    arms = tuple(arm for arm in arms if arm is not types.NoneType)
    many = typing.get_origin(arms[0]) is tuple
    if many:
        arms = typing.get_args(arms[0])[:1]
    stated = dict(field.metadata)
    stated["group"] = stated["group"] or heading
    if typing.get_origin(arms[0]) is Literal:
        stated["choices"], arms = typing.get_args(arms[0]), (str,)
    return Option(field.name, field.default, kinds=arms, many=many, **stated)


def _heading(kind: type) -> Group:
    title, _, about = inspect.cleandoc(kind.__doc__ or "").partition("\n")
    return Group(title.rstrip("."), " ".join(about.split()))
