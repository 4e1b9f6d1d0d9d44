"""Assert that token ids equal those that the tokenizer gives for the texts."""

import torch


def ids_of_texts(tokenizer, texts, length):
    """Encode texts with the tokenizer itself, truncated and padded to `length` tokens."""
    settings = {"truncation": True, "padding": "max_length", "max_length": length, "return_tensors": "pt"}
    return dict(tokenizer(list(texts), **settings, verbose=False))


def assert_equal(found, expected):
    """Assert equal int64 tensors under the same names."""
    assert found.keys() == expected.keys()
    for name, ids in expected.items():
        assert found[name].dtype == torch.int64 and torch.equal(found[name], ids), name


def assert_ids(found, tokenizer, texts, length):
    """Assert that `found`, int64 tensors (B, length), equal the tokenizer's ids of B texts."""
    assert_equal(found, ids_of_texts(tokenizer, texts, length))
