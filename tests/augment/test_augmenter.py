"""Negatives and probabilities of sentences, against the reference and against each other."""

from __future__ import annotations

import math

import numpy as np
import pytest

import una_fast
from support import reference
from support.checks import reference_negatives
from support.short_corpus import CORPUS
from una_fast.index.scores import inverse_document_frequency


@pytest.mark.parametrize("variant", ["paper", "released"])
@pytest.mark.parametrize("radius", [1, 4, 4000])
def test_negatives_are_those_of_the_reference(index, variant, radius):
    una = una_fast.Augmenter(index, beta=0.5, radius=radius, variant=variant, seed=5, surface="paper")
    rows = [[index.term_ids[word] for word in index.words(row)] for row in range(len(index))]
    setting = {"beta": 0.5, "variant": variant}
    expected = reference_negatives(rows, index, len(rows), radius, setting, seed=5, epoch=2)
    assert una.negatives(range(len(rows)), epoch=2) == [" ".join(index.terms[i] for i in ids) for ids in expected]


def test_probabilities_are_one_a_word_unseen_words_included(index):
    una = una_fast.Augmenter(index, beta=0.5)
    words, p = una.replacement_probabilities("The zebra sat , the zebra slept .")
    idf = dict(zip(index.terms, index.idf, strict=True))
    assert words == ["the", "zebra", "sat", ",", "the", "zebra", "slept", "."]
    assert p.dtype == np.float64
    assert p.tolist() == pytest.approx(reference.probabilities(words, idf, math.log(len(CORPUS)), 0.5))


@pytest.mark.parametrize("text", ["", "   ", "\t \n"])
def test_blank_text_has_no_negative(index, text):
    una = una_fast.Augmenter(index)
    assert una.replacement_probabilities(text)[0] == []
    assert una.augment([text, "the cat"])[0] == ""
    assert una.negatives([2]) == [""]
    assert str(una.explain(text)).splitlines()[0].startswith("word")


def test_an_unseen_word_weighs_as_a_term_of_one_document_bit_for_bit():
    """For every number of documents: with a difference in the last bit, one of two equal words would score higher."""
    for n in range(2, 2000):
        expected = inverse_document_frequency(np.ones(3), n)
        assert inverse_document_frequency(1, n) == expected[0] == expected[2], n
    index = una_fast.build_index([*(f"filler{i}" for i in range(9)), "alpha beta gamma"])
    una = una_fast.Augmenter(index, beta=0.5)
    assert una.replacement_probabilities("alpha zebra gamma")[1].tolist() == [1, 0.5, 0.5]
    assert una.replacement_probabilities("zebra alpha beta gamma")[1].tolist() == [1, 0.5, 0.5, 0.5]
