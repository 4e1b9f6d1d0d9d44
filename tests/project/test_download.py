"""`python -m train.download` against a stand-in for the hub on this machine."""

import hashlib
import io
import tarfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import huggingface_hub.constants
import pytest

from train import download
from train.download import REPOSITORY, SENTEVAL, WIKI, check, check_content, fetch, main, unpack
from train.evaluation.files import NEAR_MISSES
from train.evaluation.tasks import near_miss
from train.evaluation.tasks.registry import TaskRow
from una_fast.errors import InputError

WIKI_TEXT = "".join(f"Sentence number {i} of the stand-in .\n" for i in range(4000)).encode()


class Hub(ThreadingHTTPServer):
    """Serves files as the hub does: HEAD with checksum and size, and GET."""

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files = files
        self.checksums = {
            name: hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest() for name, content in files.items()
        }


class Handler(BaseHTTPRequestHandler):
    server: Hub

    def do_HEAD(self) -> None:
        self.answer(with_body=False)

    def do_GET(self) -> None:
        self.answer(with_body=True)

    def answer(self, with_body: bool) -> None:
        prefix = f"/datasets/{REPOSITORY}/resolve/main/"
        name = self.path.removeprefix(prefix).removeprefix(f"/{NEAR_MISSES}/")
        if not self.path.startswith((prefix, f"/{NEAR_MISSES}/")) or name not in self.server.files:
            self.send_response(404)
            self.send_header("X-Error-Code", "EntryNotFound")
            self.end_headers()
            return
        content = self.server.files[name]
        self.send_response(200)
        self.send_header("ETag", f'"{self.server.checksums[name]}"')
        self.send_header("X-Repo-Commit", "c" * 40)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if with_body:
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


def archive(files: dict[str, str], top: str = "data/downstream") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, text in files.items():
            about = tarfile.TarInfo(f"{top}/{name}")
            about.size = len(text.encode())
            tar.addfile(about, io.BytesIO(text.encode()))
    return buffer.getvalue()


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    stsb = {"STS/STSBenchmark/sts-test.csv": "g\tf\ty\t0\t3.0\ta man\ta dog\n"}
    near_misses = {f"{name}.json": f'["{name}"]'.encode() for name in download.NEAR_MISS_CHECKSUMS}
    server = Hub({WIKI: WIKI_TEXT, SENTEVAL: archive(stsb), **near_misses})
    address = f"http://127.0.0.1:{server.server_address[1]}"
    monkeypatch.setenv("HF_ENDPOINT", address)
    monkeypatch.setattr(download, "NEAR_MISS_ADDRESS", f"{address}/{NEAR_MISSES}")
    checksums = {name: server.checksums[f"{name}.json"] for name in download.NEAR_MISS_CHECKSUMS}
    monkeypatch.setattr(download, "NEAR_MISS_CHECKSUMS", checksums)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def test_all_files_are_fetched_checked_and_laid_out(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(download, "WIKI_LINES", 4000)
    monkeypatch.setattr(download, "suite", lambda name: ["STSBenchmark"])
    rows = [TaskRow("STSBenchmark", "sts", {"test": 1})]
    rows += [TaskRow(name, "near-miss", {"test": 1}) for name in download.NEAR_MISS_CHECKSUMS]
    monkeypatch.setattr(download, "TASKS", {row.name: row for row in rows})
    monkeypatch.setattr(near_miss, "_read_entries", lambda path: [dict.fromkeys((*near_miss.COLUMNS, "filename"), "a")])
    assert main(["--to", str(tmp_path)]) == 0
    assert "wiki, senteval, near-miss complete" in capsys.readouterr().out
    assert (tmp_path / "corpora" / WIKI).read_bytes() == WIKI_TEXT
    assert (tmp_path / "senteval/downstream/STS/STSBenchmark/sts-test.csv").is_file()
    left = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {WIKI, "sts-test.csv", *(f"{name}.json" for name in download.NEAR_MISS_CHECKSUMS)}
    hub.files.clear()
    assert main(["--to", str(tmp_path)]) == 0  # no file is fetched twice


def test_what_is_missing_or_short_is_said(hub: Hub, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--to", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert f"{WIKI}: has 4,000 lines, and 1,000,000 were expected" in said
    assert "STSBenchmark test: 1 examples, 1,379 expected" in said
    assert "STS12: " in said and "MRPC: " in said and "missing" in said
    assert "replace_obj: " in said and "cannot be read as entries of SugarCrepe++" in said


def test_a_file_in_the_way_of_a_folder_gets_a_sentence(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / "corpora").write_text("mine")
    with pytest.raises(InputError, match="cannot be written"):
        fetch("wiki", tmp_path)
    assert (tmp_path / "corpora").read_text() == "mine"


def test_a_near_miss_file_with_another_letter_is_noticed(hub: Hub, tmp_path: Path) -> None:
    fetch("near-miss", tmp_path)
    path = tmp_path / NEAR_MISSES / "swap_att.json"
    path.write_text(path.read_text().replace("swap", "swop"))
    problems = "\n".join(check("near-miss", tmp_path))
    assert problems.count("does not have the checksum") == 1 and f"swap_att: {path} (delete it): the file" in problems


def test_a_file_the_hub_lacks_is_named(hub: Hub, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hub.files.clear()
    assert main(["--to", str(tmp_path), "--only", "senteval"]) == 2
    assert f"error: {REPOSITORY}/{SENTEVAL}: " in capsys.readouterr().err
    with pytest.raises(InputError, match="call again"):
        fetch("near-miss", tmp_path)


def test_archives_that_are_broken_foreign_or_malicious_are_refused(tmp_path: Path) -> None:
    for content, message in (
        (b"not a tar", "cannot be unpacked"),
        (archive({"x/y": "z"}), "holds no STS folder"),
        (archive({"../../../../evil": "x"}), r"cannot be unpacked \(.*evil lies outside of it\)"),
        (archive({"evil": "x"}, top=str(tmp_path.parent)), r"cannot be unpacked \(.*evil lies outside of it\)"),
    ):
        file = tmp_path / "senteval.tar"
        file.write_bytes(content)
        with pytest.raises(InputError, match=message):
            unpack(file)
        assert not (tmp_path.parent / "evil").exists()


def test_real_data_passes_the_check(data_dir: Path) -> None:
    assert check("senteval", data_dir) == []
    if (data_dir / NEAR_MISSES).is_dir():
        assert check("near-miss", data_dir) == []
        for name, checksum in download.NEAR_MISS_CHECKSUMS.items():
            check_content(data_dir / NEAR_MISSES / f"{name}.json", checksum, name)
