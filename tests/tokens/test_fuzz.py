"""Random tokenizers, odd texts: token ids equal the tokenizer's own. `support.fuzz` runs any seed."""

from __future__ import annotations

import random

import pytest
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizerFast

import una_fast
from support import fuzz
from support.tokenizer_families import bert_uncased, sentencepiece_unigrams, template, wrap

ROWS, MANY_ROWS = 60_000, 1_000_000
SPECIAL = [(token, 0.0) for token in fuzz.SPECIAL]


def test_random_tokenizers():
    assert fuzz.differences(0, ROWS) == {}


@pytest.mark.slow
def test_more_random_tokenizers():
    assert fuzz.differences(1_000_000, MANY_ROWS) == {}


def unigrams(pieces: dict[str, float], *steps, normalizer=None) -> PreTrainedTokenizerFast:
    listed = {**dict(sentencepiece_unigrams()[0]), **pieces}
    backend = Tokenizer(models.Unigram([*SPECIAL, *listed.items()], unk_id=1))
    backend.normalizer, backend.pre_tokenizer = normalizer, pre_tokenizers.Sequence([*steps])
    backend.add_special_tokens(fuzz.SPECIAL)
    backend.post_processor = template("[CLS]", "[SEP]", backend)
    return wrap(backend, pad_token="[PAD]", unk_token="[UNK]")


def bert_with(token: str | AddedToken) -> PreTrainedTokenizerFast:
    tokenizer = bert_uncased()
    tokenizer.add_tokens([token])
    return tokenizer


def word_piece_of_marks() -> PreTrainedTokenizerFast:
    backend = Tokenizer(models.WordPiece(fuzz._word_piece_vocabulary(), unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    backend.post_processor = template("[CLS]", "[SEP]", backend)
    return wrap(backend, pad_token="[PAD]", unk_token="[UNK]")


CASES = {
    "a mark after a space is not the start": (
        lambda: unigrams({"▁(": -5.0}, pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()),
        ["the (old) song", "a (new) album", "(first) one", "some (other) name"],
        "treebank",
    ),
    "an added token eats a joint, and a term adds one": (
        lambda: bert_with(AddedToken("web", rstrip=True, normalized=False)),
        ["web ^ alpha beta gamma", "alpha ^ web delta", "^ beta web gamma", "a b c d"],
        "whitespace",
    ),
    "an added token inside a term": (
        lambda: bert_with("URL"),
        ["the WEB-URL is here", "A WEB-URL was there", "OLD-NAME of the web-url", "URL-NAME and name-url"],
        "treebank",
    ),
    "two marks that are one word": (
        word_piece_of_marks,
        ["¿Qué? ¿no", "¡Qué, no! ¿?", "¿ ? ¡ no", "¿Cuánto? sí ¿ya?"],
        "treebank",
    ),
    "rows that the kernel cannot write": (
        bert_uncased,
        ["\u0130stanbul ``is'' old", "a\u0085b \u0130 ''name''", "the `` mark '' \u0130", "¿Qué \u0130 '' no?"],
        "whitespace",
    ),
    "an added token that is a single word by the word before it": (
        lambda: fuzz.tokenizer(random.Random(1_000_505)),
        ["a web b", "， web ；", "web ～ old web", "～ the ～ web"],
        "whitespace",
    ),
    "an added token that begins with a space once it is normalised": (
        lambda: fuzz.tokenizer(random.Random(3_306_014)),
        ["x a b", "， a web", "web-▁a old", "the ▁a b", "· a", "▁a ▁a"],
        "whitespace",
    ),
    "pairs of characters that a normaliser makes": (
        lambda: unigrams({"▁'s": -1.0, "'s": -1.0}, pre_tokenizers.Metaspace(), normalizer=normalizers.NFKC()),
        ["old 'ſ name", "it 'ſ new", "'ſ the 's", "one 'old' ſ"],
        "treebank",
    ),
}


@pytest.mark.filterwarnings("ignore::una_fast.InputWarning")
@pytest.mark.parametrize("case", CASES)
def test_what_a_fuzzer_has_found(case):
    make, texts, words = CASES[case]
    tokenizer, rows = make(), list(range(len(texts) * 3))
    for surface in ("kept", "paper"):
        index = una_fast.build_index(texts * 3, word_tokenizer=words)
        una = una_fast.Augmenter(index, beta=0.6, radius="60%", tokenizer=tokenizer, surface=surface)
        for epoch in range(30):
            for length in (6, 30):
                found = una.negative_ids(rows, epoch, length)
                assert fuzz.compare(tokenizer, una.negatives(rows, epoch), found, length) == []
