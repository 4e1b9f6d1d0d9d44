"""`python -m train.download` against a folder that stands in for the hub."""

import hashlib
import io
import shutil
import tarfile
from pathlib import Path

import huggingface_hub
import pytest

from train import download
from train.download import REPOSITORY, SENTEVAL, WIKI, check, check_content, fetch, main, unpack
from train.evaluation.tasks import near_miss
from train.evaluation.tasks.registry import NEAR_MISSES, TaskRow
from una_fast.errors import InputError

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
def hub(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that stands in for the hub and for GitHub."""
    hub = tmp_path_factory.mktemp("hub")
    stsb = {"STS/STSBenchmark/sts-test.csv": "g\tf\ty\t0\t3.0\ta man\ta dog\n"}
    files = {WIKI: WIKI_TEXT, SENTEVAL: archive(stsb)}
    files |= {f"{name}.json": f'["{name}"]'.encode() for name in download.NEAR_MISS_CHECKSUMS}
    for name, content in files.items():
        (hub / name).write_bytes(content)
    checksums = {
        name: hashlib.sha1(b"blob %d\0" % len(files[f"{name}.json"]) + files[f"{name}.json"]).hexdigest()
        for name in download.NEAR_MISS_CHECKSUMS
    }
    monkeypatch.setattr(download, "NEAR_MISS_ADDRESS", hub.as_uri())
    monkeypatch.setattr(download, "NEAR_MISS_CHECKSUMS", checksums)

    def from_hub(repository: str, name: str, *, repo_type: str, local_dir: Path, endpoint: str | None) -> str:
        assert (repository, repo_type) == (REPOSITORY, "dataset")
        return str(shutil.copy(hub / name, local_dir))

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", from_hub)
    return hub


def test_all_files_are_fetched_checked_and_laid_out(
    hub: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
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
    shutil.rmtree(hub)
    assert main(["--to", str(tmp_path)]) == 0  # no file is fetched twice


def test_what_is_missing_or_short_is_said(hub: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--to", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert f"{WIKI}: has 4,000 lines, and 1,000,000 were expected" in said
    assert "STSBenchmark test: 1 examples, 1,379 expected" in said
    assert "STS12: " in said and "MRPC: " in said and "missing" in said
    assert "replace_obj: " in said and "cannot be read as entries of SugarCrepe++" in said


def test_a_near_miss_file_with_another_letter_is_noticed(hub: Path, tmp_path: Path) -> None:
    fetch("near-miss", tmp_path)
    path = tmp_path / NEAR_MISSES / "swap_att.json"
    path.write_text(path.read_text().replace("swap", "swop"))
    problems = "\n".join(check("near-miss", tmp_path))
    assert problems.count("does not have the checksum") == 1 and f"swap_att: {path} (delete it): the file" in problems


def test_a_file_the_hub_lacks_is_named(hub: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(hub)
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
