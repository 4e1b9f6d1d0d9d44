"""Small corpora in files of every kind, and the documents that are read from them."""

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from una_fast.corpus.documents import Reading
from una_fast.corpus.sources import open_sources

LINES = ["The first line.", "", 'a "quoted", one', "tab\there", "Zürich — ſ 漢字 𝔘", "  spaces  ", "last"]
WITH_NEWLINES = [*LINES, "two\nlines", "carriage\rreturn"]


def read(corpus: Any, column: str = "text", **options: Any) -> list[str]:
    sources = open_sources(corpus, Reading(column, **options))
    return [text for source in sources for block in source.blocks() for text in block]


def write_text(path: Path, lines: list[str]) -> None:
    path.write_bytes("".join(line + "\n" for line in lines).encode())


def write_csv(path: Path, lines: list[str]) -> None:
    table = pa.table({"id": range(len(lines)), "text": lines})
    options = pa.csv.WriteOptions(delimiter="\t" if path.suffix == ".tsv" else ",")
    pa.csv.write_csv(table, path, options)


def write_json(path: Path, lines: list[str]) -> None:
    path.write_text("".join(json.dumps({"n": [1], "text": line}) + "\n" for line in lines), encoding="utf-8")


def write_parquet(path: Path, lines: list[str]) -> None:
    pa.parquet.write_table(pa.table({"text": lines, "id": range(len(lines))}), path, row_group_size=2)


def written(tmp_path: Path, name: str, content: bytes) -> Path:
    path = tmp_path / name
    path.write_bytes(content)
    return path


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a server of the folder that does not support requests for a part of a file."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
