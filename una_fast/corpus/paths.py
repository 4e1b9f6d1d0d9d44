"""A path, a glob or a folder -> its files, in sorted order."""

from __future__ import annotations

import glob
import os
import re
import stat
import warnings
from pathlib import Path

from una_fast.corpus.json_files import JsonFile, JsonLinesFile
from una_fast.corpus.line_reader import COMPRESSIONS
from una_fast.corpus.reading import Reading
from una_fast.corpus.remote import remote_files
from una_fast.corpus.source import FileSource
from una_fast.corpus.table_files import CsvFile, ParquetFile
from una_fast.corpus.text_file import TextFile
from una_fast.errors import InputError, InputWarning, counted

SOURCE_CLASSES: dict[str, type[FileSource]] = {
    ".txt": TextFile,
    ".csv": CsvFile,
    ".tsv": CsvFile,
    ".jsonl": JsonLinesFile,
    ".json": JsonFile,
}
EXTENSIONS = {
    name + ending: source_class for name, source_class in SOURCE_CLASSES.items() for ending in ("", *COMPRESSIONS)
}
EXTENSIONS[".parquet"] = ParquetFile
KNOWN = f"{', '.join(SOURCE_CLASSES)} (each also with {', '.join(COMPRESSIONS)}) and .parquet"
URL = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]+):/{1,2}(/?)(?=[^/])")  # with one slash too: pathlib removes the second
GLOB = re.compile(r"[*?\[]")


def open_path(path: str | os.PathLike, reading: Reading) -> list[FileSource]:
    """The sources of a file, of the files that match a glob, or of those in a folder and the folders in it.

    Raises InputError for a file that is missing, empty or of an unknown kind; warns of other files that it leaves out.
    """
    text = os.fspath(path)
    mode = _mode(text)
    if mode is None and (address := address_in(text)):
        return _open_remote(address, reading)
    if mode is None and GLOB.search(text):
        return [_open_file(name, reading) for name in _matching(text)]
    if mode is None:
        raise InputError(f"{text}: no such file")
    if stat.S_ISDIR(mode):
        return [_open_file(name, reading) for name in _files_in(text)]
    return [_open_file(text, reading)]


def address_in(text: str) -> str | None:
    """`text` as an address, with the second slash that pathlib removes; None if `text` is a path."""
    url = URL.match(text)
    return f"{url[1]}://{url[2]}{text[url.end() :]}" if url else None


def source_class_of(name: str) -> type[FileSource] | None:
    """The class that reads files of this name; None for an unknown extension."""
    return next((source_class for ending, source_class in EXTENSIONS.items() if name.lower().endswith(ending)), None)


def _mode(name: str) -> int | None:
    """`st_mode` of a file or folder; None if there is none."""
    try:
        return Path(name).stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:  # ValueError: a null character
        shown = name if len(name) < 200 else name[:200] + "..."
        raise InputError(
            f"{shown} cannot be read: {getattr(error, 'strerror', None) or error} (a str is the path of a file; "
            "sentences come in a list)"
        ) from error


def _open_file(name: str, reading: Reading) -> FileSource:
    path = Path(name)
    mode = _mode(name)
    if mode is None or not stat.S_ISREG(mode):
        raise InputError(f"{path} is not a regular file")
    if path.stat().st_size == 0:
        raise InputError(f"{path} is empty")
    source_class = source_class_of(path.name)
    if source_class is None:
        raise InputError(f"{path}: unknown kind of file; known are {KNOWN}")
    return source_class(path, reading)


def _open_remote(address: str, reading: Reading) -> list[FileSource]:
    files = {str(file): file for file in remote_files(address)}
    if not files:
        raise InputError(f"{address}: no such file")
    sources = []
    for name in [*files] if len(files) == 1 else _known([*files], address):
        source_class = source_class_of(files[name].name)
        if source_class is None:
            raise InputError(f"{name}: unknown kind of file; known are {KNOWN}")
        sources.append(source_class(files[name], reading))
    return sources


def _matching(pattern: str) -> list[str]:
    matching = glob.glob(pattern, recursive=True)  # noqa: PTH207  Path.glob takes no absolute pattern
    found = [name for name in sorted(matching) if not Path(name).is_dir()]
    if not found:
        raise InputError(f"{pattern}: no file matches")
    return _known(found, pattern)


def _files_in(folder: str) -> list[str]:
    """The files of a folder and of the folders in it, links to folders and hidden names left out."""

    def refuse(error: OSError) -> None:
        raise InputError(f"{error.filename} cannot be read: {error.strerror}") from error

    found = []
    for parent, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [str(Path(parent) / name) for name in names if not name.startswith(".")]
    return _known(sorted(found), folder)


def _known(names: list[str], given: str) -> list[str]:
    """Those of the files that can be read; a warning names the others."""
    known = [name for name in names if source_class_of(name)]
    if not known:
        raise InputError(
            f"{given}: it has {counted(len(names), 'file')}, and none that can be read; known kinds are {KNOWN}"
        )
    if others := [name for name in names if not source_class_of(name)]:
        warnings.warn(
            f"{given}: {counted(len(others), 'file')} of an unknown kind left out, the first is {others[0]}",
            InputWarning,
            stacklevel=2,
        )
    return known
