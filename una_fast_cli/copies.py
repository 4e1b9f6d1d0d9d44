"""`una-fast upload FOLDER ADDRESS` and `una-fast fetch ADDRESS FOLDER`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from train.config.command import Parser

UPLOAD = "Copy an index to s3, gs, hdfs or another address; a copy that was stopped goes on."
FETCH = "Copy an index from an address to this machine, where it can be used; a copy that was stopped goes on."


def upload(arguments: Sequence[str] | None = None, prog: str = "una-fast upload") -> int:
    """Copy the folder of an index to an address; the exit code."""
    parser = Parser(prog, UPLOAD, {})
    parser.usage = f"{prog} FOLDER ADDRESS"
    parser.add_argument("folder", metavar="FOLDER", help="the folder of an index")
    parser.add_argument("address", metavar="ADDRESS", help="of a new folder, as s3://bucket/name, or a path")
    values = parser.given(arguments)
    from una_fast.index.copies import upload_index  # here, so that --help does not wait for it

    size = upload_index(values["folder"], values["address"], progress=True)
    sys.stdout.write(f"{values['address']}: {size:,} bytes\n")
    return 0


def fetch(arguments: Sequence[str] | None = None, prog: str = "una-fast fetch") -> int:
    """Copy the index at an address to a folder of this machine; the exit code."""
    parser = Parser(prog, FETCH, {})
    parser.usage = f"{prog} ADDRESS FOLDER"
    parser.add_argument("address", metavar="ADDRESS", help="what `una-fast upload` was given, http too, or a path")
    parser.add_argument(
        "folder", metavar="FOLDER", help="folder for the index; it must not exist, unless it holds the same index"
    )
    values = parser.given(arguments)
    from una_fast.index.copies import fetch_index  # here, so that --help does not wait for it

    size = fetch_index(values["address"], values["folder"], progress=True)
    sys.stdout.write(f"{values['folder']}: {size:,} bytes\n")
    return 0
