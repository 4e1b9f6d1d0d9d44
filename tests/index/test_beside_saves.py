"""An index that is opened, or bound to a tokenizer, while another index is saved under its name."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import una_fast
from support.tokenizer_families import bert_uncased
from una_fast.errors import InputError
from una_fast.index import beside
from una_fast.storage import load, load_arrays, save_arrays
from una_fast.tokens import binding
from una_fast.tokens.ids import TokenIds

ONE = ["the cat sat", "a dog ran far", "the cat ran"]
OTHER = ["a dog ran far", "some words of another corpus", "and more of them"] * 3


@pytest.fixture
def folder(tmp_path):
    una_fast.build_index(ONE).save(tmp_path / "index")
    return tmp_path / "index"


def ids_of(texts):
    return TokenIds(una_fast.build_index(texts), bert_uncased()).sentences.values.tolist()


def test_an_index_whose_folder_was_replaced_leaves_no_ids_there(folder):
    old = una_fast.load_index(folder)
    una_fast.build_index(OTHER).save(folder)
    assert TokenIds(old, bert_uncased()).sentences.values.tolist() == ids_of(ONE)
    assert not list(folder.glob("*tokens*"))
    new = una_fast.load_index(folder)
    assert TokenIds(new, bert_uncased()).sentences.values.tolist() == ids_of(OTHER)
    assert TokenIds(old, bert_uncased()).sentences.values.tolist() == ids_of(ONE)  # the new ids are in the folder
    una_fast.build_index(ONE).save(folder)  # replaces the ids with their index
    assert not list(folder.glob("*tokens*"))


def test_an_index_replaced_while_ids_are_made_leaves_none_there(folder, monkeypatch):
    encode = binding.encode_sentences

    def replaced_meanwhile(*arguments):
        una_fast.build_index(OTHER).save(folder)
        return encode(*arguments)

    old = una_fast.load_index(folder)
    with monkeypatch.context() as patch:
        patch.setattr(binding, "encode_sentences", replaced_meanwhile)
        assert TokenIds(old, bert_uncased()).sentences.values.tolist() == ids_of(ONE)
    assert not list(folder.glob("*tokens*"))
    assert TokenIds(una_fast.load_index(folder), bert_uncased()).sentences.values.tolist() == ids_of(OTHER)


def test_an_index_replaced_twice_while_its_ids_are_read_binds_again(folder, monkeypatch):
    """The folder holds the same index and the same ids as before, but a file was missing in between."""
    index, load = una_fast.load_index(folder), beside._load
    TokenIds(index, bert_uncased())

    def missing(*arguments):
        monkeypatch.setattr(beside, "_load", load)
        for texts in (OTHER, ONE):
            una_fast.build_index(texts).save(folder)
        TokenIds(una_fast.load_index(folder), bert_uncased())
        raise InputError("ids.npy: missing")

    monkeypatch.setattr(beside, "_load", missing)
    assert TokenIds(index, bert_uncased()).sentences.values.tolist() == ids_of(ONE)


def test_an_index_that_was_saved_binds_in_its_folder(tmp_path):
    index = una_fast.build_index(ONE)
    index.save(tmp_path / "index")
    assert not TokenIds(index, bert_uncased()).sentences.values.flags.writeable
    assert len(list((tmp_path / "index").glob("tokens-*"))) == 1


def test_loads_and_binds_beside_saves_are_of_one_index(folder):
    """Each of 60 loads and 20 binds gives one of the two indexes, never a mixture."""
    indexes = {tuple(texts): una_fast.build_index(texts) for texts in (ONE, OTHER)}
    expected = {texts: ids_of(texts) for texts in indexes}

    def save(_):
        for i in range(20):
            list(indexes.values())[i % 2].save(folder)

    def load(_):
        for i in range(30):
            index = una_fast.load_index(folder)
            texts = tuple(index)
            assert np.array_equal(index.max_tfidf, indexes[texts].max_tfidf)
            if i % 3 == 0:
                assert TokenIds(index, bert_uncased(), n_jobs=1).sentences.values.tolist() == expected[texts]

    with ThreadPoolExecutor(3) as threads:
        for done in [threads.submit(save, 0), threads.submit(load, 0), threads.submit(load, 1)]:
            done.result()
    assert [path.name for path in folder.parent.iterdir()] == ["index"]


def test_a_part_is_not_written_into_another_folder(tmp_path):
    seal = save_arrays(tmp_path / "saved", "index", 1, {}, {"ids": np.zeros(3)})
    save_arrays(tmp_path / "saved", "index", 1, {}, {"ids": np.ones(3)})
    with pytest.raises(InputError, match="another index was saved there meanwhile"):
        save_arrays(tmp_path / "saved" / "part", "part", 1, {}, {}, part_of=seal)
    assert sorted(path.name for path in (tmp_path / "saved").iterdir())[1:] == ["manifest.json"]


def test_a_file_exchanged_while_it_is_read_is_seen_whole(tmp_path, monkeypatch):
    """A shorter one is saved between the checks of checksum and header; what was opened stays what it was."""
    folder = tmp_path / "saved"
    save_arrays(folder, "index", 1, {}, {"ids": np.arange(10**5)})
    mapped_array = load.mapped_array

    def after_a_save(file):
        monkeypatch.undo()
        save_arrays(folder, "index", 1, {}, {"ids": np.arange(3)})
        return mapped_array(file)

    monkeypatch.setattr(load, "mapped_array", after_a_save)
    assert load_arrays(folder, "index", 1).arrays["ids"].tolist() == list(range(10**5))
