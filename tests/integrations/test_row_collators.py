"""The row collators return the same ids as the tokenizer."""

import pickle

import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.data_collator import SentenceTransformerDataCollator

import una_fast
from support.token_ids import assert_equal
from support.tokenizer_families import bert_uncased, training_lines
from una_fast.integrations.sentence_transformers import RowCollator, row_dataset
from una_fast.integrations.transformers import RowCollator as PlainRowCollator

TEXTS = [*training_lines()[:40], "", "one", "An engine of [MASK] and  two   spaces", "the old treaty " * 30]
ROWS = [3, 0, 41, 42, 43, 17, 3]


@pytest.fixture(scope="module")
def una(tmp_path_factory):
    index = una_fast.build_index(TEXTS)
    index.save(tmp_path_factory.mktemp("rows") / "index")
    return una_fast.Augmenter(index, tokenizer=bert_uncased())


def test_the_dataset_contains_the_rows_with_a_word_to_replace(una):
    assert row_dataset(una)["row"][:] == [row for row, text in enumerate(TEXTS) if text]
    assert row_dataset(una, 3)["row"][:] == [0, 1, 2]
    keeping = una_fast.Augmenter(una.index, keep_words=["one"])
    assert row_dataset(keeping)["row"][:] == [row for row, text in enumerate(TEXTS) if text not in ("", "one")]
    lists = [["the cat sat", "a dog ran", "one two three"], ["the cat slept", "", "three two"]]  # a blank paraphrase
    paired = una_fast.Augmenter(una_fast.build_index(lists), radius=3, tokenizer=bert_uncased())
    assert row_dataset(paired, 3)["row"][:] == [0, 2]


def test_features_equal_those_of_the_collator_of_sentence_transformers(tiny_model, una):
    """Every loss of sentence-transformers can then read them."""
    model = SentenceTransformer(str(tiny_model), device="cpu")
    model.max_seq_length = 32
    una = una_fast.Augmenter(una.index, tokenizer=model.tokenizer)
    collator = RowCollator(una, n=2)
    collator.set_epoch(3)
    texts = [una.index[row] for row in ROWS]
    columns = {"anchor": texts, "positive": texts, "negative_1": una.texts(ROWS, 3)}
    columns["negative_2"] = una.texts(ROWS, 3, sample_index=1)
    features = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    expected = SentenceTransformerDataCollator(model.preprocess)(features)
    expected = {name: values for name, values in expected.items() if isinstance(values, torch.Tensor)}
    found = collator([{"row": row} for row in ROWS])
    assert [name for name in found if "input_ids" in name] == [name for name in expected if "input_ids" in name]
    assert_equal(found, expected)


def test_a_blank_row_without_special_tokens_has_one_column_of_padding(una):
    tokenizer = bert_uncased()
    tokenizer.backend_tokenizer.post_processor = None
    batch = RowCollator(una_fast.Augmenter(una.index, tokenizer=tokenizer))([40])
    assert batch["anchor_attention_mask"].tolist() == [[0]]


def test_the_plain_collator_stacks_the_same_views(una):
    ours, plain = RowCollator(una), PlainRowCollator(una)
    ours.set_epoch(2)
    plain.set_epoch(2)
    batch, views = plain(ROWS), ours(ROWS)
    assert list(plain.views) == ["anchor", "positive", "negative"] and batch["input_ids"].shape == (len(ROWS), 3, 32)
    for number, view in enumerate(plain.views):
        for name, values in batch.items():
            trimmed = views[f"{view}_{name}"]
            assert torch.equal(values[:, number, : trimmed.shape[1]], trimmed)
            assert not values[:, number, trimmed.shape[1] :].any()


def test_the_positive_may_be_another_row(una):
    batch = RowCollator(una, positive=1)([0, 5])
    assert torch.equal(batch["positive_input_ids"], RowCollator(una)([1, 6])["anchor_input_ids"])
    assert "positive_input_ids" not in RowCollator(una, positive=None)([0])


def test_a_pickled_collator_keeps_its_epoch(una):
    collator = RowCollator(una)
    collator.set_epoch(4)
    other = pickle.loads(pickle.dumps(collator))
    assert_equal(other(ROWS), collator(ROWS))


@pytest.mark.parametrize(("call", "named"), [
    (lambda una: RowCollator(una_fast.Augmenter(una.index)), "tokenizer="),
    (lambda una: RowCollator(una, positive="row"), "^positive='row'"),
    (lambda una: PlainRowCollator(una)([999]), "999"),
    (lambda una: RowCollator(una, max_length=2)([0]), "^max_length=2"),
])  # fmt: skip
def test_bad_input_is_named(una, call, named):
    with pytest.raises(una_fast.InputError, match=named):
        call(una)
