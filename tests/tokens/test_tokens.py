"""A tokenizer bound to an index: batches, token ids stored on the disk, and invalid arguments."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

import una_fast
from support.token_ids import assert_equal, assert_ids
from support.tokenizer_families import FAMILIES, bert_uncased, roberta, training_lines
from una_fast import InputError, TokenIds
from una_fast.tokens import subwords

TEXTS = [*training_lines()[:200], "", "a", "word " * 60, "  two  spaces ", "[MASK] <mask> 中文 é"]


@pytest.fixture(scope="module")
def index():
    return una_fast.build_index(TEXTS)


@pytest.fixture(scope="module")
def tokens(index):
    return TokenIds(index, bert_uncased())


@pytest.fixture
def saved(tmp_path) -> Path:
    una_fast.build_index(TEXTS).save(tmp_path / "index")
    return tmp_path / "index"


def assert_same_tables(one: TokenIds, other: TokenIds) -> None:
    """Assert that both have the same ids for every sentence and every term."""
    for a, b in ((one.sentences, other.sentences), (one.terms, other.terms)):
        assert np.array_equal(a.values, b.values) and np.array_equal(a.indptr, b.indptr)


def test_a_worker_process_gets_the_same_ids(saved):
    tokens = TokenIds(una_fast.load_index(saved), bert_uncased())
    assert_equal(pickle.loads(pickle.dumps(tokens)).anchor_ids([0, 1]), tokens.anchor_ids([0, 1]))


# families with different kinds of pipelines, and both padding sides
QUICK = [("bert_uncased", "right"), ("bert_uncased", "left"), ("roberta", "right"), ("gemma", "left")]
OTHERS = enumerate(sorted(FAMILIES.keys() - dict(QUICK).keys()))
SLOW = [pytest.param(family, ("left", "right")[place % 2], marks=pytest.mark.slow) for place, family in OTHERS]


@pytest.mark.parametrize(("family", "side"), QUICK + SLOW)
def test_batches_equal_the_tokenizers_at_every_length(index, family, side):
    tokenizer = FAMILIES[family]()
    tokenizer.padding_side = side
    una = una_fast.Augmenter(index, radius=50, tokenizer=tokenizer)
    rows = np.random.default_rng(0).permutation(len(TEXTS))
    anchors, negatives = [TEXTS[row] for row in rows], una.texts(rows)
    for length in (3, 4, 8, 17, 32, 300):
        assert_ids(una.tokens.anchor_ids(rows, max_length=length), tokenizer, anchors, length)
        assert_ids(una.token_ids(rows, max_length=length), tokenizer, negatives, length)


@pytest.mark.parametrize("form", [tuple, np.array, torch.tensor, lambda rows: np.array(rows, dtype=np.uint8)])
def test_rows_may_have_any_type_and_order(tokens, form):
    assert_equal(tokens.anchor_ids(form([5, 0, 5]), np.int64(9)), tokens.anchor_ids([5, 0, 5], 9))
    assert tokens.anchor_ids([])["input_ids"].shape == (0, 32)


@pytest.mark.parametrize(("rows", "length", "named"), [
    ([0, -1], 32, r"^rows: -1 .* 1\).* 0 to 204"), ([205], 32, "^rows: 205"), ([0.5], 32, "^rows: got float64"),
    ([True], 32, "^rows: got bool"), (["a text"], 32, "^rows: .*augment"), ("a sentence", 32, "^rows: .*augment"),
    ([[0, 1]], 32, r"^rows: .*\(1, 2\)"), (3, 32, r"^rows: .*\(\)"), ([0], 2, "^max_length=2: .* 3"),
    ([0], 32.0, "^max_length=32.0"),
])  # fmt: skip
def test_invalid_rows_and_lengths_are_refused(tokens, rows, length, named):
    with pytest.raises(InputError, match=named):
        tokens.anchor_ids(rows, max_length=length)


def test_out_is_filled_and_returned(tokens):
    out = {name: torch.full((4, 16), -7) for name in ("input_ids", "attention_mask", "token_type_ids")}
    assert tokens.anchor_ids([3, 1, 4, 1], max_length=16, out=out) is out
    assert_equal(out, tokens.anchor_ids([3, 1, 4, 1], max_length=16))


@pytest.mark.parametrize(("change", "named"), [
    (lambda out: out.pop("token_type_ids"), "token_type_ids"),
    (lambda out: out.update(input_ids=out["input_ids"].int()), "input_ids.* torch.int32"),
    (lambda out: out.update(attention_mask=torch.zeros(2, 31).long()), r"attention_mask.* \(2, 31\)"),
    (lambda out: out.update(input_ids=torch.zeros(32, 2).long().T), "input_ids.* contiguous"),
    (lambda out: out.update(input_ids=out["input_ids"].to("meta")), "input_ids.* on meta"),
])  # fmt: skip
def test_an_out_that_does_not_fit_is_refused(tokens, change, named):
    out = tokens.anchor_ids([0, 1])
    change(out)
    with pytest.raises(InputError, match=f"^out.*{named}"):
        tokens.anchor_ids([0, 1], out=out)


def test_the_tokenizer_is_not_changed(index):
    tokenizer = bert_uncased()
    backend = tokenizer.backend_tokenizer
    backend.enable_truncation(7, stride=1)
    backend.enable_padding(length=9, pad_id=0, pad_token="[PAD]")
    before = backend.to_str(), backend.encode_special_tokens
    TokenIds(index, tokenizer)
    assert (backend.to_str(), backend.encode_special_tokens) == before


def test_ids_are_stored_with_the_index(saved, monkeypatch):
    tokenizer = roberta()
    first = TokenIds(una_fast.load_index(saved), tokenizer)
    monkeypatch.setattr(subwords, "encode_sentences", None)  # fails if the ids are made again
    tokenizer(["state"], truncation=True, padding="max_length", max_length=9)  # a setting that changes no id
    second = TokenIds(una_fast.load_index(saved), tokenizer)
    assert_same_tables(first, second)
    assert not second.sentences.values.flags.writeable and not second.terms.values.flags.writeable  # memory-mapped
    assert_equal(first.anchor_ids([0, 9]), second.anchor_ids([0, 9]))


def test_a_tokenizer_without_its_unknown_token_is_refused(saved):
    model = Tokenizer(models.WordPiece({"[PAD]": 0, "a": 1}, unk_token="[UNK]"))
    model.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    broken = PreTrainedTokenizerFast(tokenizer_object=model, pad_token="[PAD]")
    with pytest.raises(InputError, match=r"^tokenizer.*\[UNK\]"):
        TokenIds(una_fast.load_index(saved), broken)


def test_each_tokenizer_has_a_separate_folder(saved):
    index, tokenizer = una_fast.load_index(saved), roberta()
    TokenIds(index, tokenizer)
    tokenizer.add_tokens(["another"])
    TokenIds(index, tokenizer)
    TokenIds(index, bert_uncased())
    assert len(list(saved.glob("tokens-*"))) == 3


def test_a_folder_that_was_moved_is_not_created_again(saved, tmp_path):
    index = una_fast.load_index(saved)
    saved.rename(tmp_path / "moved")
    assert TokenIds(index, bert_uncased()).anchor_ids([0])["input_ids"].shape == (1, 32)
    assert not saved.exists()


def test_concurrent_binding_is_safe(saved):
    def bind(_):
        return TokenIds(una_fast.load_index(saved), roberta(), n_jobs=1)

    with ThreadPoolExecutor(4) as threads:
        first, *others = threads.map(bind, range(4))
    for other in others:
        assert_same_tables(first, other)
    assert len(list(saved.glob("*tokens-*"))) == 1  # no unfinished folder is left


@pytest.mark.parametrize("make", [bert_uncased, roberta])
def test_ids_do_not_depend_on_the_number_of_threads(index, make, monkeypatch):
    monkeypatch.setattr(subwords, "ROWS_A_TASK", 7)
    assert_same_tables(TokenIds(index, make(), n_jobs=1), TokenIds(index, make(), n_jobs=3))


def test_a_very_long_word_is_compared_only_a_few_times(monkeypatch):
    """The comparison draws random terms. With few terms, it would draw the long one 800 times, which takes 22 s."""
    index = una_fast.build_index(["a b c", "x" * 300_000 + " d"])
    tokenizer, compared = roberta(), []
    base = type(tokenizer)

    class Spying(base):
        def __call__(self, text, *args, **kwargs):
            compared.extend(text)
            return super().__call__(text, *args, **kwargs)

    tokenizer.__class__ = Spying
    tokens = TokenIds(index, tokenizer)
    assert tokens.by_word
    assert 0 < sum(map(len, compared)) < 5_000_000
    expected = tokenizer([index.sentence(1)], add_special_tokens=False)["input_ids"][0]
    assert tokens.sentences[1].tolist() == expected
