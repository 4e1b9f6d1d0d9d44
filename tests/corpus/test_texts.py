"""Texts that are split all at once, by the kernels for a corpus, compared with texts split one by one."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.alphabet import text
from una_fast.corpus import words as words_module
from una_fast.corpus.word_tokenizers import word_tokenizer


def split_at_commas(sentence):
    return [part for part in sentence.split(",") if part]


@pytest.fixture(params=[0, 16], ids=["at once", "few"], scope="module")
def few(request):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(words_module, "FEW", request.param)
        yield


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("lowercase", [True, False])
@pytest.mark.parametrize("named", ["treebank", "whitespace", split_at_commas])
@settings(max_examples=100)
@given(texts=st.lists(text, min_size=1, max_size=6))
def test_the_words_are_those_of_each_text_alone(named, lowercase, texts):
    tokenizer = word_tokenizer(named, lowercase)
    vocabulary, words = words_module.split_texts([text.encode() for text in texts], tokenizer)
    assert [[vocabulary[i] for i in row] for row in words] == [tokenizer.words(text) for text in texts]
    assert len(set(vocabulary)) == len(vocabulary)


def test_no_text_has_no_words():
    vocabulary, words = words_module.split_texts([], word_tokenizer())
    assert (len(vocabulary), len(words)) == (0, 0)
