"""Damaged and copied indexes: complete copies work, damaged indexes are refused, damaged caches are rebuilt."""

import json
import random
import shutil
import threading
import zipfile

import numpy as np
import pytest

import una_fast
from support.staged import flip
from support.tokenizer_families import bert_uncased
from una_fast.errors import InputError
from una_fast.index.index import KIND, LAYOUT
from una_fast.storage.array_folder import CACHE, MANIFEST, load_arrays, save_arrays
from una_fast.tokens.ids import TokenIds

TEXTS = [f"École: the {word} sat on a {other}." for word in ("cat", "dog", "élan", "") for other in ("mat", "State")]
TEXTS += ["", "\U0001f600 ran far"]


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Return the folder of a saved index with the caches of an augmenter."""
    folder = tmp_path_factory.mktemp("kept") / "index"
    una_fast.build_index(TEXTS).save(folder)
    outputs(folder)
    return folder


@pytest.fixture(scope="module")
def expected(kept):
    return outputs(kept)


@pytest.fixture
def copy(kept, tmp_path):
    return shutil.copytree(kept, tmp_path / "index")


def outputs(folder):
    """Return token ids and texts of negatives, and token ids of anchors, computed with an index and its caches."""
    una = una_fast.Augmenter(una_fast.load_index(folder), radius=3, seed=1, tokenizer=bert_uncased())
    rows = range(len(TEXTS))
    anchors = TokenIds(una_fast.load_index(folder), bert_uncased()).anchor_ids(rows)["input_ids"].tolist()
    return [una.token_ids(rows, epoch)["input_ids"].tolist() for epoch in range(3)], una.texts(rows), anchors


def test_a_copied_folder_works_and_keeps_its_caches(copy, tmp_path):
    una_fast.load_index(copy).cached("mine-1", 1, lambda: {"a": np.arange(3)}, bool)
    index = una_fast.load_index(shutil.copytree(copy, tmp_path / "copy"), verify=True)
    assert list(index) == TEXTS and index.cached("mine-1", 1, pytest.fail, bool)["a"].tolist() == [0, 1, 2]


def test_fsspec_copies_an_index_to_an_address_and_back(kept, tmp_path):
    files = pytest.importorskip("fsspec").filesystem("memory")
    files.put(str(kept), "/copies/index", recursive=True)
    files.get("/copies/index", str(tmp_path / "back"), recursive=True)
    files.rm("/copies", recursive=True)
    assert list(una_fast.load_index(tmp_path / "back", verify=True)) == TEXTS
    with pytest.raises(InputError, match="memory://copies/index"):
        una_fast.load_index("memory://copies/index")


def test_a_flipped_bit_of_any_array_is_noticed_by_verify(copy):
    paths = sorted(copy.rglob("*.npy"))
    assert len({path.parent for path in paths}) > 3  # the index and its caches
    for path in paths:
        remedy = "build it again" if path.parent == copy else "delete this folder"
        flip(path, -1)
        with pytest.raises(InputError, match=f"{path.name}: .*{remedy}"):
            una_fast.load_index(copy, verify=True)
        flip(path, -1)


def changed(array, at, value):
    return np.concatenate([array[:at], [value], array[at:][1:]]).astype(array.dtype)


BAD_PARTS = {
    "an id too large": ("words_values", lambda a: changed(a, 3, a.max() + 1)),
    "a negative id": ("sentences_values", lambda a: changed(a, 0, -1)),
    "rows that decrease": ("words_indptr", lambda a: changed(a, 2, a[1] - 1)),
    "rows beyond the end": ("sentences_indptr", lambda a: changed(a, -1, 10**9)),
    "offsets inside a character": ("chunks_offsets", lambda a: changed(a, 1, 1)),
    "a frequency beyond N": ("document_frequency", lambda a: changed(a, 0, len(TEXTS) + 1)),
    "not a number": ("idf", lambda a: changed(a, 1, np.nan)),
    "scores that increase": ("max_tfidf", lambda a: a[::-1]),
    "integers of another dtype": ("words_values", lambda a: a.astype(np.int64)),
    "no terms": ("terms_offsets", lambda a: a[:1]),
    "another list of arrays": ("more", lambda _: np.arange(3)),
    "a field of another type": ("word_tokenizer", None),
}


@pytest.mark.parametrize("name", BAD_PARTS)
def test_content_that_no_build_writes_is_refused(kept, tmp_path, name):
    """All checksums are correct, but the content would make a kernel read outside its arrays."""
    meta, arrays = load_arrays(kept, KIND, LAYOUT)
    part, change = BAD_PARTS[name]
    bad = {part: change(arrays.get(part))} if change else {}
    save_arrays(tmp_path / "index", KIND, LAYOUT, meta if bad else {**meta, part: None}, arrays | bad)
    for verify in (False, True):
        with pytest.raises(InputError, match="wrong |not bounds of rows"):
            una_fast.load_index(tmp_path / "index", verify=verify)


def test_every_flipped_bit_of_a_header_is_noticed(copy):
    (path,) = copy.glob("words_values-*.npy")
    content = path.read_bytes()
    for bit in range(128 * 8):
        flip(path, bit)
        with pytest.raises(InputError, match=path.name):
            una_fast.load_index(copy)
        path.write_bytes(content)


def test_an_array_file_with_other_content_is_refused(copy):
    (path,) = copy.glob("idf-*.npy")
    content = path.read_bytes()
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("idf.npy", content)
    shape = content[content.index(b"(") : content.index(b"), }") + 1]
    shapes = [b"(%d,)" % 2**63, b"(-1,)", b"(True,)", b"()", b"(1, (2,)", b"(" * 200]
    for other in (path.read_bytes(), *(content.replace(shape, one) for one in shapes)):
        path.write_bytes(other)
        with pytest.raises(InputError, match="idf-.*build it again"):
            una_fast.load_index(copy)


def write_manifest(folder, change):
    """Change values of a manifest and of its dicts, and remove its checksum."""
    content = json.loads((folder / MANIFEST).read_text())
    del content["xxh3_64"]
    for name, value in change.items():
        merged = isinstance(value, dict) and isinstance(content[name], dict)
        content[name] = content[name] | value if merged else value
    (folder / MANIFEST).write_text(json.dumps(content))


@pytest.mark.parametrize("change", [
    {"version": "2"}, {"version": None}, {"version": True}, {"meta": None}, {"meta": []}, {"kind": 1},
    {"checksums": []}, {"checksums": {"idf": 3}}, {"meta": {"sources": [None]}}, {"meta": {"sources": [{}]}},
    {"meta": {"sources": [{"name": 1, "n_documents": 12, "xxh3_128": ""}]}}, {"meta": {"word_probe": 3}},
    {"checksums": {"idf": None}}, {"meta": {"word_tokenizer": "treebanj"}}, {"meta": {"lowercase": 1}},
    {"meta": {"score_law": "2"}}, {"checksums": {"../../escaped": "0" * 16}},
])  # fmt: skip
def test_a_manifest_with_wrong_types_or_names_is_refused(copy, change):
    write_manifest(copy, change)
    for verify in (False, True):
        with pytest.raises(InputError):
            una_fast.load_index(copy, verify=verify)


def test_row_bounds_without_the_rows_values_are_refused(copy):
    meta, arrays = load_arrays(copy, KIND, LAYOUT)
    del arrays["words_values"]
    save_arrays(copy, KIND, LAYOUT, meta, arrays)
    with pytest.raises(InputError, match="words_indptr.*words_values"):
        una_fast.load_index(copy)


def test_every_flipped_bit_of_a_manifest_is_noticed(copy):
    path = copy / MANIFEST
    whole = path.read_bytes()
    for bit in random.Random(0).sample(range(8 * len(whole)), 300):
        path.write_bytes(whole)
        flip(path, bit)
        with pytest.raises(InputError):
            una_fast.load_index(copy)


def wrong_bounds(bounds):
    return changed(bounds, 2, 10**12)


@pytest.mark.parametrize(("array", "bit"), [
    ("tokens-6-*/sizes", 3), ("tokens-6-*/sizes", 85),  # in the magic bytes and in the header's text
    ("probabilities-*/words", 1000),  # at the end of the header
    ("tokens-6-*/sentences_values", 128 * 8 + 15), ("tokens-6-*/terms_values", 128 * 8 + 31),  # no id of the vocabulary
    ("tokens-6-*/terms_values", 128 * 8 + 20),
])  # fmt: skip
def test_a_cache_with_a_flipped_bit_in_a_header_or_an_id_is_rebuilt(expected, copy, array, bit):
    (path,) = copy.glob(f"{array}-*.npy")
    content = path.read_bytes()
    flip(path, bit)
    assert outputs(copy) == expected and path.read_bytes() == content


@pytest.mark.parametrize(("part", "name", "change"), [
    ("probabilities", "words", lambda a: a ^ 1),
    ("probabilities", "words", lambda a: a[:-1]),
    ("probabilities", "words", lambda a: a.astype(np.int64)),
    ("tokens-forms", "alike", lambda a: a[:-1]),
    ("tokens-6", "sizes", lambda a: a[1:]),
    ("tokens-6", "terms_values", lambda a: a.astype(np.int64)),
    ("tokens-6", "sentences_values", lambda a: a.astype(np.float32)),
    ("tokens-6", "sentences_indptr", wrong_bounds),
    ("tokens-6", "terms_indptr", wrong_bounds),
])  # fmt: skip
def test_a_cache_with_wrong_lengths_types_words_or_bounds_is_rebuilt(expected, copy, part, name, change):
    (folder,) = copy.glob(f"{part}-*")
    meta, arrays = load_arrays(folder, CACHE)
    version = json.loads((folder / MANIFEST).read_text())["version"]
    save_arrays(folder, CACHE, version, meta, arrays | {name: change(arrays[name])})  # with correct checksums
    if change is wrong_bounds:
        with pytest.raises(InputError, match=f"{name}.*delete this folder"):
            una_fast.load_index(copy, verify=True)
    assert outputs(copy) == expected
    assert np.array_equal(load_arrays(folder, CACHE)[1][name], arrays[name])


def test_loading_during_a_save_gives_the_old_or_the_new_content(tmp_path):
    folder, done = tmp_path / "index", threading.Event()
    arrays = [{f"a{k}": np.full(500, i) for k in range(12)} for i in range(10)]

    def save():
        for i in range(20):
            save_arrays(folder, KIND, LAYOUT, {"i": i % 10}, arrays[i % 10])
        done.set()

    save_arrays(folder, KIND, LAYOUT, {"i": 0}, arrays[0])
    thread = threading.Thread(target=save)
    thread.start()
    try:
        while not done.is_set():
            meta, found = load_arrays(folder, KIND, LAYOUT)
            assert all((array == meta["i"]).all() for array in found.values())
    finally:
        thread.join()
