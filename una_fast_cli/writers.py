"""Writes records to a file, batch by batch: JSON lines, parquet or plain lines. It appears whole or not at all."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from tqdm import tqdm

from train.record.files import replacing
from una_fast.errors import InputError

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
    if Path(name).exists():
        raise InputError(f"--output {name}: exists already: choose another name, or delete it")


def write(batches: Iterable[Records], name: str, total: int | None) -> None:
    """Write all records, with progress on a terminal. total: how many there will be, if that is known."""
    with tqdm(total=total, unit=" sentences", unit_scale=True, disable=None) as bar:
        shown = _counted(batches, bar)
        if name == STANDARD_OUTPUT:
            for line in _json_lines(shown):
                sys.stdout.write(line)
            return
        with replacing(Path(name)) as partial:
            try:
                WRITERS[Path(name).suffix](shown, partial)
            except BaseException:  # bad input or Ctrl-C while writing
                partial.unlink(missing_ok=True)
                raise


def _counted(batches: Iterable[Records], bar: Any) -> Iterator[Records]:
    for batch in batches:
        yield batch
        bar.update(len(batch["row"]))


def _json_lines(batches: Iterable[Records]) -> Iterator[str]:
    for batch in batches:
        for values in zip(*batch.values(), strict=True):
            yield json.dumps(dict(zip(batch, values, strict=True)), ensure_ascii=False) + "\n"


def _write_jsonl(batches: Iterable[Records], path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(_json_lines(batches))


def _write_text(batches: Iterable[Records], path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        for batch in batches:
            file.writelines(f"{negative}\n" for negative in batch["negative"])


def _write_parquet(batches: Iterable[Records], path: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    writer = None
    try:
        for batch in batches:
            table = pyarrow.table(batch)
            writer = writer or parquet.ParquetWriter(path, table.schema)
            writer.write_table(table)
    finally:
        if writer:
            writer.close()


WRITERS: dict[str, Callable[[Iterable[Records], Path], None]] = {
    ".jsonl": _write_jsonl,
    ".parquet": _write_parquet,
    ".txt": _write_text,
}
