"""The tasks of a build in a folder, and the files through which they exchange data.

scan    a split -> its documents as split-local ids of words and of chunks; its distinct words and chunks by hash
merge   one hash range of the strings of all splits -> the distinct strings, highest score first, with scores
rank    one range of ranks -> its strings, collected from all hash ranges and sorted
label   one hash range -> the ranks of its strings in each split
write   the parts of an array -> the array, with ranks instead of split-local ids

The strings are the words, which become the terms, and the chunks. The sort key of a string is a complex number, because
numpy sorts these by the real and then by the imaginary part. The real part is the negated highest score, 0 for chunks.
The imaginary part encodes the first split that contains the string, and its id there. Splits are in the order of the
corpus, and ids in a split are in the order of first appearance, so the imaginary part sorts strings by first appearance
in the corpus.
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

HEAD = 16  # bytes of the checksum at the start of a pack
IDS_PER_SPLIT = 2.0**31  # in a sort key; a float is exact for up to 2**22 splits
ROWS_WITH = {"terms": "words", "chunks": "sentences"}  # strings -> the arrays of the rows that contain their ids
_ONE_AT_A_TIME = threading.Lock()  # a user's word tokenizer may not be thread-safe


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
    """Write one-dimensional `arrays` to a file, completely or not at all.

    made_of: a checksum of the arrays' input, for `is_pack_of`. Raises InputError as `_whole_file` does.
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
    """Return whether a file is an undamaged pack with this `made_of`."""
    with suppress(OSError), path.open("rb") as file:
        return file.read(HEAD) == file_checksum(path, HEAD).encode() and Pack(path).made_of == made_of
    return False


class Pack:
    """A file that `write_pack` wrote. Its arrays are read in slices.

    Arrays are not memory-mapped, because mapped pages count as memory of the process.
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
        dtype, length, position = self._about[name]
        count = (length if stop is None else stop) - start
        return np.fromfile(self._path, dtype, count, offset=self._start + position + start * np.dtype(dtype).itemsize)

    def read_rows(self, name: str, bounds: str, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Read rows ``start:stop`` of an array. Return their values, and the bounds of the rows in these values."""
        ends = self.read(bounds, start, stop + 1)
        return self.read(name, ends[0], ends[-1]), ends - ends[0]


@contextmanager
def _whole_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that is written completely or not at all. Raises InputError if it cannot be written."""
    try:
        with new_file(path) as file:
            yield file
    except OSError as error:
        raise unwritable(path, error, "finished files are kept: run the same again when it is writable") from error


def scan_split(split: Path, tokenizer: WordTokenizer, output: Path) -> None:
    """Scan a split: write its documents as rows of word ids and of chunk ids, and its strings of both kinds by hash.

    For each kind the output contains the strings, sorted by bucket of their hash (`utf8`, `offsets`), the `bounds` of
    the buckets, the id of each string in the split (`numbers`, int32, by first appearance), and the rows of ids
    (`values`, `lengths`, int32). For words it also contains `frequency` and `ratio` of `count_documents`. Deletes the
    file `split`.
    """
    if output.exists():  # a worker wrote it and was lost before it could report
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
        rows = ROWS_WITH[kind]
        arrays |= {f"{rows}_values": ids.values, f"{rows}_lengths": ids.lengths().astype(ID)}
    write_pack(output, pack.made_of, arrays)
    split.unlink(missing_ok=True)


def merge_strings(kind: str, scans: PackFiles, partition: int, n_documents: int, merged: PackFiles) -> None:
    """Merge the strings of one hash range of all `scans`. Words are sorted by score, chunks by first appearance."""
    buckets = (partition * N_BUCKETS // merged.n, (partition + 1) * N_BUCKETS // merged.n)
    strings, positions, firsts, frequencies, ratios = StringSet(), [], [], [], []
    for split, scan in enumerate(scans):
        span = [int(scan.read(f"{kind}_bounds", bucket, bucket + 1)[0]) for bucket in buckets]
        utf8, offsets = scan.read_rows(f"{kind}_utf8", f"{kind}_offsets", *span)
        known = len(strings)
        positions.append(strings.add(utf8, offsets[:-1], offsets[1:]))
        check_id_range(len(strings), kind)
        firsts.append(split * IDS_PER_SPLIT + scan.read(f"{kind}_numbers", *span)[positions[-1] >= known])
        if kind == "terms":
            frequencies.append(scan.read("terms_frequency", *span))
            ratios.append(scan.read("terms_ratio", *span))
    n, in_set = len(strings), np.concatenate(positions)
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
    # the position of each split's strings in `table`
    arrays |= {"positions": inverse(order)[in_set], "bounds": row_bounds([*map(len, positions)])}
    write_pack(merged.path(partition), "", arrays)


def cut_ranks(merged: PackFiles) -> list[list[int]]:
    """Divide the ranks into as many ranges as there are hash ranges, n.

    Returns n + 1 lists of n positions, one for each hash range: where range 0 of the ranks starts, where range 1
    starts, and so on, and finally where the last one ends. The ranges of ranks have similar sizes, because a hash range
    is a random sample of all keys: cuts that divide it equally also divide the others almost equally.
    """
    keys = max(merged, key=lambda pack: pack.length("keys")).read("keys")
    cuts = keys[len(keys) * np.arange(1, merged.n) // merged.n]
    starts = [[0, *np.searchsorted(pack.read("keys"), cuts).tolist(), pack.length("keys")] for pack in merged]
    return [list(row) for row in zip(*starts, strict=True)]


def rank_strings(kind: str, merged: PackFiles, starts: list[int], stops: list[int], output: Path) -> None:
    """Sort the strings of a range of ranks. They are the strings from `starts` to `stops` in each hash range.

    The output also contains the ranks of the strings in the order of the hash ranges (`ranks`, int32), and the `bounds`
    of the hash ranges.
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
    """Write the ranks of each split's strings in one hash range (`labels`, int32), and the `bounds` of the splits."""
    ranks = np.concatenate([pack.read_rows("ranks", "bounds", partition, partition + 1)[0] for pack in ranked])
    strings = Pack(merged.path(partition))
    write_pack(output, "", {"labels": ranks[strings.read("positions")], "bounds": strings.read("bounds")})


def write_array(name: str, parts: PackFiles, labelled: PackFiles, array: Path) -> str:
    """Join the `parts` of one array of the index and write it to the file `array`. Return the file's checksum.

    name: the array's name; labelled: the output of `label_strings`, with the ranks that replace split-local ids.
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
    """Yield the int64 bounds of all rows, part by part. lengths: the lengths of the rows, part by part."""
    end = 0
    yield np.zeros(1, dtype=POINTER)
    for part in lengths:
        yield end + np.cumsum(part, dtype=POINTER)
        end += int(part.sum(dtype=POINTER))


def _row_ids(table: str, scans: PackFiles, labelled: PackFiles) -> Iterator[np.ndarray]:
    """Yield the ids in the rows of each split, with ranks instead of split-local ids."""
    labels, kind = [*labelled], next(kind for kind, rows in ROWS_WITH.items() if rows == table)
    for split, scan in enumerate(scans):
        numbers, ids = scan.read(f"{kind}_numbers"), scan.read(f"{table}_values")
        ranks = np.empty(len(numbers), dtype=ID)
        ranks[numbers] = np.concatenate([pack.read_rows("labels", "bounds", split, split + 1)[0] for pack in labels])
        relabel(ids, ranks, ids)
        yield ids
