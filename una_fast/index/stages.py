"""The stages of a build in a folder, as tasks, and the files by which they exchange data.

scan    a split -> its rows in its own numbers, and its distinct words and chunks, sorted by hash
merge   the strings of one hash range, of all splits -> its distinct strings, best first, with their scores
rank    a range of ranks is gathered from all hash ranges, and sorted
label   the rank of each string of a hash range in each split
number  the id of each string of a split
write   an array is joined from its parts, rows with ids in place of the numbers of their split

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
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import xxhash

from una_fast._kernels.csr import relabel
from una_fast._kernels.words.strings import StringSet, hash_strings
from una_fast.arrays import ID, POINTER, SCORE, StringTable, check_id_range, row_bounds
from una_fast.corpus.source import Block
from una_fast.corpus.word_tokenizers import NAMED, Split, word_tokenizer
from una_fast.corpus.words import Parser
from una_fast.index.executors import N_BUCKETS
from una_fast.index.index import DTYPES, SCORES
from una_fast.index.scores import count_documents, term_scores
from una_fast.parallel import Workers
from una_fast.storage.files import new_file, unwritable

GO_ON = "remove the cause, and run the same again: finished files are kept"
N_SAMPLES = 256  # evenly spaced strings of a hash range, from which ranges of ranks of about equal size are cut
ROWS = {"terms": "words", "chunks": "sentences"}  # the arrays of rows whose ids name these strings
_ONE_AT_A_TIME = threading.Lock()  # held while a caller's word tokenizer runs, which may not be thread-safe

Words = tuple[str | Split, bool]  # the arguments of `word_tokenizer`; pickled with the tasks
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
    parts = [np.ascontiguousarray(array).view(np.uint8).data for array in arrays.values()]
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
        self._places: dict[str, tuple[np.dtype[Any], int, int]] = {}
        place = self._file.tell()
        for name, (dtype, length) in lengths.items():
            self._places[name] = np.dtype(dtype), length, place
            place += np.dtype(dtype).itemsize * length

    def length(self, name: str) -> int:
        """The number of values of an array."""
        return self._places[name][1]

    def read(self, name: str, start: int = 0, stop: int | None = None) -> np.ndarray:
        """``array[start:stop]``, read into memory."""
        dtype, length, place = self._places[name]
        self._file.seek(place + start * dtype.itemsize)
        return np.fromfile(self._file, dtype, (length if stop is None else stop) - start)

    def __exit__(self, *_: object) -> None:
        self._file.close()


def read_meta(path: Path) -> dict[str, Any]:
    """The `meta` of a file that `write_pack` wrote."""
    with Pack(path) as pack:
        return pack.meta


def scan_split(split: Path, words: Words, output: Path) -> None:
    """The task of a split: its rows of words and chunks, and both kinds of strings sorted by hash.

    For each kind: `utf8`, `offsets`: its strings; `numbers`, int32: those that the split gave them by first appearance;
    `bounds`: of the buckets. `values`, int32, and `lengths` of the rows that name them, by these numbers. Of words also
    `frequency` and `ratio`, as `count_documents` has them. The file `split` is deleted.
    """
    if output.exists():  # written by a worker that was lost before it could say so
        return
    with Pack(split) as pack:
        meta, block = pack.meta, Block(*(pack.read(name) for name in ("data", "starts", "stops")))
    parser, here = Parser(word_tokenizer(*words)), Workers(1)
    with nullcontext() if parser.tokenizer.name in NAMED else _ONE_AT_A_TIME:
        parser.add([block], here)
    chunks, sentences, vocabulary, word_ids = parser.result(here)
    arrays: dict[str, np.ndarray] = {}
    for kind, strings, ids in (("terms", vocabulary, word_ids), ("chunks", chunks, sentences)):
        buckets = (hash_strings(strings.utf8, strings.offsets).astype(np.uint64) * np.uint64(N_BUCKETS)) >> np.uint64(
            32
        )
        order = np.argsort(buckets.astype(np.uint16), kind="stable")
        bounds = np.searchsorted(buckets[order], np.arange(N_BUCKETS + 1))
        of_kind = {**vars(strings.take(order)), "numbers": order.astype(ID), "bounds": bounds}
        if kind == "terms":
            frequency, ratio = count_documents(ids, len(strings))
            of_kind |= {"frequency": frequency.astype(ID)[order], "ratio": ratio[order]}
        arrays |= {f"{kind}_{name}": array for name, array in of_kind.items()}
        arrays |= {f"{ROWS[kind]}_values": ids.values, f"{ROWS[kind]}_lengths": ids.lengths().astype(ID)}
    write_pack(output, {**meta, "n_words": len(word_ids.values), "n_bytes": len(block.data)}, arrays)
    split.unlink(missing_ok=True)


def merge_strings(
    kind: str, scans: PackFiles, partition: int, n_partitions: int, n_documents: int, output: Path
) -> None:
    """The task of a hash range: merges it from all `scans`; words by score, chunks by first appearance."""
    buckets = (partition * N_BUCKETS // n_partitions, (partition + 1) * N_BUCKETS // n_partitions)
    strings, places, firsts, frequencies, ratios = StringSet(), [], [], [], []
    for split, path in enumerate(scans):
        with Pack(path) as scan:
            span = [int(scan.read(f"{kind}_bounds", bucket, bucket + 1)[0]) for bucket in buckets]
            offsets, utf8 = _read_strings(scan, f"{kind}_", *span)
            known = len(strings)
            places.append(strings.add(utf8, offsets[:-1], offsets[1:]))
            check_id_range(len(strings), "words" if kind == "terms" else "chunks")
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
        scores = vars(term_scores(frequency, ratio, n_documents))
    order = np.lexsort((first, -scores["max_tfidf"]))
    arrays = {name: values[order] for name, values in scores.items()}
    table = StringTable(*strings.strings()).take(order)
    del strings
    sorted_places = np.empty(n, dtype=ID)
    sorted_places[order] = np.arange(n, dtype=ID)
    arrays |= {"first": first[order], "utf8": table.utf8, "offsets": table.offsets}
    arrays |= {"places": sorted_places[in_set], "bounds": row_bounds([*map(len, places)])}  # of each split's strings
    write_pack(output, {"n": n}, arrays)


def _read_strings(pack: Pack, prefix: str, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
    """Offsets, from 0, int64, and UTF-8 of the strings `start` to `stop` of a file."""
    offsets = pack.read(f"{prefix}offsets", start, stop + 1)
    utf8 = pack.read(f"{prefix}utf8", offsets[0], offsets[-1])
    return offsets - offsets[0], utf8


def cut_ranks(merged: Iterable[Path], n_ranges: int) -> list[Key]:
    """Keys between `n_ranges` ranges of about as many strings each, from the samples of the hash ranges."""
    keys: list[tuple[Key, float]] = []
    for path in merged:
        with Pack(path) as pack:
            n = pack.meta["n"]
            samples = np.linspace(0, n - 1, min(n, N_SAMPLES)).astype(int).tolist()
            keys += [(_key_at(pack, i), n / len(samples)) for i in samples]
    keys.sort()
    weights = np.cumsum([weight for _, weight in keys])
    targets = np.linspace(0, weights[-1] if len(weights) else 0, n_ranges + 1)[1:-1]
    return [keys[i][0] for i in np.searchsorted(weights, targets).tolist()]


def rank_strings(kind: str, merged: Iterable[Path], low: Key | None, high: Key | None, output: Path) -> None:
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
        texts, lengths = [], []
        for pack, start, stop in zip(packs, starts, stops, strict=True):
            offsets, utf8 = _read_strings(pack, "", start, stop)
            texts.append(utf8)
            lengths.append(np.diff(offsets))
    strings = StringTable(np.concatenate(texts), row_bounds(np.concatenate(lengths))).take(order)
    arrays |= {f"{kind}_utf8": strings.utf8, f"{kind}_lengths": np.diff(strings.offsets)}
    write_pack(output, {}, {**arrays, "ranks": ranks, "bounds": row_bounds(np.subtract(stops, starts))})


def label_strings(merged: Path, ranked: Iterable[Path], partition: int, output: Path) -> None:
    """The task of a hash range: int32 `labels`, the ranks of its strings in all splits, and `bounds` of the splits."""
    ranks = []
    for path in ranked:
        with Pack(path) as pack:
            ranks.append(pack.read("ranks", *pack.read("bounds", partition, partition + 2)))
    with Pack(merged) as pack:
        write_pack(output, {}, {"labels": np.concatenate(ranks)[pack.read("places")], "bounds": pack.read("bounds")})


def number_split(split: int, scan: Path, labelled: Mapping[str, PackFiles], output: Path) -> None:
    """The task of a split: the id, int32, of each of its words and chunks, by the number that the split gave it."""
    arrays = {}
    with Pack(scan) as strings:
        for kind, paths in labelled.items():
            labels = []
            for path in paths:
                with Pack(path) as pack:
                    labels.append(pack.read("labels", *pack.read("bounds", split, split + 2)))
            numbers = strings.read(f"{kind}_numbers")
            arrays[kind] = np.empty(len(numbers), dtype=ID)
            arrays[kind][numbers] = np.concatenate(labels)
    write_pack(output, {}, arrays)


def write_array(name: str, parts: PackFiles, numbered: PackFiles, array: Path, output: Path) -> None:
    """The task of an array: joins its `parts` in the file `array`, and writes the checksum of that to `output`.

    Rows hold the numbers of their split, which become ids by the file of the split in `numbered`.
    """
    table, _, content = name.rpartition("_")
    is_bounds = content in ("offsets", "indptr")
    in_part, dtype = f"{table}_lengths" if is_bounds else name, np.dtype(DTYPES[name])
    checksum, n, end = xxhash.xxh3_64(), int(is_bounds), 0
    for path in parts:
        with Pack(path) as pack:
            n += pack.length(in_part)
    try:
        with new_file(array) as file:

            def write(data: bytes | memoryview) -> None:
                file.write(data)
                checksum.update(data)

            header = {"descr": dtype.str, "fortran_order": False, "shape": (n,)}
            np.lib.format.write_array_header_1_0(SimpleNamespace(write=write), header)
            write(bytes(dtype.itemsize * is_bounds))
            for split, path in enumerate(parts):
                with Pack(path) as pack:
                    values = pack.read(in_part)
                if content == "values":
                    with Pack(numbered[split]) as pack:
                        relabel(values, pack.read("terms" if table == "words" else "chunks"), values)
                if is_bounds and len(values):
                    values = end + np.cumsum(values, dtype=POINTER)
                    end = values[-1]
                write(values.astype(dtype, copy=False).view(np.uint8).data)
    except OSError as error:
        raise unwritable(array, error, GO_ON) from error
    write_pack(output, {"checksum": checksum.hexdigest()}, {})


def _place(pack: Pack, key: Key) -> int:
    """How many strings of a hash range come before `key`."""
    return bisect_left(range(pack.meta["n"]), key, key=lambda i: _key_at(pack, i))


def _key_at(pack: Pack, i: int) -> Key:
    return -pack.read("max_tfidf", i, i + 1)[0], int(pack.read("first", i, i + 1)[0])
