"""The tasks of a build in a folder, and the files through which they exchange data.

A split is a run of consecutive sentences of the corpus. A string is a word or a chunk. Each split numbers its distinct
strings by first appearance; these numbers are split-local ids. In the index, the id of a string is its rank. Words are
ranked by their highest TF-IDF score, highest first. Chunks, and words with the same score, are ranked by first
appearance in the corpus. There are five stages:

scan: finds the distinct strings of a split, and writes the split's sentences as split-local ids
merge: finds and scores the distinct strings of the corpus whose hashes are in one range
rank: sorts the strings in one range of ranks
label: looks up the ranks of the strings whose hashes are in one range
write: writes one array of the index, with ranks instead of split-local ids

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
from una_fast.index.scores import TermScores, count_documents, inverse
from una_fast.storage.files import checksum_of, file_checksum, new_file, unwritable

HEAD = 16  # bytes of the checksum at the start of a pack
IDS_PER_SPLIT = 2.0**31  # a sort key contains split * IDS_PER_SPLIT + id, which is exact for up to 2**22 splits
ROWS_WITH = {"terms": "words", "chunks": "sentences"}  # name of an array of strings -> name of the rows with their ids
_ONE_AT_A_TIME = threading.Lock()  # a user's word tokenizer may not be thread-safe


@dataclass(frozen=True)
class PackFiles:
    """The files that the n tasks of one stage write to the folder `work`. Iterating yields a `Pack` for each file."""

    work: Path
    stage: str
    n: int

    def path(self, i: int) -> Path:
        """Return the file of task i."""
        return self.work / f"{self.stage}-{i}.pack"

    def __iter__(self) -> Iterator[Pack]:
        return (Pack(self.path(i)) for i in range(self.n))


def write_pack(path: Path, arrays: dict[str, np.ndarray], input_checksum: str = "") -> None:
    """Write one-dimensional arrays, and a checksum of the data that they were computed from, to a file."""
    starts = row_bounds([array.nbytes for array in arrays.values()]).tolist()
    about = {name: [a.dtype.str, len(a), start] for (name, a), start in zip(arrays.items(), starts, strict=False)}
    parts: list[Any] = [
        json.dumps([input_checksum, about]).encode() + b"\n",
        *(np.ascontiguousarray(array).data for array in arrays.values()),
    ]
    with _whole_file(path) as file:
        file.write(checksum_of(parts).encode())
        file.writelines(parts)


@contextmanager
def _whole_file(path: Path) -> Iterator[IO[bytes]]:
    try:
        with new_file(path) as file:
            yield file
    except OSError as error:
        raise unwritable(path, error, "finished files are kept: fix this, then start the build again") from error


def is_pack_of(path: Path, input_checksum: str) -> bool:
    """Return whether `path` is an undamaged file that `write_pack` wrote with this `input_checksum`."""
    with suppress(OSError), path.open("rb") as file:
        return file.read(HEAD) == file_checksum(path, HEAD).encode() and Pack(path).input_checksum == input_checksum
    return False


class Pack:
    """A file that `write_pack` wrote. It is not memory-mapped, because mapped pages count as the process's memory."""

    def __init__(self, path: Path):
        self._path = path
        with path.open("rb") as file:
            file.seek(HEAD)
            self.input_checksum, self._about = json.loads(file.readline())
            self._start = file.tell()

    def length(self, name: str) -> int:
        """Return the length of an array."""
        return int(self._about[name][1])

    def read(self, name: str, start: int = 0, stop: int | None = None) -> np.ndarray:
        """Read the elements ``start .. stop - 1`` of the array `name`, by default up to its end."""
        dtype, length, position = self._about[name]
        count = (length if stop is None else stop) - start
        return np.fromfile(self._path, dtype, count, offset=self._start + position + start * np.dtype(dtype).itemsize)

    def read_rows(self, name: str, bounds_name: str, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Read rows `start` to `stop` - 1 of the array `name`. Return their values, and their `row_bounds`.

        bounds_name: the name of the array with the bounds of all rows.
        """
        ends = self.read(bounds_name, start, stop + 1)
        return self.read(name, ends[0], ends[-1]), ends - ends[0]


def scan_split(split: Path, tokenizer: WordTokenizer, output: Path) -> None:
    """Divide the sentences of a split into chunks and words, write these to the file `output`, and delete `split`.

    The output contains these arrays for the words. The distinct words are sorted into buckets by their hash.

    - `terms_utf8`, `terms_offsets`, `terms_numbers`: the distinct words, and their ids within this split
    - `terms_bounds`: the bounds of the buckets among the distinct words
    - `terms_frequency`, `terms_ratio`: the results of `count_documents` for each distinct word
    - `words_values`, `words_lengths`: the words of all sentences, as ids within this split, and how many each has

    For the chunks, `chunks_` replaces `terms_` and `sentences_` replaces `words_`, without frequency and ratio.
    """
    if output.exists():  # a worker wrote it and was lost before it could report
        return
    pack = Pack(split)
    block = StringTable(pack.read("utf8"), pack.read("offsets"))
    with nullcontext() if tokenizer.is_named else _ONE_AT_A_TIME:
        chunks, sentences, vocabulary, word_ids = parse([block], tokenizer, 1)
    arrays: dict[str, np.ndarray] = {}
    for kind, strings, ids in (("terms", vocabulary, word_ids), ("chunks", chunks, sentences)):
        hashes = hash_strings(strings.utf8, strings.offsets)
        buckets = (hashes // (2**32 // N_BUCKETS)).astype(np.uint16)  # numpy sorts uint16 in linear time
        order = np.argsort(buckets, kind="stable")
        bounds = np.searchsorted(buckets[order], np.arange(N_BUCKETS + 1))
        of_kind = {**vars(strings.take(order)), "numbers": order.astype(ID), "bounds": bounds}
        if kind == "terms":
            frequency, ratio = count_documents(ids, len(strings))
            of_kind |= {"frequency": frequency.astype(ID)[order], "ratio": ratio[order]}
        arrays |= {f"{kind}_{name}": array for name, array in of_kind.items()}
        rows = ROWS_WITH[kind]
        arrays |= {f"{rows}_values": ids.values, f"{rows}_lengths": ids.lengths().astype(ID)}
    write_pack(output, arrays, pack.input_checksum)
    split.unlink(missing_ok=True)


def merge_strings(kind: str, scans: PackFiles, partition: int, n_documents: int, merged: PackFiles) -> None:
    """Write the distinct strings of hash range `partition` to a file, in order of rank.

    The file also contains the strings' sort `keys`. The strings of split i have the indices
    ``positions[bounds[i]:bounds[i + 1]]`` in the file. kind: "terms" for words, or "chunks".
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
        scores = TermScores.from_counts(frequency, ratio, n_documents)._asdict()
    keys = 1j * np.concatenate(firsts) - scores["max_tfidf"]
    order = np.argsort(keys)
    table = StringTable(*strings.strings()).take(order)
    del strings
    arrays = {name: values[order] for name, values in scores.items()} | {"keys": keys[order], **vars(table)}
    # the positions in `table` of the strings of each split
    arrays |= {"positions": inverse(order)[in_set], "bounds": row_bounds([*map(len, positions)])}
    write_pack(merged.path(partition), arrays)


def cut_ranks(merged: PackFiles) -> list[list[int]]:
    """Divide the strings into rank ranges, as many as there are hash ranges.

    Rank range r contains the strings ``result[r][h]`` to ``result[r + 1][h] - 1`` of each hash range h. The
    boundaries are chosen as sort keys that divide the largest hash range evenly. Hashes are random, so these keys also
    divide the other hash ranges about evenly.
    """
    keys = max(merged, key=lambda pack: pack.length("keys")).read("keys")
    cuts = keys[len(keys) * np.arange(1, merged.n) // merged.n]
    starts = [[0, *np.searchsorted(pack.read("keys"), cuts).tolist(), pack.length("keys")] for pack in merged]
    return [list(row) for row in zip(*starts, strict=True)]


def rank_strings(kind: str, merged: PackFiles, starts: list[int], stops: list[int], output: Path) -> None:
    """Take the strings ``starts[h]`` to ``stops[h] - 1`` of each hash range h, and write them in one order, by rank.

    The file `output` also contains the arrays `ranks` and `bounds`. The strings of hash range h have the ranks
    ``ranks[bounds[h]:bounds[h + 1]]``.
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
    write_pack(output, arrays)


def label_strings(merged: PackFiles, ranked: PackFiles, partition: int, output: Path) -> None:
    """Write the ranks of the strings of hash range `partition` to the file `output`.

    It contains the arrays `labels` and `bounds`. The strings of split i have the ranks
    ``labels[bounds[i]:bounds[i + 1]]``.
    """
    ranks = np.concatenate([pack.read_rows("ranks", "bounds", partition, partition + 1)[0] for pack in ranked])
    strings = Pack(merged.path(partition))
    write_pack(output, {"labels": ranks[strings.read("positions")], "bounds": strings.read("bounds")})


def write_array(name: str, parts: PackFiles, labelled: PackFiles, array: Path) -> str:
    """Join the parts of an array of the index, and write the array to a .npy file. Return the file's checksum.

    parts: the results of `scan_split` or `rank_strings`. labelled: the results of `label_strings`.
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
    """Yield the parts of ``row_bounds(np.concatenate(lengths))``: [0], then the ends of the rows in each array."""
    end = 0
    yield np.zeros(1, dtype=POINTER)
    for part in lengths:
        yield end + np.cumsum(part, dtype=POINTER)
        end += int(part.sum(dtype=POINTER))


def _row_ids(table: str, scans: PackFiles, labelled: PackFiles) -> Iterator[np.ndarray]:
    """Yield the index's ids for the words (table "words") or chunks (table "sentences") in each file of `scans`."""
    labels, kind = [*labelled], next(kind for kind, rows in ROWS_WITH.items() if rows == table)
    for split, scan in enumerate(scans):
        numbers, ids = scan.read(f"{kind}_numbers"), scan.read(f"{table}_values")
        ranks = np.empty(len(numbers), dtype=ID)
        ranks[numbers] = np.concatenate([pack.read_rows("labels", "bounds", split, split + 1)[0] for pack in labels])
        relabel(ids, ranks, ids)
        yield ids
