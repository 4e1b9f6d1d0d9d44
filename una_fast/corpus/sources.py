"""A corpus argument as a stream of blocks of UTF-8 documents.

A corpus is one source or several in order:

- a path (str or os.PathLike) of a file: .txt (a sentence per line), .csv, .tsv, .jsonl, .json (a sentence per row, in
  one column; a JSON value may also be a plain text), each also with .gz, .bz2, .xz or .zst, or .parquet;
- a glob ("data/*.txt", "data/**/*.jsonl") or a folder: its files of these kinds, in sorted order;
- a pandas or polars DataFrame or an Arrow table (one column), a Series or an Arrow array;
- a Hugging Face Dataset or IterableDataset (one column);
- any other iterable of str or of mappings (one key): one sentence per item, newlines allowed. Generators are consumed
  once.

A list or tuple is several sources if it is not empty and each item is an os.PathLike, a str that ends in one of the
extensions above, a table, or an iterable that is neither a str nor a mapping; any other list is itself an iterable of
sentences.
"""

from __future__ import annotations

import glob
import os
import re
import stat
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from una_fast.corpus.json_files import JsonFile, JsonLinesFile
from una_fast.corpus.reading import Reading
from una_fast.corpus.remote import RemoteFile, address_in, remote_files
from una_fast.corpus.source import FileSource, Source, unreadable
from una_fast.corpus.tables import CsvFile, ParquetFile, open_iterable, open_table
from una_fast.corpus.text_file import COMPRESSIONS, TextFile
from una_fast.errors import InputError, InputWarning, counted
from una_fast.storage import is_saved

SOURCE_CLASSES: dict[str, type[FileSource]] = {
    ".txt": TextFile,
    ".csv": CsvFile,
    ".tsv": CsvFile,
    ".jsonl": JsonLinesFile,
    ".json": JsonFile,
}
EXTENSIONS = {name + ending: reader for name, reader in SOURCE_CLASSES.items() for ending in ("", *COMPRESSIONS)}
EXTENSIONS[".parquet"] = ParquetFile
KNOWN = f"{', '.join(SOURCE_CLASSES)} (each also with {', '.join(COMPRESSIONS)}) and .parquet"
GLOB = re.compile(r"[*?\[]")
RUN_MARK = ".una_fast.json"  # in the folder of a command of training, whose files are no corpus


def open_sources(corpus: Any, reading: Reading) -> Sequence[Source]:
    """The sources of a corpus argument, in order. Raises InputError for an argument of another type."""
    if isinstance(corpus, (list, tuple)) and corpus and all(map(_is_source, corpus)):
        return [source for item in corpus for source in _open_source(item, reading)]
    return _open_source(corpus, reading)


def source_digests(corpus: Any, column: str = "text", quoting: bool | None = None) -> list[dict[str, str]]:
    """{"name", "xxh3_128"} of each source, to recognise a corpus without splitting it. Consumes generators."""
    digests = []
    for source in open_sources(corpus, Reading(column, quoting, max_document_bytes=None)):
        if not isinstance(source, FileSource):
            for _ in source.blocks():
                pass
        digests.append({"name": source.name, "xxh3_128": source.digest()})
    return digests


def check_sources(folder: Path, indexed: list[dict[str, Any]], given: list[dict[str, Any]]) -> None:
    """Raise InputError if the digests `given` differ from the digests `indexed`. folder: of the index."""
    if len(indexed) != len(given):
        raise InputError(
            f"{folder}: made from {counted(len(indexed), 'source')}, and the corpus has {len(given)}: build it again"
        )
    for old, new in zip(indexed, given, strict=True):
        if old["xxh3_128"] != new["xxh3_128"]:
            raise InputError(
                f"{folder}: made from another corpus: {old['name']} had digest {old['xxh3_128']}, and {new['name']} "
                f"has {new['xxh3_128']}; build the index again or give the corpus it was made from"
            )


def _is_source(item: Any) -> bool:
    if isinstance(item, str):
        return _reader_of(item) is not None
    return isinstance(item, (os.PathLike, Iterable, pa.Table)) and not isinstance(item, (bytes, bytearray, Mapping))


def _open_source(corpus: Any, reading: Reading) -> Sequence[Source]:
    if isinstance(corpus, (str, os.PathLike)):
        return open_path(os.fspath(corpus), reading)
    if isinstance(corpus, Mapping):
        raise InputError(f"the corpus is a mapping of {', '.join(map(repr, corpus))}: name one, as corpus['train']")
    if table := open_table(corpus, reading):
        return [table]
    if isinstance(corpus, Iterable) and not isinstance(corpus, (bytes, bytearray)):
        return [open_iterable(corpus, reading)]
    raise InputError(
        f"a corpus is a path, a table, a dataset or an iterable of str, or a list of these, not {type(corpus).__name__}"
    )


def open_path(path: str, reading: Reading) -> list[FileSource]:
    """The sources of a file or address, of the files that match a glob, or of all files below a folder.

    Raises InputError for a file that is missing, empty or of an unknown kind; warns of other files that it leaves out.
    """
    try:
        is_folder = stat.S_ISDIR(Path(path).stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        files = _matches(path)
        is_one = len(files) == 1 and not GLOB.search(path)
    except (OSError, ValueError) as error:  # ValueError: a null character
        shown = path if len(path) < 200 else path[:200] + "..."
        raise InputError(
            f"{unreadable(shown, error)} (a str is the path of a file; sentences come in a list)"
        ) from error
    else:
        files, is_one = (_files_in(path) if is_folder else [Path(path)]), not is_folder
    return [_open_file(file, reading) for file in (files if is_one else _known(files, path))]


def _matches(path: str) -> Sequence[Path | RemoteFile]:
    """The files at an address, or those that match a glob, in sorted order."""
    if address := address_in(path):
        files: Sequence[Path | RemoteFile] = remote_files(address)
    else:
        matches = map(Path, sorted(glob.glob(path, recursive=True)))  # noqa: PTH207  Path.glob takes no absolute pattern
        files = [file for file in matches if not file.is_dir()]
    if not files:
        raise InputError(f"{path}: no {'file matches' if GLOB.search(path) else 'such file'}")
    return files


def _reader_of(name: str) -> type[FileSource] | None:
    """The class that reads files of this name; None for an unknown extension."""
    return next((reader for ending, reader in EXTENSIONS.items() if name.lower().endswith(ending)), None)


def _open_file(file: Path | RemoteFile, reading: Reading) -> FileSource:
    if isinstance(file, Path):
        if not file.is_file():
            raise InputError(f"{file} is not a regular file")
        if file.stat().st_size == 0:
            raise InputError(f"{file} is empty")
    reader = _reader_of(file.name)
    if reader is None:
        raise InputError(f"{file}: unknown kind of file; known are {KNOWN}")
    return reader(file, reading)


def _files_in(folder: str) -> list[Path]:
    """The files of a folder and of the folders in it. Links to folders, hidden names, indexes and runs are left out."""

    def refuse(error: OSError) -> None:
        raise unreadable(error.filename, error) from error

    paths = []
    for parent, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not (name.startswith(".") or _is_output(Path(parent, name)))]
        paths += [str(Path(parent, name)) for name in names if not name.startswith(".")]
    return list(map(Path, sorted(paths)))


def _is_output(folder: Path) -> bool:
    return is_saved(folder) or (folder / RUN_MARK).is_file()


def _known(files: Sequence[Path | RemoteFile], path: str) -> list[Path | RemoteFile]:
    """The files whose kind is known; a warning names the first of the others."""
    known = [file for file in files if _reader_of(file.name)]
    others = [file for file in files if not _reader_of(file.name)]
    if not known:
        raise InputError(
            f"{path}: it has {counted(len(files), 'file')}, and none that can be read; known kinds are {KNOWN}"
        )
    if others:
        left_out = f"{counted(len(others), 'file')} of an unknown kind left out, the first is {others[0]}"
        warnings.warn(f"{path}: {left_out}", InputWarning, stacklevel=2)
    return known
