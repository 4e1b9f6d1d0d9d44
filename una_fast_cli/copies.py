"""`una-fast upload FOLDER ADDRESS` and `una-fast fetch ADDRESS FOLDER`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from train.config.command import Parser


def upload(arguments: Sequence[str] | None = None, prog: str = "una-fast upload") -> int:
    """Copy the folder of an index to an address; the exit code."""
    about = "Copy an index to s3, gs, hdfs or another address; a copy that was stopped goes on."
    places = {"folder": "the folder of an index", "address": "of a new folder, as s3://bucket/name, or a path"}
    folder, address = _places(arguments, prog, about, places)
    from una_fast.index.copies import upload_index  # here, so that --help does not wait for it

    sys.stdout.write(f"{address}: {upload_index(folder, address, progress=sys.stderr.isatty()):,} bytes\n")
    return 0


def fetch(arguments: Sequence[str] | None = None, prog: str = "una-fast fetch") -> int:
    """Copy the index at an address to a folder of this machine; the exit code."""
    about = "Copy an index from an address to this machine, where it can be used; a copy that was stopped goes on."
    of_folder = "folder for the index; it must not exist, unless it holds the same index"
    places = {"address": "what `una-fast upload` was given, http too, or a path", "folder": of_folder}
    address, folder = _places(arguments, prog, about, places)
    from una_fast.index.copies import fetch_index  # here, so that --help does not wait for it

    sys.stdout.write(f"{folder}: {fetch_index(address, folder, progress=sys.stderr.isatty()):,} bytes\n")
    return 0


def _places(arguments: Sequence[str] | None, prog: str, about: str, places: dict[str, str]) -> list[str]:
    parser = Parser(prog, about, {})
    parser.usage = f"{prog} {' '.join(places).upper()}"
    for name, meaning in places.items():
        parser.add_argument(name, metavar=name.upper(), help=meaning)
    values = parser.given(arguments)
    return [values[name] for name in places]
