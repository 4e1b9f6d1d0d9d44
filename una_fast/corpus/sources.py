"""Opens the sources of a corpus: files, tables, datasets and iterables. `una_fast.build_index` lists all types."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import xxhash

from una_fast.arrays import StringTable
from una_fast.corpus.documents import BLOCK_BYTES, Reading, object_blocks, too_long
from una_fast.corpus.files import EXTENSIONS, KNOWN, File, Reader, csv_rows, has_quotes, remote_files, text_lines
from una_fast.errors import InputError, as_input_errors, counted, failed, warn_user
from una_fast.storage.array_folder import find_manifest

GLOB = re.compile(r"[*?\[]")
URL = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]+):(/{1,3})(?=[^/])")  # pathlib turns two or three slashes into one


@dataclass
class Source:
    """A file, table, dataset or iterable of sentences. It can be read only once."""

    name: str  # in messages and manifests
    limit: int | None  # the longest accepted sentence, in bytes of UTF-8; 0 or None for any length
    documents: Iterator[StringTable]  # blocks of about BLOCK_BYTES
    file: File | None = None  # None for an object in memory
    key: str | None = None  # the options that affect which text is read; None for a file without columns

    def __post_init__(self) -> None:
        self._text, self._lengths = xxhash.xxh3_128(), xxhash.xxh3_128()

    def blocks(self) -> Iterator[StringTable]:
        """Yield the sentences in blocks. Raises InputError for a sentence that is longer than `limit`."""
        limit, n_documents = self.limit, 0
        for block in self.documents:
            lengths = np.diff(block.offsets)
            if limit and lengths.max(initial=0) > limit:
                row = "line" if self.file and self.key is None else "row"
                raise too_long(f"{self.file or self.name}, {row} {n_documents + int(lengths.argmax()) + 1:,}", limit)
            if self.file is None:
                self._lengths.update(lengths.astype("<i8").data)
                self._text.update(block.utf8.data)
            n_documents += len(block)
            yield block

    def digest(self) -> str:
        """Return a hash of the file's bytes and of `key`. For an object in memory, return a hash of its texts."""
        if self.file is None:
            for _ in self.blocks():  # those that have not been read yet
                pass
            return xxhash.xxh3_128_hexdigest(self._text.digest() + self._lengths.digest())
        state = xxhash.xxh3_128()
        with as_input_errors(self.file, "read"), self.file.open("rb") as file:
            while piece := file.read(BLOCK_BYTES):
                state.update(piece)
        raw = state.hexdigest()
        return raw if self.key is None else xxhash.xxh3_128_hexdigest(f"{raw} {self.key}".encode())

    def identity(self) -> list[Any]:
        """Return values that change if the file changes: size in bytes, mtime, and ctime, which no user can set."""
        if self.file is None:  # an object in memory is read only once
            return []
        with as_input_errors(self.file, "read"):
            if not isinstance(self.file, Path):
                return self.file.identity()
            about = self.file.stat()
            return [about.st_size, about.st_mtime_ns, about.st_ctime_ns]


def open_sources(corpus: Any, reading: Reading) -> list[Source]:
    """Open the sources of a corpus, in order. corpus: anything that `una_fast.build_index` accepts, or a `Source`.

    A list or tuple of paths, tables or other sources is several sources. Any other list is one source of sentences.
    """
    are_several = isinstance(corpus, (list, tuple)) and corpus and all(map(_is_source, corpus))
    return [source for item in (corpus if are_several else [corpus]) for source in _open_source(item, reading)]


def read_blocks(
    sources: Iterable[Source],
    summaries: list[dict[str, Any]],
    ahead: Callable[[Iterator[StringTable]], Iterable[StringTable]] = iter,
) -> Iterator[StringTable]:
    """Yield the sentences of all sources in blocks. Refuse a source without a sentence, or a file that changes.

    After each source, a dict with its name, n_documents and xxh3_128 is appended to `summaries`. `ahead` wraps the
    iterator over a file's blocks, for example to read them in another thread.
    """
    for source in sources:
        identity, n_documents = source.identity(), 0
        # an iterable may work only in the caller's thread
        for block in ahead(source.blocks()) if source.file else source.blocks():
            n_documents += len(block)
            yield block
        if n_documents == 0:
            raise InputError(f"{source.name}: contains no sentence")
        summaries.append({"name": source.name, "n_documents": n_documents, "xxh3_128": source.digest()})
        if source.identity() != identity:  # the digest is computed in a second pass over the file
            raise InputError(f"{source.name}: changed since the build was started: run the build again")


def all_blank(n_documents: int) -> InputError:
    """Make the error for a corpus of blank sentences."""
    return InputError(f"the corpus has no word: {counted(n_documents, 'sentence')} read, all of them blank")


def check_sources(folder: Path, indexed: list[dict[str, Any]], sources: Sequence[Source]) -> None:
    """Raise InputError unless the index in `folder` was built from `sources`. indexed: the index's `sources`."""
    if len(indexed) != len(sources):
        raise InputError(
            f"{folder}: made from {counted(len(indexed), 'source')}, but the corpus has {len(sources)}: build it again"
        )
    for old, source in zip(indexed, sources, strict=True):
        if old["xxh3_128"] != (digest := source.digest()):
            raise InputError(
                f"{folder}: made from another corpus: {old['name']} had digest {old['xxh3_128']}, but {source.name} "
                f"has {digest}; build the index again, or give the corpus that it was made from"
            )


def _is_source(item: Any) -> bool:
    if isinstance(item, str):
        return _reader_of(item) is not None
    return isinstance(item, (os.PathLike, Iterable, pa.Table, Source)) and not isinstance(
        item, (bytes, bytearray, Mapping)
    )


def _open_source(corpus: Any, reading: Reading) -> Sequence[Source]:
    if isinstance(corpus, (str, os.PathLike)):
        return _file_sources(os.fspath(corpus), reading)
    if isinstance(corpus, Source):
        return [corpus]
    if isinstance(corpus, Mapping):
        raise InputError(f"the corpus is a mapping of {', '.join(map(repr, corpus))}: give one, e.g. corpus['train']")
    if found := object_blocks(corpus, reading):
        name, blocks = found
        return [Source(name, reading.max_sentence_bytes, blocks)]
    raise InputError(
        f"a corpus is a path, a table, a dataset or an iterable of str, or a list of these, not {type(corpus).__name__}"
    )


def _file_sources(path: str, reading: Reading) -> list[Source]:
    """Open the file at a path or address. For a folder or glob, open its files of known kinds, in sorted order."""
    shown = path if len(path) < 200 else path[:200] + "... (a str is the path of a file; give sentences as a list)"
    files: Sequence[File]
    with as_input_errors(shown, "read"):
        if address := address_in(path):
            files = remote_files(address)
        elif Path(path).is_dir():
            if find_manifest(Path(path)):
                raise InputError(f"{shown}: is a saved index, not text: una_fast.load_index opens it (--index)")
            files = _files_in(path)
        else:  # Path.glob does not accept absolute patterns
            names = [path] if Path(path).exists() else sorted(glob.glob(path, recursive=True))  # noqa: PTH207
            files = [file for file in map(Path, names) if not file.is_dir()]
    known = [(file, reader) for file in files if (reader := _reader_of(file.name))]
    if not known:
        missing = "no file matches" if GLOB.search(path) else "no such file, or an empty folder"
        raise InputError(f"{shown}: {f'unknown kind of file; known are {KNOWN}' if files else missing}")
    if others := [file for file in files if not _reader_of(file.name)]:
        warn_user(f"{path}: ignored {counted(len(others), 'file')} of an unknown kind; the first is {others[0]}")
    return [_file_source(file, reader, reading) for file, reader in known]


def address_in(path: str) -> str | None:
    """Return `path` if it is an address, else None. Corrects "s3:/a/b", which pathlib makes of "s3://a/b"."""
    url = URL.match(path)
    if url is None:
        return None
    slashes = "//" if url[2] != "/" or url[1].lower() not in ("file", "local") else "///"
    return f"{url[1]}:{max(slashes, url[2], key=len)}{path[url.end() :]}"


def _file_source(file: File, reader: Reader, reading: Reading) -> Source:
    if isinstance(file, Path) and not file.is_file():
        raise InputError(f"{file} is not a regular file")
    key = None if reader is text_lines else reading.column
    if reader is csv_rows and not has_quotes(file.name, reading):
        key = f"{key} without quotation marks"
    return Source(file.name, reading.max_sentence_bytes, reader(file, reading), file, key)


def _files_in(folder: str) -> list[Path]:
    """List the files in a folder and its subfolders, sorted, without hidden files and saved indexes."""

    def refuse(error: OSError) -> None:
        raise failed(error.filename, "read", error) from error

    paths = []
    for parent, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not (name.startswith(".") or find_manifest(Path(parent, name)))]
        paths += [str(Path(parent, name)) for name in names if not name.startswith(".")]
    return list(map(Path, sorted(paths)))


def _reader_of(name: str) -> Reader | None:
    """Return the reader for a file name, or None for an unknown extension."""
    return next((reader for ending, reader in EXTENSIONS.items() if name.lower().endswith(ending)), None)
