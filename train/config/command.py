"""The command line of every command: its parser, its values from a YAML file too, its errors and its exit code."""

from __future__ import annotations

import argparse
import contextlib
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby, takewhile
from os.path import expanduser
from pathlib import Path
from typing import Any, NoReturn

from train.config.options import Option
from una_fast.errors import InputError, InputWarning
from una_fast.imports import missing_package

DEEPEST = 5  # levels of lists and mappings in a YAML file; options need two
NOUNS = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}
PATHS = ("FILE", "FILE.yaml", "FOLDER", "NAME_OR_FOLDER", "ADDRESS", "RUN")  # placeholders of paths
STANDS_FOR = {str: "TEXT", int: "N", float: "X"}  # the placeholder of a value in --help


class Parser(argparse.ArgumentParser):
    """A parser of options by field name, each under its heading. It raises InputError, and takes no abbreviations."""

    def __init__(self, prog: str, description: str, options: Mapping[str, Option]) -> None:
        super().__init__(
            prog, "%(prog)s [options]", description, argument_default=argparse.SUPPRESS, allow_abbrev=False
        )
        self.options = options
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
                a value of the wrong kind; an address as --output.
        """
        words = sys.argv[1:] if arguments is None else list(arguments)
        for word in takewhile(lambda word: word != "--", words):
            if word.startswith("--") and (flag := word.split("=")[0]) not in self.flags:
                raise InputError(unknown_option(flag, self.flags))
        found, unknown = self.parse_known_args(words)
        if unknown:
            raise InputError(unknown_option(unknown[0], self.flags))
        values = vars(found)
        for action in self._actions:  # a shell leaves the ~ of --output=~/run, or in quotation marks, as it is
            if action.metavar in PATHS and (value := values.get(action.dest)):
                value, *more = map(expanduser, [value] if isinstance(value, str) else value)
                values[action.dest] = [value, *more] if action.nargs else value
        if "://" in (output := values.get("output") or ""):
            raise InputError(f"--output {output}: is an address; results are written to a disk of this machine")
        return values

    def checked(self, arguments: Sequence[str] | None) -> dict[str, Any]:
        """The value of every option, by field name: from the command line, else its default.

        Raises:
            InputError: an unknown option, or a value that is missing, of the wrong kind or out of its limits.
        """
        values = {name: option.default for name, option in self.options.items()} | self.given(arguments)
        for name, option in self.options.items():
            option.check(values[name])
        return values

    def error(self, message: str) -> NoReturn:
        """Raise argparse's message as an InputError."""
        raise InputError(f"{message.removeprefix('argument ')} (see --help)")


def _add(section: Any, option: Option) -> None:
    """Add an option, whose help has its default and limits behind it. Its limits and choices are checked later."""
    value = " ".join(map(str, option.default)) if isinstance(option.default, tuple) else option.default
    default = "" if value in (None, "") or option.kinds == (bool,) else f"default {value}"
    notes = ", ".join(filter(None, [default, option.limits]))
    about = (f"{option.help} [{notes}]" if notes else option.help).replace("%", "%%")
    if option.kinds == (bool,):
        section.add_argument(option.flag, action=argparse.BooleanOptionalAction, help=about)
        return
    listed = option.many and option.kinds == (int,)  # one word: numbers with commas between
    values = "{" + ",".join(filter(None, [*option.choices, option.own])) + "}" if option.choices else option.metavar
    section.add_argument(
        option.flag,
        type=whole_numbers if listed else _converter(option),
        nargs="+" if option.many and not listed else None,
        metavar=values or STANDS_FOR[option.kinds[0]],
        help=about,
    )


def _converter(option: Option) -> Callable[[str], Any]:
    """What makes a value of one word of the command line: the first kind of the option that accepts it."""

    def convert(text: str) -> Any:
        for kind in option.kinds:
            with contextlib.suppress(ValueError):
                return kind(text)
        raise argparse.ArgumentTypeError(f"{text!r} is not {NOUNS[option.kinds[-1]]}")

    return convert


def whole_numbers(text: str) -> tuple[int, ...]:
    """The whole numbers in a text such as "42,0,1"."""
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of whole numbers: write them as 42,0,1") from None


def first_word(words: Sequence[str], prog: str, kind: str, about: Mapping[str, str]) -> str:
    """The first word of a command line, which is the name of a `kind`. If it is --help, list them and exit.

    about: what each name stands for.

    Raises:
        InputError: there is no such name.
    """
    name = words[0] if words else ""
    if name in ("-h", "--help"):
        width, usage = max(map(len, about)), f"{prog} {kind.upper()}"
        lines = [f"  {one:<{width}}  {what}\n" for one, what in about.items()]
        sys.stdout.write(f"usage: {usage} [options]\n\n{''.join(lines)}\n`{usage} --help` shows the options.\n")
        sys.exit(0)
    if name in about:
        return name
    import difflib  # takes 5 ms, and only a mistake needs it

    close = difflib.get_close_matches(name, about, n=1)
    hint = f"did you mean {close[0]}?" if close else f"choose from {', '.join(about)}"
    is_missing = not name or name.startswith("-")
    raise InputError(f"{f'the {kind} is missing' if is_missing else f'unknown {kind} {name!r}'}: {hint}")


def file_values(parser: Parser, path: Path, known: Mapping[str, Option]) -> dict[str, Any]:
    """Values of the known options in a YAML file, by field name; keys may be written with - or _.

    Raises:
        InputError: no YAML file, an unknown key, a value of the wrong kind or out of its limits; the message names
            --config.
    """
    arguments: list[str] = []
    try:
        for key, value in read_yaml(path).items():
            name = str(key).replace("-", "_")
            if name not in known:
                hint = _hint(f"--{key}", [option.flag for option in known.values()]).replace("mean --", "mean ")
                raise InputError(f"unknown key {key}{hint.replace('-', '_') if '_' in str(key) else hint}")
            arguments += as_arguments(known[name], value)
        values = parser.given(arguments)
        for name, value in values.items():
            known[name].check(value)
        return values
    except ValueError as error:  # an InputError, or a number of 5,000 digits
        raise InputError(f"--config {path}: {error}") from error


def read_yaml(path: Path) -> dict[Any, Any]:
    """The mapping in a YAML file; {} for an empty file. InputError if it holds something else.

    Aliases, 300 bytes of which can stand for gigabytes, are not read, nor is what is nested deeper than any option.
    """
    import yaml  # these take 30 ms, and only --config needs them

    from una_fast.storage.files import read_bytes

    try:
        text, depth = read_bytes(path).decode(), 0
        for event in yaml.parse(text):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > DEEPEST or isinstance(event, yaml.AliasEvent):
                raise InputError(
                    "has aliases (*name) or deep nesting, which are not read: write one 'option: value' a line"
                )
        loaded = yaml.safe_load(text)
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"{error.strerror or error}: give a YAML file of options") from error
    except (yaml.YAMLError, ValueError) as error:  # ValueError: no UTF-8, a number of 5,000 digits, the 31st of June
        raise InputError(f"not YAML: {' '.join(str(error).split())}") from error
    if loaded is not None and not isinstance(loaded, dict):
        raise InputError(f"holds a {type(loaded).__name__}: write one 'option: value' a line")
    return loaded or {}


def as_arguments(option: Option, value: Any) -> list[str]:
    """A value of a YAML file as it would be written on the command line; null stands for an option not given."""
    if value is None:
        return []
    if option.kinds == (bool,) and isinstance(value, bool):
        return [option.flag if value else option.flag.replace("--", "--no-", 1)]
    if option.kinds == (bool,) or isinstance(value, (dict, bool)) or (isinstance(value, list) and not option.many):
        raise InputError(f"{option.name} is {value!r}, and must be {NOUNS[option.kinds[-1]]}")
    items = [str(item) for item in value] if isinstance(value, list) else [str(value)]
    if option.many and option.kinds != (int,):
        return [option.flag, *items]
    return [f"{option.flag}={','.join(items)}"]


def words_of(options: Iterable[Option], values: Mapping[str, Any]) -> list[str]:
    """The words of a command line that gives the options, by field name, which are not at their default."""
    words: list[str] = []
    for option in options:
        value, default = (list(one) if option.many else one for one in (values[option.name], option.default))
        if value != default:
            words += as_arguments(option, value)
    return words


def run_command(action: Callable[[], int | None], extra: str | None = None) -> int:
    """Run `action` and return its exit code; for bad input, a file or a missing package write one line and return 2.

    extra: what `pip install 'una_fast[EXTRA]'` must name to install the packages of the command, see `missing_package`.
    """
    show_warnings_as_lines()
    try:
        return action() or 0
    except ModuleNotFoundError as error:
        if (sentence := missing_package(error, extra)) is None:
            raise
        sys.stderr.write(f"error: {sentence}\n")
    except InputError as error:
        sys.stderr.write(f"error: {error}\n")
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


# what option names of SimCSE, transformers and sentence-transformers stand for that do not resemble ours
MEANT = {
    "--batch-size, which counts the sentences of all ranks together": "per-device-train-batch-size "
    "per-gpu-train-batch-size train-batch-size",
    "--corpus": "data dataset dataset-name train-file",
    "--dev": "eval-file validation-file",
    "--device cpu": "cpu no-cuda",
    "--device cuda": "cuda",
    "--eval-every": "eval-steps evaluation-steps",
    "--grad-cache": "mini-batch-size",
    "--grad-cache, which fits a large batch into memory": "gradient-accumulation-steps",
    "--learning-rate": "lr",
    "--mlm-weight 0.1": "do-mlm",
    "--model": "model-name-or-path",
    "--pooling": "pooler-type",
    "--precision bf16": "bf16",
    "--precision fp16": "fp16",
    "--resume": "resume-from-checkpoint",
    "--save-every": "save-steps",
    "--temperature": "tau temp",
    "--temperature, which is 1 / scale": "scale",
    "nothing: batches are made beside the training step": "dataloader-num-workers",
    "nothing: metrics.jsonl holds every step": "logging-steps",
}
ELSEWHERE = {name: meant for meant, names in MEANT.items() for name in names.split()}


def unknown_option(flag: str, known: Sequence[str]) -> str:
    """The message about an argument that no option takes. known: flags, with their dashes."""
    if not flag.startswith("-"):
        return f"unexpected argument {flag!r}: options start with --"
    return f"unknown option {flag}{_hint(flag, known)}"


def _hint(flag: str, known: Sequence[str]) -> str:
    import difflib  # takes 5 ms, and only a mistake needs it

    written = flag.lstrip("-").replace("_", "-").lower()
    meant = ELSEWHERE.get(written, "")
    if meant and (not meant.startswith("--") or meant.split()[0].rstrip(",") in known):
        return f": did you mean {meant}?" if meant.startswith("--") else f": it needs {meant}"
    close = difflib.get_close_matches(f"--{written}", known, n=1)
    return f": did you mean {close[0]}?" if close else ": see --help for all options"
