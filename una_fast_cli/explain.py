"""`una-fast explain --index FOLDER SENTENCE...`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from train.config.command import Parser
from train.config.options import option, options_of
from train.config.run import DRAWS, Run
from una_fast_cli.negatives import Source, augmenter_of


@dataclass(frozen=True)
class Explain:
    """Output."""

    json: bool = option(False, "write one JSON object a line instead of a table")


def main(arguments: Sequence[str] | None = None, prog: str = "una-fast explain") -> int:
    """Print why each word of the sentences is replaced or kept; the exit code."""
    about = "Show why each word of a sentence is replaced or kept, and the negative that comes of it."
    parser = Parser(prog, about, options_of(Source) | options_of(Run, DRAWS) | options_of(Explain))
    parser.usage = f"{prog} --index FOLDER [options] SENTENCE ..."
    parser.add_argument("sentences", nargs="+", metavar="SENTENCE", help="one sentence or more")
    values = parser.checked(arguments)
    augmenter = augmenter_of(values)
    for sentence in values["sentences"]:
        explanation = augmenter.explain(sentence, values["epoch"])
        text = json.dumps(explanation.to_dict(), ensure_ascii=False) if values["json"] else f"{explanation}\n"
        sys.stdout.write(f"{text}\n")
    return 0
