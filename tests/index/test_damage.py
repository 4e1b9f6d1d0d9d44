"""Files of an index, of its caches and of a stopped build that are not what was written: an error, or made again."""

from __future__ import annotations

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
from una_fast.index.index import KIND, VERSION
from una_fast.storage.array_folder import CACHE, MANIFEST, load_arrays, save_arrays
from una_fast.tokens.ids import TokenIds

TEXTS = [f"The {word} sat on a {other}." for word in ("cat", "dog", "élan", "") for other in ("mat", "State", "hat")]


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A saved index with the caches of an augmenter."""
    folder = tmp_path_factory.mktemp("kept") / "index"
    una_fast.build_index(TEXTS).save(folder)
    numbers(folder)
    return folder


@pytest.fixture
def copy(kept, tmp_path):
    return shutil.copytree(kept, tmp_path / "index")


def numbers(folder):
    """All that an index and its caches lead to."""
    una = una_fast.Augmenter(una_fast.load_index(folder), radius=3, seed=1, tokenizer=bert_uncased())
    rows = range(len(TEXTS))
    ids = [una.token_ids(rows, epoch)["input_ids"].tolist() for epoch in range(3)]
    return (
        ids,
        una.texts(rows),
        TokenIds(una_fast.load_index(folder), bert_uncased()).anchor_ids(rows)["input_ids"].tolist(),
    )


@pytest.mark.parametrize("folder", ["", "tokens-6", "probabilities"])
def test_every_flipped_bit_of_a_header_is_an_error_or_a_cache_made_again(kept, copy, folder):
    expected, folders = numbers(kept), [copy] if not folder else copy.glob(f"{folder}-*")
    (path,) = [path for part in folders for path in part.glob("words*.npy") if "indptr" not in path.name] or [
        path for part in copy.glob(f"{folder}-*") for path in part.glob("sizes-*.npy")
    ]
    content = path.read_bytes()
    for bit in range(128 * 8) if not folder else range(0, 128 * 8, 37):
        flip(path, bit)
        with pytest.raises(InputError, match=r"header is not|size is not"):
            una_fast.load_index(copy, verify=bool(folder)) if not folder else load_arrays(path.parent, CACHE)
        if folder:
            assert numbers(copy) == expected and path.read_bytes() == content
        path.write_bytes(content)


def test_anything_in_the_place_of_an_array_is_an_error(copy):
    (path,) = copy.glob("idf-*.npy")
    content = path.read_bytes()
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("idf.npy", content)
    headers = [b"(%d,)" % 2**63, b"(-1,)", b"(True,)", b"()", b"(1, (2,)", b"(" * 200]
    for header in (
        None,
        *(content.replace(content[content.index(b"(") : content.index(b"), }") + 1], h) for h in headers),
    ):
        if header:
            path.write_bytes(header)
        with pytest.raises(InputError, match="idf-.*damaged or missing .*; build it again$"):
            una_fast.load_index(copy)


@pytest.mark.parametrize(
    "change",
    [
        {"version": "2"}, {"version": None}, {"version": True}, {"meta": None}, {"meta": []}, {"kind": 1},
        {"checksums": []}, {"checksums": {"idf": 3}}, {"meta": {"sources": [None]}}, {"meta": {"sources": [{}]}},
        {"meta": {"sources": [{"name": 1, "n_documents": 12, "xxh3_128": ""}]}}, {"meta": {"word_probe": 3}},
        {"checksums": {"idf": None}}, {"meta": {"word_tokenizer": "treebanj"}}, {"meta": {"lowercase": 1}},
        {"meta": {"score_law": "2"}},
    ],
)  # fmt: skip
def test_a_manifest_of_other_types_is_an_error(copy, change):
    content = json.loads((copy / MANIFEST).read_text())
    del content["xxh3_64"]
    for name, value in change.items():
        whole = isinstance(value, dict) and isinstance(content[name], dict)
        content[name] = content[name] | value if whole else value
    (copy / MANIFEST).write_text(json.dumps(content))
    for verify in (False, True):
        with pytest.raises(InputError):
            una_fast.load_index(copy, verify=verify)


def test_an_array_that_the_manifest_does_not_list_is_an_error(copy):
    content = json.loads((copy / MANIFEST).read_text())
    del content["xxh3_64"], content["checksums"]["words_values"]
    (copy / MANIFEST).write_text(json.dumps(content))
    with pytest.raises(InputError, match="words_indptr.*damaged or missing .*words_values"):
        una_fast.load_index(copy)


def test_every_flipped_bit_of_a_manifest_is_noticed(copy):
    path = copy / MANIFEST
    whole, checksum = path.read_bytes(), path.read_bytes().index(b"xxh3_64") + 1
    for bit in random.Random(0).sample(range(8 * len(whole)), 300):
        path.write_bytes(whole)
        flip(path, bit)
        if not 0 <= bit // 8 - checksum < len("xxh3_64"):  # without its checksum a manifest is one of version 0.3
            with pytest.raises(InputError):
                una_fast.load_index(copy)


@pytest.mark.parametrize("name", ["sentences_indptr", "terms_indptr"])
def test_wrong_bounds_of_a_cache_with_right_checksums_are_noticed_by_verify_and_made_again(kept, copy, name):
    (folder,) = copy.glob("tokens-6-*")
    meta, arrays = load_arrays(folder, CACHE)
    wrong = np.array(arrays[name])
    wrong[2] = 10**12
    save_arrays(folder, CACHE, 6, meta, arrays | {name: wrong})
    with pytest.raises(InputError, match=f"{name}.*no bounds of rows.*; delete this folder: it is a cache"):
        una_fast.load_index(copy, verify=True)
    assert numbers(copy) == numbers(kept)
    una_fast.load_index(copy, verify=True)


@pytest.mark.parametrize(
    ("part", "name", "change"),
    [
        ("probabilities", "words", lambda a: a ^ 1),
        ("probabilities", "words", lambda a: a[:-1]),
        ("probabilities", "words", lambda a: a.astype(np.int64)),
        ("tokens-forms", "alike", lambda a: a[:-1]),
        ("tokens-6", "sizes", lambda a: a[1:]),
        ("tokens-6", "terms_values", lambda a: a.astype(np.int64)),
        ("tokens-6", "sentences_values", lambda a: a.astype(np.float32)),
    ],
)
def test_a_cache_of_other_lengths_types_or_words_is_made_again(kept, copy, part, name, change):
    (folder,) = copy.glob(f"{part}-*")
    meta, arrays = load_arrays(folder, CACHE)
    version = json.loads((folder / MANIFEST).read_text())["version"]
    save_arrays(folder, CACHE, version, meta, arrays | {name: change(arrays[name])})
    assert numbers(copy) == numbers(kept)
    assert np.array_equal(load_arrays(folder, CACHE)[1][name], arrays[name])


def test_a_load_during_saves_gets_the_old_or_the_new_content(tmp_path):
    folder, done = tmp_path / "index", threading.Event()
    arrays = [{f"a{k}": np.full(500, i) for k in range(12)} for i in range(50)]

    def save():
        for i in range(200):
            save_arrays(folder, KIND, VERSION, {"i": i % 50}, arrays[i % 50])
        done.set()

    save_arrays(folder, KIND, VERSION, {"i": 0}, arrays[0])
    thread = threading.Thread(target=save)
    thread.start()
    try:
        while not done.is_set():
            meta, found = load_arrays(folder, KIND, VERSION)
            assert all((array == meta["i"]).all() for array in found.values())
    finally:
        thread.join()
