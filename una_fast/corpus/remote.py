"""Files that are not on this machine: s3, gs and hdfs through Arrow's file systems, all others through fsspec.

Credentials, regions and endpoints come from where those libraries take them: the environment, their own files, or the
query of an address, as in ``s3://bucket/folder?region=eu-central-1``.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePosixPath
from typing import IO, Any, NamedTuple

import pyarrow as pa
import pyarrow.fs

from una_fast.errors import InputError
from una_fast.extras import naming_extras

BY_ARROW = ("s3", "gs", "gcs", "hdfs", "viewfs", "file")
WITHOUT_LISTS = ("http", "https")  # folders cannot be listed: an address is one file, and a ? in it starts its query
READ_AT_ONCE = 1 << 20  # bytes
GLOB = re.compile(r"[*\[]")  # a ? alone starts a query
GLOB_PARTS = re.compile(r"(\*\*/?|\*|\?|\[[^\]]+\])")
GLOB_MEANING = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


class Stat(NamedTuple):
    """Size in bytes and times of change in ns, 0 where they are not known; named as in `os.stat`."""

    st_size: int
    st_mtime_ns: int
    st_ctime_ns: int = 0


@dataclass(frozen=True)
class RemoteFile:
    """A file of a remote file system, with those methods of `pathlib.Path` by which a corpus is read.

    address: as the user gave it, which decides the file system; place: the file's path in that file system.
    """

    address: str
    place: str

    def __str__(self) -> str:
        return self.place if "://" in self.place else f"{scheme_of(self.address)}://{self.place}"

    @property
    def name(self) -> str:
        """Its name without the folder and a query."""
        return PurePosixPath(self.place.partition("?")[0]).name

    @property
    def suffix(self) -> str:
        """The end of the name from its last full stop."""
        return PurePosixPath(self.name).suffix

    @property
    def suffixes(self) -> list[str]:
        """All ends of the name that start with a full stop."""
        return PurePosixPath(self.name).suffixes

    def absolute(self) -> RemoteFile:
        """The file itself."""
        return self

    def stat(self) -> Stat:
        """Size and time of change. Raises OSError."""
        info = file_system(self.address)[0].get_file_info(self.place)
        if info.type == pa.fs.FileType.NotFound:
            raise FileNotFoundError(2, "no such file", str(self))
        return Stat(info.size or 0, info.mtime_ns or 0)

    def open(self, mode: str = "rb") -> IO[bytes]:
        """The bytes of the file, seekable if the server supports that. Raises OSError."""
        return io.BufferedReader(file_system(self.address)[0].open_input_file(self.place), READ_AT_ONCE)


def scheme_of(address: str) -> str:
    """What an address has before its colon, in lower case: "s3", "http"."""
    return address.partition(":")[0].lower()


def remote_files(address: str) -> list[RemoteFile]:
    """The file at an address, those that match a glob, or those in a folder and the folders in it, in sorted order.

    Raises:
        InputError: nothing is there, a library is missing, or the server refuses.
    """
    with as_input_errors(address, "read"):
        listed = scheme_of(address) not in WITHOUT_LISTS
        if listed and (found := GLOB.search(address)):
            above = address[: found.start()].rpartition("/")[0]
            files, folder = file_system(above)
            pattern = re.compile(_regex(folder.rstrip("/") + address[len(above) :]))
            return [RemoteFile(above, place) for place in _files_in(files, folder) if pattern.fullmatch(place)]
        files, place = file_system(address)
        if not listed:
            return [RemoteFile(address, place)]
        info = files.get_file_info(place)
        if info.type == pa.fs.FileType.Directory:
            return [RemoteFile(address, p) for p in _files_in(files, place)]
        return [RemoteFile(address, place)] if info.type != pa.fs.FileType.NotFound else []


@contextmanager
def as_input_errors(address: str, action: str, advice: str = "") -> Iterator[None]:
    """Turn any error of a file system's library into InputError: "ADDRESS cannot be ACTION: REASON; ADVICE"."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # the errors of these libraries have no common class
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"{address} cannot be {action}: {reason}{advice and '; ' + advice}") from error


@lru_cache(maxsize=64)
def file_system(address: str) -> tuple[Any, str]:
    """The file system of an address, and the path in it. Raises any error of its library: see `as_input_errors`."""
    if scheme_of(address) in BY_ARROW:
        return pa.fs.FileSystem.from_uri(re.sub("^gcs:", "gs:", address, flags=re.IGNORECASE))
    with naming_extras("remote"):
        import fsspec
    files, place = fsspec.core.url_to_fs(address)
    return pa.fs.PyFileSystem(pa.fs.FSSpecHandler(files)), place


def _files_in(files: Any, folder: str) -> list[str]:
    infos = files.get_file_info(pa.fs.FileSelector(folder, recursive=True))
    places = [info.path for info in infos if info.type == pa.fs.FileType.File]
    below = len(folder.rstrip("/")) + 1
    return sorted(place for place in places if not any(part.startswith(".") for part in place[below:].split("/")))


def _regex(pattern: str) -> str:
    parts = GLOB_PARTS.split(pattern)
    return "".join(GLOB_MEANING.get(p, p if p.startswith("[") else re.escape(p)) for p in parts)
