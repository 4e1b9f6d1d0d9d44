"""`una-fast negatives --index FOLDER [--corpus FILE] --output FILE`: batches of sentences -> records -> a file."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from train.config.command import Parser
from train.config.options import option, options_of
from train.config.run import DRAWS, FILES, Run, check_radius, reading_arguments
from una_fast.integrations.epochs import negative_names
from una_fast_cli.writers import STANDARD_OUTPUT, Records, check_output, write

if TYPE_CHECKING:
    from una_fast import Augmenter

BATCH_ROWS = 8192  # sentences at a time: some megabytes, and enough for all threads


@dataclass(frozen=True)
class Source:
    """Input."""

    index: str = option("", "folder of the index, as `una-fast index` saves it", required=True, metavar="FOLDER")
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
    options = options_of(Text) | options_of(Run, FILES) | options_of(Output) | options_of(Run, DRAWS)
    values = Parser(prog, about, options).checked(arguments)
    check_output(values["output"], ids=bool(values["tokenizer"]))
    tokenizer = None
    if values["tokenizer"]:
        from train.encoder.pretrained import load_tokenizer  # here, so that --help does not wait for torch

        tokenizer = load_tokenizer(values["tokenizer"])
    augmenter, total = augmenter_of(values, tokenizer), values["rows"]
    if not values["corpus"]:
        total = min(len(augmenter.index), total or len(augmenter.index))
    records = _records(augmenter, tokenizer, values | {"rows": total})
    write(records, values["output"], total)
    if values["output"] != STANDARD_OUTPUT:
        sys.stdout.write(f"{values['output']}: written\n")
    return 0


def _records(augmenter: Augmenter, tokenizer: Any, values: dict[str, Any]) -> Iterator[Records]:
    """The columns of each batch of sentences: row, text, and for each draw set the negatives or their token ids."""
    names, length = negative_names(values["n"]), values["max_length"]
    for rows, texts in _of_file(values) if values["corpus"] else _of_index(augmenter, values["rows"]):
        records: Records = {"row": list(rows), "text": texts}
        for number, name in enumerate(names):
            draws = {"epoch": values["epoch"], "draw_set": number}
            ids: Mapping[str, Any]
            if tokenizer is not None and not values["corpus"]:
                ids = augmenter.negative_ids(rows, max_length=length, **draws)
            else:
                negatives = (
                    augmenter.augment(texts, **draws) if values["corpus"] else augmenter.negatives(rows, **draws)
                )
                if tokenizer is None:
                    records[name] = negatives
                    continue
                ids = tokenizer(negatives, truncation=True, padding="max_length", max_length=length)
            prefix = f"{name}_" if len(names) > 1 else ""
            records |= {f"{prefix}{column}": np.asarray(part).tolist() for column, part in ids.items()}
        yield records


def _of_index(augmenter: Augmenter, n_rows: int) -> Iterator[tuple[range, list[str]]]:
    for start in range(0, n_rows, BATCH_ROWS):
        rows = range(start, min(start + BATCH_ROWS, n_rows))
        yield rows, augmenter.index[rows.start : rows.stop]


def _of_file(values: dict[str, Any]) -> Iterator[tuple[range, list[str]]]:
    """(rows, sentences) of a file, in order, up to --rows."""
    from una_fast.corpus.reading import Reading
    from una_fast.corpus.sources import open_sources

    sources = open_sources(Path(values["corpus"]), Reading(**reading_arguments(values)))
    texts = islice((text for source in sources for block in source.blocks() for text in block.texts()), values["rows"])
    for start in count(0, BATCH_ROWS):
        if not (batch := list(islice(texts, BATCH_ROWS))):
            return
        yield range(start, start + len(batch)), batch


def augmenter_of(values: dict[str, Any], tokenizer: Any = None) -> Augmenter:
    """The augmenter of the index in values["index"], with the options that are its arguments."""
    import una_fast  # here, so that --help and errors of the command line do not wait for it
    from una_fast.augment.registry import make_augmentation

    check_radius(values["radius"], values["window"])
    index = una_fast.load_index(Path(values["index"]), word_tokenizer=values["word_tokenizer"] or None)
    return cast("Augmenter", make_augmentation("una", index, **{**values, "tokenizer": tokenizer}))
