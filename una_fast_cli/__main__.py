"""`una-fast COMMAND`: every command of the project, whatever the working folder contains.

`python -m train.ddp` looks for `train` in the working folder first, where a user's own train.py hides ours. The script
`una-fast` does not look there. Its entry is in this package and not in `train`, so that it can name a file that hides
`train` (see `main`).
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path

import una_fast
from una_fast.command import run_command
from una_fast.errors import InputError, nearest
from una_fast.imports import import_object

COMMANDS = {  # the function of each, which is imported when it is called, and what it does
    "train": ("train.ddp:main", "train a sentence encoder with hard negatives"),
    "evaluate": ("train.evaluate:main", "score an encoder on the tasks of SentEval"),
    "report": ("train.report.__main__:main", "show runs as one HTML page"),
    "download": ("train.download:main", "fetch the corpus and the evaluation data of the paper"),
    "generate": ("train.generate:main", "write paraphrases or back-translations of a corpus"),
    "compare": ("train.compare:main", "train with and without hard negatives on your text, and compare"),
    "probe": ("una_fast_cli.probe:main", "show how similar an encoder finds near-misses of your text"),
    "index": ("una_fast_cli.index:main", "build the index of a corpus"),
    "negatives": ("una_fast_cli.negatives:main", "write hard negatives to a file"),
    "explain": ("una_fast_cli.negatives:explain", "show how the negative of a sentence is made"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit code is that of `una_fast.command.run_command`."""
    words = sys.argv[1:] if arguments is None else arguments
    spec = importlib.util.find_spec("train")  # which imports no module
    origin = Path(spec.origin).resolve() if spec and spec.origin else None
    if origin != Path(__file__).resolve().parents[1] / "train" / "__init__.py":
        sys.stderr.write(
            f"error: {origin or 'a folder train'} hides the package 'train' of una_fast: rename it, or take its folder "
            "out of PYTHONPATH\n"
        )
        return 2
    return run_command(lambda: _run(*words))


def _run(name: str = "", *words: str) -> int:
    if name in ("-h", "--help"):
        lines = "".join(f"  {name:10} {about}\n" for name, (_, about) in COMMANDS.items())
        sys.stdout.write(
            f"usage: una-fast COMMAND [options]\n\n{lines}\nSee `una-fast COMMAND --help` and docs/commands.md.\n"
        )
    elif name == "--version":
        sys.stdout.write(f"una_fast {una_fast.__version__}\n")
    elif name in COMMANDS:
        return import_object(COMMANDS[name][0])(words, f"una-fast {name}")
    else:
        problem = f"unknown command {name!r}" if name else "the command is missing"
        raise InputError(f"{problem}: {nearest(name, COMMANDS) or 'choose from ' + ', '.join(COMMANDS)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
