"""Names that a user types and that are not today's: of earlier versions, and of other trainers.

foreign.tsv holds a line an answer: what to write, and behind a tab the names of SimCSE, transformers,
sentence-transformers, Accelerate and Lightning that it answers, but for those to which it is the nearest name.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection
from pathlib import Path

from una_fast.errors import InputError, InputWarning, nearest

OLD = {  # of version 0.2 -> today's, for one version
    "--tie-weight": "--similarity-distillation",
    "--guard-sigma": "--gate-sigma",
    "--loss guarded": "--loss gated",
    "--compile auto": "--compile off",
    "--surface lower": "--surface kept",
}


def today(flag: str, value: str = "") -> str:
    """Today's name of a flag, or of a value of a flag; warns of an old one."""
    written = f"{flag} {value}" if value else flag
    if written not in OLD:
        return value or flag
    warnings.warn(f"{written} is an old name: write {OLD[written]}", InputWarning, stacklevel=2)
    return OLD[written].split()[-1]


def answers() -> dict[str, str]:
    """What to write for a name of other trainers, by name without dashes before it; for a value, by flag-value."""
    lines = Path(__file__).with_name("foreign.tsv").read_text(encoding="utf-8").splitlines()
    return {name: answer for answer, names in (line.split("\t") for line in lines) for name in names.split()}


def known_flag(flag: str, known: Collection[str]) -> str:
    """Today's name of a flag. known: the flags that are, with their dashes.

    Raises:
        InputError: it is no option; the message says what to write instead.
    """
    if (name := today(flag)) in known:
        return name
    answer = answers().get(flag.lstrip("-").replace("_", "-").lower(), "")
    if answer.split(" ")[0].rstrip(",") in known:
        answer = f"did you mean {answer}?"
    elif not answer or answer.startswith("--"):
        answer = nearest(flag, known) or "see --help for all options"
    raise InputError(f"unknown option {flag}: {answer}")
