"""Files on other machines, through fsspec: s3, gs, hdfs, http and every other address that it knows.

fsspec's packages read credentials and endpoints from the environment and from their own files.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import IO, Any

from una_fast.errors import as_input_errors
from una_fast.imports import naming_extras

GLOB = re.compile(r"[*\[]")  # a ? starts a query


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
