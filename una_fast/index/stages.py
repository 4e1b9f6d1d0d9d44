"""The tasks of a build in a folder, and the files by which they exchange data.

scan    a split -> its rows in its own numbers, and its distinct words and chunks, sorted by hash
merge   the strings of one hash range, of all splits -> its distinct strings, best first, with their scores
rank    a range of ranks is gathered from all hash ranges, and sorted
label   the rank of each string of a hash range in each split
write   an array is joined from its parts, rows with ranks in place of the numbers of their split

A string's first place is (the first split that has it, its number there), as one int64: numbers are by first appearance
in a split, and splits are in the order of the corpus, so first places are in the order of first appearances. The
strings of each hash range lie sorted by (highest score, first place). A range of ranks holds the strings between two
such keys from every hash range; where they start in its file is found by bisection.

A file holds several arrays, which are read in slices. It is not memory-mapped, because pages of a mapped file count as
memory of the process that touched them.
"""

from __future__ import annotations

import json
import threading
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from una_fast._kernels.csr import relabel
from una_fast._kernels.words.strings import StringSet, hash_strings
from una_fast.arrays import ID, POINTER, SCORE, StringTable, check_id_range, row_bounds
from una_fast.corpus.word_tokenizers import NAMED, Split, word_tokenizer
from una_fast.corpus.words import Parser
from una_fast.index.executors import N_BUCKETS
from una_fast.index.index import DTYPES, SCORES
from una_fast.index.scores import count_documents, term_scores
from una_fast.parallel import Workers
from una_fast.storage.files import file_checksum, new_file, unwritable

GO_ON = "remove the cause, and run the same again: finished files are kept"
N_SAMPLES = 256  # evenly spaced strings of a hash range, from which ranges of ranks of about equal size are cut
ROWS = {"terms": "words", "chunks": "sentences"}  # the arrays of rows whose ids name these strings
STRINGS = {rows: kind for kind, rows in ROWS.items()}
_ONE_AT_A_TIME = threading.Lock()  # held while a caller's word tokenizer runs, which may not be thread-safe

Key = tuple[float, int]  # what ranks are sorted by, lowest first: minus the score, then the first place


@dataclass(frozen=True)
class PackFiles:
    """The files of the n tasks of a stage, in order. It is sent with each task, so it holds no list of them."""

    work: Path
    stage: str
    n: int

    def __getitem__(self, i: int) -> Path:
        return self.work / f"{self.stage}-{i}.pack"

    def __iter__(self) -> Iterator[Path]:
        return map(self.__getitem__, range(self.n))


def write_pack(path: Path, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write one-dimensional `arrays` and `meta` (anything JSON can hold).

    Raises:
        InputError: the file cannot be written, as on a full disk; nothing is left of it.
    """
    parts = [np.ascontiguousarray(array).data for array in arrays.values()]
    lengths = {name: [array.dtype.str, len(array)] for name, array in arrays.items()}
    header = json.dumps([meta, lengths]).encode() + b"\n"
    try:
        with new_file(path) as file:
            file.writelines([header, *parts])
    except OSError as error:
        raise unwritable(path, error, GO_ON) from error


class Pack(AbstractContextManager["Pack"]):
    """A file that `write_pack` wrote, to be read in slices, in a with statement."""

    def __init__(self, path: Path):
        self._file = path.open("rb")
        self.meta: dict[str, Any]
        self.meta, lengths = json.loads(self._file.readline())
        self._places: dict[str, tuple[np.dtype[Any], int, int]] = {}  # dtype, length, first byte
        place = self._file.tell()
        for name, (dtype, length) in lengths.items():
            self._places[name] = np.dtype(dtype), length, place
            place += np.dtype(dtype).itemsize * length

    def read(self, name: str, start: int = 0, stop: int | None = None) -> np.ndarray:
        """``array[start:stop]``, read into memory."""
        dtype, length, place = self._places[name]
        self._file.seek(place + start * dtype.itemsize)
        return np.fromfile(self._file, dtype, (length if stop is None else stop) - start)

    def read_row(self, name: str, row: int) -> np.ndarray:
        """Row `row` of an array whose rows lie between its `bounds`."""
        return self.read(name, *self.read("bounds", row, row + 2))

    def read_strings(self, prefix: str, start: int, stop: int) -> StringTable:
        """The strings `start` to `stop` of the table whose arrays begin with `prefix`."""
        offsets = self.read(f"{prefix}offsets", start, stop + 1)
        return StringTable(self.read(f"{prefix}utf8", offsets[0], offsets[-1]), offsets - offsets[0])

    def __exit__(self, *_: object) -> None:
        self._file.close()


def read_meta(path: Path) -> dict[str, Any]:
    """The `meta` of a file that `write_pack` wrote."""
    with Pack(path) as pack:
        return pack.meta


def scan_split(split: Path, tokenizer: str | Split, lowercase: bool, output: Path) -> None:
    """The task of a split: its rows of words and chunks, and both kinds of strings sorted by hash.

    For each kind: `utf8`, `offsets`: its strings; `numbers`, int32: those that the split gave them by first appearance;
    `bounds`: of the buckets. `values`, int32, and `lengths` of the rows that name them, by these numbers. Of words also
    `frequency` and `ratio`, as `count_documents` has them. The file `split` is deleted.
    """
    if output.exists():  # written by a worker that was lost before it could say so
        return
    with Pack(split) as pack:
        meta, block = pack.meta, StringTable(pack.read("utf8"), pack.read("offsets"))
    parser, here = Parser(word_tokenizer(tokenizer, lowercase)), Workers(1)
    with nullcontext() if parser.tokenizer.name in NAMED else _ONE_AT_A_TIME:
        parser.add([block], here)
    chunks, sentences, vocabulary, word_ids = parser.result(here)
    arrays: dict[str, np.ndarray] = {}
    for kind, strings, ids in (("terms", vocabulary, word_ids), ("chunks", chunks, sentences)):
        hashes = hash_strings(strings.utf8, strings.offsets).astype(np.uint64)
        buckets = (hashes * np.uint64(N_BUCKETS)) >> np.uint64(32)
        order = np.argsort(buckets.astype(np.uint16), kind="stable")
        bounds = np.searchsorted(buckets[order], np.arange(N_BUCKETS + 1))
        of_kind = {**vars(strings.take(order)), "numbers": order.astype(ID), "bounds": bounds}
        if kind == "terms":
            frequency, ratio = count_documents(ids, len(strings))
            of_kind |= {"frequency": frequency.astype(ID)[order], "ratio": ratio[order]}
        arrays |= {f"{kind}_{name}": array for name, array in of_kind.items()}
        arrays |= {f"{ROWS[kind]}_values": ids.values, f"{ROWS[kind]}_lengths": ids.lengths().astype(ID)}
    write_pack(output, {**meta, "n_words": len(word_ids.values), "n_bytes": len(block.utf8)}, arrays)
    split.unlink(missing_ok=True)


def merge_strings(kind: str, scans: PackFiles, partition: int, n_documents: int, merged: PackFiles) -> int:
    """The task of a hash range: merges it from all `scans`; words by score, chunks by first appearance.

    Returns the number of distinct strings.
    """
    buckets = (partition * N_BUCKETS // merged.n, (partition + 1) * N_BUCKETS // merged.n)
    strings, places, firsts, frequencies, ratios = StringSet(), [], [], [], []
    for split, path in enumerate(scans):
        with Pack(path) as scan:
            span = [int(scan.read(f"{kind}_bounds", bucket, bucket + 1)[0]) for bucket in buckets]
            utf8, offsets = vars(scan.read_strings(f"{kind}_", *span)).values()
            known = len(strings)
            places.append(strings.add(utf8, offsets[:-1], offsets[1:]))
            check_id_range(len(strings), kind)
            firsts.append(split << 32 | scan.read(f"{kind}_numbers", *span)[places[-1] >= known].astype(POINTER))
            if kind == "terms":
                frequencies.append(scan.read("terms_frequency", *span))
                ratios.append(scan.read("terms_ratio", *span))
    n, in_set, first = len(strings), np.concatenate(places), np.concatenate(firsts)
    scores: dict[str, np.ndarray] = {"max_tfidf": np.zeros(n, dtype=SCORE)}
    if kind == "terms":
        frequency, ratio = np.zeros(n, dtype=POINTER), np.zeros(n, dtype=SCORE)
        np.add.at(frequency, in_set, np.concatenate(frequencies))
        np.maximum.at(ratio, in_set, np.concatenate(ratios))
        scores = term_scores(frequency, ratio, n_documents)._asdict()
    order = np.lexsort((first, -scores["max_tfidf"]))
    arrays = {name: values[order] for name, values in scores.items()}
    table = StringTable(*strings.strings()).take(order)
    del strings
    sorted_places = np.empty(n, dtype=ID)
    sorted_places[order] = np.arange(n, dtype=ID)
    arrays |= {"first": first[order], "utf8": table.utf8, "offsets": table.offsets}
    arrays |= {"places": sorted_places[in_set], "bounds": row_bounds([*map(len, places)])}  # of each split's strings
    write_pack(merged[partition], {"n": n}, arrays)
    return n


def cut_ranks(merged: PackFiles) -> list[Key]:
    """Keys between as many ranges of ranks, of about as many strings each, from samples of the hash ranges."""
    keys: list[tuple[Key, float]] = []
    for path in merged:
        with Pack(path) as pack:
            n = pack.meta["n"]
            samples = np.linspace(0, n - 1, min(n, N_SAMPLES)).astype(int).tolist()
            keys += [(_key_at(pack, i), n / len(samples)) for i in samples]
    keys.sort()
    weights = np.cumsum([weight for _, weight in keys])
    targets = np.linspace(0, weights[-1] if len(weights) else 0, merged.n + 1)[1:-1]
    return [keys[i][0] for i in np.searchsorted(weights, targets).tolist()]


def rank_strings(kind: str, merged: PackFiles, low: Key | None, high: Key | None, output: Path) -> None:
    """The task of a range of ranks, from `low` to below `high`: its strings and their scores, by rank.

    `ranks`: int32, of the strings between the keys, one hash range after another; `bounds`: int64, where each hash
    range starts in it.
    """
    with ExitStack() as stack:
        packs = [stack.enter_context(Pack(path)) for path in merged]
        starts = [_place(pack, low) if low else 0 for pack in packs]
        stops = [_place(pack, high) if high else pack.meta["n"] for pack in packs]
        first_rank = sum(starts)

        def gather(name: str) -> np.ndarray:
            return np.concatenate([pack.read(name, *span) for pack, *span in zip(packs, starts, stops, strict=True)])

        order = np.lexsort((gather("first"), -gather("max_tfidf")))
        ranks = np.empty(len(order), dtype=ID)
        ranks[order] = np.arange(first_rank, first_rank + len(order), dtype=ID)
        arrays = {name: gather(name)[order] for name in SCORES} if kind == "terms" else {}
        tables = [pack.read_strings("", *span) for pack, *span in zip(packs, starts, stops, strict=True)]
    strings = tables[0].followed_by(*tables[1:]).take(order)
    arrays |= {f"{kind}_utf8": strings.utf8, f"{kind}_lengths": np.diff(strings.offsets)}
    write_pack(output, {}, {**arrays, "ranks": ranks, "bounds": row_bounds(np.subtract(stops, starts))})


def label_strings(merged: Path, ranked: PackFiles, partition: int, output: Path) -> None:
    """The task of a hash range: int32 `labels`, the ranks of its strings in all splits, and `bounds` of the splits."""
    ranks = []
    for path in ranked:
        with Pack(path) as pack:
            ranks.append(pack.read_row("ranks", partition))
    with Pack(merged) as pack:
        write_pack(output, {}, {"labels": np.concatenate(ranks)[pack.read("places")], "bounds": pack.read("bounds")})


def write_array(name: str, parts: PackFiles, labelled: PackFiles, array: Path) -> str:
    """The task of an array of the index: joins its `parts` in the file `array`, and returns the checksum of that.

    labelled: of the strings that rows name; their ranks replace the numbers of a split.
    """
    table, _, content = name.rpartition("_")
    if content in ("offsets", "indptr"):
        pieces = _bounds(_read_each(parts, f"{table}_lengths"))
    elif content == "values":
        pieces = _row_ids(table, parts, labelled)
    else:
        pieces = _read_each(parts, name)
    dtype, n = np.dtype(DTYPES[name]), 0
    try:
        with new_file(array) as file:
            _write_header(file, dtype, 0)
            for piece in pieces:
                file.write(piece.astype(dtype, copy=False).data)
                n += len(piece)
            _write_header(file, dtype, n)
    except OSError as error:
        raise unwritable(array, error, GO_ON) from error
    return file_checksum(array)


def _write_header(file: IO[bytes], dtype: np.dtype[Any], n: int) -> None:
    """Write the header of a .npy file, which takes as many bytes for any n."""
    file.seek(0)
    np.lib.format.write_array_header_1_0(file, {"descr": dtype.str, "fortran_order": False, "shape": (n,)})


def _read_each(parts: PackFiles, name: str) -> Iterator[np.ndarray]:
    for path in parts:
        with Pack(path) as pack:
            yield pack.read(name)


def _bounds(lengths: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
    """The int64 bounds of rows whose `lengths` come in parts."""
    end = 0
    yield np.zeros(1, dtype=POINTER)
    for part in lengths:
        yield end + np.cumsum(part, dtype=POINTER)
        end += int(part.sum(dtype=POINTER))


def _row_ids(table: str, scans: PackFiles, labelled: PackFiles) -> Iterator[np.ndarray]:
    """The rows of each split with ranks in place of the numbers that the split gave its strings."""
    with ExitStack() as stack:
        labels = [stack.enter_context(Pack(path)) for path in labelled]
        for split, path in enumerate(scans):
            with Pack(path) as scan:
                numbers, ids = scan.read(f"{STRINGS[table]}_numbers"), scan.read(f"{table}_values")
            ranks = np.empty(len(numbers), dtype=ID)
            ranks[numbers] = np.concatenate([pack.read_row("labels", split) for pack in labels])
            relabel(ids, ranks, ids)
            yield ids


def _place(pack: Pack, key: Key) -> int:
    """How many strings of a hash range come before `key`."""
    return bisect_left(range(pack.meta["n"]), key, key=lambda i: _key_at(pack, i))


def _key_at(pack: Pack, i: int) -> Key:
    return -pack.read("max_tfidf", i, i + 1)[0], int(pack.read("first", i, i + 1)[0])
