"""Names that a user types and that other trainers use.

foreign.tsv holds a line an answer: what to write, and behind a tab the names of SimCSE, transformers,
sentence-transformers, Accelerate and Lightning that it answers, but for those to which it is the nearest name.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from una_fast.errors import InputError, nearest


def answers() -> dict[str, str]:
    """What to write for a name of other trainers, by name without dashes before it; for a value, by flag-value."""
    lines = Path(__file__).with_name("foreign.tsv").read_text(encoding="utf-8").splitlines()
    return {name: answer for answer, names in (line.split("\t") for line in lines) for name in names.split()}


def known_flag(flag: str, known: Collection[str]) -> str:
    """Return `flag` if it is one of `known`, both with their dashes.

    Raises:
        InputError: it is not an option; the message says what to write instead.
    """
    if flag in known:
        return flag
    answer = answers().get(flag.lstrip("-").replace("_", "-").lower(), "")
    if answer.split(" ")[0].rstrip(",") in known:
        answer = f"did you mean {answer}?"
    elif not answer or answer.startswith("--"):
        answer = nearest(flag, known) or "see --help for all options"
    raise InputError(f"unknown option {flag}: {answer}")
