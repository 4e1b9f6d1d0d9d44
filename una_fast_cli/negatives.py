"""`una-fast negatives --index FOLDER [--corpus FILE] --output FILE`: batches of sentences -> records -> a file."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from train.config.options import option, options_of
from train.config.run import FILES, Run, reading_arguments
from una_fast.integrations.epochs import negative_names
from una_fast_cli.draws import Source, augmenter_of, draw_options, read_options
from una_fast_cli.writers import STANDARD_OUTPUT, Records, check_output, write

if TYPE_CHECKING:
    from una_fast import Augmenter

BATCH_ROWS = 8192  # sentences at a time: some megabytes, and enough for all threads


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
