"""A copy of an index, made by any tool: complete or refused, and checked by `load_index(verify=True)`."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

import una_fast
from una_fast.errors import InputError
from una_fast.index.index import KIND, VERSION
from una_fast.storage.array_folder import MANIFEST, Manifest, load_arrays, save_arrays

TEXTS = ["\u00e9t\u00e9 in the cat's \U0001f600", "The cat sat.", "", "a dog ran far", "the cat ran"]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("built") / "index"
    una_fast.build_index(TEXTS).save(folder)
    return folder


@pytest.fixture
def copy(built, tmp_path):
    return shutil.copytree(built, tmp_path / "copy")


def test_a_copied_folder_is_the_index_with_what_is_kept_in_it(built, tmp_path):
    tokens = una_fast.load_index(built).cached("tokens-1", 1, lambda: {"a": np.arange(3)}, bool)
    index = una_fast.load_index(shutil.copytree(built, tmp_path / "copy"), verify=True)
    assert list(index) == TEXTS
    assert index.cached("tokens-1", 1, pytest.fail, bool)["a"].tolist() == tokens["a"].tolist()
    shutil.rmtree(built / "tokens-1")


def test_fsspec_copies_it_to_an_address_and_back(built, tmp_path):
    files = pytest.importorskip("fsspec").filesystem("memory")
    files.put(str(built), "/copies/index", recursive=True)
    files.get("/copies/index", str(tmp_path / "back"), recursive=True)
    files.rm("/copies", recursive=True)
    assert list(una_fast.load_index(tmp_path / "back", verify=True)) == TEXTS
    with pytest.raises(InputError, match="is an address: give a folder on a disk of this machine"):
        una_fast.load_index("memory://copies/index")


def test_a_copy_that_was_stopped_is_refused(copy):
    (copy / MANIFEST).rename(copy.parent / MANIFEST)
    with pytest.raises(InputError, match=r"not a saved index \(it has no manifest\.json"):
        una_fast.load_index(copy)
    (copy.parent / MANIFEST).rename(copy / MANIFEST)
    next(copy.glob("idf-*")).unlink()
    with pytest.raises(InputError, match="idf-.*: damaged or missing"):
        una_fast.load_index(copy)


@pytest.mark.parametrize("keep", [-8, -1])
def test_a_damaged_copy_is_noticed(copy, keep):
    (file,) = copy.glob("idf-*")
    data = file.read_bytes()
    file.write_bytes(data[:keep] + bytes([data[-1] ^ 1]) if keep == -1 else data[:keep])
    with pytest.raises(InputError, match="idf-.*: damaged or missing"):
        una_fast.load_index(copy, verify=True)


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
def test_an_index_that_no_build_can_make_is_noticed(built, tmp_path, name):
    """All checksums are right, but the content would lead a kernel out of its arrays."""
    meta, arrays = load_arrays(built, KIND, VERSION)
    part, change = BAD_PARTS[name]
    bad = {part: change(arrays.get(part))} if change else {}
    save_arrays(tmp_path / "index", KIND, VERSION, meta if bad else {**meta, part: None}, arrays | bad)
    for verify in (False, True):
        with pytest.raises(InputError, match="written by this una_fast: wrong |no bounds of rows"):
            una_fast.load_index(tmp_path / "index", verify=verify)


def test_no_name_in_a_manifest_leads_out_of_the_folder(copy):
    (copy / MANIFEST).write_bytes(Manifest(KIND, VERSION, {}, {"../../escaped": "0" * 16}).encode())
    with pytest.raises(InputError, match=r"manifest\.json: damaged"):
        una_fast.load_index(copy)
