"""Files that are not on this machine, through fsspec: s3, gs, hdfs, http and every other address that it knows.

Credentials and endpoints come from where fsspec's packages take them: the environment, and their own files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import IO, Any

from una_fast.errors import InputError
from una_fast.imports import naming_extras

GLOB = re.compile(r"[*\[]")  # a ? alone starts a query
URL = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]+):(/{1,3})(?=[^/])")  # pathlib leaves one slash of two and of three


@dataclass(frozen=True)
class RemoteFile:
    """A file of a remote file system, with the methods of `pathlib.Path` by which a corpus is read.

    address: as the user gave it, which decides the file system; place: the file's path in that file system.
    """

    address: str
    place: str

    def __str__(self) -> str:
        return self.place if "://" in self.place else f"{self.address.partition(':')[0]}://{self.place}"

    @property
    def name(self) -> str:
        """Its name without the folder and a query."""
        return PurePosixPath(self.place.partition("?")[0]).name

    def identity(self) -> list[str | int]:
        """Its address, its size in bytes, and a hash of all that the server says of it. Raises OSError."""
        files = file_system(self.address)[0]
        return [str(self), files.size(self.place) or 0, files.ukey(self.place)]

    def open(self, mode: str = "rb") -> IO[bytes]:
        """The bytes of the file, seekable if the server supports that. Raises OSError."""
        return file_system(self.address)[0].open(self.place, mode)


def address_in(text: str) -> str | None:
    """`text` as an address, with the second slash that pathlib removes; None if `text` is a path."""
    url = URL.match(text)
    if url is None:
        return None
    scheme, slashes = url[1], url[2]
    if slashes == "/":
        slashes = "///" if scheme.lower() in ("file", "local") else "//"
    return f"{scheme}:{slashes}{text[url.end() :]}"


def remote_files(address: str) -> list[RemoteFile]:
    """The file at an address, the files that match a glob, or all files below a folder, in sorted order."""
    with as_input_errors(address, "read"):
        files, place = file_system(address)
        if address.lower().startswith(("http:", "https:")):  # whose folders cannot be listed: a ? starts a query there
            places = [place]
        elif GLOB.search(place):
            places = [name for name, about in files.glob(place, detail=True).items() if about["type"] == "file"]
        else:
            places = files.find(place) if files.isdir(place) else [place] * files.exists(place)
    root = GLOB.split(place)[0].rpartition("/")[0]
    return [RemoteFile(address, name) for name in sorted(places) if "/." not in name[len(root) :]]


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


def file_system(address: str) -> tuple[Any, str]:
    """The file system of an address or path, and the path in it. Raises any error: see `as_input_errors`."""
    with naming_extras("remote"):
        import fsspec
    return fsspec.core.url_to_fs(address)
