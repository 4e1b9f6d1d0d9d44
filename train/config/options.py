"""Options as dataclass fields: a field states the default, help text, limits, role and heading of its option."""

from __future__ import annotations

import dataclasses
import inspect
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import ge, gt, le, lt
from typing import Any, Literal

from una_fast.errors import InputError

LARGEST = 2.0**64  # above any number that an option takes
Role = Literal["result", "source", "running", "call"]
"""How an option affects a run.

result: the run computes something else if it changes, so --resume refuses another value.
source: names a corpus, a model or a dev set. A checkpoint knows them by their content, so the name may change on
    --resume (a folder that was moved); runs of different sources are different runs in a report.
running: says where and how the run is carried out. It may change on --resume, and a report compares runs without it.
call: concerns one call of the command, so a --config file must not hold it. It may change on --resume.
"""


@dataclass(frozen=True)
class Group:
    """A heading of --help. about: what stands below it. role: of its options that state no other."""

    title: str
    about: str = ""
    role: Role = "result"

    def option(
        self, default: Any, help: str, choices: Mapping[str, str] | Sequence[str] = (), own: str = "", **stated: Any
    ) -> Any:
        """A dataclass field that is an option under this heading; the further arguments are fields of `Option`.

        choices: a mapping from each value to its meaning, which --help then shows, or the values alone.
        """
        if isinstance(choices, Mapping):
            help += ": " + "; ".join(f"{name}: {meaning}" for name, meaning in choices.items())
        if own:
            help += f"; {own}: one of your own, by its import path"
        stated = {"group": self, "role": self.role, **stated, "choices": (*choices,), "own": own}
        return dataclasses.field(default=default, metadata={"option": Option(default, help, **stated)})


option = Group("").option  # under the docstring of its dataclass


@dataclass(frozen=True)
class Option:
    """An option as its dataclass field states it; `name`, `kinds` and `many` come from the field.

    least, above, most, below: bounds of a number, or of each of several numbers: it may equal `least` and `most`, but
    not `above` and `below`.
    metavar: the placeholder of the value in --help; if empty, a word for the type. choices: the values that a field
    of type str takes, () for any; a Literal type lists its values itself. own: what may stand there besides the
    choices, by its import path, as "MODULE:CLASS"; "" for nothing. required: it must not be empty. group: its heading
    in --help; if none is stated, the first line of the dataclass' docstring, with the rest of it below.
    """

    default: Any
    help: str
    least: float | None = None
    above: float | None = None
    most: float | None = None
    below: float | None = None
    role: Role = "result"
    metavar: str = ""
    choices: tuple[str, ...] = ()
    own: str = ""
    required: bool = False
    group: Group = Group("")
    name: str = ""
    kinds: tuple[type, ...] = ()  # some of str, int, float, bool; a text becomes the first that accepts it
    many: bool = False  # takes one or several values

    @property
    def flag(self) -> str:
        """The name on the command line."""
        return "--" + self.name.replace("_", "-")

    @property
    def limits(self) -> str:
        """The bounds in words; "" if there are none."""
        words = {"at least": self.least, "above": self.above, "at most": self.most, "below": self.below}
        return " and ".join(f"{word} {bound:g}" for word, bound in words.items() if bound is not None)

    def _allows(self, number: float) -> bool:
        """Whether a number is within the bounds and below LARGEST; NaN never is."""
        within = {ge: self.least, gt: self.above, le: self.most, lt: self.below}
        return abs(number) < LARGEST and all(test(number, bound) for test, bound in within.items() if bound is not None)

    def check(self, value: Any) -> None:
        """Refuse a value that is missing, of another type, outside the bounds or not among the choices.

        Raises:
            InputError: the message names the option, the value and what is allowed.
        """
        if self.required and not value:
            raise InputError(f"{self.flag} is missing: give the {self.help.split(':')[0]}")
        allowed = (int, *self.kinds) if float in self.kinds else self.kinds
        for one in value if self.many and isinstance(value, (tuple, list)) else (value,):
            if not isinstance(one, (*allowed, types.NoneType)):  # in a file that --resume reads
                raise InputError(f"{self.flag} is {one!r}: give {' or '.join(kind.__name__ for kind in self.kinds)}")
            if self.choices and one is not None and one not in self.choices and not (self.own and ":" in str(one)):
                own = f", or name one of your own as {self.own}" if self.own else ""
                raise InputError(f"{self.flag} is {one!r}: choose from {', '.join(self.choices)}{own}")
            if isinstance(one, (int, float)) and not self._allows(one):
                raise InputError(f"{self.flag} is {one}: it must be {self.limits or 'a finite number'}")


def options_of(kind: type, *groups: Group) -> dict[str, Option]:
    """The option of each field of a dataclass, by field name and in their order; with groups, the options of these."""
    hints, (title, _, about) = typing.get_type_hints(kind), inspect.cleandoc(kind.__doc__ or "").partition("\n")
    own = Group(title.rstrip("."), " ".join(about.split()))
    found = {field.name: _option(field, hints[field.name], own) for field in dataclasses.fields(kind)}
    return {name: option for name, option in found.items() if not groups or option.group in groups}


def _option(field: dataclasses.Field[Any], hint: Any, heading: Group) -> Option:
    arms = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    arms = tuple(arm for arm in arms if arm is not types.NoneType)
    many = typing.get_origin(arms[0]) is tuple
    if many:
        arms = typing.get_args(arms[0])[:1]
    stated: Option = field.metadata["option"]
    choices = stated.choices
    if typing.get_origin(arms[0]) is Literal:
        choices, arms = typing.get_args(arms[0]), (str,)
    group = stated.group if stated.group.title else heading
    return dataclasses.replace(stated, name=field.name, kinds=arms, many=many, choices=choices, group=group)
