"""Writes records to a file, batch by batch: JSON lines, parquet or plain lines. It appears whole or not at all."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from tqdm import tqdm

from una_fast.errors import InputError
from una_fast.storage.files import new_file, unwritable

Records = dict[str, list[Any]]  # columns of one length: row, text, and negative or input_ids, attention_mask, ...
STANDARD_OUTPUT = "-"


def check_output(name: str, ids: bool) -> None:
    """Raise InputError for a kind of file that cannot be written, and for a file that exists. ids: for token ids."""
    if name == STANDARD_OUTPUT:
        return
    kind = Path(name).suffix
    if kind not in WRITERS:
        raise InputError(f"--output {name}: unknown kind of file: choose from {', '.join(WRITERS)}")
    if ids and kind == ".txt":
        raise InputError(f"--output {name}: a .txt takes text: write token ids to a .jsonl or .parquet")
    if os.path.lexists(name):
        raise InputError(f"--output {name}: exists already: choose another name, or delete it")


def write(batches: Iterable[Records], name: str, total: int | None) -> None:
    """Write all records, with progress on a terminal. total: how many there will be, if that is known."""
    with tqdm(total=total, unit=" sentences", unit_scale=True, disable=None) as bar:
        shown = _counted(batches, bar)
        if name == STANDARD_OUTPUT:
            _write_jsonl(shown, sys.stdout.buffer)
            return
        try:
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            with new_file(Path(name)) as file:
                WRITERS[Path(name).suffix](shown, file)
        except OSError as error:
            raise unwritable(Path(name), error) from error


def _counted(batches: Iterable[Records], bar: Any) -> Iterator[Records]:
    for batch in batches:
        yield batch
        bar.update(len(batch["row"]))


def _write_jsonl(batches: Iterable[Records], file: IO[bytes]) -> None:
    for batch in batches:
        for values in zip(*batch.values(), strict=True):
            record = dict(zip(batch, values, strict=True))
            file.write(json.dumps(record, ensure_ascii=False).encode() + b"\n")


def _write_text(batches: Iterable[Records], file: IO[bytes]) -> None:
    for batch in batches:
        columns = [texts for name, texts in batch.items() if name.startswith("negative")]
        file.writelines(f"{negative}\n".encode() for row in zip(*columns, strict=True) for negative in row)


def _write_parquet(batches: Iterable[Records], file: IO[bytes]) -> None:
    import pyarrow
    from pyarrow import parquet

    writer = None
    try:
        for batch in batches:
            table = pyarrow.table(batch)
            writer = writer or parquet.ParquetWriter(file, table.schema)
            writer.write_table(table)
    finally:
        if writer:
            writer.close()


WRITERS: dict[str, Callable[[Iterable[Records], IO[bytes]], None]] = {
    ".jsonl": _write_jsonl,
    ".parquet": _write_parquet,
    ".txt": _write_text,
}
