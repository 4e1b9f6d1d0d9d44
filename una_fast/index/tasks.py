"""The tasks of a build in a folder, and the files through which they exchange data.

A split is a run of consecutive documents of the corpus. A string is a word or a chunk. Each split numbers its distinct
strings in the order of first appearance; these numbers are split-local ids. In the index, the id of a string is its
rank: its position among all distinct strings of the corpus. Words are ranked by their highest TF-IDF score, highest
first. Chunks, and words with the same score, are ranked by first appearance in the corpus. There are five stages:

scan: finds the distinct strings of each split, and writes the split's documents as split-local ids
merge: finds the distinct strings of the corpus, and scores them; each task does this for one range of string hashes
rank: sorts the strings; each task does this for one range of ranks
label: looks up the rank of each split-local id; each task does this for one range of string hashes
write: writes the arrays of the index, with ranks instead of split-local ids; each task writes one array

In merge and rank, strings are sorted by complex numbers, because numpy sorts these by the real part and then by the
imaginary part. The real part is the negated highest score, or 0 for chunks. The imaginary part encodes the first split
that contains the string, and the string's id in that split.
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
IDS_PER_SPLIT = 2.0**31  # a sort key contains split * IDS_PER_SPLIT + id, which is exact for up to 2**22 splits
ROWS_WITH = {"terms": "words", "chunks": "sentences"}  # name of an array of strings -> name of the rows with their ids
_ONE_AT_A_TIME = threading.Lock()  # a user's word tokenizer may not be thread-safe


@dataclass(frozen=True)
class PackFiles:
    """The files that the n tasks of one stage write to the folder `work`. Iteration yields a `Pack` for each file."""

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

    made_of: a checksum of the data that the arrays were computed from, or "". The file stores it, so that `is_pack_of`
    can tell whether the data has changed.
    Raises InputError if the file cannot be written.
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
    """Return whether `write_pack` wrote the file `path` with this `made_of`, and the file is undamaged."""
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
        """Return the length of the array with this name."""
        return int(self._about[name][1])

    def read(self, name: str, start: int = 0, stop: int | None = None) -> np.ndarray:
        """Read ``array[start:stop]`` of the array with this name."""
        dtype, length, position = self._about[name]
        count = (length if stop is None else stop) - start
        return np.fromfile(self._path, dtype, count, offset=self._start + position + start * np.dtype(dtype).itemsize)

    def read_rows(self, name: str, bounds: str, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Read rows `start` to `stop` - 1 of an array whose rows have different lengths.

        name: the array of the values of all rows. bounds: the array of the rows' bounds. Row i consists of the values
        ``bounds[i]`` to ``bounds[i + 1] - 1``.

        Returns the values of the rows that were read, and the bounds of these rows, shifted to begin at 0.
        """
        ends = self.read(bounds, start, stop + 1)
        return self.read(name, ends[0], ends[-1]), ends - ends[0]


@contextmanager
def _whole_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that is written completely or not at all. Raises InputError if it cannot be written."""
    try:
        with new_file(path) as file:
            yield file
    except OSError as error:
        raise unwritable(path, error, "finished files are kept: fix this, then start the build again") from error


def scan_split(split: Path, tokenizer: WordTokenizer, output: Path) -> None:
    """Divide the documents of a split into chunks and words, write these to the file `output`, and delete `split`.

    The distinct strings are sorted into buckets by their hash. The output contains these arrays for the words:

    - `terms_utf8`, `terms_offsets`: the distinct words, bucket by bucket
    - `terms_bounds`: the position of each bucket's first word, and then the number of words
    - `terms_numbers`, int32: the split-local id of each distinct word
    - `terms_frequency`, `terms_ratio`: the results of `count_documents` for each distinct word
    - `words_values`, int32: the split-local ids of the words of all documents, document by document
    - `words_lengths`, int32: the number of words of each document

    For the chunks, the output contains the same arrays except frequency and ratio. Their names begin with `chunks_`
    instead of `terms_`, and with `sentences_` instead of `words_`.
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
    """Collect the distinct strings of one hash range from all splits, and write them to a file of `merged`.

    The strings are sorted by `keys`: words by score, chunks by first appearance. The file also contains `positions`,
    the positions of each split's strings among the sorted strings, split by split. `bounds` contains the bounds of the
    splits in `positions`.

    Args:
        kind: "terms" for words, or "chunks".
        scans: the files that the scan wrote.
        partition: the number of the hash range, from 0.
        n_documents: the number of documents of the corpus.
        merged: the files of this stage, one per hash range.
    """
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
    # the positions in `table` of the strings of each split
    arrays |= {"positions": inverse(order)[in_set], "bounds": row_bounds([*map(len, positions)])}
    write_pack(merged.path(partition), "", arrays)


def cut_ranks(merged: PackFiles) -> list[list[int]]:
    """Divide the ranks of all strings into as many ranges as there are hash ranges.

    Returns a list of positions for each rank range. Item h is the position where the rank range starts in the sorted
    strings of hash range h. One more list contains the positions where the last rank range ends.

    A hash range is a random sample of all strings. So the sort keys that divide the largest hash range into equal
    parts also divide the other hash ranges into almost equal parts.
    """
    keys = max(merged, key=lambda pack: pack.length("keys")).read("keys")
    cuts = keys[len(keys) * np.arange(1, merged.n) // merged.n]
    starts = [[0, *np.searchsorted(pack.read("keys"), cuts).tolist(), pack.length("keys")] for pack in merged]
    return [list(row) for row in zip(*starts, strict=True)]


def rank_strings(kind: str, merged: PackFiles, starts: list[int], stops: list[int], output: Path) -> None:
    """Collect the strings of one rank range from all hash ranges, and write them to `output` in order of rank.

    The output also contains `ranks` (int32), the ranks of the same strings, grouped by hash range. `bounds` contains
    the bounds of the hash ranges in `ranks`.

    Args:
        kind: "terms" for words, or "chunks".
        merged: the files that `merge_strings` wrote, one per hash range.
        starts: for each hash range, the position in its file of the first string of this rank range.
        stops: for each hash range, the position in its file after the last string of this rank range.
        output: the file to write.
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
    """Look up the rank of every string of one hash range, split by split, and write the ranks to the file `output`.

    The output contains `labels` (int32): the ranks of the strings of the first split, then of the second, and so on.
    `bounds` contains the bounds of the splits in `labels`.

    Args:
        merged: the files that `merge_strings` wrote.
        ranked: the files that `rank_strings` wrote.
        partition: the number of the hash range, from 0.
        output: the file to write.
    """
    ranks = np.concatenate([pack.read_rows("ranks", "bounds", partition, partition + 1)[0] for pack in ranked])
    strings = Pack(merged.path(partition))
    write_pack(output, "", {"labels": ranks[strings.read("positions")], "bounds": strings.read("bounds")})


def write_array(name: str, parts: PackFiles, labelled: PackFiles, array: Path) -> str:
    """Join the parts of an array of the index, and write the array to a .npy file. Return the file's checksum.

    Args:
        name: the array's name.
        parts: the files with its parts: the scans of all splits, or the results of `rank_strings`.
        labelled: the results of `label_strings`. They contain the ranks that replace split-local ids.
        array: the file to write.
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
    """Yield the row bounds of an array that is joined from several parts: [0], and then one int64 array per part.

    Each of these arrays contains the ends of a part's rows in the joined array.

    lengths: for each part, an array of the lengths of its rows.
    """
    end = 0
    yield np.zeros(1, dtype=POINTER)
    for part in lengths:
        yield end + np.cumsum(part, dtype=POINTER)
        end += int(part.sum(dtype=POINTER))


def _row_ids(table: str, scans: PackFiles, labelled: PackFiles) -> Iterator[np.ndarray]:
    """Yield one array per split: the ids of all words, or of all chunks, in the split's documents.

    The ids are those of the index, not split-local ids.

    table: "words" for the ids of words, or "sentences" for the ids of chunks.
    """
    labels, kind = [*labelled], next(kind for kind, rows in ROWS_WITH.items() if rows == table)
    for split, scan in enumerate(scans):
        numbers, ids = scan.read(f"{kind}_numbers"), scan.read(f"{table}_values")
        ranks = np.empty(len(numbers), dtype=ID)
        ranks[numbers] = np.concatenate([pack.read_rows("labels", "bounds", split, split + 1)[0] for pack in labels])
        relabel(ids, ranks, ids)
        yield ids
