"""A folder of any file system, whose files are read and written as streams of bytes."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs

from una_fast.corpus.paths import address_in
from una_fast.corpus.remote import WITHOUT_LISTS, as_input_errors, file_system, scheme_of
from una_fast.errors import InputError
from una_fast.storage import checked_path

PART = 1 << 22  # bytes that are read at a time
WITHOUT_FOLDERS = ("s3", "gcs")  # a name with slashes needs no folder there
KEPT = "the files copied so far are kept: remove the cause, and run the same again to go on"


@dataclass(frozen=True)
class Place:
    """A folder, which need not be there yet.

    address: as messages name it; files: a `pyarrow.fs.FileSystem`; path: the folder's path in that.
    """

    address: str
    files: Any
    path: str

    @classmethod
    def at(cls, place: str | Path) -> Place:
        """The folder at a path of this machine or at an address.

        Raises:
            InputError: an address that no library knows, or a missing package.
        """
        path = checked_path(place)
        if path.exists() or not (address := address_in(str(place))):
            return cls(str(path), pa.fs.LocalFileSystem(), str(path.absolute()))
        with as_input_errors(address, "opened"):
            files, inside = file_system(address)
        return cls(address.rstrip("/"), files, inside.rstrip("/"))

    def size(self, name: str) -> int | None:
        """The size of a file in bytes; None if there is none, -1 if it is no file or the server does not say."""
        with as_input_errors(self.name(name), "read"):
            info = self.files.get_file_info(self._path(name))
        if info.type == pa.fs.FileType.NotFound:
            return None
        return info.size if info.type == pa.fs.FileType.File and info.size is not None else -1

    def parts(self, name: str) -> Generator[bytes, None, None]:
        """The bytes of a file, PART at a time. Raises InputError for what cannot be read."""
        with (
            as_input_errors(self.name(name), "read"),
            self.files.open_input_stream(self._path(name), compression=None) as stream,
        ):
            while part := stream.read(PART):
                yield part

    def read(self, name: str) -> bytes | None:
        """All bytes of a small file; None where it is not there."""
        if self.size(name) is None:
            return None
        with closing(self.parts(name)) as parts:
            return b"".join(parts)

    def make(self) -> None:
        """Make the folder where there is none. Raises InputError for one that cannot be written to."""
        if scheme_of(self.address) in WITHOUT_LISTS:
            raise InputError(f"{self.address}: cannot be written to over http; give an address of s3, gs or hdfs")
        if self.files.type_name not in WITHOUT_FOLDERS:
            with as_input_errors(self.address, "written"):
                self.files.create_dir(self.path, recursive=True)

    def write(self, name: str, parts: Iterable[bytes]) -> None:
        """Write a file, which may be incomplete under its name until this returns."""
        with (
            as_input_errors(self.name(name), "written", KEPT),
            self.files.open_output_stream(self._path(name), compression=None) as stream,
        ):
            for part in parts:
                stream.write(part)

    def delete(self, name: str) -> None:
        """Delete a file."""
        with as_input_errors(self.name(name), "deleted"):
            self.files.delete_file(self._path(name))

    def sync(self, names: Iterable[str]) -> None:
        """Make files of this machine survive a power cut."""
        for name in names:
            with as_input_errors(self.name(name), "written", KEPT), Path(self._path(name)).open("r+b") as file:
                os.fsync(file.fileno())

    def name(self, name: str) -> str:
        """A file as messages name it."""
        return f"{self.address}/{name}"

    def _path(self, name: str) -> str:
        return f"{self.path}/{name}"
