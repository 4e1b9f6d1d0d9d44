"""Folders that somebody else made: all checksums are right, but the content is wrong."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest
import xxhash
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import una_fast
from una_fast.arrays import Ragged, StringTable
from una_fast.corpus.word_tokenizers import PROBES
from una_fast.errors import InputError
from una_fast.index.layout import DTYPES, KIND, VERSION
from una_fast.storage import load_arrays, save_arrays
from una_fast.storage.content import wrong_bounds, wrong_rows, wrong_strings

BITS = range(8) if os.environ.get("UNA_FAST_EVERY_BIT") else (0, 5)  # bit 5 turns capital letters into small ones
TEXTS = ["\u00e9t\u00e9 in the cat's \U0001f600", "The cat sat.", "", "a dog ran far", "the cat ran"]


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    folder = tmp_path_factory.mktemp("untrusted") / "index"
    una_fast.build_index(TEXTS).save(folder)
    meta, arrays, _ = load_arrays(folder, KIND, VERSION)
    return meta, {name: array.copy() for name, array in arrays.items()}


def changed(array, at, value):
    array = array.copy()
    array[at] = value
    return array


BAD_ARRAYS = {
    "an id too large": ("words_values", lambda a: changed(a, 3, 10**6)),
    "an id just too large": ("words_values", lambda a: changed(a, 3, a.max() + 1)),
    "a negative id": ("words_values", lambda a: changed(a, 0, -1)),
    "a chunk too large": ("sentences_values", lambda a: changed(a, -1, 2**31 - 1)),
    "rows that decrease": ("words_indptr", lambda a: changed(a, 2, a[1] - 1)),
    "rows beyond the end": ("sentences_indptr", lambda a: changed(a, -1, 10**9)),
    "rows that start late": ("sentences_indptr", lambda a: changed(a, 0, 1)),
    "rows from before the start": ("words_indptr", lambda a: changed(a, 1, -5)),
    "a row fewer": ("words_indptr", lambda a: a[[*range(len(a) - 2), -1]]),
    "no rows of chunks": ("sentences_indptr", lambda a: a[:0]),
    "no rows at all": ("words_indptr", lambda a: a[:0]),
    "offsets that decrease": ("chunks_offsets", lambda a: changed(a, 1, 10**6)),
    "a term cut short": ("terms_offsets", lambda a: changed(a, -1, a[-1] - 1)),
    "half a character": ("chunks_utf8", lambda a: changed(a, -1, 0xC3)),
    "offsets inside a character": ("chunks_offsets", lambda a: changed(a, 1, 1)),
    "a frequency of 0": ("document_frequency", lambda a: changed(a, 0, 0)),
    "a frequency beyond N": ("document_frequency", lambda a: changed(a, 0, len(TEXTS) + 1)),
    "a value fewer": ("idf", lambda a: a[1:]),
    "no number": ("idf", lambda a: changed(a, 1, np.nan)),
    "an infinite score": ("max_tfidf", lambda a: changed(a, 0, np.inf)),
    "scores that increase": ("max_tfidf", lambda a: a[::-1]),
    "other integers": ("words_values", lambda a: a.astype(np.int64)),
    "unsigned integers": ("words_values", lambda a: a.astype(np.uint32)),
    "single precision": ("max_tfidf", lambda a: a.astype(np.float32)),
    "two dimensions": ("idf", lambda a: a[:, None]),
    "no terms": ("terms_offsets", lambda a: a[:1]),
}


@pytest.mark.parametrize("name", BAD_ARRAYS)
def test_what_no_build_can_make_is_refused(content, tmp_path, name):
    meta, arrays = content
    array, change = BAD_ARRAYS[name]
    save_arrays(tmp_path / "index", KIND, VERSION, meta, {**arrays, array: change(arrays[array])})
    with pytest.raises(InputError, match=r"damaged, or not written by una_fast"):
        una_fast.load_index(tmp_path / "index")


@pytest.mark.parametrize("missing", DTYPES)
def test_an_array_that_is_not_listed_is_refused(content, tmp_path, missing):
    meta, arrays = content
    save_arrays(tmp_path / "index", KIND, VERSION, meta, {k: v for k, v in arrays.items() if k != missing})
    with pytest.raises(InputError, match=r"the list of its arrays is"):
        una_fast.load_index(tmp_path / "index")


@pytest.mark.parametrize(
    "change",
    [
        {"sources": None},
        {"sources": "text"},
        {"sources": [1]},
        {"sources": [{}]},
        {"sources": [{"name": 1, "n_documents": 5, "xxh3_128": "0"}]},
        {"word_tokenizer": 1},
        {"word_tokenizer": None},
        {"lowercase": "no"},
        {"lowercase": 1},
        {"word_probe": 1},
        {"word_probe": "words"},
        {"word_probe": []},
        {"word_probe": [["a"]] * (len(PROBES) - 1)},
        {"word_probe": ["a"] * len(PROBES)},
        {"word_probe": [["a", 1]] * len(PROBES)},
    ],
)
def test_a_field_of_another_type_is_refused(content, tmp_path, change):
    meta, arrays = content
    save_arrays(tmp_path / "index", KIND, VERSION, {**meta, **change}, arrays)
    with pytest.raises(InputError, match=f"{next(iter(change))} "):
        una_fast.load_index(tmp_path / "index")


def reseal(folder, manifest):
    seal = xxhash.xxh3_64_hexdigest(json.dumps(manifest, sort_keys=True).encode())
    text = json.dumps({**manifest, "seal": seal}, indent=1, sort_keys=True) + "\n"
    (folder / "manifest.json").write_text(text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(["kind", "version", "meta", "checksums", "seal", "part_of", "more"]), JSON)
def test_a_manifest_of_other_types_is_refused(tmp_path, key, value):
    folder = tmp_path / "saved"
    save_arrays(folder, "index", 1, {"a": 1}, {"ids": np.arange(3)})
    manifest = json.loads((folder / "manifest.json").read_text())
    del manifest["seal"]
    reseal(folder, {**manifest, key: value})
    try:
        found = load_arrays(folder, "index", 1)
    except InputError:
        pass
    else:
        assert key in ("part_of", "meta", "checksums")
        assert found.meta == (value if key == "meta" else {"a": 1})
    save_arrays(folder.with_name("next"), "index", 1, {}, {})  # a save beside it trusts no part of it
    reseal(folder, manifest)


@pytest.mark.parametrize("name", ["../outside", "/etc/hostname", "a/b", "..", "", "a\0b", "ids.npy/x"])
def test_a_name_that_leads_out_of_the_folder_is_refused(tmp_path, name):
    np.save(tmp_path / "outside.npy", np.zeros(3))
    folder = tmp_path / "saved"
    save_arrays(folder, "index", 1, {}, {"ids": np.arange(3)})
    manifest = json.loads((folder / "manifest.json").read_text())
    del manifest["seal"]
    checksum = xxhash.xxh3_64_hexdigest((tmp_path / "outside.npy").read_bytes())
    reseal(folder, {**manifest, "checksums": {name: checksum}})
    with pytest.raises(InputError, match="damaged"):
        load_arrays(folder, "index", 1)
    with pytest.raises(InputError, match=r"holds 'ids-\w+\.npy', and no manifest of una_fast"):
        save_arrays(folder, "index", 1, {}, {"ids": np.arange(3)})
    assert (tmp_path / "outside.npy").exists()


@pytest.mark.parametrize("manifest", [b"[" * 10**5, b"\xff", b"", b"null", b"[1]", b'{"seal": 1}', b"9" * 5000])
def test_a_manifest_that_is_none_is_refused(tmp_path, manifest):
    save_arrays(tmp_path / "saved", "index", 1, {}, {"ids": np.arange(3)})
    (tmp_path / "saved" / "manifest.json").write_bytes(manifest)
    with pytest.raises(InputError, match="damaged, it is not the JSON that was written"):
        load_arrays(tmp_path / "saved", "index", 1)


def test_every_flip_in_the_manifest_is_refused(content, tmp_path):
    folder = tmp_path / "index"
    save_arrays(folder, KIND, VERSION, *content)
    data = (folder / "manifest.json").read_bytes()
    for at in range(len(data)):
        for bit in BITS:
            flipped = bytearray(data)
            flipped[at] ^= 1 << bit
            (folder / "manifest.json").write_bytes(flipped)
            with pytest.raises(InputError):
                load_arrays(folder, KIND, VERSION)


def test_every_flip_in_a_header_with_its_checksum_made_right_is_refused_or_harmless(tmp_path):
    """A header of another program: the saved values are loaded, or nothing."""
    folder, values = tmp_path / "saved", np.arange(12, dtype=np.int32)
    save_arrays(folder, "index", 1, {}, {"ids": values})
    manifest = json.loads((folder / "manifest.json").read_text())
    del manifest["seal"]
    (path,) = folder.glob("ids-*.npy")
    data = path.read_bytes()
    path.unlink()
    for at in range(128):
        for bit in BITS:
            flipped = bytearray(data)
            flipped[at] ^= 1 << bit
            checksum = xxhash.xxh3_64_hexdigest(flipped)
            path = folder / f"ids-{checksum}.npy"
            path.write_bytes(flipped)
            reseal(folder, {**manifest, "checksums": {"ids": checksum}})
            try:
                found = load_arrays(folder, "index", 1).arrays["ids"]
            except InputError:
                continue
            finally:
                path.unlink()
            # the same bytes; the type may be another of the same size, which the index's checks find
            assert found.view(np.int32).tolist() == values.tolist()


@given(st.lists(st.integers(-3, 12), max_size=8), st.integers(0, 9))
def test_bounds_are_wrong_exactly_where_rows_would_be(bounds, end):
    right = bounds == sorted(bounds) and bounds[:1] == [0] and bounds[-1:] == [end]
    assert (wrong_bounds(np.array(bounds, dtype=np.int64), end) == "") == right


@given(st.lists(st.integers(-3, 5), max_size=8), st.integers(0, 5), st.sampled_from([np.int32, np.int64]))
def test_ids_are_wrong_exactly_where_they_are_out_of_range(values, n_ids, dtype):
    rows = Ragged(np.array(values, dtype=dtype), np.array([0, len(values)]))
    assert (wrong_rows(rows, 1, n_ids) == "") == all(0 <= value < n_ids for value in values)


@given(st.binary(max_size=12) | st.text(max_size=6).map(lambda s: s.encode()), st.lists(st.integers(0, 12), max_size=4))
def test_strings_are_wrong_exactly_where_one_cannot_be_decoded(utf8, cuts):
    offsets = [0, *sorted(min(cut, len(utf8)) for cut in cuts), len(utf8)]
    table = StringTable(np.frombuffer(utf8, dtype=np.uint8), np.array(offsets))
    try:
        for i in range(len(table)):
            table[i]
        right = True
    except UnicodeDecodeError:
        right = False
    assert (wrong_strings(table) == "") == right
