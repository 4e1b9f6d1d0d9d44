"""The possible edits of sentences as flat arrays. They depend on no seed or epoch, so a saved index stores them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np

from una_fast._kernels.edits.finder import FoundBatch
from una_fast._kernels.ids import rewrite
from una_fast.arrays import ID, POINTER, RaggedArray, StringTable, row_bounds
from una_fast.augment.split_sentences import NO_STRINGS, SplitSentences
from una_fast.augment.surface import CHARACTERS
from una_fast.index.index import Index
from una_fast.storage.array_folder import Arrays
from una_fast.storage.files import checksum_of

VERSION = 6  # of the arrays and of the rules that find edits
BLOCK = 1 << 16  # sentences whose texts are in memory at the same time
DTYPES: dict[str, type[np.generic]] = {
    "edits_indptr": POINTER,  # (n_rows * n_kinds + 1,), the edits of a row are those of its kinds, one after another
    "edits_values": ID,  # (n_edits,), the list of options of each edit
    "starts": ID,  # (n_edits,), where the edit starts in its sentence, in bytes of UTF-8
    "stops": ID,
    "list_bounds": POINTER,  # (n_lists + 1,), the options of each list
    "options_utf8": np.uint8,
    "options_offsets": POINTER,
}
# Adds the edits of each kind of some rows to a batch, with places in bytes
FindEdits = Callable[[np.ndarray, FoundBatch], None]


def find_edits(find: FindEdits, rows: np.ndarray) -> Arrays:
    """Find the edits of some sentences. Row i of the arrays has those of ``rows[i]``."""
    found = FoundBatch()
    for start in range(0, len(rows), BLOCK):
        find(rows[start : start + BLOCK], found)
    starts, stops, values = (np.ascontiguousarray(column) for column in found.table.T[:3])
    options = StringTable.from_strings([*chain.from_iterable(found.lists)])
    return {
        "edits_indptr": np.append(np.zeros(1, POINTER), found.bounds), "edits_values": values,
        "starts": starts, "stops": stops, "list_bounds": row_bounds([*map(len, found.lists)]),
        "options_utf8": options.utf8, "options_offsets": options.offsets,
    }  # fmt: skip


def stored_edits(index: Index, name: str, find: FindEdits, source: SplitSentences, n_kinds: int) -> Arrays:
    """Return the edits of all sentences of `index`, which are `source`, from its cache `name`, or find them now."""

    def make() -> Arrays:
        arrays = find_edits(find, np.arange(len(source.words)))
        return arrays | {"checksum": _checksum(arrays)}

    return index.cached(name, VERSION, make, lambda stored: _fit(stored, source, n_kinds))


@dataclass(frozen=True)
class DrawnEdits:
    """The edit that was drawn for each of some rows. arrays: those of `find_edits`; the others, see `draw_edits`."""

    arrays: Arrays
    kinds: np.ndarray  # int8 (n_rows,)
    edits: np.ndarray  # int64 (n_rows,)
    options: np.ndarray  # int64 (n_rows,)

    @cached_property
    def listed(self) -> np.ndarray:
        """The places of the rows whose edit is in `arrays`."""
        return np.flatnonzero(self.edits >= 0)

    def written(self, writer: rewrite.RowWriter, rows: np.ndarray, room: int = -1) -> rewrite.WrittenRows:
        """Write the rows ``rows[listed]`` with their edits. room: see `RowWriter.edit`."""
        arrays, edits = self.arrays, self.edits[self.listed]
        places = arrays["starts"][edits], arrays["stops"][edits], self.options[self.listed]
        options = arrays["options_utf8"], arrays["options_offsets"]
        written: rewrite.WrittenRows = writer.edit(rows[self.listed], *places, *options, room)
        return written


def edit_writer(source: SplitSentences, subwords: rewrite.Subwords | None = None) -> rewrite.RowWriter:
    """Make a `RowWriter` of which only `edit` is used. subwords: needed to write token ids."""
    tables = source.chunks, source.sentences, source.words, source.unseen, source.terms, NO_STRINGS
    return rewrite.RowWriter(*tables, CHARACTERS, True, subwords)


def _checksum(arrays: Arrays) -> np.ndarray:
    return np.frombuffer(bytes.fromhex(checksum_of(arrays[name].data for name in sorted(DTYPES))), np.uint8)


def _fit(stored: Arrays, source: SplitSentences, n_kinds: int) -> bool:
    """Return whether stored arrays are the edits of `source`, and lead no kernel outside an array."""
    if any(stored[name].dtype != dtype for name, dtype in DTYPES.items()):
        return False
    if not np.array_equal(stored["checksum"], _checksum(stored)):
        return False
    edits = RaggedArray(stored["edits_values"], stored["edits_indptr"])
    options, lists = StringTable(stored["options_utf8"], stored["options_offsets"]), stored["list_bounds"]
    if len(edits) != len(source.words) * n_kinds or len(lists) == 0 or not options.is_utf8():
        return False
    if not len(edits.values) == len(stored["starts"]) == len(stored["stops"]):
        return False
    if lists[0] != 0 or lists[-1] != len(options) or (np.diff(lists) <= 0).any():
        return False
    if len(edits.values) and edits.values.view(np.uint32).max() >= len(lists) - 1:
        return False
    ends = np.cumsum(1 + np.diff(source.chunks.offsets)[source.sentences.values])
    sizes = np.diff(np.append(0, ends)[source.sentences.indptr]) - 1
    limits = np.repeat(sizes, edits.lengths().reshape(-1, n_kinds).sum(axis=1))
    places = np.stack([np.zeros_like(limits), stored["starts"], stored["stops"], limits])
    return bool((np.diff(places, axis=0) >= 0).all())
