"""The folder of an unfinished job: what is kept, what is made again, and whose files stay."""

import json
import os
import resource
import shutil
from contextlib import suppress

import pytest

from support.small_runs import WORDS
from train.generate import main
from train.generation import write
from train.generation.write import Record, folder_of, manifest_of, read_parts, write_part
from train.record.folder import GENERATION, MARK, OutputFolder, is_own
from una_fast.errors import InputError

TEXTS = ["zero", "", "two", "three", "four"]


@pytest.fixture
def output(tmp_path):
    return tmp_path / "out.txt"


@pytest.fixture
def call(output, tmp_path, monkeypatch, capsys):
    """Runs the command with a writer that shouts: (exit code, what it said)."""
    (tmp_path / "corpus.txt").write_text("".join(f"{text}\n" for text in TEXTS))
    monkeypatch.setattr(write, "check_model", lambda name, job: name)
    monkeypatch.setattr(write, "Seq2Seq", lambda name, job, device: None)
    monkeypatch.setattr(
        write,
        "make_records",
        lambda writers, texts, done, budget: (
            [Record(row, text.upper(), ())] for row, text in enumerate(texts) if text and row not in done
        ),
    )

    def run(*extra):
        corpus = str(tmp_path / "corpus.txt")
        code = main(["paraphrase", "--model", WORDS[0], "--corpus", corpus, "--output", str(output), *extra])
        return code, capsys.readouterr().err

    return run


@pytest.fixture
def stopped(call, output, monkeypatch):
    """A job that found its disk full after two sentences."""

    def full(folder, batch, made):
        if len(made) == 2:
            raise InputError("the disk is full")
        write_part(folder, batch, made)

    with monkeypatch.context() as patch:
        patch.setattr(write, "write_part", full)
        code, said = call()
    assert code == 2 and "the disk is full: 2 of 4 lines are kept: go on with the same command and --resume" in said
    return folder_of(output)


def test_what_is_kept_is_not_made_again(call, stopped, output):
    assert not output.exists()
    assert "give --resume to go on with it" in call()[1]
    assert call("--resume")[0] == 0
    assert output.read_text() == "ZERO\n\nTWO\nTHREE\nFOUR\n" and not stopped.exists()
    manifest = json.loads(manifest_of(output).read_text())
    assert (manifest["lines"], manifest["blank"], manifest["notes"]) == (5, 1, {"cut": 0, "empty": 0})
    assert "already finished" in call("--resume")[1]
    assert "--beams was 4 when" in call("--resume", "--beams", "5")[1]
    assert "exists: choose another name" in call()[1]


def test_a_part_that_was_changed_is_refused_and_stays(tmp_path):
    with OutputFolder(tmp_path / "parts", GENERATION, False):
        write_part(tmp_path / "parts", [Record(1, "one é", ("cut",)), Record(2, "two", ())], {})
        assert {*read_parts(tmp_path / "parts").values()} == {Record(1, "one é", ("cut",)), Record(2, "two", ())}
        path = tmp_path / "parts" / "1.json"
        whole = path.read_bytes()
        for bit in range(8 * len(whole)):
            flipped = bytearray(whole)
            flipped[bit // 8] ^= 1 << bit % 8
            path.write_bytes(flipped)
            with suppress(InputError):  # but for a space of the layout, which is no part of the content
                assert {*read_parts(tmp_path / "parts")} == {1, 2}
                assert json.loads(flipped) == json.loads(whole)
            assert path.read_bytes() == flipped
        for end in range(len(whole) - 1):
            path.write_bytes(whole[:end])
            with pytest.raises(InputError, match=r"1\.json: is not as this program wrote it, and stays"):
                read_parts(tmp_path / "parts")


def test_a_part_of_another_job_is_refused(tmp_path):
    for name in ("mine", "other"):
        with OutputFolder(tmp_path / name, GENERATION, False):
            write_part(tmp_path / name, [Record(1, name, ())], {})
    assert [one.text for one in read_parts(tmp_path / "mine").values()] == ["mine"]
    shutil.copy(tmp_path / "other" / "1.json", tmp_path / "mine" / "1.json")
    with pytest.raises(InputError, match=r"1\.json: is not as this program wrote it, and stays"):
        read_parts(tmp_path / "mine")


@pytest.mark.parametrize("content", [b"", b"my precious notes", b"[1]\n", b"{}", b"\xff\n"])
def test_a_file_of_somebody_else_among_the_parts_stays(call, stopped, content):
    (stopped / "7.json").write_bytes(content)
    code, said = call("--resume")
    assert code == 2 and "7.json: is not as this program wrote it, and stays: move it away" in said
    assert (stopped / "7.json").read_bytes() == content


def test_a_finished_output_that_was_changed_is_refused_and_stays(call, output):
    assert call()[0] == 0
    for content in (output.read_bytes()[:9], output.read_bytes().lower()):
        output.write_bytes(content)
        code, said = call("--resume")
        assert code == 2 and "out.txt: was changed since it was written, and stays: choose another name" in said
        assert output.read_bytes() == content


@pytest.mark.parametrize("name", ["output", "stopped"])
def test_a_manifest_that_was_changed_is_refused_at_once(call, output, name, request, monkeypatch):
    request.getfixturevalue(name)
    if name == "output":
        assert call()[0] == 0
    monkeypatch.setattr(write, "make_records", None)
    manifest_of(output).write_text('{"lines": 6}')
    code, said = call("--resume")
    assert code == 2 and "out.txt.manifest: is not as this program wrote it, and stays" in said


def interrupted(said):
    raise KeyboardInterrupt


def test_a_kill_between_output_and_the_end_is_gone_on_from(call, stopped, output, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(write, "tell_user", interrupted)
        with pytest.raises(KeyboardInterrupt):
            call("--resume")
    assert output.exists() and is_own(stopped, GENERATION)
    assert call("--resume")[0] == 0 and not stopped.exists()
    assert output.read_text().startswith("ZERO\n")


def test_another_job_is_refused(call, stopped, tmp_path):
    assert "--beams was 4 when" in call("--resume", "--beams", "5")[1]
    assert "--prefix was  when" in call("--resume", "--prefix", "x")[1]
    (tmp_path / "corpus.txt").write_text("another\n")
    assert "corpus (xxh3_128) was" in call("--resume")[1]
    for text in ("", "{", "[]", '{"settings": 3}'):
        (stopped / MARK).write_text(text)
        assert "holds no run of train.generate" in call("--resume")[1]
        assert f"holds {MARK}: give a folder that is new or empty" in call()[1]


def test_what_others_wrote_is_left_alone(call, output):
    assert "holds no run of train.generate" in call("--resume")[1]
    assert not folder_of(output).exists()
    output.write_text("mine")
    assert "exists: choose another name" in call()[1]
    assert "exists: choose another name" in call("--resume")[1]
    output.rename(output.with_name("other"))
    folder_of(output).mkdir()
    (folder_of(output) / "notes").write_text("mine")
    assert "holds notes" in call()[1]


def test_files_and_links_of_a_user_stay(call, stopped, output, tmp_path):
    (tmp_path / "precious.txt").write_text("no line break at the end")
    (stopped / "mine").write_text("mine")
    (stopped / "0.json").rename(tmp_path / "moved")
    (stopped / "0.json").symlink_to(tmp_path / "precious.txt")
    assert call("--resume")[0] == 2
    stopped.rename(tmp_path / "elsewhere")
    stopped.symlink_to(tmp_path / "elsewhere")
    assert "is a link: move it away" in call("--resume")[1]
    stopped.unlink()
    (tmp_path / "elsewhere").rename(stopped)
    (stopped / "0.json").unlink()
    assert call("--resume")[0] == 0
    assert sorted(path.name for path in stopped.iterdir()) == [MARK, "mine"]
    assert (tmp_path / "precious.txt").read_text() == "no line break at the end"


def test_an_output_that_comes_meanwhile_stays(call, stopped, output, monkeypatch):
    linked = os.link

    def link(file, name):
        if name == output:
            output.write_text("mine")
        linked(file, name)

    monkeypatch.setattr(os, "link", link)
    assert "out.txt: cannot be written (File exists)" in call("--resume")[1]
    assert output.read_text() == "mine" and is_own(stopped, GENERATION)


def test_a_part_that_is_replaced_meanwhile_stays(call, output, monkeypatch):
    def replaced(folder, batch, made):
        write_part(folder, batch, made)
        (folder / "0.json").write_text("my own text")

    monkeypatch.setattr(write, "write_part", replaced)
    code, said = call()
    assert code == 2 and "0.json: is not as this program wrote it, and stays" in said
    assert (folder_of(output) / "0.json").read_text() == "my own text"
    assert output.read_text() == "ZERO\n\nTWO\nTHREE\nFOUR\n"


def test_records_that_do_not_fit_on_the_disk(tmp_path):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    write_part(tmp_path, [Record(0, "kept", ())], {})
    resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, before[1]))
    try:
        with pytest.raises(InputError, match=r"1\.json: cannot be written"):
            write_part(tmp_path, [Record(1, "x" * 9_000, ())], {})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert read_parts(tmp_path) == {0: Record(0, "kept", ())}
