"""Negatives as columns of a dataset."""

import copy
import pickle

import datasets
import dill
import pytest
from torch.utils.data import DataLoader

import una_fast
from una_fast.integrations import Negatives

TEXTS = [
    "The river flows north past the old castle.",
    "",
    "A market opens in the winter garden",
    " \t",
    "Music fills the quiet museum hall tonight",
    "An engine of the old treaty",
] * 3
WORDS = [text for text in TEXTS if text.strip()]


@pytest.fixture(scope="module")
def una(tmp_path_factory):
    index = una_fast.build_index(TEXTS)
    index.save(tmp_path_factory.mktemp("negatives") / "index")
    return una_fast.Augmenter(index)


@pytest.fixture
def dataset():
    return datasets.Dataset.from_dict({"text": TEXTS, "other": [f"other {i}" for i in range(len(TEXTS))]})


def test_columns_stand_in_the_order_that_losses_take(una, dataset):
    assert list(dataset.with_transform(Negatives(una))[0]) == ["anchor", "positive", "negative"]
    row = dataset.with_transform(Negatives(una, positive="other", n=2))[4]
    assert list(row) == ["anchor", "positive", "negative_1", "negative_2"]
    assert (row["anchor"], row["positive"]) == (TEXTS[4], "other 4")
    assert list(dataset.with_transform(Negatives(una, positive=None))[0]) == ["anchor", "negative"]


def test_negatives_are_those_of_augment_by_epoch_and_set(una, dataset):
    negatives = Negatives(una, n=3)
    rows = dataset.with_transform(negatives)
    for epoch in (0, 7):
        negatives.set_epoch(epoch)
        for number in range(3):
            assert rows[:][f"negative_{number + 1}"] == una.augment(TEXTS, epoch, draw_set=number)


def test_rows_without_a_word_are_left_out(una, dataset):
    negatives = Negatives(una)
    selected = negatives.select(dataset)
    assert selected["text"][:] == WORDS
    assert all(row["negative"] for row in selected.with_transform(negatives))
    assert negatives.select(selected) is selected
    assert negatives.select(dataset.with_transform(negatives)).with_format(None)["text"][:] == WORDS
    assert negatives.select(datasets.Dataset.from_dict({"text": ["a castle", None]}))["text"][:] == ["a castle"]


def test_a_streamed_dataset_draws_anew_in_every_epoch(una, dataset):
    negatives = Negatives(una)
    stream = negatives.select(dataset.to_iterable_dataset())
    stream = stream.map(negatives, batched=True, remove_columns=["text", "other"])
    for epoch in range(2):
        negatives.set_epoch(epoch)
        assert [row["negative"] for row in stream] == una.augment(WORDS, epoch)


def test_the_transform_travels_as_a_path(una):
    assert len(pickle.dumps(Negatives(una))) < 2000


@pytest.mark.parametrize("copied", [
    lambda it: pickle.loads(pickle.dumps(it)), lambda it: dill.loads(dill.dumps(it)), copy.deepcopy,
], ids=["pickle", "dill", "deepcopy"])  # fmt: skip
def test_a_copy_sees_the_epoch_move(una, copied):
    negatives = Negatives(una)
    other = copied(negatives)
    negatives.set_epoch(5)
    assert other({"text": TEXTS})["negative"] == una.augment(TEXTS, 5)


def test_datasets_that_are_derived_share_the_index_and_the_epoch(una, dataset):
    negatives = Negatives(una)
    derived = dataset.with_transform(negatives).select_columns(["text"]).shuffle(seed=1)
    transform = derived.format["format_kwargs"]["transform"]
    assert transform.augmenter is una and transform.epoch is negatives.epoch


def test_persistent_workers_see_the_epoch_move(una, dataset):
    negatives = Negatives(una)
    rows = negatives.select(dataset).with_transform(negatives)
    batches = DataLoader(rows, batch_size=4, num_workers=2, persistent_workers=True)
    for epoch in range(3):
        negatives.set_epoch(epoch)
        assert [text for batch in batches for text in batch["negative"]] == una.augment(WORDS, epoch)


def test_bad_input_is_answered_with_a_sentence(una, dataset):
    with pytest.raises(una_fast.InputError, match=r"index\.save\(FOLDER\)"):
        Negatives(una_fast.Augmenter(una_fast.build_index(TEXTS)))
    with pytest.raises(una_fast.InputError, match="n=0: give the number of negatives"):
        Negatives(una, n=0)
    with pytest.raises(una_fast.InputError, match="no column 'sentence': the dataset has 'text', 'other'"):
        dataset.with_transform(Negatives(una, column="sentence"))[0]
    with pytest.raises(una_fast.InputError, match="no column 'sentence': the dataset has 'text', 'other'"):
        Negatives(una, column="sentence").select(dataset)
    with pytest.raises(una_fast.InputError, match="no column 'paraphrase'"):
        dataset.with_transform(Negatives(una, positive="paraphrase"))[0]
    lists = datasets.Dataset.from_dict({"text": [["one", "two"], ["three"]]})
    with pytest.raises(una_fast.InputError, match="column 'text': row 0 of the batch holds list, and a sentence"):
        lists.with_transform(Negatives(una))[0]
    with pytest.raises(una_fast.InputError, match="column 'text': row 0 of the batch holds list, and a sentence"):
        Negatives(una).select(lists)
    with pytest.raises(una_fast.InputError, match="epoch"):
        Negatives(una).set_epoch(-1)
