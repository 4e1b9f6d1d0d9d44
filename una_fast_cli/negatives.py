"""`una-fast negatives --index FOLDER`: sentences -> hard negatives in a file; `una-fast explain` shows some of them."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, count, islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from tqdm import tqdm

from una_fast.command import Command, option, options_of
from una_fast.errors import InputError
from una_fast.options import Draws, Files, reading_arguments
from una_fast.storage.files import new_file, one_line, unwritable

if TYPE_CHECKING:
    from una_fast import Augmenter

Records = list[dict[str, Any]]  # each with row, text, and negative or input_ids, attention_mask, ...
STANDARD_OUTPUT = "-"
KINDS = (".jsonl", ".parquet", ".txt")  # of files
BATCH_ROWS = 8192  # sentences at a time: some megabytes, and enough for all threads


def write_records(batches: Iterable[Records], file: IO[bytes], kind: str) -> None:
    """Write batches as one of KINDS."""
    if kind != ".parquet":
        line = _only_negatives if kind == ".txt" else _json_line
        file.writelines(line(record).encode() for records in batches for record in records)
        return
    import pyarrow
    from pyarrow import parquet

    tables = map(pyarrow.Table.from_pylist, batches)
    if first := next(tables, None):
        with parquet.ParquetWriter(file, first.schema) as writer:
            for table in chain([first], tables):
                writer.write_table(table)


def _json_line(record: dict[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False) + "\n"


def _only_negatives(record: dict[str, Any]) -> str:
    return "".join(f"{one_line(text)}\n" for name, text in record.items() if name.startswith("negative"))


def check_output(name: str, ids: bool) -> None:
    """Raise InputError for a kind of file that cannot be written, and for a file that exists. ids: for token ids."""
    kind = Path(name).suffix
    if kind not in KINDS:
        raise InputError(f"--output {name}: unknown kind of file: choose from {', '.join(KINDS)}")
    if ids and kind == ".txt":
        raise InputError(f"--output {name}: a .txt has no room for token ids: write them to a .jsonl or .parquet")
    if os.path.lexists(name):
        raise InputError(f"--output {name}: exists: choose another name, or delete it")


@dataclass(frozen=True)
class Input:
    """Input."""

    index: str = option("folder of an index that `una-fast index` built", "", required=True, metavar="FOLDER")
    word_tokenizer: str = option(
        "import path of the function with which the index was built, if any", "", metavar="NAME"
    )
    seed: int = option("seed of the draws", 42, least=0)
    epoch: int = option("number of the epoch: negatives differ from epoch to epoch", 0, least=0)


@dataclass(frozen=True)
class NegativesOptions:
    """The options of `una-fast negatives`, besides those of `Input`."""

    corpus: str = option("file of sentences; by default the sentences of the index", "", "Text", metavar="FILE")
    rows: int | None = option("only the first N sentences; by default all", None, least=1)

    output: str = option(
        "file to write: .jsonl, .parquet, or .txt (only the negatives, one per line); -: JSON lines to standard output",
        STANDARD_OUTPUT,
        "Output",
        metavar="FILE",
    )
    n: int = option(
        "negatives per sentence; above 1 their columns are negative_1 to negative_N, in .txt their lines follow",
        1,
        least=1,
    )
    tokenizer: str = option(
        "write token ids of this Hugging Face tokenizer instead of text", "", metavar="NAME_OR_FOLDER"
    )
    max_length: int = option("tokens per row, including special tokens, with --tokenizer", 32, least=3)


@dataclass(frozen=True)
class Explain:
    """The sentences of `una-fast explain`."""

    sentences: tuple[str, ...] = option("sentences to explain", (), required=True, positional=True, metavar="SENTENCE")
    json: bool = option("write one JSON object per line instead of a table", False)


def _write(values: dict[str, Any]) -> None:
    name, tokenizer = values["output"], None
    if name != STANDARD_OUTPUT:
        check_output(name, ids=bool(values["tokenizer"]))
    if values["tokenizer"]:
        from train.encoder.pretrained import load_tokenizer  # here, so that --help does not wait for torch

        tokenizer = load_tokenizer(values["tokenizer"])
    augmenter = _augmenter(values, tokenizer)
    total = values["rows"] if values["corpus"] else min(len(augmenter.index), values["rows"] or len(augmenter.index))
    with tqdm(total=total, unit=" sentences", unit_scale=True, disable=None) as bar:
        batches = (_records(augmenter, tokenizer, values, *batch) for batch in _batches(augmenter, values, bar))
        if name == STANDARD_OUTPUT:
            write_records(batches, sys.stdout.buffer, ".jsonl")
            return
        try:
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            with new_file(Path(name)) as file:
                write_records(batches, file, Path(name).suffix)
        except OSError as error:
            raise unwritable(Path(name), error) from error
    sys.stdout.write(f"{name}: written\n")


def _explain(values: dict[str, Any]) -> None:
    augmenter = _augmenter(values)
    for sentence in values["sentences"]:
        explanation = augmenter.explain(sentence, values["epoch"])
        text = json.dumps(explanation.to_dict(), ensure_ascii=False) if values["json"] else f"{explanation}\n"
        sys.stdout.buffer.write(f"{text}\n".encode())  # UTF-8 whatever the terminal's locale, as `negatives` writes


def _augmenter(values: dict[str, Any], tokenizer: Any = None) -> Augmenter:
    """The augmenter of the index in values["index"], with the options that are its arguments."""
    import una_fast  # here, so that --help and errors of the command line do not wait for it
    from una_fast.augment.registry import make_augmentation

    index = una_fast.load_index(Path(values["index"]), word_tokenizer=values["word_tokenizer"] or None)
    return cast("Augmenter", make_augmentation("una", index, values, seed=values["seed"], tokenizer=tokenizer))


def _batches(augmenter: Augmenter, values: dict[str, Any], bar: Any) -> Iterator[tuple[range, list[str]]]:
    """(rows, sentences) of the file or of the index, in order, up to --rows; the bar moves when a batch is done."""
    from una_fast.corpus.documents import Reading
    from una_fast.corpus.sources import open_sources

    texts: Iterable[str] = augmenter.index
    if values["corpus"]:
        sources = open_sources(Path(values["corpus"]), Reading(**reading_arguments(values)))
        texts = (text for source in sources for block in source.blocks() for text in block)
    texts = islice(texts, values["rows"])
    for start in count(0, BATCH_ROWS):
        if not (batch := list(islice(texts, BATCH_ROWS))):
            if start == 0:
                raise InputError(f"{values['corpus']}: contains no sentence")
            return
        yield range(start, start + len(batch)), batch
        bar.update(len(batch))


def _records(augmenter: Augmenter, tokenizer: Any, values: dict[str, Any], rows: range, texts: list[str]) -> Records:
    """A batch of sentences with the negatives of each sample index, or with their token ids."""
    from una_fast.integrations.datasets import negative_names

    columns: dict[str, Any] = {"row": rows, "text": texts}
    names, length = negative_names(values["n"]), values["max_length"]
    for number, name in enumerate(names):
        draws = {"epoch": values["epoch"], "sample_index": number}
        if tokenizer and not values["corpus"]:
            ids = augmenter.negative_ids(rows, max_length=length, **draws)
            made: Any = {part: array.tolist() for part, array in ids.items()}
        else:
            made = augmenter.augment(texts, **draws) if values["corpus"] else augmenter.negatives(rows, **draws)
            made = tokenizer(made, truncation=True, padding="max_length", max_length=length) if tokenizer else made
        prefix = f"{name}_" if len(names) > 1 else ""
        columns |= {f"{prefix}{part}": of for part, of in made.items()} if tokenizer else {name: made}
    return [dict(zip(columns, record, strict=True)) for record in zip(*columns.values(), strict=True)]


main = Command(
    "una-fast negatives",
    "Make hard negatives of every sentence of an index, or of a file. A blank sentence has an empty one.",
    options_of(NegativesOptions) | options_of(Input) | options_of(Files) | options_of(Draws),
    _write,
    page="how-una-works",
)
explain = Command(
    "una-fast explain",
    "Show why each word of a sentence is replaced or kept, and the negative that comes of it.",
    options_of(Explain) | options_of(Input) | options_of(Draws),
    _explain,
    page="how-una-works",
)
