"""Negatives as columns of a dataset."""

import copy
from types import SimpleNamespace

import datasets
import dill
import pytest
from torch.utils.data import DataLoader

import una_fast
from support.tokenizer_families import bert_uncased
from una_fast.errors import InputError, InputWarning
from una_fast.integrations import Negatives, add_negatives
from una_fast.integrations.transformers import RowCollator

TEXTS = ["The river flows north past the old castle.", "", "A market opens in the winter garden", " \t"]
TEXTS = [*TEXTS, "Music fills the quiet museum hall tonight", "An engine of the old treaty"] * 3
WORDS = [text for text in TEXTS if text.strip()]


@pytest.fixture(scope="module")
def una(tmp_path_factory):
    index = una_fast.build_index(TEXTS)
    index.save(tmp_path_factory.mktemp("negatives") / "index")
    return una_fast.Augmenter(index, surface="kept")


@pytest.fixture
def dataset():
    return datasets.Dataset.from_dict({"text": TEXTS, "other": [f"other {i}" for i in range(len(TEXTS))]})


def test_columns_are_in_the_order_that_losses_expect(una, dataset):
    assert list(dataset.with_transform(Negatives(una))[0]) == ["anchor", "positive", "negative"]
    row = dataset.with_transform(Negatives(una, positive="other", n=2))[4]
    assert list(row) == ["anchor", "positive", "negative_1", "negative_2"]
    assert (row["anchor"], row["positive"]) == (TEXTS[4], "other 4")
    assert list(dataset.with_transform(Negatives(una, positive=None))[0]) == ["anchor", "negative"]


def test_negatives_equal_augment_for_each_epoch_and_sample(una, dataset):
    negatives = Negatives(una, n=3)
    rows = dataset.with_transform(negatives)
    for epoch in (0, 7):
        negatives.set_epoch(epoch)
        for number in range(3):
            assert rows[:][f"negative_{number + 1}"] == una.augment(TEXTS, epoch, sample_index=number)


def test_rows_without_a_word_to_replace_are_left_out(una, dataset):
    negatives = Negatives(una)
    selected = negatives.select(dataset)
    assert selected["text"][:] == WORDS
    assert all(row["negative"] for row in selected.with_transform(negatives))
    assert negatives.select(selected) is selected
    assert negatives.select(dataset.with_transform(negatives)).with_format(None)["text"][:] == WORDS
    assert negatives.select(datasets.Dataset.from_dict({"text": ["a castle", None]}))["text"][:] == ["a castle"]
    of_words = Negatives(una_fast.Augmenter(una.index, keep_punctuation=True))
    assert of_words.select(datasets.Dataset.from_dict({"text": ["... !", "a castle"]}))["text"][:] == ["a castle"]


def test_a_streamed_dataset_draws_new_negatives_in_every_epoch(una, dataset):
    negatives = Negatives(una)
    stream = negatives.select(dataset.to_iterable_dataset())
    stream = stream.map(negatives, batched=True, remove_columns=["text", "other"])
    for epoch in range(2):
        negatives.set_epoch(epoch)
        assert [row["negative"] for row in stream] == una.augment(WORDS, epoch)


def test_a_copy_sees_a_new_epoch(una):
    negatives = Negatives(una)
    other = copy.deepcopy(negatives)
    negatives.set_epoch(5)
    assert len(dill.dumps(negatives)) < 2000  # it contains only the path of the index
    assert other({"text": TEXTS})["negative"] == una.augment(TEXTS, 5)


@pytest.mark.parametrize(
    "method", ["fork", *(pytest.param(m, marks=pytest.mark.slow) for m in ("spawn", "forkserver"))]
)
def test_persistent_workers_see_a_new_epoch(una, dataset, method):
    negatives = Negatives(una)
    rows = negatives.select(dataset).with_transform(negatives)
    batches = DataLoader(rows, 4, num_workers=2, persistent_workers=True, multiprocessing_context=method)
    for epoch in range(3):
        negatives.set_epoch(epoch)
        assert [text for batch in batches for text in batch["negative"]] == una.augment(WORDS, epoch)


PAIRS = {
    "query": ["old castle", "winter market", " ", "museum music", "treaty", "hall"],
    "product": ["The old castle", "A market in the garden", "Music in the hall", "", "An old treaty", "The hall"],
    "mined": ["a", "b", "c", "d", "e", None],
    "label": [0, 1, 2, 3, 4, 5],
}


def test_pairs_get_negatives_of_the_positive_and_keep_other_columns(una):
    pairs = datasets.Dataset.from_dict(PAIRS)
    negatives = Negatives(una, column="query", positive="product", of="positive", n=2, keep=["mined", "label"])
    selected = negatives.select(pairs)
    assert selected["query"][:] == ["old castle", "winter market", "treaty"]  # rows without a missing text
    rows = selected.with_transform(negatives)[:]
    assert list(rows) == ["anchor", "positive", "negative_1", "negative_2", "mined", "label"]
    assert rows["anchor"] == selected["query"][:] and rows["positive"] == selected["product"][:]
    for number in range(2):
        assert rows[f"negative_{number + 1}"] == una.augment(selected["product"][:], sample_index=number)
    assert (rows["mined"], rows["label"]) == (["a", "b", "e"], [0, 1, 4])
    streamed = negatives.select(pairs.to_iterable_dataset())
    assert [row["query"] for row in streamed] == selected["query"][:]
    splits = negatives.select(datasets.DatasetDict(train=pairs, test=selected))
    assert splits["train"]["query"][:] == splits["test"]["query"][:] == selected["query"][:]
    kept = Negatives(una, column="query", positive=None, keep="mined")
    assert list(pairs.with_transform(kept)[0]) == ["anchor", "negative", "mined"]


TABLE, LISTS = datasets.Dataset.from_dict(PAIRS), datasets.Dataset.from_dict({"text": [["one", "two"], ["three"]]})


def of_pairs(una, **columns):
    return Negatives(una, column="query", **columns)


@pytest.mark.parametrize(("call", "named"), [
    (lambda una: Negatives(una, of="query"), "^of='query'"),
    (lambda una: Negatives(una, positive=None, of="positive"), "^of='positive'"),
    (lambda una: Negatives(una, keep=["negative"]), "'negative'.*rename_column"),
    (lambda una: Negatives(una, n=0), "^n=0"),
    (lambda una: Negatives(una).set_epoch(-1), "^epoch=-1"),
    (lambda una: Negatives(una.index), "^augmenter"),
    (lambda una: Negatives(una_fast.Augmenter(una_fast.build_index(TEXTS))), r"index\.save\(FOLDER\)"),
    (lambda una: Negatives(una_fast.NearMisses()), "NearMisses has no saved index.*build_index"),
    (lambda una: of_pairs(una, positive="x").select(TABLE), "'x'.*positive"),
    (lambda una: of_pairs(una, keep=["x"]).select(TABLE.to_iterable_dataset()), "'x'.* 'query'"),
    (lambda una: TABLE.with_transform(of_pairs(una, keep=["x"]))[0], "'x'"),
    (lambda una: Negatives(una).select(TABLE.to_pandas()), "DataFrame.*from_pandas"),
    (lambda una: Negatives(una).select(TEXTS), "list.*from_pandas"),
    (lambda una: TABLE.map(of_pairs(una)), "'query'.*batched=True"),
    (lambda una: LISTS.with_transform(Negatives(una))[0], "'text': row 0 .*list"),
])  # fmt: skip
def test_bad_input_is_named(una, call, named):
    with pytest.raises(una_fast.InputError, match=named):
        call(una)


@pytest.mark.filterwarnings("error:more sentences are drawn:una_fast.InputWarning")  # workers re-raise it here
@pytest.mark.parametrize("workers", [0, 2])
def test_a_second_pass_with_the_same_negatives_warns_once(una, dataset, workers):
    loader = DataLoader(dataset.with_transform(Negatives(una)), batch_size=2, shuffle=True, num_workers=workers)
    assert len(list(loader)) == 9
    batches = iter(loader)
    with pytest.raises(una_fast.InputWarning, match=r"a second pass gets the same negatives.*Negatives\.callback"):
        list(batches)
    if workers:
        batches._shutdown_workers()  # without this, the garbage collector waits 5 s for each worker
    assert len(list(loader)) == 9


@pytest.mark.parametrize("move", [lambda it: it.set_epoch(0), lambda it: it.callback()])
def test_a_second_pass_gives_no_warning_if_the_epoch_is_set(una, dataset, move, recwarn):
    negatives = Negatives(una)
    rows = dataset.with_transform(negatives)
    move(negatives)
    assert rows[:] == rows[:] and not any("second pass" in str(warning.message) for warning in recwarn)


def test_a_row_collator_warns_about_a_second_pass_too(una):
    collator = RowCollator(una_fast.Augmenter(una.index, tokenizer=bert_uncased()), max_length=8)
    collator(range(18))
    with pytest.warns(una_fast.InputWarning, match=r"RowCollator\.callback\(\)"):
        collator(range(18))


def test_a_resumed_run_continues_counting_epochs(una):
    negatives = Negatives(una)
    callback = negatives.callback()
    for begun, expected in [(None, [0, 1, 2]), (2.6, [2, 3, 4]), (1.0, [1, 2, 3])]:
        callback.on_train_begin(None, SimpleNamespace(epoch=begun), None)
        for epoch in expected:  # streamed data has no length, so state.epoch is not usable
            callback.on_epoch_begin(None, SimpleNamespace(epoch=0.1), None)
            assert negatives.epoch == epoch


QUERIES = {
    "query": ["turn on the light", "a cat", "3 days"],
    "passage": ["Press the old switch.", "It is cold", "Wait."],
}


def test_add_negatives_has_the_formats_of_mine_hard_negatives():
    pairs, near = datasets.Dataset.from_dict({**QUERIES, "other": [1, 2, 3]}), una_fast.NearMisses()
    changed = near.augment(QUERIES["query"])
    assert changed[1] == "a cat"  # no edit fits
    kept = (0, 2)
    triplets = add_negatives(pairs, near)
    assert triplets.to_dict() == {
        **{name: [texts[i] for i in kept] for name, texts in QUERIES.items()}, "negative": [changed[i] for i in kept]
    }  # fmt: skip
    of_passages = add_negatives(pairs, near, "query", "passage", of="positive", epoch=2)["negative"][:]
    expected = zip(near.augment(QUERIES["passage"], 2), QUERIES["passage"], strict=True)
    assert of_passages == [new for new, text in expected if new != text] != []
    drawn = [near.augment(QUERIES["query"], sample_index=number) for number in range(2)]
    tuples = add_negatives(pairs, near, num_negatives=2, output_format="n-tuple")
    assert tuples.column_names == ["query", "passage", "negative_1", "negative_2"]
    whole = [i for i in kept if drawn[0][i] != drawn[1][i]]
    assert tuples["query"][:] == [QUERIES["query"][i] for i in whole]
    labelled = add_negatives(pairs, near, output_format="labeled-pair")
    assert labelled["label"][:] == [1, 0, 1, 1, 0]
    assert labelled["passage"][:2] == [QUERIES["passage"][0], changed[0]]


@pytest.mark.parametrize(("arguments", "named"), [
    ({"augmentation": "x"}, "^augmentation: is 'x'"),
    ({"augmentation": una_fast.NearMisses}, "^augmentation: is <class"),
    ({"output_format": "pair"}, "^output_format='pair'"), ({"of": "query"}, "^of='query'"),
    ({"num_negatives": 0}, "^num_negatives=0"), ({"anchor_column_name": "text"}, "'text'.* `anchor_column_name`"),
    ({"positive_column_name": "other"}, "'other': row 0 "), ({"positive_column_name": "gone"}, "'gone': row 1 "),
    ({"anchor_column_name": "query", "positive_column_name": "query"}, "'query', 'query'"),
    ({"anchor_column_name": "negative"}, "would be 'negative'"),
    ({"positive_column_name": "label", "output_format": "labeled-pair"}, "would be 'label'"),
    ({"positive_column_name": "negative_2", "output_format": "n-tuple", "num_negatives": 2}, "would be 'negative_2'"),
])  # fmt: skip
def test_add_negatives_names_wrong_arguments(arguments, named):
    texts = {name: ["a", "b", "c"] for name in ("negative", "negative_2", "label")}
    pairs = datasets.Dataset.from_dict({**QUERIES, "other": [1, 2, 3], "gone": ["a", None, "b"], **texts})
    with pytest.raises(InputError, match=named):
        add_negatives(pairs, **{"augmentation": una_fast.NearMisses(), **arguments})


def test_add_negatives_needs_two_columns():
    with pytest.raises(InputError, match="^dataset: no column is left for the positives: .*'query'"):
        add_negatives(datasets.Dataset.from_dict({"query": ["a"]}), una_fast.NearMisses())


@pytest.mark.parametrize("output_format", ["triplet", "n-tuple", "labeled-pair"])
def test_add_negatives_warns_if_no_text_can_be_changed(output_format):
    pairs = datasets.Dataset.from_dict({"query": ["a cat", "a dog"], "passage": ["cats", "dogs"]})
    with pytest.warns(InputWarning, match="^augmentation: .* none of the 2 texts of column 'query'"):
        add_negatives(pairs, una_fast.NearMisses(), output_format=output_format)


def test_add_negatives_takes_the_columns_that_are_not_named():
    pairs = datasets.Dataset.from_dict({"passage": QUERIES["passage"], "query": QUERIES["query"]})
    for named in ({"anchor_column_name": "query"}, {"positive_column_name": "passage"}):
        made = add_negatives(pairs, una_fast.NearMisses(), **named)
        assert made.column_names == ["query", "passage", "negative"] and made["passage"][0] == QUERIES["passage"][0]


def test_add_negatives_reads_only_its_columns_once():
    pairs = datasets.Dataset.from_dict({**QUERIES, "image": [b"1", b"2", b"3"]})
    expected = add_negatives(pairs, una_fast.NearMisses()).to_dict()
    read = []
    rows = pairs.with_transform(lambda batch: read.append(batch) or batch)
    assert add_negatives(rows, una_fast.NearMisses()).to_dict() == expected and not read
    assert add_negatives(pairs.with_format("numpy"), una_fast.NearMisses()).to_dict() == expected


@pytest.mark.parametrize("make", [lambda it: datasets.DatasetDict(train=it), lambda it: it.to_iterable_dataset(), list])
def test_add_negatives_needs_a_dataset(make):
    with pytest.raises(InputError, match="^dataset"):
        add_negatives(make(datasets.Dataset.from_dict(QUERIES)), una_fast.NearMisses())
