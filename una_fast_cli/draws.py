"""What `negatives` and `explain` share: the index, the options of the draws, and the augmenter made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from train.config.command import checked_values, option_parser
from train.config.options import Option, option, options_of
from train.config.run import DRAWS, PAPER_SETTINGS, Run, arguments_of, check_radius
from una_fast.errors import InputError

if TYPE_CHECKING:
    from una_fast import Augmenter


@dataclass(frozen=True)
class Source:
    """Input."""

    index: str = option("", "folder of the index, as `una-fast index` saves it", metavar="FOLDER")
    word_tokenizer: str = option(
        "", "import path of the function that the index was built with, if it was built with one", metavar="NAME"
    )
    seed: int = option(42, "seed of the draws", least=0)
    epoch: int = option(0, "number of the epoch: each epoch has other negatives", least=0)


def draw_options() -> dict[str, Option]:
    """The options of the draws by field name; beta is the paper's unless given, as in `una_fast.Augmenter`."""
    options = options_of(Run, DRAWS)
    return options | {"beta": replace(options["beta"], default=PAPER_SETTINGS["beta"])}


def read_options(
    prog: str, about: str, options: Mapping[str, Option], arguments: Sequence[str] | None, words: str = ""
) -> tuple[dict[str, Any], list[str]]:
    """The values of all options, checked, and the arguments that are no options.

    words: the name of such an argument in --help, of which at least one is needed; "" if the command takes none.
    """
    parser = option_parser(prog, about, options)
    if words:
        parser.usage = f"{prog} --index FOLDER [options] {words} ..."
        parser.add_argument("words", nargs="+", metavar=words, help=f"one {words.lower()} or more")
    values = checked_values(parser, options, arguments)
    if not values["index"]:
        raise InputError("--index is missing: give the folder of an index; `una-fast index` builds one")
    return values, values.get("words", [])


def augmenter_of(values: dict[str, Any], tokenizer: Any = None) -> Augmenter:
    """The augmenter of the index in values["index"], with the options that are its arguments."""
    import una_fast  # here, so that --help and errors of the command line do not wait for it

    check_radius(values["radius"], values["window"])
    index = una_fast.load_index(Path(values["index"]), word_tokenizer=values["word_tokenizer"] or None)
    return una_fast.Augmenter(index, **arguments_of(una_fast.Augmenter, values), tokenizer=tokenizer)
