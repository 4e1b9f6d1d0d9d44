"""A command line: options as dataclass fields, their values from words and a YAML file, errors, and the exit code.

The metadata of a field state the text in --help, heading, bounds and role of its option.
"""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import os
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
from typing import Any, Literal, NoReturn

from una_fast.errors import InputError, InputWarning, nearest
from una_fast.imports import missing_package

BOUNDS = {"least": (ge, "at least"), "above": (gt, "above"), "most": (le, "at most"), "below": (lt, "below")}
LARGEST = 2.0**64  # every number that an option accepts is below it
# what a value of a type is called, and its placeholder in --help
TYPES = {str: ("text", "TEXT"), int: ("a whole number", "N"), float: ("a number", "X"), bool: ("true or false", "")}
PATHS = ("FILE", "FILE.yaml", "FOLDER", "NAME_OR_FOLDER", "ADDRESS", "RUN")  # placeholders of paths, where ~ is read
Role = Literal["result", "source", "running", "call"]
"""What a change of an option means to --resume and to a report.

result: the run computes something else, so --resume refuses it.
source: a corpus, model or dev set has another name; --resume recognises them by content, and a report compares them.
running: where and how the run is executed; --resume accepts it, and a report ignores it.
call: for one call of the command only, so a --config file must not contain it; else as running.
"""


def option(text: str, default: Any, heading: str = "", **stated: Any) -> Any:
    """A dataclass field that is an option.

    text: in --help; it begins with what a user has to give. heading: of its group in --help, up to the next heading; by
    default the first line of the class' docstring. stated: other attributes of `Option`, and bounds as ``least=0``.
    """
    return dataclasses.field(default=default, metadata={"text": text, "heading": heading, **stated})


@dataclass(frozen=True)
class Option:
    """An option as its dataclass field states it."""

    name: str
    default: Any
    kinds: tuple[type, ...]  # types of the field; a text becomes the first one that accepts it
    many: bool  # the field is a tuple
    help: str  # the text, and after a colon the meanings of the choices
    heading: str
    bounds: Mapping[str, float]  # of a number, or of each of several
    # Allowed values, () for any: stated as a list, as a mapping to meanings or to objects with a `meaning`, or by a
    # Literal type. One with a colon, such as "MODULE:CLASS", stands for every import path.
    choices: tuple[str, ...]
    role: Role = "result"
    metavar: str = ""  # placeholder of the value in --help; by default a word for the type
    required: bool = False  # it must not be empty
    positional: bool = False  # it has no flag on the command line

    @property
    def flag(self) -> str:
        """The name on the command line."""
        return self.metavar if self.positional else "--" + self.name.replace("_", "-")

    def read(self, value: Any) -> Any:
        """Convert a text, an entry of a YAML file or a Python value to the option's type; None means not given.

        Raises InputError, which says what is allowed, for another type, a broken bound or an unknown choice.
        """
        if value is None or not self.many:
            return value if value is None else self._read(value)
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
        raise InputError(f"{self.flag} is {value!r}, and must be {TYPES[self.kinds[-1]][0]}{several}")

    def _checked_text(self, text: str) -> str:
        if not self.choices:
            return expanduser(text) if self.metavar in PATHS else text  # noqa: PTH111  Path makes "" a "."
        if text in self.choices or (":" in text and ":" in "".join(self.choices)):
            return text
        answer = answers().get(f"{self.flag.lstrip('-')}-{text}") or f"choose from {', '.join(self.choices)}"
        raise InputError(f"{self.flag} is {text!r}: {answer}")

    def _within_bounds(self, number: float) -> float:
        for name, bound in [*self.bounds.items(), ("below", LARGEST)]:
            allows, word = BOUNDS[name]
            if not allows(number, bound):  # NaN never is
                raise InputError(f"{self.flag} is {number}: it must be {word} {bound:g}")
        return number

    def words(self, value: Any) -> list[str]:
        """Return the command-line arguments that set this option to `value`; an empty list for None."""
        if value is None or isinstance(value, bool):
            return [] if value is None else [self.flag if value else self.flag.replace("--", "--no-", 1)]
        return [self.flag, *map(str, value)] if self.many else [f"{self.flag}={value}"]

    def add_to(self, parser: Any) -> None:
        """Add the option to a parser, which leaves values as texts; its help ends with default and bounds."""
        default = " ".join(map(str, self.default)) if self.many else self.default
        notes = [] if default in (None, "") or bool in self.kinds else [f"default {default}"]
        notes += filter(None, [" and ".join(f"{BOUNDS[name][1]} {bound:g}" for name, bound in self.bounds.items())])
        about = (f"{self.help} [{', '.join(notes)}]" if notes else self.help).replace("%", "%%")
        if bool in self.kinds:
            parser.add_argument(self.flag, action=argparse.BooleanOptionalAction, help=about)
            return
        metavar = f"{{{','.join(self.choices)}}}" if self.choices else self.metavar or TYPES[self.kinds[0]][1]
        name, one, many = (self.name, "?", "*") if self.positional else (self.flag, None, "+")  # `fill_defaults` counts
        # repeated, an option adds values: --model A --model B is --model A B
        action = "extend" if self.many and not self.positional else "store"
        parser.add_argument(name, action=action, nargs=many if self.many else one, metavar=metavar, help=about)


def options_of(kind: type) -> dict[str, Option]:
    """The options of a dataclass by field name: its own in their order, then those of its base classes."""
    hints, fields = typing.get_type_hints(kind), {field.name: field for field in dataclasses.fields(kind)}
    options = {}
    for place in filter(dataclasses.is_dataclass, kind.__mro__):
        heading = (place.__doc__ or "").partition("\n")[0].rstrip(".")
        for name in inspect.get_annotations(place):
            stated, leaves = dict(fields[name].metadata), _leaves(hints[name])
            heading = stated.pop("heading") or heading
            choices = stated.pop("choices", ()) or [leaf for leaf in leaves if isinstance(leaf, str)]
            meanings = choices.items() if isinstance(choices, Mapping) else ()
            about = "; ".join(f"{choice}: {getattr(meaning, 'meaning', meaning)}" for choice, meaning in meanings)
            options[name] = Option(
                name,
                fields[name].default,
                kinds=tuple(leaf for leaf in leaves if isinstance(leaf, type) and leaf is not types.NoneType) or (str,),
                many=typing.get_origin(hints[name]) is tuple,
                help=": ".join(filter(None, [stated.pop("text"), about])),
                heading=heading,
                bounds={bound: stated.pop(bound) for bound in BOUNDS if bound in stated},
                choices=tuple(choices),
                **stated,
            )
    return options


def _leaves(hint: Any) -> list[Any]:
    """Return the innermost parts of a type hint: types, values of a Literal, and the ... of a tuple."""
    return [leaf for part in typing.get_args(hint) for leaf in _leaves(part)] or [hint]


def fill_defaults(options: Mapping[str, Option], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a checked value for every option by field name. Raises InputError if a required one is missing."""
    values = {name: option.read(given.get(name, option.default)) for name, option in options.items()}
    for name, option in options.items():
        if option.required and not values[name]:
            raise InputError(f"{option.flag} is missing: give the {option.help.split(':')[0]}")
    return values


def words_of(options: Iterable[Option], values: Mapping[str, Any]) -> list[str]:
    """The words of a command line for the options, by field name, that differ from their default."""
    changed = [option for option in options if option.read(values[option.name]) != option.default]
    return [word for option in changed for word in option.words(values[option.name])]


def answers() -> dict[str, str]:
    """What to write for a name of another trainer, by that name without dashes before it; for a value, by flag-value.

    foreign.tsv has a line per answer: what to write, a tab, and the names of SimCSE, transformers,
    sentence-transformers, Accelerate and Lightning that it answers, except those that `nearest` answers alike.
    """
    lines = Path(__file__).with_name("foreign.tsv").read_text(encoding="utf-8").splitlines()
    return {name: answer for answer, names in (line.split("\t") for line in lines) for name in names.split()}


def check_known(flag: str, known: Collection[str]) -> None:
    """Raise InputError, with a suggestion, if `flag` is not in `known`. All flags include their dashes."""
    if flag in known:
        return
    answer = answers().get(flag.lstrip("-").replace("_", "-").lower(), "")
    if answer.split(" ")[0].rstrip(",") in known:
        answer = f"did you mean {answer}?"
    elif not answer or answer.startswith("--"):
        answer = nearest(flag, known) or "see --help for all options"
    raise InputError(f"unknown option {flag}: {answer}")


_usual_format = warnings.formatwarning

# Spins of an OpenMP thread that waits for another one before it sleeps. With the default, 300,000, a step takes 15 s
# instead of 2.7 if other processes keep the cores busy.
SPINS = "10000"


class _Help(argparse.HelpFormatter):
    """Keeps flags and paths whole, which argparse breaks at their hyphens."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(self._split_lines(text, width))


class Command(argparse.ArgumentParser):
    """A command with its options, which cannot be abbreviated, under headings. Call it to run a command line."""

    def __init__(
        self,
        prog: str,
        about: str,
        options: Mapping[str, Option],
        run: Callable[[dict[str, Any]], int | None] = lambda values: None,
        extra: str | None = None,
        epilog: str = "",
        page: str = "",
    ) -> None:
        """A command named `prog`, which does `about` by calling `run` with a value for every option by field name.

        `run` returns the exit code, or None for 0. extra: what `pip install '.[EXTRA]'` must name. epilog: sentences at
        the end of --help. page: of docs/, named in the last of them. An option --config names a file of options.
        """
        epilog = f"{epilog} Read docs/{page}.md.".strip() if page else epilog
        super().__init__(
            prog, formatter_class=_Help, description=about, epilog=epilog,
            argument_default=argparse.SUPPRESS, allow_abbrev=False,
        )  # fmt: skip
        self.options, self.run, self.extra = options, run, extra
        places = [f"{option.metavar}{' ...' * option.many}" for option in options.values() if option.positional]
        self.usage = " ".join(["%(prog)s", *places, "[options]"])
        for heading, members in groupby(options.values(), key=lambda option: option.heading):
            section = self.add_argument_group(heading)
            for option in members:
                option.add_to(section)

    def __call__(self, arguments: Sequence[str] | None = None, prog: str = "") -> int:
        """Run a command line, by default that of the process, and return the exit code. prog: see `Command`."""
        self.prog = prog or self.prog
        return run_command(lambda: self.run(fill_defaults(self.options, self.given(arguments))), self.extra)

    def given(self, arguments: Sequence[str] | None) -> dict[str, Any]:
        """Read a command line and its --config file; values by field name, in which the command line wins.

        Raises InputError. An unknown option is reported before a missing one, because it may be that one, misspelt.
        """
        words = sys.argv[1:] if arguments is None else arguments
        for word in takewhile(lambda word: word != "--", words):
            if word.startswith("--"):
                check_known(word.partition("=")[0], self._option_string_actions)
        parsed = vars(self.parse_args(words))
        values = {name: self.options[name].read(value) for name, value in parsed.items() if value not in (None, [])}
        if "://" in (output := values.get("output") or ""):
            raise InputError(f"--output {output}: is an address: give a folder of this machine")
        file = values.pop("config", "")
        return self._in_file(file) | values if file else values

    def _in_file(self, name: str) -> dict[str, Any]:
        """Read a YAML file; values by field name. Keys may be written with - or _, and null means not given."""
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
        # ValueError: not UTF-8, or the 31st of June
        except (OSError, yaml.YAMLError, ValueError, RecursionError) as error:
            raise InputError(f"--config {name}: {' '.join(str(error).split())}") from error

    def error(self, message: str) -> NoReturn:
        """Raise argparse's message as an InputError."""
        raise InputError(f"{message.removeprefix('argument ')} (see --help)")


def run_command(action: Callable[[], int | None], extra: str | None = None) -> int:
    """Run `action` and return its exit code, 0 for None. extra: see `Command`.

    Bad input, an unusable file or a missing package prints one line on stderr and returns 2. Ctrl-C, or a closed pipe
    such as `| head`, returns 128 + the signal's number.
    """
    warnings.formatwarning = _one_line  # type: ignore[assignment]
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", SPINS)  # must be set before torch is loaded
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


def _one_line(message: Warning | str, category: type[Warning], *place: Any) -> str:
    """Format an InputWarning as one line, without file and line number, and other warnings as usual."""
    return f"warning: {message}\n" if issubclass(category, InputWarning) else _usual_format(message, category, *place)
