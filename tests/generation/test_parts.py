"""An unfinished job: what is kept, what is made again, and what is refused."""

import json
import sqlite3
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from support.small_runs import WORDS
from train.generate import main
from train.generation import write
from train.generation.write import Record, opened_part

TEXTS = ["zero", "", "two", "three", "four"]


@pytest.fixture
def output(tmp_path):
    return tmp_path / "out.txt"


@pytest.fixture
def call(output, tmp_path, monkeypatch, capsys):
    """Runs the command with a writer that shouts: (exit code, what it said)."""
    (tmp_path / "corpus.txt").write_text("".join(f"{text}\n" for text in TEXTS))
    monkeypatch.setattr(write, "Seq2Seq", lambda name, job, device: SimpleNamespace(digest=name))
    monkeypatch.setattr(
        write,
        "make_records",
        lambda writers, texts, done, budget: (
            [Record(row, text.upper())] for row, text in enumerate(texts) if text and row not in done
        ),
    )

    def run(*extra):
        corpus = str(tmp_path / "corpus.txt")
        code = main(["paraphrase", "--model", WORDS[0], "--corpus", corpus, "--output", str(output), *extra])
        return code, capsys.readouterr().err

    return run


@pytest.fixture
def stopped(call, output, monkeypatch):
    """The database of a job that found its disk full after two sentences."""
    keep = write.keep

    def full(records, batch):
        if len(write.rows_in(records)) == 2:
            raise sqlite3.OperationalError("database or disk is full")
        keep(records, batch)

    with monkeypatch.context() as patch:
        patch.setattr(write, "keep", full)
        code, said = call()
    assert code == 2 and "disk is full: 2 lines kept: go on with the same command and --resume" in said
    return Path(f"{output}.part")


def test_what_is_kept_is_not_made_again(call, stopped, output):
    assert not output.exists()
    assert "or give --resume to go on with it" in call()[1]
    assert call("--resume")[0] == 0
    assert output.read_text() == "ZERO\n\nTWO\nTHREE\nFOUR\n" and not stopped.exists()
    manifest = json.loads(Path(f"{output}.manifest").read_text())
    assert (manifest["lines"], manifest["blank"], manifest["notes"]) == (5, 1, {"cut": 0, "empty": 0})
    assert "already finished" in call("--resume")[1]
    assert "beams was 4 when" in call("--resume", "--beams", "5")[1]
    assert "exists: choose another name" in call()[1]


@pytest.mark.parametrize("at", ["write_json", "tell_user"])
def test_a_kill_at_the_end_is_gone_on_from(call, stopped, output, monkeypatch, at):
    """After OUTPUT was written and before its manifest, or before OUTPUT.part was removed."""
    with monkeypatch.context() as patch:
        patch.setattr(write, at, Mock(side_effect=KeyboardInterrupt))
        assert call("--resume")[0] == 130
    assert output.exists() and stopped.exists()
    assert call("--resume")[0] == 0 and not stopped.exists()
    assert output.read_text().startswith("ZERO\n")


def test_another_job_is_refused(call, stopped, tmp_path):
    assert "beams was 4 when" in call("--resume", "--beams", "5")[1]
    assert "prefix was  when" in call("--resume", "--prefix", "x")[1]
    (tmp_path / "corpus.txt").write_text("another\n")
    assert "corpus was" in call("--resume")[1]
    with opened_part(stopped, {}):
        assert "database is locked); does another command write it?" in call("--resume")[1]


@pytest.mark.parametrize("ending", ["", ".part", ".manifest"])
def test_what_others_wrote_is_left_alone(call, output, ending):
    assert "there is no" in call("--resume")[1]
    path = Path(f"{output}{ending}")
    path.write_text("mine")
    for words in ([], ["--resume"]):
        assert call(*words)[0] == 2
        assert path.read_text() == "mine" and len(list(output.parent.glob("out.txt*"))) == 1
