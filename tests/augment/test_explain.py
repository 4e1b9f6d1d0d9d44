"""`explain` says which words `augment` replaced, and why."""

from __future__ import annotations

import una_fast
from support.short_corpus import CORPUS


def test_explain_says_what_augment_did(index):
    for text in ("The zebra sat , the zebra slept .", CORPUS[0], "Hello"):
        for variant in ("paper", "released"):
            una = una_fast.Augmenter(index, radius=3, variant=variant, surface="paper")
            told = una.explain(text, epoch=4)
            assert told.negative == una.augment([text], epoch=4)[0]
            words, p = una.replacement_probabilities(text)
            assert [w.word for w in told.words] == words
            assert [w.probability for w in told.words] == p.tolist()
            for word, new in zip(told.words, told.negative.split(), strict=True):
                assert (word.replacement or word.word) == new
                if word.seen:
                    assert word.window == una.window(word.word)
                if word.replacement:
                    assert word.window[0] <= index.term_ids[word.replacement] < word.window[1]
            table = str(told)
            assert all(text in table for text in ("tf-idf", "window", "draw", "replacement", "why p", "candidates"))
            for word in told.words:
                assert 1 <= len(word.candidates) <= 5
                for term, score in word.candidates:
                    assert word.window[0] <= index.term_ids[term] < word.window[1]
                    assert score == index.max_tfidf[index.term_ids[term]]
                    assert term != word.word or variant == "released"
            assert told.to_dict()["words"][0]["word"] == words[0]


def test_explain_says_why_a_probability_is_what_it_is(index):
    def reasons(sentence, **settings):
        return [w.reason for w in una_fast.Augmenter(index, **settings).explain(sentence).words]

    told = una_fast.Augmenter(index, beta=0.9).explain("the cat sat , zebra")  # "," and "zebra" have the same tf-idf
    by_reason = {w.reason: w for w in told.words}
    assert by_reason["highest tf-idf"].probability == 1.0
    assert by_reason["highest tf-idf"].tfidf == max(w.tfidf for w in told.words)
    assert by_reason["equation 3, cut at 1"].probability == 1.0
    assert by_reason["lowest tf-idf"].probability == 0.0
    assert "equation 3" in reasons("the cat sat , zebra", beta=0.1)
    assert reasons("zebra yak") == ["highest tf-idf", "all tf-idf equal: beta"]
    assert reasons("the cat", select="random") == ["select is random: beta"] * 2
    assert "highest tf-idf" in reasons("the cat sat", variant="released", beta=0.01)
