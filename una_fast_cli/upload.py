"""`una-fast upload FOLDER ADDRESS`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from train.config.command import given_values, option_parser

ABOUT = "Copy an index to s3, gs, hdfs or another address; a copy that was stopped goes on."


def main(arguments: Sequence[str] | None = None, prog: str = "una-fast upload") -> int:
    """Copy the folder of an index to an address; the exit code."""
    parser = option_parser(prog, ABOUT, {})
    parser.usage = f"{prog} FOLDER ADDRESS"
    parser.add_argument("folder", metavar="FOLDER", help="the folder of an index")
    parser.add_argument("address", metavar="ADDRESS", help="of a new folder, as s3://bucket/name, or a path")
    values = given_values(parser, arguments)
    from una_fast.index.copies import upload_index  # here, so that --help does not wait for it

    size = upload_index(values["folder"], values["address"], progress=True)
    sys.stdout.write(f"{values['address']}: {size:,} bytes\n")
    return 0
