"""The command line of every command: its parser, its values from a YAML file too, its errors and its exit code."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, takewhile
from pathlib import Path
from typing import Any, NoReturn

from train.config.names import hint, nearest, today
from train.config.options import BOUNDS, Option, complete
from una_fast.errors import InputError, InputWarning
from una_fast.imports import missing_package
from una_fast.text_table import aligned

PLACEHOLDERS = {str: "TEXT", int: "N", float: "X"}  # of a value in --help, by its type


class Parser(argparse.ArgumentParser):
    """A parser of options by field name, each under its heading. It raises InputError, and takes no abbreviations."""

    def __init__(self, prog: str, about: str, options: Mapping[str, Option]) -> None:
        super().__init__(prog, description=about, argument_default=argparse.SUPPRESS, allow_abbrev=False)
        self.options = options
        places = [f"{option.metavar}{' ...' * option.many}" for option in options.values() if option.positional]
        self.usage = " ".join(["%(prog)s", *places, "[options]"])
        for group, members in groupby(options.values(), key=lambda option: option.group):
            section = self.add_argument_group(group.title, group.about or None)
            for option in members:
                _add(section, option)

    @property
    def flags(self) -> list[str]:
        """Every flag, with its dashes."""
        return [flag for action in self._actions for flag in action.option_strings]

    def given(self, arguments: Sequence[str] | None) -> dict[str, Any]:
        """The values that a command line gives, by field name.

        Raises:
            InputError: an unknown option, which is reported before a missing one, because it may be that one, misspelt;
                a value that its option does not take; an address as --output.
        """
        words = sys.argv[1:] if arguments is None else list(arguments)
        for i, word in enumerate(takewhile(lambda word: word != "--", words)):
            flag, equals, value = word.partition("=")
            if flag.startswith("--") and flag not in self.flags:
                if (new := today(flag)) not in self.flags:
                    raise InputError(f"unknown option {flag}: {hint(flag, self.flags)}")
                words[i] = new + equals + value
        parsed = vars(self.parse_args(words))
        values = {name: self.options[name].read(value) for name, value in parsed.items() if value not in (None, [])}
        if "://" in (output := values.get("output") or ""):
            raise InputError(f"--output {output}: is an address; results are written to a disk of this machine")
        return values

    def error(self, message: str) -> NoReturn:
        """Raise argparse's message as an InputError."""
        raise InputError(f"{message.removeprefix('argument ')} (see --help)")


def _add(section: Any, option: Option) -> None:
    """Add an option; its texts are read later, by `Option.read`. Its help has default and bounds behind it."""
    value = " ".join(map(str, option.default)) if isinstance(option.default, tuple) else option.default
    notes = [f"default {value}"] if value not in (None, "") and option.kinds != (bool,) else []
    notes += filter(None, [" and ".join(f"{BOUNDS[name][1]} {bound:g}" for name, bound in option.bounds.items())])
    about = (f"{option.help} [{', '.join(notes)}]" if notes else option.help).replace("%", "%%")
    if option.kinds == (bool,):
        section.add_argument(option.flag, action=argparse.BooleanOptionalAction, help=about)
        return
    choices = "{" + ",".join(filter(None, [*option.choices, option.own])) + "}" if option.choices else ""
    metavar = choices or option.metavar or PLACEHOLDERS[option.kinds[0]]
    several = option.many and not option.listed
    if option.positional:  # may be missing for argparse, because `complete` says better what is missing
        section.add_argument(option.name, nargs="*" if several else "?", metavar=metavar, help=about)
    else:
        section.add_argument(option.flag, nargs="+" if several else None, metavar=metavar, help=about)


@dataclass(frozen=True)
class Command:
    """A command; calling it runs a command line.

    Attributes:
        prog: its name in --help.
        about: what it does, in a sentence.
        options: its options by field name.
        run: what it does with a value for every option; returns the exit code, or None for 0.
        extra: what `pip install 'una_fast[EXTRA]'` must name to install its packages.
        epilog: the last sentences of --help.
    """

    prog: str
    about: str
    options: Mapping[str, Option]
    run: Callable[[dict[str, Any]], int | None]
    extra: str | None = None
    epilog: str = ""

    def __call__(self, arguments: Sequence[str] | None = None, prog: str = "") -> int:
        """Run a command line, by default that of the process, and return the exit code."""
        parser = Parser(prog or self.prog, self.about, self.options)
        parser.epilog = self.epilog
        return run_command(lambda: self.run(complete(self.options, parser.given(arguments))), self.extra)


def first_word(words: Sequence[str], prog: str, kind: str, about: Mapping[str, str]) -> str:
    """The first word of a command line, which is the name of a `kind`; if it is --help, list the names and exit.

    Args:
        words: The command line.
        prog: Name of the command, for --help.
        kind: What the names are names of.
        about: What each name stands for.

    Raises:
        InputError: There is no such name.
    """
    name, usage = (words[0] if words else ""), f"{prog} {kind.upper()}"
    if name in ("-h", "--help"):
        rows = aligned([("", name, meaning) for name, meaning in about.items()], left=(1, 2))
        lines = "".join(f"{row.rstrip()}\n" for row in rows)
        sys.stdout.write(f"usage: {usage} [options]\n\n{lines}\n`{usage} --help` shows the options.\n")
        sys.exit(0)
    if name not in about:
        is_missing = not name or name.startswith("-")
        problem = f"the {kind} is missing" if is_missing else f"unknown {kind} {name!r}"
        raise InputError(f"{problem}: {nearest(name, about) or 'choose from ' + ', '.join(about)}")
    return name


def file_values(name: str, options: Mapping[str, Option]) -> dict[str, Any]:
    """Values of the options in a YAML file, by field name; keys may be written with - or _, and null is not given.

    Raises:
        InputError: no YAML file, an unknown key, a value that its option does not take; the message names --config.
    """
    try:
        values, flags = {}, {option.flag: option for option in options.values()}
        for key, value in read_yaml(Path(name)).items():
            flag = today("--" + str(key).replace("_", "-"))
            if flag not in flags:
                answer = hint(flag, flags).replace("mean --", "mean ")
                raise InputError(f"unknown key {key}: {answer.replace('-', '_') if '_' in str(key) else answer}")
            if value is not None:
                values[flags[flag].name] = flags[flag].read(value)
        return values
    except InputError as error:
        raise InputError(f"--config {name}: {error}") from error


def read_yaml(path: Path) -> dict[Any, Any]:
    """The mapping in a YAML file; {} for an empty file. InputError if it cannot be read, or holds something else."""
    import yaml  # takes 30 ms, and only --config needs it

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{error.strerror}: give a YAML file of options") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: no UTF-8, the 31st of June
        raise InputError(f"not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(content or {}, dict):
        raise InputError(f"holds a {type(content).__name__}: write one 'option: value' a line")
    return content or {}


def run_command(action: Callable[[], int | None], extra: str | None = None) -> int:
    """Run `action` and return its exit code, which is 0, or what `action` returns.

    Bad input, a file that cannot be used or a missing package is one line on stderr and exit code 2. After Ctrl-C or a
    closed pipe, as `| head` closes it, the code is 128 + the signal's number.

    Args:
        action: what the command does.
        extra: see `Command`.
    """
    show_warnings_as_lines()
    try:
        code = action() or 0
        sys.stdout.flush()
        return code
    except ModuleNotFoundError as error:
        if (sentence := missing_package(error, extra)) is None:
            raise
        sys.stderr.write(f"error: {sentence}\n")
    except InputError as error:
        sys.stderr.write(f"error: {error}\n")
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what Python still writes when it exits
        return 128 + 13  # SIGPIPE, for which Windows has no name
    except KeyboardInterrupt:
        sys.stderr.write("stopped\n")
        return 128 + signal.SIGINT
    except OSError as error:  # a name of 256 characters, a file that the user may not read
        if not error.filename:
            raise
        sys.stderr.write(f"error: {error.filename}: {error.strerror}\n")
    return 2


def show_warnings_as_lines() -> None:
    """Write each InputWarning as one line on stderr, without file and line number; other warnings stay as they are."""
    shown = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *place: Any) -> None:
        if issubclass(category, InputWarning):
            sys.stderr.write(f"warning: {message}\n")
        else:
            shown(message, category, *place)

    warnings.showwarning = show  # type: ignore[assignment]
