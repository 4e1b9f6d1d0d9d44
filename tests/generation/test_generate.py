"""`python -m train.generate`: aligned files for any batches, bad input, and jobs that were stopped or killed."""

import gzip
import json
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.seq2seq_models import save
from support.small_runs import WORDS, write_corpus
from train.generate import main
from train.generation import write
from train.generation.write import opened_part
from una_fast.storage.files import one_line

ROOT = Path(__file__).parents[2]
BREAKS = ["\n", "\r", "\r\n", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]
LINES = 40


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return {family: save(folder / family, family) for family in ("t5", "marian", "bart")}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("corpus") / "corpus.txt", LINES)


def arguments(corpus, output, *extra, kind="paraphrase"):
    fixed = "--max-source-length 40 --max-target-length 12 --beams 2 --device cpu --batch-tokens 96".split()
    return [kind, "--corpus", str(corpus), "--output", str(output), *fixed, *map(str, extra)]


def generate(corpus, output, *extra, kind="paraphrase"):
    """Run the command; returns its exit code."""
    return main(arguments(corpus, output, *extra, kind=kind))


def refusal(capsys, *words):
    assert main(list(map(str, words))) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    return line.removeprefix("error: ")


@pytest.fixture(scope="module")
def written(models, corpus, tmp_path_factory):
    """The output of the T5, written without a stop."""
    output = tmp_path_factory.mktemp("written") / "paraphrases.txt"
    assert generate(corpus, output, "--model", models["t5"], "--prefix", "castle ") == 0
    return output


def test_a_line_for_each_line_and_blank_ones_stay_blank(corpus, written):
    sentences, texts = (path.read_text().split("\n") for path in (corpus, written))
    assert len(texts) == len(sentences) and len(set(texts)) > LINES // 2
    assert [not text for text in texts] == [not sentence for sentence in sentences]
    summary = json.loads(Path(f"{written}.manifest").read_text())
    assert (summary["lines"], summary["blank"], summary["beams"]) == (LINES, 2, 2)
    assert not Path(f"{written}.part").exists()


def after(batches, action, monkeypatch):
    """Call `action` once this process has kept `batches` batches; returns a list of their sizes."""
    keep, sizes = write.keep, []

    def counted(records, batch):
        keep(records, batch)
        sizes.append(len(batch))
        if len(sizes) == batches:
            action()

    monkeypatch.setattr(write, "keep", counted)
    return sizes


def test_a_stopped_job_goes_on_without_loss(models, corpus, written, tmp_path, monkeypatch, capsys):
    output = tmp_path / "out.txt"
    command = (corpus, output, "--model", models["t5"], "--prefix", "castle ")
    with monkeypatch.context() as patch:
        batches = after(2, lambda: os.kill(os.getpid(), signal.SIGTERM), patch)
        assert generate(*command) == 128 + signal.SIGTERM
    assert f"{sum(batches)} lines kept: go on with the same command and --resume" in capsys.readouterr().err
    assert len(batches) == 2 and not output.exists()
    again = after(99, None, monkeypatch)
    assert generate(*command, "--resume", "--batch-tokens", 50) == 0
    assert sum(again) == LINES - 2 - sum(batches) and output.read_bytes() == written.read_bytes()


KILLED = """
import os, signal
from train.generation import write
keep, sizes = write.keep, []
def torn(records, batch):
    if len(sizes) == 3:  # in the middle of a transaction
        records.execute("INSERT INTO lines VALUES (?, ?, ?)", batch[0])
        os.kill(os.getpid(), signal.SIGKILL)
    keep(records, batch)
    sizes.append(len(batch))
write.keep = torn
from train.generate import main
main()
"""


@pytest.mark.slow
def test_kill_9_costs_one_batch(models, corpus, written, tmp_path, monkeypatch):
    output = tmp_path / "out.txt"
    command = (corpus, output, "--model", models["t5"], "--prefix", "castle ")
    killed = subprocess.run([sys.executable, "-c", KILLED, *arguments(*command)], cwd=ROOT, check=False)
    assert killed.returncode == -signal.SIGKILL
    with closing(sqlite3.connect(f"{output}.part")) as records:
        kept = len(write.rows_in(records))
    again = after(99, None, monkeypatch)
    assert generate(*command, "--resume") == 0
    assert sum(again) == LINES - 2 - kept < LINES - 2 and output.read_bytes() == written.read_bytes()


def test_back_translation_is_one_model_after_the_other(models, tmp_path, capsys):
    corpus = write_corpus(tmp_path / "corpus.txt", LINES // 2)
    there, back, both = (tmp_path / f"{name}.txt" for name in ("there", "back", "both"))
    assert generate(corpus, there, "--model", models["marian"]) == 0
    assert generate(there, back, "--model", models["bart"]) == 0
    assert generate(corpus, both, "--model", models["marian"], models["bart"], kind="back-translation") == 0
    assert both.read_bytes() == back.read_bytes() != there.read_bytes()
    capsys.readouterr()
    other_kind = arguments(corpus, both, "--model", models["marian"], "--resume")
    assert "kind was back-translation when" in refusal(capsys, *other_kind)


def test_a_model_that_writes_nothing_leaves_the_sentence(corpus, tmp_path, capsys):
    silent = save(tmp_path / "silent", "t5", ["\n"])
    assert generate(corpus, tmp_path / "same.txt", "--model", silent, "--max-source-length", 5) == 0
    assert (tmp_path / "same.txt").read_bytes() == corpus.read_bytes()
    said = capsys.readouterr().err
    assert f"{LINES - 2} with an empty text" in said and "longer than --max-source-length" in said


@given(st.lists(st.sampled_from([*"aé \t\xa0\u200b", *BREAKS]) | st.characters(codec="utf-8")).map("".join))
def test_a_text_becomes_one_line_and_keeps_its_words(text):
    line = one_line(text)
    assert len(line.splitlines()) == bool(text.strip())
    assert line.split() == text.split() and line == line.strip()


def test_input_that_cannot_be_used_is_refused_before_anything_is_written(capsys, models, corpus, tiny_model, tmp_path):
    output, t5 = tmp_path / "out.txt", models["t5"]
    assert "Unrecognized configuration class" in refusal(capsys, *arguments(corpus, output, "--model", tiny_model))
    assert "hf download tuner007/pegasus_paraphrase" in refusal(
        capsys, *arguments(corpus, output, "--model", "pegasus")
    )
    assert "no such file" in refusal(capsys, *arguments(tmp_path / "no.txt", output, "--model", t5))
    assert "choose auto, cpu" in refusal(capsys, *arguments(corpus, output, "--model", t5, "--device", "abacus"))
    (tmp_path / "cut.txt.gz").write_bytes(gzip.compress(corpus.read_bytes())[:-20])
    assert "cut.txt.gz" in refusal(capsys, *arguments(tmp_path / "cut.txt.gz", output, "--model", t5))
    (tmp_path / "cut.txt.gz").write_bytes(gzip.compress(b""))
    assert "it holds no sentence" in refusal(capsys, *arguments(tmp_path / "cut.txt.gz", output, "--model", t5))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cut.txt.gz"]
    broken = tmp_path / "broken"
    save(broken, "t5")
    (broken / "model.safetensors").write_bytes(b"\0" * 64)
    assert "no weights in this folder" in refusal(capsys, *arguments(corpus, output, "--model", broken))
    assert not Path(f"{output}.part").exists()


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
            [(row, text.upper(), False)] for row, text in enumerate(texts) if text and row not in done
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
