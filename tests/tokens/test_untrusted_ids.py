"""Kept token ids that somebody else made: all checksums are right, but the content is wrong."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

import una_fast
from support.tokenizer_families import bert_uncased, roberta, training_lines
from una_fast import InputError, TokenIds
from una_fast.index.layout import TOKENS
from una_fast.storage import load_arrays, save_arrays
from una_fast.tokens.binding import VERSION

TEXTS = [*training_lines()[:50], "", "[MASK] and [SEP] here"]


def changed(array, at, value):
    array = array.copy()
    array[at] = value
    return array


BAD_ARRAYS = {
    "an id too large": ("sentences_values", lambda a: changed(a, 3, 2**16 - 1)),
    "an id just too large": ("sentences_values", lambda a: changed(a, 0, len(bert_uncased()))),
    "a negative id": ("terms_values", lambda a: changed(a, 0, -1)),
    "a term's id too large": ("terms_values", lambda a: changed(a, -1, 2**30)),
    "rows that decrease": ("sentences_indptr", lambda a: changed(a, 2, a[1] - 1)),
    "rows beyond the end": ("sentences_indptr", lambda a: changed(a, -1, 10**9)),
    "rows from before the start": ("terms_indptr", lambda a: changed(a, 1, -5)),
    "rows far away": ("terms_indptr", lambda a: changed(a, 1, 2**60)),
    "a row fewer": ("sentences_indptr", lambda a: a[[*range(len(a) - 2), -1]]),
    "a term fewer": ("terms_indptr", lambda a: a[[*range(len(a) - 2), -1]]),
    "no rows": ("terms_indptr", lambda a: a[:0]),
    "wide ids": ("sentences_values", lambda a: a.astype(np.int64)),
    "real numbers": ("terms_values", lambda a: a.astype(np.float32)),
    "narrow bounds": ("terms_indptr", lambda a: a.astype(np.int32)),
    "two dimensions": ("sentences_values", lambda a: a[:, None]),
    "bounds of two dimensions": ("terms_indptr", lambda a: a[:, None]),
}


@pytest.fixture(scope="module")
def bound(tmp_path_factory):
    """The folder of an index with its ids."""
    folder = tmp_path_factory.mktemp("bound") / "index"
    una_fast.build_index(TEXTS).save(folder)
    TokenIds(una_fast.load_index(folder), bert_uncased())
    return folder


@pytest.fixture
def kept(bound, tmp_path):
    """An index and the folder of its ids."""
    index = una_fast.load_index(shutil.copytree(bound, tmp_path / "index"))
    (folder,) = (tmp_path / "index").glob("tokens-*")
    meta, arrays, _ = load_arrays(folder, TOKENS, VERSION)
    return index, folder, meta, {name: array.copy() for name, array in arrays.items()}


def write(kept, arrays=None):
    index, folder, meta, old_arrays = kept
    save_arrays(folder, TOKENS, VERSION, meta, arrays or old_arrays, part_of=index.seal)
    return index


@pytest.mark.parametrize("name", BAD_ARRAYS)
def test_ids_that_no_bind_can_make_are_refused(kept, name):
    array, change = BAD_ARRAYS[name]
    write(kept, arrays={**kept[3], array: change(kept[3][array])})
    with pytest.raises(InputError, match=r"damaged, or not written by una_fast: .*delete it, it is made again"):
        TokenIds(kept[0], bert_uncased())


@pytest.mark.parametrize("terms", [[2**31 - 1], [-1], [3, 3], [5, 2]])
def test_irregular_terms_that_are_none_are_refused(kept, terms):
    irregular = {"irregular_values": np.array(terms, dtype=np.int32), "irregular_indptr": np.array([0, len(terms)])}
    write(kept, arrays={**kept[3], **irregular})
    with pytest.raises(InputError, match=r"una_fast: irregular .*delete it, it is made again") as caught:
        TokenIds(kept[0], bert_uncased())
    assert str(kept[1]) in str(caught.value)


@pytest.mark.parametrize(
    "change",
    [
        lambda arrays: arrays.pop("terms_values"),
        lambda arrays: arrays.pop("irregular_indptr"),
        lambda arrays: [arrays.pop(f"sentences_{part}") for part in ("values", "indptr")],
        lambda arrays: arrays.update(first_terms_values=arrays["terms_values"]),
        lambda arrays: arrays.update(more_values=arrays["terms_values"], more_indptr=arrays["terms_indptr"]),
        lambda arrays: arrays.update(indptr=arrays["terms_indptr"]),
    ],
)
def test_another_list_of_arrays_is_refused(kept, change):
    change(kept[3])
    with pytest.raises(InputError, match=r"the list of its arrays is .*delete it"):
        TokenIds(write(kept), bert_uncased())


def test_ids_of_another_tokenizer_are_refused(kept):
    index, folder, _, _ = kept
    TokenIds(index, roberta())
    (other,) = {*folder.parent.glob("tokens-*")} - {folder}
    shutil.rmtree(folder)
    other.rename(folder)
    with pytest.raises(InputError, match="made under another name, or for another index; delete it"):
        TokenIds(index, bert_uncased())


def test_ids_of_an_earlier_index_are_made_again(kept, tmp_path):
    """A save that was killed has left them."""
    index, folder, _, arrays = kept
    una_fast.build_index(TEXTS[:9]).save(tmp_path / "earlier")
    TokenIds(una_fast.load_index(tmp_path / "earlier"), bert_uncased())
    shutil.rmtree(folder)
    shutil.copytree(tmp_path / "earlier" / folder.name, folder)
    assert np.array_equal(TokenIds(index, bert_uncased()).sentences.values, arrays["sentences_values"])
    assert sorted(path.name.rpartition("-")[0] for path in folder.glob("*.npy")) == sorted(arrays)
