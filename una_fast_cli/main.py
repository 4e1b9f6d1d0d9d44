"""`una-fast COMMAND`: every command of the project, whatever the working folder holds.

`python -m train.ddp` looks for `train` in the working folder first, where a user's own train.py hides ours. The script
`una-fast` does not look there. Its entry is in this package and not in `train`, so that it can name a file that hides
`train` (see `check_not_hidden`).
"""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import una_fast
from una_fast.errors import InputError
from una_fast.imports import missing_package

SIGPIPE = 13  # Windows has no name for it
ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Command:
    """A function(arguments, prog) -> exit code; its module is imported when the command is called.

    module: with the function `main`, or "module:function".
    """

    module: str
    about: str
    extra: str | None = None  # the extra of `pip install` that the command needs


COMMANDS = {
    "train": Command("train.ddp", "train a sentence encoder with hard negatives", "train"),
    "evaluate": Command("train.evaluate", "score an encoder on the tasks of SentEval", "evaluate"),
    "report": Command("train.report.__main__", "show runs as one HTML page", "report"),
    "download": Command("train.download", "fetch the corpus and the evaluation data of the paper", "train"),
    "generate": Command("train.generate", "write paraphrases or back-translations of a corpus", "generate"),
    "paper": Command("train.paper.__main__", "make a table of the paper, also with your own encoder and text", "train"),
    "compare": Command("train.compare", "train with and without hard negatives on your text, and compare", "train"),
    "probe": Command("una_fast_cli.probe", "show how near an encoder puts near-misses of your text", "integrations"),
    "index": Command("una_fast_cli.index", "build the index of a corpus"),
    "upload": Command("una_fast_cli.copies:upload", "copy an index to s3, gs, hdfs or another address", "remote"),
    "fetch": Command("una_fast_cli.copies:fetch", "copy an index from an address to this machine", "remote"),
    "negatives": Command("una_fast_cli.negatives", "write hard negatives to a file, as text or as token ids"),
    "explain": Command("una_fast_cli.explain", "show why each word of a sentence is replaced or kept"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit code: 2 after bad input, 128 + the signal's number after Ctrl-C or a closed pipe."""
    try:
        code = _run(list(sys.argv[1:] if arguments is None else arguments))
        sys.stdout.flush()
        return code
    except InputError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    except BrokenPipeError:  # the reader has closed the pipe, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what Python still writes when it exits
        return 128 + SIGPIPE
    except KeyboardInterrupt:
        sys.stderr.write("stopped\n")
        return 128 + signal.SIGINT


def _run(words: list[str]) -> int:
    if words[:1] == ["--version"]:
        sys.stdout.write(f"una_fast {una_fast.__version__}\n")
        return 0
    check_not_hidden("train")
    from train.config.command import first_word, show_warnings_as_lines  # only now that `train` is ours

    name = first_word(words, "una-fast", "command", {name: command.about for name, command in COMMANDS.items()})
    show_warnings_as_lines()
    try:
        module, _, function = COMMANDS[name].module.partition(":")
        return getattr(import_module(module), function or "main")(words[1:], prog=f"una-fast {name}")
    except ModuleNotFoundError as error:
        raise missing_package(error, COMMANDS[name].extra) or error from None


def check_not_hidden(package: str) -> None:
    """Refuse to run where another module named as our `package` is found before it; that module is not imported.

    Raises:
        InputError: it names the file that is in the way.
    """
    spec = importlib.util.find_spec(package)
    origin = Path(spec.origin).resolve() if spec and spec.origin else None
    if origin != (ROOT / package / "__init__.py").resolve():
        raise InputError(
            f"{origin or 'a folder ' + package} hides the package {package!r} of una_fast: rename it, or take its "
            "folder out of PYTHONPATH"
        )
