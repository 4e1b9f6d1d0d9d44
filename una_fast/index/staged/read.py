"""Stage read: a source that can only be read from its start becomes segments, files of documents of about one size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

from una_fast.arrays import POINTER
from una_fast.corpus.source import Block, FileSource, Source
from una_fast.errors import InputError
from una_fast.storage.content import wrong_ids
from una_fast.storage.packs import Pack, write_pack


@dataclass(frozen=True)
class Segment:
    """The documents of one file of this stage. Their lengths were checked when they were read first."""

    path: Path

    def blocks(self) -> Iterator[Block]:
        """The documents, as they came."""
        with Pack(self.path) as pack:
            bounds, bytes_to = pack.read("block_bounds"), pack.read("block_bytes")
            for i in range(len(bounds) - 1):
                rows, base = (bounds[i], bounds[i + 1]), bytes_to[i]
                data = pack.read("utf8", base, bytes_to[i + 1])
                starts, stops = pack.read("starts", *rows) - base, pack.read("stops", *rows) - base
                if wrong_ids(starts, len(data) + 1) or wrong_ids(stops, len(data) + 1) or (stops < starts).any():
                    pack.refuse()
                yield Block(data, starts, stops)


def read_file(source: FileSource, identity: list[str | int], n_bytes: int, output: Path) -> None:
    """The task of a file: writes its segments, and then `output`, which lists them."""
    write_segments(source, n_bytes, output)
    check_unchanged(source, identity)


def write_segments(source: Source, n_bytes: int, output: Path) -> dict[str, Any]:
    """Write the documents of `source` as segments beside `output`, and their list to `output`. Returns the list."""
    segments: list[list[Any]] = []
    held: list[Block] = []
    size = n_documents = 0
    for block in source.blocks():
        if len(block.starts):
            held.append(block)
            size += int(block.stops[-1] - block.starts[0])
            n_documents += len(block.starts)
        if size >= n_bytes:
            segments.append(_write_segment(held, output.parent))
            held, size = [], 0
    if held:
        segments.append(_write_segment(held, output.parent))
    if n_documents == 0:
        raise InputError(f"{source.name}: it holds no sentence")
    found = {"segments": segments, "digest": source.digest(), "remark": source.remark(n_documents)}
    write_pack(output, found, {})
    return found


def digest_file(source: FileSource, identity: list[str | int], output: Path) -> None:
    """The task of a file that is read in parts: writes the digest of the whole file."""
    digest = source.digest()
    check_unchanged(source, identity)
    write_pack(output, {"digest": digest}, {})


def check_unchanged(source: FileSource, identity: list[str | int]) -> None:
    """Raise InputError for a file whose size or time has changed since the build was started."""
    if source.identity() != identity:
        raise InputError(f"{source.path}: changed since the build was started: run the build again")


def segment_path(work: Path, key: str) -> Path:
    """The file of the segment of this content."""
    return work / f"segment-{key}"


def _write_segment(blocks: list[Block], work: Path) -> list[Any]:
    """Write one segment; returns [its key, its bytes]. The key is a digest of the content."""
    texts, starts, stops = [], [], []
    base = 0
    for block in blocks:
        first, last = int(block.starts[0]), int(block.stops[-1])
        texts.append(block.data[first:last])
        starts.append(block.starts - first + base)
        stops.append(block.stops - first + base)
        base += last - first
    arrays = {
        "utf8": np.concatenate(texts),
        "starts": np.concatenate(starts),
        "stops": np.concatenate(stops),
        "block_bounds": np.cumsum([0, *map(len, starts)], dtype=POINTER),
        "block_bytes": np.cumsum([0, *map(len, texts)], dtype=POINTER),
    }
    state = xxhash.xxh3_64()
    for array in arrays.values():
        state.update(np.ascontiguousarray(array).view(np.uint8).data)
    key = state.hexdigest()
    path = segment_path(work, key)
    if not path.exists():
        write_pack(path, {}, arrays)
    return [key, len(arrays["utf8"])]
