"""Files on other machines, through fsspec: s3, gs, hdfs, http and every other address that it knows.

fsspec's packages read credentials and endpoints from the environment and from their own files.
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

GLOB = re.compile(r"[*\[]")  # a ? starts a query
URL = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]+):(/{1,3})(?=[^/])")  # pathlib replaces two or three slashes by one


@dataclass(frozen=True)
class RemoteFile:
    """A file of a remote file system, with the methods of `pathlib.Path` by which a corpus is read."""

    files: Any
    place: str

    def __str__(self) -> str:
        return str(self.files.unstrip_protocol(self.place))

    @property
    def name(self) -> str:
        """Its name without the folder and a query."""
        return PurePosixPath(self.place.partition("?")[0]).name

    def identity(self) -> list[str | int]:
        """Return its address, its size in bytes, and a hash of what the server says about it. Raises OSError."""
        return [str(self), self.files.size(self.place) or 0, self.files.ukey(self.place)]

    def open(self, mode: str = "rb") -> IO[bytes]:
        """Open the file for its bytes, seekable if the server supports that. Raises OSError."""
        return self.files.open(self.place, mode)


def address_in(path: str) -> str | None:
    """Return `path` as an address, with the slashes that pathlib removes; None if it is a path of this machine."""
    url = URL.match(path)
    if url is None:
        return None
    slashes = "//" if url[2] != "/" or url[1].lower() not in ("file", "local") else "///"
    return f"{url[1]}:{max(slashes, url[2], key=len)}{path[url.end() :]}"


def remote_files(address: str) -> list[RemoteFile]:
    """List the file at an address, the files that match a glob, or all files below a folder, in sorted order."""
    with naming_extras("remote"):
        import fsspec
    with as_input_errors(address, "opened"):
        files, place = fsspec.core.url_to_fs(address)
    place = place.rstrip("/")
    with as_input_errors(address, "read"):
        if address.lower().startswith(("http:", "https:")):  # they list no folders, and a ? starts a query
            places = [place]
        elif GLOB.search(place):
            places = [name for name, about in files.glob(place, detail=True).items() if about["type"] == "file"]
        else:
            places = files.find(place) if files.isdir(place) else [place] * files.exists(place)
    root = GLOB.split(place)[0].rpartition("/")[0]
    return [RemoteFile(files, name) for name in sorted(places) if "/." not in name[len(root) :]]


@contextmanager
def as_input_errors(address: object, action: str) -> Iterator[None]:
    """Turn any error of the system or of a file system's library into InputError: "ADDRESS cannot be ACTION: WHY"."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # the errors of these libraries have no common class
        raise failed(address, action, error) from error


def failed(place: object, action: str, error: Exception) -> InputError:
    """Make the error for a file, folder or address that cannot be read or written."""
    reason = getattr(error, "strerror", None) or next(iter(str(error).splitlines()), type(error).__name__)
    return InputError(f"{place} cannot be {action}: {reason}")
