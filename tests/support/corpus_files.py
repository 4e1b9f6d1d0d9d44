"""Write small corpora to files of every format, and read their documents."""

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


def write(path: Path, documents: list[str]) -> None:
    """Write documents to a file in the format of its suffix; "lines.json" has a JSON value per line, like a .jsonl."""
    kind = ".jsonl" if path.name == "lines.json" else path.suffix
    table = pa.table({"id": range(len(documents)), "text": documents})
    rows = [{"n": [1], "text": text} for text in documents]
    if kind in (".csv", ".tsv"):
        pa.csv.write_csv(table, path, pa.csv.WriteOptions(delimiter="\t" if kind == ".tsv" else ","))
    elif kind == ".parquet":
        pa.parquet.write_table(table, path, row_group_size=2)
    elif kind == ".json":
        path.write_text("\ufeff" + json.dumps(rows, indent=2), encoding="utf-8")
    else:
        lines = map(json.dumps, rows) if kind == ".jsonl" else documents
        path.write_bytes("".join(f"{line}\n" for line in lines).encode())


def written(tmp_path: Path, name: str, content: bytes) -> Path:
    path = tmp_path / name
    path.write_bytes(content)
    return path


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder over HTTP, without support for requests for a part of a file; yields the address."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
