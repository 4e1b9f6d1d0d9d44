"""`una-fast negatives --index FOLDER [--corpus FILE] --output FILE`: batches of sentences -> records -> a file."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from train.config.command import Parser
from train.config.options import Option, option, options_of
from train.config.run import DRAWS, FILES, PAPER_SETTINGS, Run, check_radius, reading_arguments
from una_fast.errors import InputError
from una_fast.integrations.epochs import negative_names
from una_fast_cli.writers import STANDARD_OUTPUT, Records, check_output, write

if TYPE_CHECKING:
    from una_fast import Augmenter

BATCH_ROWS = 8192  # sentences at a time: some megabytes, and enough for all threads


@dataclass(frozen=True)
class Source:
    """Input."""

    index: str = option("", "folder of the index, as `una-fast index` saves it", metavar="FOLDER")
    word_tokenizer: str = option(
        "", "import path of the function that the index was built with, if it was built with one", metavar="NAME"
    )
    seed: int = option(42, "seed of the draws", least=0)
    epoch: int = option(0, "number of the epoch: each epoch has other negatives", least=0)


@dataclass(frozen=True)
class Text(Source):
    """Input."""

    corpus: str = option(
        "", "file of sentences to make negatives of; by default the sentences of the index", metavar="FILE"
    )
    rows: int | None = option(None, "only this many sentences, the first ones; by default all", least=1)


@dataclass(frozen=True)
class Output:
    """Output."""

    output: str = option(
        "-",
        "file to write: .jsonl, .parquet, or .txt (the negatives alone, one a line); -: JSON lines to standard output",
        metavar="FILE",
    )
    n: int = option(
        1, "negatives of a sentence; above 1 their columns are negative_1 to negative_N, in .txt they follow", least=1
    )
    tokenizer: str = option(
        "", "write token ids instead of text, as this Hugging Face tokenizer makes them", metavar="NAME_OR_FOLDER"
    )
    max_length: int = option(32, "tokens of a row, special tokens included, with --tokenizer", least=3)


def main(arguments: Sequence[str] | None = None, prog: str = "una-fast negatives") -> int:
    """Write the negatives of every sentence; the exit code."""
    about = "Make hard negatives of every sentence of an index, or of a file. A blank sentence has an empty one."
    options = options_of(Text) | options_of(Run, FILES) | options_of(Output) | draw_options()
    values, _ = read_options(prog, about, options, arguments)
    check_output(values["output"], ids=bool(values["tokenizer"]))
    tokenizer = _load_tokenizer(values["tokenizer"]) if values["tokenizer"] else None
    augmenter = augmenter_of(values, tokenizer)
    if values["corpus"]:
        records, total = _of_corpus(augmenter, tokenizer, values), values["rows"]
    else:
        total = min(len(augmenter.index), values["rows"] or len(augmenter.index))
        records = _of_index(augmenter, total, values)
    write(records, values["output"], total)
    if values["output"] != STANDARD_OUTPUT:
        sys.stdout.write(f"{values['output']}: written\n")
    return 0


def _load_tokenizer(name: str) -> Any:
    from train.encoder.pretrained import load_tokenizer

    return load_tokenizer(name)


def _of_index(augmenter: Augmenter, n_rows: int, values: dict[str, Any]) -> Iterator[Records]:
    """The first `n_rows` sentences of the index with their negatives."""

    def drawn(rows: range, number: int) -> Records:
        if not values["tokenizer"]:
            return {"negative": augmenter.negatives(rows, values["epoch"], draw_set=number)}
        ids = augmenter.negative_ids(rows, values["epoch"], values["max_length"], draw_set=number)
        return {name: tensor.tolist() for name, tensor in ids.items()}

    for start in range(0, n_rows, BATCH_ROWS):
        rows = range(start, min(start + BATCH_ROWS, n_rows))
        records: Records = {"row": list(rows), "text": augmenter.index[rows.start : rows.stop]}
        yield records | _columns([drawn(rows, number) for number in range(values["n"])])


def _of_corpus(augmenter: Augmenter, tokenizer: Any, values: dict[str, Any]) -> Iterator[Records]:
    """The sentences of a file with their negatives."""

    def drawn(texts: list[str], number: int) -> Records:
        negatives = augmenter.augment(texts, values["epoch"], draw_set=number)
        if tokenizer is None:
            return {"negative": negatives}
        return dict(tokenizer(negatives, truncation=True, padding="max_length", max_length=values["max_length"]))

    for start, texts in _batches(values):
        records: Records = {"row": list(range(start, start + len(texts))), "text": texts}
        yield records | _columns([drawn(texts, number) for number in range(values["n"])])


def _columns(drawn: list[Records]) -> Records:
    """The columns of each draw set; of several, each begins with negative_1, negative_2 and so on."""
    if len(drawn) == 1:
        return drawn[0]
    return {
        name if column == "negative" else f"{name}_{column}": values
        for name, records in zip(negative_names(len(drawn)), drawn, strict=True)
        for column, values in records.items()
    }


def _batches(values: dict[str, Any]) -> Iterator[tuple[int, list[str]]]:
    """(row of the first, sentences) of a file, in order, up to --rows."""
    from una_fast.corpus.reading import Reading
    from una_fast.corpus.sources import open_sources

    reading = Reading(**reading_arguments(values))
    row = 0
    for block in chain.from_iterable(source.blocks() for source in open_sources(Path(values["corpus"]), reading)):
        data, left = block.data, None if values["rows"] is None else values["rows"] - row
        texts = [bytes(data[a:b]).decode() for a, b in zip(block.starts[:left], block.stops[:left], strict=True)]
        for start in range(0, len(texts), BATCH_ROWS):
            batch = texts[start : start + BATCH_ROWS]
            yield row, batch
            row += len(batch)
        if row == values["rows"]:
            return


def draw_options() -> dict[str, Option]:
    """The options of the draws by field name; beta is the paper's unless given, as in `una_fast.Augmenter`."""
    options = options_of(Run, DRAWS)
    return options | {"beta": replace(options["beta"], default=PAPER_SETTINGS["beta"])}


def read_options(
    prog: str, about: str, options: Mapping[str, Option], arguments: Sequence[str] | None, words: str = ""
) -> tuple[dict[str, Any], list[str]]:
    """The values of all options, checked, and the other arguments.

    words: the name of such an argument in --help, of which at least one is needed; "" if the command takes none.
    """
    parser = Parser(prog, about, options)
    if words:
        parser.usage = f"{prog} --index FOLDER [options] {words} ..."
        parser.add_argument("words", nargs="+", metavar=words, help=f"one {words.lower()} or more")
    values = parser.checked(arguments)
    if not values["index"]:
        raise InputError("--index is missing: give the folder of an index; `una-fast index` builds one")
    return values, values.get("words", [])


def augmenter_of(values: dict[str, Any], tokenizer: Any = None) -> Augmenter:
    """The augmenter of the index in values["index"], with the options that are its arguments."""
    import una_fast  # here, so that --help and errors of the command line do not wait for it
    from una_fast.augment.registry import make_augmentation

    check_radius(values["radius"], values["window"])
    index = una_fast.load_index(Path(values["index"]), word_tokenizer=values["word_tokenizer"] or None)
    return cast("Augmenter", make_augmentation("una", index, **{**values, "tokenizer": tokenizer}))
