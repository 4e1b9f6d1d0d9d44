"""`una-fast negatives --index FOLDER [--corpus FILE] --output FILE`: batches of sentences -> records -> a file."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from train.config.options import option, options_of
from train.config.run import DRAWS, FILES, Run, reading_arguments
from una_fast_cli.draws import Source, augmenter_of, read_options
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


@dataclass(frozen=True)
class Output:
    """Output."""

    output: str = option(
        "-",
        "file to write: .jsonl, .parquet, or .txt (the negatives alone, one a line); -: JSON lines to standard output",
        metavar="FILE",
    )
    tokenizer: str = option(
        "", "write token ids instead of text, as this Hugging Face tokenizer makes them", metavar="NAME_OR_FOLDER"
    )
    max_length: int = option(32, "tokens of a row, special tokens included, with --tokenizer", least=3)


def main(arguments: Sequence[str] | None = None, prog: str = "una-fast negatives") -> int:
    """Write a negative of every sentence; the exit code."""
    about = "Make a hard negative of every sentence of an index, or of a file. A blank sentence has an empty one."
    options = options_of(Text) | options_of(Run, FILES) | options_of(Output) | options_of(Run, DRAWS)
    values, _ = read_options(prog, about, options, arguments)
    check_output(values["output"], ids=bool(values["tokenizer"]))
    tokenizer = _load_tokenizer(values["tokenizer"]) if values["tokenizer"] else None
    augmenter = augmenter_of(values, tokenizer)
    if values["corpus"]:
        records, total = _of_corpus(augmenter, tokenizer, values), None
    else:
        records, total = _of_index(augmenter, values), len(augmenter.index)
    write(records, values["output"], total)
    if values["output"] != STANDARD_OUTPUT:
        sys.stdout.write(f"{values['output']}: written\n")
    return 0


def _load_tokenizer(name: str) -> Any:
    from train.encoder.encoder import load_tokenizer

    return load_tokenizer(name)


def _of_index(augmenter: Augmenter, values: dict[str, Any]) -> Iterator[Records]:
    index = augmenter.index
    for start in range(0, len(index), BATCH_ROWS):
        rows = range(start, min(start + BATCH_ROWS, len(index)))
        records: Records = {"row": list(rows), "text": index[rows.start : rows.stop]}
        if values["tokenizer"]:
            ids = augmenter.negative_ids(rows, values["epoch"], values["max_length"])
            yield records | {name: tensor.tolist() for name, tensor in ids.items()}
        else:
            yield records | {"negative": augmenter.negatives(rows, values["epoch"])}


def _of_corpus(augmenter: Augmenter, tokenizer: Any, values: dict[str, Any]) -> Iterator[Records]:
    for start, texts in _batches(values):
        records: Records = {"row": list(range(start, start + len(texts))), "text": texts}
        negatives = augmenter.augment(texts, values["epoch"])
        if tokenizer is None:
            yield records | {"negative": negatives}
        else:
            length = values["max_length"]
            yield records | dict(tokenizer(negatives, truncation=True, padding="max_length", max_length=length))


def _batches(values: dict[str, Any]) -> Iterator[tuple[int, list[str]]]:
    """(row of the first, sentences) of a file, in order."""
    from una_fast.corpus.reading import Reading
    from una_fast.corpus.sources import open_sources

    reading = Reading(**reading_arguments(values))
    row = 0
    for block in chain.from_iterable(source.blocks() for source in open_sources(Path(values["corpus"]), reading)):
        data = block.data
        texts = [bytes(data[a:b]).decode() for a, b in zip(block.starts, block.stops, strict=True)]
        for start in range(0, len(texts), BATCH_ROWS):
            batch = texts[start : start + BATCH_ROWS]
            yield row, batch
            row += len(batch)
