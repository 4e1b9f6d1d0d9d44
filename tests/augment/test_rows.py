"""Text that is not in the index: many texts by the kernels, compared with one sentence at a time in plain Python."""

from __future__ import annotations

import numpy as np
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

import una_fast
import una_fast.corpus.words
from support.alphabet import text
from support.tokenizer_families import training_lines
from una_fast._kernels.draws.negatives import Negatives
from una_fast.arrays import ID, RaggedArray
from una_fast.corpus.word_tokenizers import word_tokenizer

LINES = training_lines()[:200]
SENTENCE = text | st.sampled_from(LINES) | st.builds("{} {}".format, text, st.sampled_from(LINES))


@pytest.fixture(scope="module")
def augmenters():
    """Augmenters of both variants; here even a few texts are split all at once."""
    index = una_fast.build_index([*LINES, "can not \"word ''quoted'' ...", "it's Σ σ İ ."])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(una_fast.corpus.words, "FEW", 0)
        yield [
            una_fast.Augmenter(index, radius=20, variant=variant, surface="paper") for variant in ("paper", "released")
        ]


def augmented_by_python(una, sentence: str, epoch: int) -> str:
    """The negative, made word by word; each distinct unseen word has a negative id of its own."""
    words = word_tokenizer(una.index.word_tokenizer, una.index.lowercase).words(sentence)
    unseen: dict[str, int] = {}
    known = una.index.term_ids
    ids = np.array([known[w] if w in known else unseen.setdefault(w, -1 - len(unseen)) for w in words], dtype=ID)
    key = np.array([xxhash.xxh3_64_intdigest(" ".join(words).encode())], dtype=np.uint64)
    kernel = Negatives(RaggedArray(ids, np.array([0, len(ids)])), una._config, numbers=key)
    out, _ = kernel.terms(np.array([0]), epoch)
    return " ".join(una.index.terms[i] if i >= 0 else word for i, word in zip(out.tolist(), words, strict=True))


@settings(max_examples=300)
@given(sentences=st.lists(SENTENCE, min_size=1, max_size=5), epoch=st.integers(0, 2))
def test_a_batch_of_any_text_is_each_sentence_by_itself(augmenters, sentences, epoch):
    for una in augmenters:
        assert una.augment(sentences, epoch) == [augmented_by_python(una, text, epoch) for text in sentences]


def test_term_ids_are_a_mapping():
    index = una_fast.build_index(["one two two", "three é", "one"])
    expected = {term: i for i, term in enumerate(index.terms)}
    assert dict(index.term_ids) == expected and len(index.term_ids) == 4
    assert [index.term_ids.get(word) for word in ("é", "four", "")] == [expected["é"], None, None]
    with pytest.raises(KeyError, match="four"):
        index.term_ids["four"]
