"""What token ids must be: those that the tokenizer makes of the texts."""

import torch


def ids_of_texts(tokenizer, texts, length):
    """The tokenizer's own batch of texts, truncated and padded to `length` tokens."""
    settings = {"truncation": True, "padding": "max_length", "max_length": length, "return_tensors": "pt"}
    return dict(tokenizer(list(texts), **settings, verbose=False))


def assert_equal(found, expected):
    """The same tensors of int64 under the same names."""
    assert found.keys() == expected.keys()
    for name, ids in expected.items():
        assert found[name].dtype == torch.int64 and torch.equal(found[name], ids), name


def assert_ids(found, tokenizer, texts, length):
    """`found`, int64 tensors (B, length), are what the tokenizer makes of B texts."""
    assert_equal(found, ids_of_texts(tokenizer, texts, length))
