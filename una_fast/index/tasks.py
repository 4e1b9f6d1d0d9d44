"""The tasks of a build in a folder, and the files through which they exchange data.

scan    a split -> its rows as split-local ids, and its distinct words and chunks, sorted by hash
merge   one hash range of the strings of all splits -> their distinct strings, highest score first, with scores
rank    one range of ranks -> its strings, gathered from all hash ranges and sorted
label   one hash range -> the rank of each of its strings in each split
write   the parts of an array -> the array, with ranks instead of split-local ids

A string's sort key is complex, because numpy sorts complex numbers by the real and then by the imaginary part. The real
part is minus its highest score. The imaginary part encodes the first split that has the string, and its id there.
Splits are in the order of the corpus, and ids in a split are in the order of first appearance, so the imaginary parts
sort strings by first appearance in the corpus.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from una_fast._kernels.csr import relabel
from una_fast._kernels.words.strings import StringSet, hash_strings
from una_fast.arrays import ID, POINTER, SCORE, StringTable, check_id_range, row_bounds
from una_fast.corpus.word_tokenizers import WordTokenizer
from una_fast.corpus.words import parse
from una_fast.index.executors import N_BUCKETS
from una_fast.index.index import DTYPES, SCORES
from una_fast.index.scores import count_documents, inverse, term_scores
from una_fast.storage.files import checksum_of, file_checksum, new_file, unwritable

HEAD = 16  # bytes at the start of a pack: a checksum of the rest
PLACES = 2.0**31  # ids per split in a sort key; a float is exact for up to 2**22 splits
ROWS_OF = {"terms": "words", "chunks": "sentences"}  # the rows whose ids are these strings
_ONE_AT_A_TIME = threading.Lock()  # a caller's word tokenizer may not be thread-safe


@dataclass(frozen=True)
class PackFiles:
    """The files of the n tasks of a stage, in order."""

    work: Path
    stage: str
    n: int

    def path(self, i: int) -> Path:
        """Return the file of task i."""
        return self.work / f"{self.stage}-{i}.pack"

    def __iter__(self) -> Iterator[Pack]:
        return (Pack(self.path(i)) for i in range(self.n))


def write_pack(path: Path, made_of: str, arrays: dict[str, np.ndarray]) -> None:
    """Write one-dimensional `arrays`, and the checksum of what they are `made_of`, completely or not at all.

    The file begins with a checksum of the rest, for `is_pack_of`. Raises InputError as `_whole_file` does.
    """
    starts = row_bounds([array.nbytes for array in arrays.values()]).tolist()
    about = {name: [a.dtype.str, len(a), start] for (name, a), start in zip(arrays.items(), starts, strict=False)}
    parts: list[Any] = [
        json.dumps([made_of, about]).encode() + b"\n",
        *(np.ascontiguousarray(array).data for array in arrays.values()),
    ]
    with _whole_file(path) as file:
        file.write(checksum_of(parts).encode())
        file.writelines(parts)


def is_pack_of(path: Path, made_of: str) -> bool:
    """Return whether a file is a complete pack with this `made_of`, by its checksums."""
    with suppress(OSError), path.open("rb") as file:
        return file.read(HEAD) == file_checksum(path, HEAD).encode() and Pack(path).made_of == made_of
    return False


class Pack:
    """A file that `write_pack` wrote. Its arrays are read in slices.

    They are not memory-mapped, because mapped pages count towards the memory of the process that reads them.
    """

    def __init__(self, path: Path):
        self._path = path
        with path.open("rb") as file:
            file.seek(HEAD)
            self.made_of, self._about = json.loads(file.readline())
            self._start = file.tell()

    def length(self, name: str) -> int:
        """Return the length of an array."""
        return int(self._about[name][1])

    def read(self, name: str, start: int = 0, stop: int | None = None) -> np.ndarray:
        """Read ``array[start:stop]``."""
        dtype, length, place = self._about[name]
        count = (length if stop is None else stop) - start
        return np.fromfile(self._path, dtype, count, offset=self._start + place + start * np.dtype(dtype).itemsize)

    def read_rows(self, name: str, bounds: str, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Read the rows ``start:stop`` of an array. Return their values, and their bounds in these values."""
        ends = self.read(bounds, start, stop + 1)
        return self.read(name, ends[0], ends[-1]), ends - ends[0]


@contextmanager
def _whole_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that is written completely or not at all. Raises InputError if that fails, as on a full disk."""
    try:
        with new_file(path) as file:
            yield file
    except OSError as error:
        raise unwritable(path, error, "run the same again once it can be: finished files are kept") from error


def scan_split(split: Path, tokenizer: WordTokenizer, output: Path) -> None:
    """Scan a split into rows of words and of chunks, and the distinct strings of both kinds, sorted by hash.

    It writes for each kind `utf8`, `offsets`: the strings; `numbers`, int32: of the strings, by first appearance in the
    split; `bounds`: of the buckets; `values`, int32, and `lengths` of the rows, in these numbers; for words also
    `frequency` and `ratio` of `count_documents`. The file `split` is deleted.
    """
    if output.exists():  # written by a worker that was lost before it could report
        return
    pack = Pack(split)
    block = StringTable(pack.read("utf8"), pack.read("offsets"))
    with nullcontext() if tokenizer.is_named else _ONE_AT_A_TIME:
        chunks, sentences, vocabulary, word_ids = parse([block], tokenizer, 1)
    arrays: dict[str, np.ndarray] = {}
    for kind, strings, ids in (("terms", vocabulary, word_ids), ("chunks", chunks, sentences)):
        hashes = hash_strings(strings.utf8, strings.offsets).astype(np.uint64)
        buckets = (hashes * np.uint64(N_BUCKETS)) >> np.uint64(32)
        order = np.argsort(buckets.astype(np.uint16), kind="stable")
        bounds = np.searchsorted(buckets[order], np.arange(N_BUCKETS + 1))
        of_kind = {**strings.take(order).arrays(), "numbers": order.astype(ID), "bounds": bounds}
        if kind == "terms":
            frequency, ratio = count_documents(ids, len(strings))
            of_kind |= {"frequency": frequency.astype(ID)[order], "ratio": ratio[order]}
        arrays |= {f"{kind}_{name}": array for name, array in of_kind.items()}
        arrays |= {f"{ROWS_OF[kind]}_values": ids.values, f"{ROWS_OF[kind]}_lengths": ids.lengths().astype(ID)}
    write_pack(output, pack.made_of, arrays)
    split.unlink(missing_ok=True)


def merge_strings(kind: str, scans: PackFiles, partition: int, n_documents: int, merged: PackFiles) -> None:
    """Merge a hash range of all `scans`, words sorted by score, chunks by first appearance."""
    buckets = (partition * N_BUCKETS // merged.n, (partition + 1) * N_BUCKETS // merged.n)
    strings, places, firsts, frequencies, ratios = StringSet(), [], [], [], []
    for split, scan in enumerate(scans):
        span = [int(scan.read(f"{kind}_bounds", bucket, bucket + 1)[0]) for bucket in buckets]
        utf8, offsets = scan.read_rows(f"{kind}_utf8", f"{kind}_offsets", *span)
        known = len(strings)
        places.append(strings.add(utf8, offsets[:-1], offsets[1:]))
        check_id_range(len(strings), kind)
        firsts.append(split * PLACES + scan.read(f"{kind}_numbers", *span)[places[-1] >= known])
        if kind == "terms":
            frequencies.append(scan.read("terms_frequency", *span))
            ratios.append(scan.read("terms_ratio", *span))
    n, in_set = len(strings), np.concatenate(places)
    scores: dict[str, np.ndarray] = {"max_tfidf": np.zeros(n, dtype=SCORE)}
    if kind == "terms":
        frequency, ratio = np.zeros(n, dtype=POINTER), np.zeros(n, dtype=SCORE)
        np.add.at(frequency, in_set, np.concatenate(frequencies))
        np.maximum.at(ratio, in_set, np.concatenate(ratios))
        scores = term_scores(frequency, ratio, n_documents)._asdict()
    keys = 1j * np.concatenate(firsts) - scores["max_tfidf"]
    order = np.argsort(keys)
    table = StringTable(*strings.strings()).take(order)
    del strings
    arrays = {name: values[order] for name, values in scores.items()} | {"keys": keys[order], **table.arrays()}
    arrays |= {"places": inverse(order)[in_set], "bounds": row_bounds([*map(len, places)])}  # of each split's strings
    write_pack(merged.path(partition), "", arrays)


def cut_ranks(merged: PackFiles) -> list[list[int]]:
    """Return where each range of ranks starts in each hash range, and where the last one ends: (n + 1) rows of n.

    There are as many ranges of ranks as hash ranges. They have similar sizes: a hash range is a random sample of all
    keys, so the cuts that divide it equally also divide the others almost equally.
    """
    keys = max(merged, key=lambda pack: pack.length("keys")).read("keys")
    cuts = keys[len(keys) * np.arange(1, merged.n) // merged.n]
    starts = [[0, *np.searchsorted(pack.read("keys"), cuts).tolist(), pack.length("keys")] for pack in merged]
    return [list(row) for row in zip(*starts, strict=True)]


def rank_strings(kind: str, merged: PackFiles, starts: list[int], stops: list[int], output: Path) -> None:
    """Sort the strings of a range of ranks, which are those from `starts` to `stops` in each hash range.

    It also writes `ranks`, int32, the strings' ranks in the order of the hash ranges, and `bounds` of these in `ranks`.
    """
    spans = [*zip(merged, starts, stops, strict=True)]

    def gather(name: str) -> np.ndarray:
        return np.concatenate([pack.read(name, *span) for pack, *span in spans])

    order = np.argsort(gather("keys"))
    first, *others = (StringTable(*pack.read_rows("utf8", "offsets", *span)) for pack, *span in spans)
    strings = first.followed_by(*others).take(order)
    arrays = {name: gather(name)[order] for name in SCORES} if kind == "terms" else {}
    arrays |= {f"{kind}_utf8": strings.utf8, f"{kind}_lengths": np.diff(strings.offsets)}
    arrays |= {"ranks": (inverse(order) + sum(starts)).astype(ID), "bounds": row_bounds(np.subtract(stops, starts))}
    write_pack(output, "", arrays)


def label_strings(merged: PackFiles, ranked: PackFiles, partition: int, output: Path) -> None:
    """Write the ranks of a hash range's strings in all splits: `labels`, int32, and `bounds` of the splits."""
    ranks = np.concatenate([pack.read_rows("ranks", "bounds", partition, partition + 1)[0] for pack in ranked])
    strings = Pack(merged.path(partition))
    write_pack(output, "", {"labels": ranks[strings.read("places")], "bounds": strings.read("bounds")})


def write_array(name: str, parts: PackFiles, labelled: PackFiles, array: Path) -> str:
    """Write an array of the index: join its `parts` in the file `array`, and return the file's checksum.

    labelled: the ranks of the rows' strings, which replace the split-local ids.
    """
    table, _, content = name.rpartition("_")
    are_bounds = content in ("offsets", "indptr")
    joined = f"{table}_lengths" if are_bounds else name
    n = sum(pack.length(joined) for pack in parts) + are_bounds
    pieces = _row_ids(table, parts, labelled) if content == "values" else (pack.read(joined) for pack in parts)
    dtype = np.dtype(DTYPES[name])
    with _whole_file(array) as file:
        header = {"descr": dtype.str, "fortran_order": False, "shape": (n,)}
        np.lib.format.write_array_header_1_0(file, header)
        for piece in _bounds(pieces) if are_bounds else pieces:
            file.write(piece.astype(dtype, copy=False).data)
    return file_checksum(array)


def _bounds(lengths: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
    """Yield the int64 bounds of rows, given their `lengths` in parts."""
    end = 0
    yield np.zeros(1, dtype=POINTER)
    for part in lengths:
        yield end + np.cumsum(part, dtype=POINTER)
        end += int(part.sum(dtype=POINTER))


def _row_ids(table: str, scans: PackFiles, labelled: PackFiles) -> Iterator[np.ndarray]:
    """Yield the ids of each split's rows, with ranks instead of split-local ids."""
    labels, kind = [*labelled], next(kind for kind, rows in ROWS_OF.items() if rows == table)
    for split, scan in enumerate(scans):
        numbers, ids = scan.read(f"{kind}_numbers"), scan.read(f"{table}_values")
        ranks = np.empty(len(numbers), dtype=ID)
        ranks[numbers] = np.concatenate([pack.read_rows("labels", "bounds", split, split + 1)[0] for pack in labels])
        relabel(ids, ranks, ids)
        yield ids
