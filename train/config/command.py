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

from train.config.names import hint, today
from train.config.options import BOUNDS, Option, complete
from una_fast.errors import InputError, InputWarning
from una_fast.imports import missing_package

_usual_format = warnings.formatwarning
PLACEHOLDERS = {str: "TEXT", int: "N", float: "X"}  # of a value in --help, by its type

# Rounds for which a thread of an operation waits for another one before it sleeps. By default they are 300,000, and
# where other work keeps the cores busy they take ten times the processor time of a step: 15 s of a step instead of 2.7.
SPINS = "10000"


class Parser(argparse.ArgumentParser):
    """A parser of options by field name, each under its heading. It raises InputError, and takes no abbreviations."""

    def __init__(self, prog: str, about: str, options: Mapping[str, Option], epilog: str = "") -> None:
        super().__init__(prog, description=about, epilog=epilog, argument_default=argparse.SUPPRESS, allow_abbrev=False)
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
    is_switch = option.kinds == (bool,)
    default = " ".join(map(str, option.default)) if option.many else option.default
    notes = [f"default {default}"] if default not in (None, "") and not is_switch else []
    notes += filter(None, [" and ".join(f"{BOUNDS[name][1]} {bound:g}" for name, bound in option.bounds.items())])
    about = (f"{option.help} [{', '.join(notes)}]" if notes else option.help).replace("%", "%%")
    if is_switch:
        section.add_argument(option.flag, action=argparse.BooleanOptionalAction, help=about)
        return
    choices = "{" + ",".join(option.choices) + "}" if option.choices else ""
    name, single, many = (option.name, "?", "*") if option.positional else (option.flag, None, "+")  # `complete` counts
    metavar = choices or option.metavar or PLACEHOLDERS[option.kinds[0]]
    section.add_argument(name, nargs=many if option.many else single, metavar=metavar, help=about)


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
        parser = Parser(prog or self.prog, self.about, self.options, self.epilog)
        return run_command(lambda: self.run(complete(self.options, parser.given(arguments))), self.extra)


def file_values(name: str, options: Mapping[str, Option]) -> dict[str, Any]:
    """Values of the options in a YAML file, by field name; keys may be written with - or _, and null is not given.

    Raises:
        InputError: no YAML file, an unknown key, a value that its option does not take; the message names --config.
    """
    import yaml  # takes 30 ms, and only --config needs it

    values, flags = {}, {option.flag: option for option in options.values()}
    try:
        content = yaml.safe_load(Path(name).read_text(encoding="utf-8")) or {}
        if not isinstance(content, dict):
            raise InputError(f"holds a {type(content).__name__}: write one 'option: value' a line")
        for key, value in content.items():
            flag = today("--" + str(key).replace("_", "-"))
            if flag not in flags:
                raise InputError(f"unknown key {key}: {hint(flag, flags)}")
            values[flags[flag].name] = flags[flag].read(value)
    except OSError as error:
        raise InputError(f"--config {name}: {error.strerror}: give a YAML file of options") from error
    except InputError as error:
        raise InputError(f"--config {name}: {error}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: no UTF-8, the 31st of June
        raise InputError(f"--config {name}: not YAML: {' '.join(str(error).split())}") from error
    return {name: value for name, value in values.items() if value is not None}


def run_command(action: Callable[[], int | None], extra: str | None = None) -> int:
    """Run `action` and return its exit code, which is 0, or what `action` returns.

    Bad input, a file that cannot be used or a missing package is one line on stderr and exit code 2. After Ctrl-C or a
    closed pipe, as `| head` closes it, the code is 128 + the signal's number.

    Args:
        action: what the command does.
        extra: see `Command`.
    """
    warnings.formatwarning = _one_line  # type: ignore[assignment]
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", SPINS)  # is read when torch is loaded
    try:
        code = action() or 0
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what Python still writes when it exits
        return 128 + 13  # SIGPIPE, for which Windows has no name
    except KeyboardInterrupt:
        sys.stderr.write("stopped\n")
        return 128 + signal.SIGINT
    except (InputError, ModuleNotFoundError, OSError) as error:
        if (sentence := _sentence(error, extra)) is None:
            raise
        sys.stderr.write(f"error: {sentence}\n")
    return 2


def _sentence(error: Exception, extra: str | None) -> Any:
    """The message about an error; None for a bug of una_fast."""
    if isinstance(error, ModuleNotFoundError):
        return missing_package(error, extra)
    if isinstance(error, OSError):  # a name of 256 characters, a file that the user may not read
        return error.filename and f"{error.filename}: {error.strerror}"
    return error


def _one_line(message: Warning | str, category: type[Warning], *place: Any) -> str:
    """An InputWarning as one line, without file and line number; other warnings stay as they are."""
    return f"warning: {message}\n" if issubclass(category, InputWarning) else _usual_format(message, category, *place)
