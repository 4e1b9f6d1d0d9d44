"""`una-fast COMMAND`: runs every command of the project, in any working folder.

A user's train.py in the working folder hides our package `train` from `python -m train.ddp`, but not from this script.
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

COMMANDS = {  # name -> the function, which is imported only when the command runs, and what the command does
    "train": ("train.ddp:main", "train a sentence encoder with hard negatives"),
    "evaluate": ("train.evaluate:main", "score an encoder on the tasks of SentEval"),
    "verifier": ("train.verifier.__main__:main", "train a verifier, which tells near-misses from the same meaning"),
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
    """Run the command ``arguments[0]``, and return the exit code. arguments: by default sys.argv[1:]."""
    words = sys.argv[1:] if arguments is None else arguments
    spec = importlib.util.find_spec("train")  # imports nothing; a `train` in a folder of PYTHONPATH hides ours
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
