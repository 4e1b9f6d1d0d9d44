"""The options of `python -m train.paper`: its own, and those of `train.ddp`, which apply to every row of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from train.config.command import given_values, option_parser
from train.config.options import option, options_of
from train.config.run import options
from train.generation import back_translation, paraphrase
from train.tables.kind import Table
from train.tables.registry import table_of
from una_fast.errors import InputError


@dataclass(frozen=True)
class Paper:
    """Table.

    The options of the further headings are those of train.ddp. They hold for all rows, except where a row says
    otherwise: --alpha does nothing for the rows of the table of alpha.
    """

    data: str = option(
        "",
        "folder that holds senteval/, and corpora/ if --corpus is not given; default UNA_FAST_DATA",
        metavar="FOLDER",
    )
    rows: str = option("", "rows to do, by their names with commas between; default: all", metavar="NAME,NAME")
    columns: str = option("", "columns to do, by their names as in table.json; default: all", metavar="NAME,NAME")
    back_translations: str = option(
        "",
        "file whose line i is the back-translation of the corpus' line i; without it, train.generate writes one",
        metavar="FILE",
    )
    paraphraser: str = option(
        "pegasus",
        f"model that writes paraphrases where --paraphrases is not given: {' or '.join(paraphrase.PRESETS)}, or the "
        "name or folder of a seq2seq model",
        metavar="NAME_OR_FOLDER",
    )
    translator: tuple[str, ...] = option(
        ("opus-mt-fr",),
        f"{' or '.join(back_translation.PRESETS)}, or the names or folders of two seq2seq models, that translate forth "
        "and back",
        metavar="NAME_OR_FOLDER",
    )
    checkpoints: tuple[str, ...] = option(
        (),
        "encoders to score in the table of comparison: ROW=NAME_OR_FOLDER in the place of a row's own, NAME_OR_FOLDER "
        "in a row of its own",
        metavar="ROW=NAME_OR_FOLDER",
    )
    dry_run: bool = option(False, "say what would run, and about how long it would take here")


# options of train.ddp that this command sets itself, and what to give instead
SET_BY_COMMAND = {
    "demo": "give --model, --corpus and --max-steps",
    "evaluate": "give --data",
    "seed": "give --seeds",
    "index": "it lies in OUTPUT",
    "resume": "the command always goes on with what is in OUTPUT",
}


@dataclass(frozen=True)
class Request:
    """A call of the command: its table, its own options, and by name the options of `train.ddp` that were given."""

    table: Table
    paper: Paper
    given: dict[str, Any]


def read_request(words: Sequence[str], prog: str) -> Request:
    """The request of a command line whose first word is the table.

    Raises:
        InputError: no such table, an unknown option, a value that is missing or out of range.
    """
    name = words[0] if words and not words[0].startswith("-") else ""
    table = table_of(name)
    about = f"Table {table.number} of the paper: {table.title}, with the paper's figures beside."
    parser = option_parser(f"{prog} {name}", about, options_of(Paper) | options(), hidden=SET_BY_COMMAND)
    values = given_values(parser, words[1:])
    for taken, instead in SET_BY_COMMAND.items():
        if taken in values:
            raise InputError(f"--{taken}: train.paper sets it itself: {instead}")
    if not values.get("output"):
        raise InputError("--output is missing: give the folder of runs and tables")
    own = options_of(Paper)
    paper = Paper(**{name: _value(values.pop(name)) for name in [*values] if name in own})
    return Request(table, paper, {name: _value(value) for name, value in values.items()})


def _value(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
