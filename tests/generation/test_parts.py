"""The folder of an unfinished job: what is kept, refused and merged."""

import os

import pytest

from train.generation.parts import Part, Parts, folder_of, summary_of
from train.record.folder import GENERATION, MARK, is_own, read_sealed
from una_fast.errors import InputError

IDENTITY = {"settings": {"beams": 4}, "corpus": ["c"], "models": ["m"]}


@pytest.fixture
def output(tmp_path):
    return tmp_path / "out.txt"


def begun(output, resume=False, n=5, **changes):
    parts = Parts(output, IDENTITY | changes, n)
    assert parts.begin(resume)
    return parts


def refusal(output, resume, **changes):
    before = {path: path.read_bytes() for path in output.parent.rglob("*") if path.is_file()}
    with pytest.raises(InputError) as caught:
        Parts(output, IDENTITY | changes, 5).begin(resume)
    now = {path: path.read_bytes() for path in output.parent.rglob("*") if path.is_file()}
    assert now == before
    return str(caught.value)


def write(folder, *records):
    """Write records as a rank does; the file of its part."""
    before = {*folder.iterdir()}
    with Part(folder) as part:
        part.append(records)
    (path,) = {*folder.iterdir()} - before
    return path


def test_parts_of_any_ranks_become_one_file_in_order(output):
    parts = begun(output)
    write(parts.folder, (4, "é four", ("cut",)), (0, "zero", ("folded", "cut")))
    write(parts.folder, (2, "two", ()))
    assert parts.done().tolist() == [True, False, True, False, True]
    assert parts.merge() == {"cut": 2, "folded": 1}
    assert output.read_bytes() == "zero\n\ntwo\n\né four\n".encode()
    summary = read_sealed(summary_of(output))
    assert summary == IDENTITY | {"notes": {"cut": 2, "folded": 1, "empty": 0}}
    assert sorted(path.name for path in output.parent.iterdir()) == ["out.txt", "out.txt.manifest"]
    assert Parts(output, IDENTITY, 5).begin(resume=True) is False
    assert "beams was 4 and is now 5" in refusal(output, True, settings={"beams": 5})
    assert "exists: choose another name" in refusal(output, False)


def test_a_record_cut_short_anywhere_is_made_again(output):
    parts = begun(output)
    path = write(parts.folder, (0, "zero", ()), (1, "one é", ()))
    whole = path.read_bytes()
    first = whole.index(b"\n") + 1
    parts.release()
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        parts = begun(output, resume=True)
        assert parts.done().tolist() == [end >= first, False, False, False, False]
        other = write(parts.folder, (3, "three", ()))
        assert parts.done().tolist() == [end >= first, False, False, True, False]
        other.unlink()
        parts.release()


@pytest.mark.parametrize("damage", [b"\0\0\0\0\n", b'[9, "x", []]\n', b"[1, 2, []]\n", b"[1]\n", b"7\n", b"\xff\n"])
def test_a_damaged_record_is_made_again(output, damage):
    parts = begun(output)
    with write(parts.folder, (0, "zero", ())).open("ab") as file:
        file.write(damage + b'[2, "two", []]\n')
    assert parts.done().tolist() == [True, False, True, False, False]
    parts.merge()
    assert output.read_text() == "zero\n\ntwo\n\n\n"


def test_a_kill_between_output_and_the_end_is_gone_on_from(output, monkeypatch):
    parts = begun(output)
    write(parts.folder, (0, "zero", ()))
    monkeypatch.setattr(parts, "remove", parts.release)
    parts.merge()
    assert output.exists() and is_own(parts.folder, GENERATION)
    begun(output, resume=True).merge()
    assert output.read_text().startswith("zero\n") and not parts.folder.exists()


def test_another_job_is_refused_and_nothing_is_lost(output):
    parts = begun(output)
    write(parts.folder, (0, "zero", ()))
    assert "in use by another run" in refusal(output, True)
    parts.release()
    assert "beams was 4 and is now 5" in refusal(output, True, settings={"beams": 5})
    assert "prefix was None and is now 'x'" in refusal(output, True, settings={"beams": 4, "prefix": "x"})
    assert "of other corpus (their content differs)" in refusal(output, True, corpus=["other"])
    assert "of other models" in refusal(output, True, models=["other"])
    assert "give --resume to go on" in refusal(output, False)
    for text in ("", "{", "[]", '{"settings": 3}'):
        (parts.folder / MARK).write_text(text)
        assert "there is nothing to go on with" in refusal(output, True)
        assert f"holds {MARK}: give a folder that is new or empty" in refusal(output, False)


def test_what_others_wrote_is_left_alone(output):
    assert "there is nothing to go on with" in refusal(output, True)
    assert not folder_of(output).exists()
    output.write_text("mine")
    assert "exists: choose another name" in refusal(output, False)
    output.rename(output.with_name("other"))
    folder_of(output).mkdir()
    (folder_of(output) / "notes").write_text("mine")
    assert "holds notes" in refusal(output, False)
    (folder_of(output) / "notes").unlink()
    parts = begun(output)
    parts.release()
    output.write_text("mine")
    assert "is not of this job" in refusal(output, True)


def test_a_user_s_file_that_comes_meanwhile_stays(output):
    parts = begun(output)
    write(parts.folder, (0, "zero", ()))
    output.write_text("mine")
    with pytest.raises(InputError, match="exists, and is not of this job: move it away"):
        parts.merge()
    assert output.read_text() == "mine" and is_own(parts.folder, GENERATION)


def test_files_and_links_of_a_user_stay_and_are_not_read(output, tmp_path):
    """Under names that earlier versions gave to parts."""
    parts = begun(output)
    (tmp_path / "precious.txt").write_text("no line break at the end")
    (parts.folder / "part-0").symlink_to(tmp_path / "precious.txt")
    (parts.folder / "part-7").write_text('[1, "mine", []]\n')
    write(parts.folder, (0, "zero", ()))
    parts.release()
    begun(output, resume=True).merge()
    assert output.read_text() == "zero\n\n\n\n\n"
    assert sorted(path.name for path in parts.folder.iterdir()) == [MARK, "part-0", "part-7"]
    assert (tmp_path / "precious.txt").read_text() == "no line break at the end"


@pytest.mark.parametrize("mine", ["mine", "zero\n\n\n\n\n"])
def test_an_output_that_comes_while_the_parts_are_merged_stays(output, monkeypatch, mine):
    parts = begun(output)
    write(parts.folder, (0, "zero", ()))
    linked = os.link

    def link(file, name):
        if name == output:
            output.write_text(mine)
        linked(file, name)

    monkeypatch.setattr(os, "link", link)
    with pytest.raises(InputError, match="exists, and is not of this job: move it away"):
        parts.merge()
    assert output.read_text() == mine
