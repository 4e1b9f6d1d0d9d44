"""The possible edits of sentences as flat arrays. They depend on no seed or epoch, so each is found only once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain

import numpy as np

from una_fast._kernels.edits.finder import FoundBatch
from una_fast._kernels.ids import rewrite
from una_fast.arrays import ID, POINTER, RaggedArray, StringTable, extended
from una_fast.augment.split_sentences import NO_STRINGS, SplitSentences
from una_fast.augment.surface import CHARACTERS
from una_fast.index.index import Index
from una_fast.storage.array_folder import Arrays
from una_fast.storage.files import checksum_of

VERSION = 5  # of the arrays and of the rules that find edits
BOUNDS = "edits_indptr", "list_bounds", "options_offsets"  # arrays that begin with 0
DTYPES: dict[str, type[np.generic]] = {
    "slots": POINTER,  # (n_rows,), the slot of each sentence, or -1 if its edits are not known yet
    "edits_indptr": POINTER,  # (n_slots * n_kinds + 1,), the edits of a slot are those of its kinds, one after another
    "edits_values": ID,  # (n_edits,), the list of options of each edit
    "starts": ID,  # (n_edits,), where the edit starts in its sentence, in bytes of UTF-8
    "stops": ID,
    "list_bounds": POINTER,  # (n_lists + 1,), the options of each list
    "options_utf8": np.uint8,
    "options_offsets": POINTER,
}
# Adds the edits of each kind of some rows to a batch, with places in bytes
FindEdits = Callable[[np.ndarray, FoundBatch], None]


@dataclass(frozen=True)
class _Found:
    """What is found so far. All of it is one object, so that Ctrl-C during a search leaves the old or the new one."""

    arrays: Arrays
    n_slots: int = 0
    n_edits: int = 0
    n_lists: int = 0
    n_options: int = 0
    n_bytes: int = 0
    rows: np.ndarray = field(default_factory=lambda: np.empty(0, POINTER))  # the sentences of the last slots
    is_kept: bool = False  # whether the arrays are in the cache of an index


class FoundEdits:
    """The edits of the sentences of `source`, which are found when a sentence is first drawn. Threads may share it."""

    def __init__(self, source: SplitSentences, n_kinds: int, find: FindEdits):
        self._source, self.n_kinds, self._find = source, n_kinds, find
        self._lock = threading.Lock()
        arrays: Arrays = {name: np.zeros(int(name in BOUNDS), dtype) for name, dtype in DTYPES.items()}
        self._found = _Found(arrays | {"slots": np.full(len(source.words), -1, POINTER)})
        self._lists: dict[tuple[str, ...], int] = {}

    @property
    def is_complete(self) -> bool:
        """Whether the edits of all sentences are known."""
        return self._found.n_slots == len(self._source.words)

    @property
    def is_kept(self) -> bool:
        """Whether `keep` has loaded or stored the edits of all sentences."""
        return self._found.is_kept

    def of(self, rows: np.ndarray) -> Arrays:
        """Return all arrays, in which the edits of the sentences `rows` are known."""
        if (self._found.arrays["slots"][rows] < 0).any():
            with self._lock:
                self._publish()
                missing = np.unique(rows[self._found.arrays["slots"][rows] < 0])
                if len(missing):  # else another thread found them while this one waited
                    self._add(missing)
        return self._found.arrays

    def _add(self, rows: np.ndarray) -> None:
        old = self._found
        if len(self._lists) > old.n_lists:  # Ctrl-C stopped a search: no edit may refer to lists not in the arrays
            self._lists = {key: number for key, number in self._lists.items() if number < old.n_lists}
        found = FoundBatch(self._lists, old.n_lists)
        self._find(rows, found)
        table, lists, options = found.table, found.lists, [*chain.from_iterable(found.lists)]
        utf8, of, arrays = "".join(options).encode(), old.arrays, {}
        sizes = map(len, options if len(utf8) == sum(map(len, options)) else map(str.encode, options))
        for k, name in enumerate(("starts", "stops", "edits_values")):
            arrays[name] = extended(of[name], old.n_edits, table[:, k])
        arrays["edits_indptr"] = _more(of["edits_indptr"], old.n_slots * self.n_kinds, found.bounds)
        arrays["list_bounds"] = _more(of["list_bounds"], old.n_lists, np.cumsum([*map(len, lists)], dtype=POINTER))
        arrays["options_offsets"] = _more(of["options_offsets"], old.n_options, np.cumsum([*sizes], dtype=POINTER))
        arrays["options_utf8"] = extended(of["options_utf8"], old.n_bytes, np.frombuffer(utf8, np.uint8))
        self._found = _Found(  # other threads may still use the old arrays
            of | arrays, old.n_slots + len(rows), old.n_edits + len(table), old.n_lists + len(lists),
            old.n_options + len(options), old.n_bytes + len(utf8), rows,
        )  # fmt: skip
        self._publish()

    def _publish(self) -> None:
        """Let all threads find the edits of the last search. Ctrl-C can stop the search right before this."""
        found = self._found
        if len(found.rows):  # else the arrays may be those of a cache, which are read-only
            found.arrays["slots"][found.rows] = found.n_slots - len(found.rows) + np.arange(len(found.rows))

    def counts(self, rows: np.ndarray) -> np.ndarray:
        """Return how many edits of each kind each sentence in `rows` has: int64 (n_rows, n_kinds)."""
        arrays = self.of(rows)
        first = arrays["slots"][rows] * self.n_kinds
        return np.diff(arrays["edits_indptr"][first[:, np.newaxis] + np.arange(self.n_kinds + 1)])

    def keep(self, index: Index, name: str) -> None:
        """Load the edits of all sentences of `index` from its cache `name`, or store them there if all are known.

        Without a stored cache, and before all edits are known, this does nothing.
        """

        def make() -> Arrays:
            if not self.is_complete:
                raise _IncompleteError
            self._publish()
            found = self._found
            sizes = dict.fromkeys(("edits_values", "starts", "stops"), found.n_edits)
            sizes |= {"slots": found.n_slots, "edits_indptr": found.n_slots * self.n_kinds + 1}
            sizes |= {"list_bounds": found.n_lists + 1, "options_utf8": found.n_bytes}
            sizes |= {"options_offsets": found.n_options + 1}
            arrays = {key: found.arrays[key][:size] for key, size in sizes.items()}
            return arrays | {"checksum": _checksum(arrays)}

        with self._lock, suppress(_IncompleteError):
            if not self.is_kept:
                arrays = index.cached(name, VERSION, make, lambda stored: _fit(stored, self._source, self.n_kinds))
                self._found = _Found(arrays, len(self._source.words), is_kept=True)
                self._lists = {}


@dataclass(frozen=True)
class DrawnEdits:
    """The edit that was drawn for each of some rows. arrays: those of `FoundEdits`; the others, see `draw_edits`."""

    arrays: Arrays
    kinds: np.ndarray  # int8 (n_rows,)
    edits: np.ndarray  # int64 (n_rows,)
    options: np.ndarray  # int64 (n_rows,)

    @cached_property
    def listed(self) -> np.ndarray:
        """The places of the rows whose edit is in `arrays`."""
        return np.flatnonzero(self.edits >= 0)

    def of_kind(self, kind: int) -> np.ndarray:
        """Return the places of the rows with this kind of edit."""
        return np.flatnonzero(self.kinds == kind)

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


class _IncompleteError(Exception):
    """Not all edits are known."""


def _more(bounds: np.ndarray, n: int, ends: np.ndarray) -> np.ndarray:
    """Add the bounds of more rows to the `bounds` of n rows. ends: where each row ends, from the start of the first."""
    return extended(bounds, n + 1, bounds[n] + ends)


def _checksum(arrays: Arrays) -> np.ndarray:
    return np.frombuffer(bytes.fromhex(checksum_of(arrays[name].data for name in sorted(DTYPES))), np.uint8)


def _fit(stored: Arrays, source: SplitSentences, n_kinds: int) -> bool:
    """Return whether stored arrays are the edits of `source`, and lead no kernel outside an array."""
    if any(stored[name].dtype != dtype for name, dtype in DTYPES.items()):
        return False
    if not np.array_equal(stored["checksum"], _checksum(stored)):
        return False
    n_rows, slots, lists = len(source.words), stored["slots"], stored["list_bounds"]
    edits = RaggedArray(stored["edits_values"], stored["edits_indptr"])
    options = StringTable(stored["options_utf8"], stored["options_offsets"])
    has_sizes = len(slots) == n_rows and len(edits) == n_rows * n_kinds and len(lists) > 0
    if not has_sizes or not len(edits.values) == len(stored["starts"]) == len(stored["stops"]):
        return False
    if not np.array_equal(np.sort(slots), np.arange(n_rows)) or not options.is_utf8():
        return False
    if lists[0] != 0 or lists[-1] != len(options) or (np.diff(lists) <= 0).any():
        return False
    if len(edits.values) and edits.values.view(np.uint32).max() >= len(lists) - 1:
        return False
    ends = np.cumsum(1 + np.diff(source.chunks.offsets)[source.sentences.values])
    sizes = np.diff(np.append(0, ends)[source.sentences.indptr]) - 1
    rows = np.repeat(np.argsort(slots), edits.lengths().reshape(-1, n_kinds).sum(axis=1))
    return bool((0 <= stored["starts"]).all() and (stored["starts"] <= stored["stops"]).all()) and bool(
        (stored["stops"] <= sizes[rows]).all()
    )
