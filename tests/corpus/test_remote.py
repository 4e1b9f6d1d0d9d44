"""Remote corpora, read by Arrow's file systems and fsspec's, as one file, a glob, or a folder of shards."""

from __future__ import annotations

import gzip
import http.server
import threading
from functools import partial

import pyarrow as pa
import pyarrow.parquet
import pytest

import una_fast
from index.test_staged import LINES, same
from support.staged import Calling, cut
from una_fast.errors import InputError

fsspec = pytest.importorskip("fsspec")


@pytest.fixture
def folder(tmp_path):
    """Shards of several kinds, in folders."""
    (tmp_path / "in" / "deep").mkdir(parents=True)
    (tmp_path / "in" / "a.txt").write_text("\n".join(LINES[:9]))
    (tmp_path / "in" / "b.txt.gz").write_bytes(gzip.compress("\n".join(LINES[9:14]).encode()))
    (tmp_path / "in" / "deep" / "c.jsonl").write_text("".join(f'{{"text": "{line}"}}\n' for line in LINES[14:20]))
    pa.parquet.write_table(pa.table({"text": LINES[20:]}), tmp_path / "in" / "deep" / "d.parquet", row_group_size=2)
    (tmp_path / "in" / ".hidden.txt").write_text("hidden")
    return tmp_path / "in"


@pytest.fixture
def in_memory(folder):
    """The same files in fsspec's in-memory file system."""
    files = fsspec.filesystem("memory")
    files.put(f"{folder}/", "/corpus/", recursive=True)
    yield "memory://corpus"
    files.rm("/corpus", recursive=True)


@pytest.fixture
def server(folder):
    """An HTTP server of the folder that does not support requests for a part of a file."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize("what", ["/a.txt", "", "/*.txt*", "/**/*.jsonl", "/deep/d.parquet", "/[ab].txt*"])
def test_a_remote_corpus_gives_the_index_of_the_local_one(folder, in_memory, what):
    local = una_fast.build_index(f"{folder}{what}")
    assert same(una_fast.build_index(f"file://{folder}{what}"), local)
    assert same(una_fast.build_index(f"{in_memory}{what}"), local)


def test_a_remote_corpus_is_built_in_stages(folder, in_memory, tmp_path, monkeypatch):
    """Parts of remote files are read separately."""
    local = una_fast.build_index(folder)
    cut(monkeypatch, split_bytes=100)
    index = una_fast.build_index(in_memory, folder=tmp_path / "index", memory="1GB", executor=Calling())
    assert same(index, local)


def test_files_are_read_over_http(folder, server):
    corpus = [f"{server}/a.txt", f"{server}/b.txt.gz"]
    assert same(una_fast.build_index(corpus), una_fast.build_index([folder / "a.txt", folder / "b.txt.gz"]))
    with pytest.raises(InputError, match=r"http://.*/missing\.txt"):
        una_fast.build_index(f"{server}/missing.txt")


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("memory://corpus/missing.txt", "no such file"),
        ("memory://nothing/*.txt", "no file matches|cannot be read"),
        ("nonsense://a/b.txt", "nonsense://a/b.txt cannot be read: .*nonsense"),
    ],
)
def test_an_address_that_cannot_be_read_gets_a_sentence(in_memory, address, said):
    with pytest.raises(InputError, match=said):
        una_fast.build_index(address)
