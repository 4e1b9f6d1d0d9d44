"""An index copied to an address and back: complete or not at all, and checked when it is fetched."""

from __future__ import annotations

import shutil
from functools import partial

import numpy as np
import pytest

import una_fast
from support.corpus_files import served
from una_fast.errors import InputError
from una_fast.index.copies import fetch_index, upload_index
from una_fast.index.index import KIND, VERSION
from una_fast.storage import is_saved, load_arrays, save_arrays
from una_fast.storage.folder import MANIFEST, Manifest
from una_fast_cli.__main__ import main

fsspec = pytest.importorskip("fsspec")
TEXTS = ["\u00e9t\u00e9 in the cat's \U0001f600", "The cat sat.", "", "a dog ran far", "the cat ran"]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("built") / "index"
    una_fast.build_index(TEXTS).save(folder)
    return folder


@pytest.fixture
def in_memory():
    """An address in fsspec's in-memory file system."""
    files = fsspec.filesystem("memory")
    yield "memory://copies/index"
    if files.exists("/copies"):
        files.rm("/copies", recursive=True)


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_copy_of_a_copy_is_the_index(built, tmp_path, in_memory):
    for number, address in enumerate([in_memory, f"file://{tmp_path}/copies/index", tmp_path / "path" / "index"]):
        back = tmp_path / f"back-{number}"
        for _ in range(2):
            assert upload_index(built, address) == fetch_index(address, back) > 0
            assert content(back) == content(built)
    assert list(una_fast.load_index(back)) == TEXTS
    with pytest.raises(
        InputError, match=r"is an address; copy it to this machine with `una-fast fetch memory://copies/"
    ):
        una_fast.load_index(in_memory)


def test_an_index_copied_as_a_folder_works(built, tmp_path):
    tokens = una_fast.load_index(built).cached("tokens-1", 1, lambda: {"a": np.arange(3)})
    index = una_fast.load_index(shutil.copytree(built, tmp_path / "copy"), verify=True)
    assert list(index) == TEXTS
    assert index.cached("tokens-1", 1, pytest.fail)["a"].tolist() == tokens["a"].tolist()
    shutil.rmtree(built / "tokens-1")


def test_an_index_is_fetched_over_http(built, tmp_path):
    with served(built.parent) as address:
        fetch_index(f"{address}/index", tmp_path / "index")
        assert content(tmp_path / "index") == content(built)
        with pytest.raises(InputError, match=r"not a saved index \(it has no manifest\.json\)"):
            fetch_index(f"{address}/nothing", tmp_path / "none")
        with pytest.raises(InputError, match="cannot be written"):
            upload_index(built, f"{address}/other")
    with pytest.raises(InputError, match="cannot be read"):  # the server is gone
        fetch_index(f"{address}/index", tmp_path / "none")


def test_a_copy_that_was_stopped_is_never_taken_for_an_index(built, tmp_path, in_memory):
    """What a stop leaves: whole files, a half one, and no manifest."""
    files, names = fsspec.filesystem("memory"), sorted(set(content(built)) - {MANIFEST})[:5]
    (tmp_path / "copy").mkdir()
    for name in names:
        part = (built / name).read_bytes()[: -1 if name == names[-1] else None]
        files.pipe_file(f"/copies/index/{name}", part)
        (tmp_path / "copy" / name).write_bytes(part)
    for call in (partial(fetch_index, in_memory, tmp_path / "back"), partial(una_fast.load_index, tmp_path / "copy")):
        with pytest.raises(InputError, match="not a saved index"):
            call()
    upload_index(built, in_memory)
    fetch_index(in_memory, tmp_path / "copy")
    assert content(tmp_path / "copy") == content(built)


def test_what_others_have_there_stays(built, tmp_path, in_memory):
    files = fsspec.filesystem("memory")
    files.pipe_file("/copies/index/notes.txt", b"mine")
    upload_index(built, in_memory)
    assert files.cat_file("/copies/index/notes.txt") == b"mine"
    files.pipe_file(f"/copies/index/{MANIFEST}", b"mine")
    with pytest.raises(InputError, match=r"holds 'manifest\.json' already; give another folder, or delete it"):
        upload_index(built, in_memory)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    una_fast.build_index(["other words", "of other texts"]).save(tmp_path / "other")
    (tmp_path / "file").touch()
    for name, said in (("mine", "holds 'notes.txt', and"), ("other", "exists already"), ("file", "cannot be written")):
        with pytest.raises(InputError, match=f"{name}: {said}"):
            fetch_index(built, tmp_path / name)
    assert content(tmp_path / "mine") == {"notes.txt": b"mine"}


@pytest.mark.parametrize("keep", [-8, -1, None])
def test_a_damaged_index_is_copied_in_neither_direction(built, tmp_path, in_memory, keep):
    broken = shutil.copytree(built, tmp_path / "broken")
    (file,) = broken.glob("idf-*")
    data = file.read_bytes()
    file.write_bytes(data[:keep] + bytes([data[-1] ^ 1]) if keep == -1 else data[:keep])
    if keep is None:
        file.unlink()
    for call in (
        partial(una_fast.load_index, broken, verify=True),
        partial(upload_index, broken, in_memory),
        partial(fetch_index, broken, tmp_path / "back"),
    ):
        with pytest.raises(InputError, match=r"idf-.*: damaged or missing|broken cannot be copied: "):
            call()
    assert not is_saved(tmp_path / "back") and not fsspec.filesystem("memory").exists(f"/copies/index/{MANIFEST}")
    file.write_bytes(data)
    fetch_index(broken, tmp_path / "back")
    assert content(tmp_path / "back") == content(built)


def changed(array, at, value):
    return np.concatenate([array[:at], [value], array[at:][1:]]).astype(array.dtype)


BAD_PARTS = {
    "an id too large": ("words_values", lambda a: changed(a, 3, a.max() + 1)),
    "a negative id": ("sentences_values", lambda a: changed(a, 0, -1)),
    "rows that decrease": ("words_indptr", lambda a: changed(a, 2, a[1] - 1)),
    "rows beyond the end": ("sentences_indptr", lambda a: changed(a, -1, 10**9)),
    "offsets inside a character": ("chunks_offsets", lambda a: changed(a, 1, 1)),
    "a frequency beyond N": ("document_frequency", lambda a: changed(a, 0, len(TEXTS) + 1)),
    "no number": ("idf", lambda a: changed(a, 1, np.nan)),
    "scores that increase": ("max_tfidf", lambda a: a[::-1]),
    "other integers": ("words_values", lambda a: a.astype(np.int64)),
    "no terms": ("terms_offsets", lambda a: a[:1]),
    "another list of arrays": ("more", lambda _: np.arange(3)),
    "a field of another type": ("word_tokenizer", None),
}


@pytest.mark.parametrize("name", BAD_PARTS)
def test_an_index_that_no_build_can_make_is_not_fetched(built, tmp_path, name):
    """All checksums are right, but the content would lead a kernel out of its arrays."""
    meta, arrays = load_arrays(built, KIND, VERSION)
    part, change = BAD_PARTS[name]
    bad = {part: change(arrays.get(part))} if change else {}
    save_arrays(tmp_path / "index", KIND, VERSION, meta if bad else {**meta, part: None}, arrays | bad)
    with pytest.raises(InputError, match="damaged, or not written by this una_fast: wrong "):
        fetch_index(tmp_path / "index", tmp_path / "back")
    assert not is_saved(tmp_path / "back")


def test_no_name_in_a_manifest_leads_out_of_the_folder(built, tmp_path):
    (tmp_path / "index").mkdir()
    (tmp_path / "index" / MANIFEST).write_bytes(Manifest(KIND, VERSION, {}, {"../../escaped": "0" * 16}).encode())
    with pytest.raises(InputError, match=r"manifest\.json: damaged"):
        fetch_index(tmp_path / "index", tmp_path / "back")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index"]


def test_what_cannot_be_copied_gets_a_sentence(built, tmp_path):
    for copy in (partial(upload_index, built), lambda address: fetch_index(address, tmp_path / "back")):
        with pytest.raises(InputError, match="nonsense://a cannot be opened: Protocol not known: nonsense"):
            copy("nonsense://a")
    with pytest.raises(InputError, match="memory://a: is an address"):
        fetch_index(built, "memory://a")
    with pytest.raises(InputError, match="not a saved index"):
        upload_index(tmp_path, tmp_path / "copy")
    assert not list(tmp_path.iterdir()), "nothing is written"


def test_the_commands_copy(built, tmp_path, in_memory):
    assert main(["upload", str(built), in_memory]) == main(["fetch", in_memory, str(tmp_path / "back")]) == 0
    assert content(tmp_path / "back") == content(built)
