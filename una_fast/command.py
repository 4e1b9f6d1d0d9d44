"""Makes a command from a dataclass whose fields are the options. Values come from the command line or a YAML file.

`option` declares a field. `Command` reads a command line and calls a function with an instance of the dataclass.
"""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import os
import re
import signal
import sys
import textwrap
import types
import typing
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, takewhile
from operator import ge, gt, le, lt
from os.path import expanduser
from pathlib import Path
from typing import Any, Generic, Literal, NoReturn, TypeVar

from una_fast.errors import InputError, InputWarning, nearest
from una_fast.imports import missing_package

BOUNDS = {"least": (ge, "at least"), "above": (gt, "above"), "most": (le, "at most"), "below": (lt, "below")}
LARGEST = 2.0**64  # exclusive upper bound of every number
# type -> its name in messages, and its placeholder in --help
TYPES = {str: ("text", "TEXT"), int: ("a whole number", "N"), float: ("a number", "X"), bool: ("true or false", "")}
# placeholders of paths, in which ~ is expanded
PATHS = ("FILE", "FILE.yaml", "FOLDER", "FILE_OR_FOLDER", "NAME_OR_FOLDER", "ADDRESS", "RUN")
MOST = "The options that most calls need"  # heading of the first ones in --help
Options = TypeVar("Options")  # the dataclass of a command
Role = Literal["result", "source", "running", "call"]
"""How --resume and a report treat an option.

result: it changes what the run computes. --resume refuses another value, and a report compares the values.
source: it names a corpus, model or dev set. --resume compares the content, not the name; a report compares the names.
running: it sets where and how the run is executed. --resume accepts another value, and a report ignores it.
call: like running, but it applies only to one call of the command, so a --config file must not contain it.
"""


def option(text: str, default: Any, heading: str = "", **attributes: Any) -> Any:
    """Declare a dataclass field as an option.

    text: the help. The error about a missing option quotes the help up to the first colon or full stop.
    heading: begins a new group in --help. The docstring of the class is the heading of the first group.
    attributes: other attributes of `Option`, and bounds such as ``least=0``.
    """
    return dataclasses.field(default=default, metadata={"text": text, "heading": heading, **attributes})


@dataclass(frozen=True)
class Option:
    """One option of a command, made from a dataclass field."""

    name: str
    default: Any
    kinds: tuple[type, ...]  # types of the field; a text is converted to the first one that accepts it
    many: bool  # the field is a tuple of values
    help: str  # the text given to `option`, then the meanings of the choices
    heading: str
    bounds: Mapping[str, float]  # the least and the largest allowed number, by key of BOUNDS
    # Allowed values, () for any. A field declares them by a Literal type, by a list, or by a mapping. The mapping's
    # values are meanings, or objects with a `meaning`. A choice such as "MODULE:CLASS" allows every import path.
    choices: tuple[str, ...]
    role: Role = "result"
    metavar: str = ""  # placeholder of the value in --help; if empty, the one in TYPES
    required: bool = False  # an empty value is refused
    positional: bool = False  # an argument without a flag

    @property
    def flag(self) -> str:
        """What the user types, such as --max-length; for a positional argument, its placeholder in --help."""
        return self.metavar if self.positional else "--" + self.name.replace("_", "-")

    def read(self, value: Any) -> Any:
        """Convert a text, a YAML value or a Python value to the option's type, and check it. None remains None."""
        if value is None:
            return None
        if not self.many:
            return self._read(value)
        values = value if isinstance(value, (tuple, list)) else [value]
        if values and str not in self.kinds:
            values = ",".join(map(str, values)).split(",")
        return tuple(map(self._read, values))

    def _read(self, value: Any) -> Any:
        if isinstance(value, bool) and bool in self.kinds:
            return value
        if isinstance(value, bool) and "on" in self.choices:  # YAML reads on and off as bool
            value = "on" if value else "off"
        for kind in () if isinstance(value, (bool, dict, list)) or bool in self.kinds else self.kinds:
            try:
                read: Any = kind(str(value))
            except ValueError:
                continue
            return self._checked_text(read) if kind is str else self._within_bounds(read)
        several = ": write them as 42,0,1" if self.many else ""
        raise InputError(f"{self.flag} is {value!r} but must be {TYPES[self.kinds[-1]][0]}{several}")

    def _checked_text(self, text: str) -> str:
        if not self.choices:
            return expanduser(text) if self.metavar in PATHS else text  # noqa: PTH111  Path makes "" a "."
        if text in self.choices or (":" in text and ":" in "".join(self.choices)):
            return text
        advice = foreign_names().get(f"{self.flag.lstrip('-')}-{text}") or f"choose from {', '.join(self.choices)}"
        raise InputError(f"{self.flag} is {text!r}: {advice}")

    def _within_bounds(self, number: float) -> float:
        for name, bound in [*self.bounds.items(), ("below", LARGEST)]:
            allows, word = BOUNDS[name]
            if not allows(number, bound):  # NaN never is
                raise InputError(f"{self.flag} is {number}: it must be {word} {bound:g}")
        return number

    def arguments(self, value: Any) -> list[str]:
        """Return the command-line arguments that set this option to `value`."""
        if value is None:
            return []
        if isinstance(value, bool):
            return [self.flag if value else self.flag.replace("--", "--no-", 1)]
        return [self.flag, *map(str, value)] if self.many else [f"{self.flag}={value}"]

    def add_to(self, parser: Any) -> None:
        """Add the option to an argparse parser, without conversion: `read` converts the text later."""
        default = " ".join(map(str, self.default)) if self.many else self.default
        notes = [] if default in (None, "") or bool in self.kinds else [f"default {default}"]
        notes += filter(None, [" and ".join(f"{BOUNDS[name][1]} {bound:g}" for name, bound in self.bounds.items())])
        about = (f"{self.help} [{', '.join(notes)}]" if notes else self.help).replace("%", "%%")
        if bool in self.kinds:
            parser.add_argument(self.flag, action=argparse.BooleanOptionalAction, help=about)
            return
        metavar = f"{{{','.join(self.choices)}}}" if self.choices else self.metavar or TYPES[self.kinds[0]][1]
        # argparse accepts a missing positional argument, because the message of `make_options` is clearer
        name, one, many = (self.name, "?", "*") if self.positional else (self.flag, None, "+")
        # a repeated option adds values: --model A --model B is --model A B
        action = "extend" if self.many and not self.positional else "store"
        parser.add_argument(name, action=action, nargs=many if self.many else one, metavar=metavar, help=about)


def options_of(kind: type) -> dict[str, Option]:
    """Return the options of a dataclass by field name. Fields of base classes come after those of the class itself."""
    hints, options = typing.get_type_hints(kind), {}
    for owner in filter(dataclasses.is_dataclass, kind.__mro__):
        heading, fields = (owner.__doc__ or "").partition("\n")[0].rstrip("."), owner.__dataclass_fields__
        for name in inspect.get_annotations(owner):
            declared, leaves = dict(fields[name].metadata), _leaves(hints[name])
            heading = declared.pop("heading") or heading
            if name in options:  # a class before this one declares it again
                continue
            choices = declared.pop("choices", ()) or [leaf for leaf in leaves if isinstance(leaf, str)]
            meanings = choices.items() if isinstance(choices, Mapping) else ()
            about = "; ".join(f"{choice}: {getattr(meaning, 'meaning', meaning)}" for choice, meaning in meanings)
            options[name] = Option(
                name,
                fields[name].default,
                kinds=tuple(leaf for leaf in leaves if isinstance(leaf, type) and leaf is not types.NoneType) or (str,),
                many=typing.get_origin(hints[name]) is tuple,
                help=". ".join(filter(None, [declared.pop("text"), about])),
                heading=heading,
                bounds={bound: declared.pop(bound) for bound in BOUNDS if bound in declared},
                choices=tuple(choices),
                **declared,
            )
    return options


def _leaves(hint: Any) -> list[Any]:
    """Return the innermost parts of a type hint, such as [int, Ellipsis, NoneType] for ``tuple[int, ...] | None``."""
    return [leaf for part in typing.get_args(hint) for leaf in _leaves(part)] or [hint]


def make_options(kind: type[Options], given: Mapping[str, Any], options: Mapping[str, Option] | None = None) -> Options:
    """Make an instance of a dataclass from values by field name. The others have their default.

    options: the options of a command, if some fields of `kind` are none of them, or if they have other defaults.
    Raises InputError if a value is wrong, or a required one is missing or empty.
    """
    options = options or options_of(kind)
    values = {name: option.read(given.get(name, option.default)) for name, option in options.items()}
    for name, option in options.items():
        if option.required and not values[name]:
            raise InputError(f"{option.flag} is missing: give the {re.split('[:.] ', option.help)[0]}")
    return kind(**values)


def settings_of(options: Any, *groups: type) -> dict[str, Any]:
    """Return the values of the fields that `options` inherits from these dataclasses, by field name."""
    return {field.name: getattr(options, field.name) for group in groups for field in dataclasses.fields(group)}


def arguments_of(options: Iterable[Option], values: Mapping[str, Any]) -> list[str]:
    """Return the command-line arguments that set `options` to `values`, without options at their default."""
    changed = [option for option in options if option.read(values[option.name]) != option.default]
    return [argument for option in changed for argument in option.arguments(values[option.name])]


def foreign_names() -> dict[str, str]:
    """Return {option of another trainer: advice}, such as {"lr": "--learning-rate"}.

    A key may also be OPTION-VALUE, such as "device-mps". Each line of foreign.tsv contains the advice, a tab, and the
    options of SimCSE, transformers, sentence-transformers, Accelerate and Lightning that need this advice.
    """
    lines = Path(__file__).with_name("foreign.tsv").read_text(encoding="utf-8").splitlines()
    return {name: advice for advice, names in (line.split("\t") for line in lines) for name in names.split()}


def check_known(flag: str, known: Collection[str]) -> None:
    """Raise InputError with a suggestion if `flag`, such as --max-length, is not in `known`."""
    if flag in known:
        return
    advice = foreign_names().get(flag.lstrip("-").replace("_", "-").lower(), "")
    if advice.split(" ")[0].rstrip(",") in known:
        advice = f"did you mean {advice}?"
    elif not advice or advice.startswith("--"):  # the advice names an option of another command
        advice = nearest(flag, known) or "see --help for all options"
    raise InputError(f"unknown option {flag}: {advice}")


class _Help(argparse.HelpFormatter):
    """Breaks lines only at spaces; argparse also breaks flags and paths at their hyphens."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(self._split_lines(text, width))


class Command(argparse.ArgumentParser, Generic[Options]):
    """A command: the parser of its options, and the function that runs it. Call the object to run a command line."""

    def __init__(
        self,
        prog: str,
        about: str,
        kind: type[Options],
        run: Callable[[Options], int | None] = lambda options: None,
        *,
        make: Callable[[dict[str, Any]], Options] | None = None,
        options: Mapping[str, Option] | None = None,
        extra: str | None = None,
        epilog: str = "",
        page: str = "",
        first: Sequence[str] = (),
    ) -> None:
        """Make the parser. If there is an option --config, its file may contain the other options.

        kind: the dataclass of the options.
        run: receives the options; returns the exit code, or None for 0.
        make: makes the dataclass from the given values by field name, by default with `make_options`.
        options: as in `make_options`.
        extra: the extra that the message about a missing package recommends.
        page: the page in docs/ that --help refers to, without ".md".
        first: names of the options that --help shows first, because most calls need no others.
        """
        epilog = f"{epilog} Read docs/{page}.md.".strip() if page else epilog
        super().__init__(
            prog, formatter_class=_Help, description=about, epilog=epilog,
            argument_default=argparse.SUPPRESS, allow_abbrev=False,
        )  # fmt: skip
        self.options = options = options or options_of(kind)
        self.make = make or (lambda given: make_options(kind, given, options))
        self.run, self.extra = run, extra
        positional = [f"{option.metavar}{' ...' * option.many}" for option in options.values() if option.positional]
        self.usage = " ".join(["%(prog)s", *positional, "[options]"])
        in_order = [*first, *(name for name in options if name not in first)]
        for heading, names in groupby(in_order, key=lambda name: MOST if name in first else options[name].heading):
            section = self.add_argument_group(heading)
            for name in names:
                options[name].add_to(section)

    def __call__(self, arguments: Sequence[str] | None = None, prog: str = "") -> int:
        """Run the command and return the exit code. arguments: by default sys.argv[1:]. prog: the name in --help."""
        self.prog = prog or self.prog
        return run_command(lambda: self.run(self.read(arguments)), self.extra)

    def read(self, arguments: Sequence[str] | None = None) -> Options:
        """Read a command line and its --config file, and return the options."""
        return self.make(self.given(arguments))

    def given(self, arguments: Sequence[str] | None) -> dict[str, Any]:
        """Read a command line and its --config file, and return the values that they set, by field name.

        A value on the command line replaces the value in the file.
        """
        arguments = sys.argv[1:] if arguments is None else arguments
        for argument in takewhile(lambda argument: argument != "--", arguments):
            if argument.startswith("--"):  # checked first, else a misspelt required option would be called missing
                check_known(argument.partition("=")[0], self._option_string_actions)
        parsed = vars(self.parse_args(arguments))
        values = {name: self.options[name].read(value) for name, value in parsed.items() if value not in (None, [])}
        if "://" in (output := values.get("output") or ""):
            raise InputError(f"--output {output}: is an address: give a folder on this machine")
        file = values.pop("config", "")
        return self._in_file(file) | values if file else values

    def _in_file(self, name: str) -> dict[str, Any]:
        """Return the values in a YAML file by field name. A key is an option's name, written with - or _."""
        import yaml  # takes 30 ms, and only --config needs it

        known, values = {option.flag: option for option in self.options.values() if option.role != "call"}, {}
        try:
            content = yaml.safe_load(Path(name).read_text(encoding="utf-8")) or {}
            if not isinstance(content, dict):
                raise InputError(f"contains a {type(content).__name__}: write one 'option: value' per line")
            for key, value in content.items():
                check_known(flag := f"--{key}".replace("_", "-"), known)
                if value is not None:
                    values[known[flag].name] = known[flag].read(value)
            return values
        # ValueError: the file is not UTF-8, or contains an impossible date such as 2024-06-31
        except (OSError, yaml.YAMLError, ValueError, RecursionError) as error:
            raise InputError(f"--config {name}: {' '.join(str(error).split())}") from error

    def error(self, message: str) -> NoReturn:
        """Raise argparse's message as an InputError."""
        raise InputError(f"{message.removeprefix('argument ')} (see --help)")


def run_command(action: Callable[[], int | None], extra: str | None = None) -> int:
    """Run `action` and return its exit code, or 0 if `action` returns None.

    Returns 2 and prints one line on stderr if the input is invalid, a file is not usable or a package is missing.
    Returns 128 + the signal's number after Ctrl-C or a closed pipe, such as `| head`.

    extra: the extra that the message about a missing package recommends.
    """
    warnings.formatwarning = _one_line  # type: ignore[assignment]
    try:
        code = action() or 0
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes stdout when it exits
        return 128 + 13  # SIGPIPE, for which Windows has no name
    except KeyboardInterrupt:
        sys.stderr.write("stopped\n")
        return 128 + signal.SIGINT
    except (InputError, ModuleNotFoundError, OSError) as error:
        message: Any = error
        if isinstance(error, ModuleNotFoundError):
            message = missing_package(error, extra)
        elif isinstance(error, OSError):  # for example a file name that is too long, or no permission
            message = error.filename and f"{error.filename}: {error.strerror}"
        if message is None:  # a bug of una_fast
            raise
        sys.stderr.write(f"error: {message}\n")
    return 2


_python_format = warnings.formatwarning


def _one_line(message: Warning | str, category: type[Warning], *location: Any) -> str:
    """Format an InputWarning as one line, without file and line number, and other warnings as Python does."""
    if issubclass(category, InputWarning):
        return f"warning: {message}\n"
    return _python_format(message, category, *location)
