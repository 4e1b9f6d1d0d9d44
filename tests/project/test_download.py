"""`python -m train.download` with a folder instead of the hub."""

import io
import json
import shutil
import tarfile
import zipfile
from pathlib import Path

import huggingface_hub
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from train import download
from train.download import REPOSITORY, WIKI, check, fetch, main
from train.evaluation.tasks.registry import NEAR_MISSES, SUGARCREPE, TaskSpec
from una_fast.errors import InputError

SENTEVAL = "senteval.tar"
WIKI_TEXT = "".join(f"Sentence number {i} of the stand-in .\n" for i in range(4000)).encode()


def archive(files: dict[str, str], top: str = "data/downstream") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, text in files.items():
            about = tarfile.TarInfo(f"{top}/{name}")
            about.size = len(text.encode())
            tar.addfile(about, io.BytesIO(text.encode()))
    return buffer.getvalue()


@pytest.fixture
def hub(tmp_path_factory, monkeypatch) -> Path:
    """Return a folder that stands in for the hub and GitHub: downloads copy from it."""
    hub = tmp_path_factory.mktemp("hub")
    stsb = {"STS/STSBenchmark/sts-test.csv": "g\tf\ty\t0\t3.0\ta man\ta dog\n"}
    (hub / WIKI).write_bytes(WIKI_TEXT)
    (hub / SENTEVAL).write_bytes(archive(stsb))
    entry = dict.fromkeys(("filename", "caption", "caption2", "negative_caption"), "a")
    for name in SUGARCREPE:
        (hub / f"{name}.json").write_text(json.dumps([entry]))
    for address in ("NEAR_MISS_ADDRESS", "BEIR_ADDRESS"):
        monkeypatch.setattr(download, address, hub.as_uri())
    with zipfile.ZipFile(hub / "scifact.zip", "w") as beir:
        beir.writestr("scifact/corpus.jsonl", '{"_id": "d", "title": "A", "text": "b"}\n')
        beir.writestr("scifact/queries.jsonl", '{"_id": "q", "text": "a b"}\n')
        beir.writestr("scifact/qrels/test.tsv", "query-id\tcorpus-id\tscore\nq\td\t1\n")
    nano = {"corpus": {"_id": ["d"], "text": ["\u00e9"]}, "queries": {"_id": ["q"], "text": ["a"]}}
    nano["qrels"] = {"query-id": ["q"], "corpus-id": ["d"]}
    for part, columns in nano.items():
        (hub / part).mkdir()
        pq.write_table(pa.table(columns), hub / part / "train-00000-of-00001.parquet")
    monkeypatch.setattr(download, "QUERIES", {"scifact": 1, "NanoNQ": 1})
    sources = {"retrieval/scifact": "scifact.zip", "retrieval/NanoNQ": "zeta-alpha-ai/NanoNQ"}
    monkeypatch.setitem(download.FILES, "retrieval", sources)

    def from_hub(repository, name, *, repo_type, local_dir):
        assert (repository, repo_type) == (sources["retrieval/NanoNQ"] if "/" in name else REPOSITORY, "dataset")
        target = Path(local_dir) / name
        target.parent.mkdir(exist_ok=True)
        return str(shutil.copy(hub / name, target))

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", from_hub)
    files = [f"{part}/train-00000-of-00001.parquet" for part in nano]
    monkeypatch.setattr(huggingface_hub.HfApi, "list_repo_files", lambda self, name, repo_type: ["README.md", *files])
    return hub


def test_all_files_are_fetched_and_checked(hub, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(download, "WIKI_LINES", 4000)
    monkeypatch.setattr(download, "suite", lambda name: ["STSBenchmark"])
    rows = [TaskSpec(name, "", {"test": 1}) for name in ("STSBenchmark", *SUGARCREPE)]
    monkeypatch.setattr(download, "TASKS", {row.name: row for row in rows})
    assert main(["--to", str(tmp_path)]) == 0
    assert "wiki, senteval, near-miss, retrieval complete" in capsys.readouterr().out
    assert (tmp_path / "corpora" / WIKI).read_bytes() == WIKI_TEXT
    assert (tmp_path / "senteval/downstream/STS/STSBenchmark/sts-test.csv").is_file()
    left = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    of_sets = {"corpus.jsonl", "queries.jsonl", "test.tsv"}
    assert left == {WIKI, "sts-test.csv", *(f"{name}.json" for name in SUGARCREPE), *of_sets}
    assert "\\u00e9" in (tmp_path / "retrieval/NanoNQ/corpus.jsonl").read_text()
    shutil.rmtree(hub)
    assert main(["--to", str(tmp_path)]) == 0  # no file is fetched twice


def test_missing_and_short_files_are_reported(hub, tmp_path, monkeypatch, capsys):
    assert main(["--to", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert f"{WIKI}: 4,000 lines, 1,000,000 expected" in said
    assert "STSBenchmark test: 1 examples, 1,379 expected" in said
    assert "STS12: " in said and "MRPC: " in said and "missing" in said
    assert "replace_obj test: 1 examples, 1,652 expected" in said
    with monkeypatch.context() as patch:
        patch.setattr(download, "QUERIES", {"scifact": 300, "NanoNQ": 1})
        assert check("retrieval", tmp_path) == ["scifact: 1 test queries, 300 expected"]


def test_a_failed_download_gives_one_clear_message(hub, tmp_path):
    (tmp_path / "corpora").write_text("mine")
    (hub / "swap_att.json").unlink()
    (hub / SENTEVAL).unlink()
    for part, source in (("wiki", WIKI), ("senteval", SENTEVAL), ("near-miss", "swap_att.json")):
        with pytest.raises(InputError, match=f"^{source}: cannot be fetched into .*: try again$"):
            fetch(part, tmp_path)
    assert (tmp_path / "corpora").read_text() == "mine" and not list((tmp_path / NEAR_MISSES).glob("swap_att*"))


def test_archives_that_are_broken_foreign_or_malicious_are_refused(hub, tmp_path):
    for content, message in (
        (b"not a tar", "could not be opened"),
        (archive({"x/y": "z"}), "contains no STS folder"),
        (archive({"../../../../evil": "x"}), "evil. would be extracted to .* outside the destination"),
        (archive({"evil": "x"}, top=str(tmp_path.parent)), "contains no STS folder"),
    ):
        (hub / SENTEVAL).write_bytes(content)
        with pytest.raises(InputError, match=message):
            fetch("senteval", tmp_path)
        assert not (tmp_path.parent / "evil").exists() and not (tmp_path / "senteval" / "downstream").exists()


@pytest.mark.slow
def test_real_data_passes_the_check(data_dir):
    assert check("senteval", data_dir) == []
    if (data_dir / NEAR_MISSES).is_dir():
        assert check("near-miss", data_dir) == []
