"""`Augmenter`: negatives, probabilities, windows, `explain`, pickling and forking, and error messages."""

import math
import multiprocessing
import pickle
import warnings

import numpy as np
import pandas
import pytest

import una_fast
from support.checks import reference_negatives
from support.short_corpus import CORPUS
from una_fast import InputError
from una_fast.augment.sampler import resolve_radius
from una_fast.errors import InputWarning
from una_fast.index.scores import inverse_document_frequency


@pytest.fixture(scope="module")
def index():
    return una_fast.build_index(CORPUS)


@pytest.mark.parametrize("variant", ["paper", "released"])
@pytest.mark.parametrize("radius", [1, 4, 4000])
def test_negatives_equal_the_reference(index, variant, radius):
    una = una_fast.Augmenter(index, beta=0.5, radius=radius, variant=variant, seed=5, surface="paper")
    rows = [[index.term_ids[word] for word in index.words(row)] for row in range(len(index))]
    setting = {"beta": 0.5, "variant": variant}
    expected = reference_negatives(rows, index, len(rows), radius, setting, seed=5, epoch=2)
    assert una.texts(range(len(rows)), epoch=2) == [" ".join(index.terms[i] for i in ids) for ids in expected]


def test_an_unseen_word_scores_exactly_like_a_term_of_one_document():
    """If the two idf differed in the last bit, one of two equally rare words would score higher."""
    for n in range(2, 2000):
        expected = inverse_document_frequency(np.ones(3), n)
        assert inverse_document_frequency(1, n) == expected[0] == expected[2], n
    index = una_fast.build_index([*(f"filler{i}" for i in range(9)), "alpha beta gamma"])
    una = una_fast.Augmenter(index, beta=0.5)
    words, p = una.replacement_probabilities("Alpha zebra gamma")
    assert words == ["alpha", "zebra", "gamma"] and p.dtype == np.float64 and p.tolist() == [1, 0.5, 0.5]
    assert una.replacement_probabilities("zebra alpha beta gamma")[1].tolist() == [1, 0.5, 0.5, 0.5]


@pytest.mark.parametrize("variant", ["paper", "released"])
@pytest.mark.parametrize("text", ["The zebra sat , the zebra slept .", CORPUS[0], "Hello"])
def test_explain_agrees_with_augment(index, text, variant):
    una = una_fast.Augmenter(index, radius=3, variant=variant, surface="paper")
    explanation = una.explain(text, epoch=4)
    assert explanation.result == una.augment([text], epoch=4)[0]
    words, p = una.replacement_probabilities(text)
    assert [w.word for w in explanation.words] == words
    assert [w.probability for w in explanation.words] == p.tolist()
    for word, new in zip(explanation.words, explanation.result.split(), strict=True):
        assert (word.replacement or word.word) == new
        if word.seen:
            assert word.window == una.window(word.word)
        if word.replacement:
            assert word.window[0] <= index.term_ids[word.replacement] < word.window[1]
        assert 1 <= len(word.candidates) <= 5
        for term, score in word.candidates:
            assert word.window[0] <= index.term_ids[term] < word.window[1]
            assert score == index.max_tfidf[index.term_ids[term]]
            assert term != word.word or variant == "released"
    columns = ("word", "tf-idf", "window", "draw", "replacement", "why p", "candidates")
    assert all(column in str(explanation) and column in str(una.explain("")) for column in columns)
    assert explanation.words[0].word == words[0]


def test_explain_states_the_reason_for_each_probability(index):
    def reasons(sentence, **settings):
        return [w.reason for w in una_fast.Augmenter(index, **settings).explain(sentence).words]

    words = una_fast.Augmenter(index, beta=0.9).explain("the cat sat , zebra").words
    by_reason = {w.reason: w for w in words}  # "," and "zebra" have the same tf-idf
    assert by_reason["highest tf-idf"].probability == 1.0
    assert by_reason["highest tf-idf"].tfidf == max(w.tfidf for w in words)
    assert by_reason["equation 3, capped at 1"].probability == 1.0
    assert by_reason["lowest tf-idf"].probability == 0.0
    assert "equation 3" in reasons("the cat sat , zebra", beta=0.1)
    assert reasons("zebra yak") == ["highest tf-idf", "all tf-idf equal: beta"]
    assert reasons("the cat", select="random", beta=1) == ["select is random: beta"] * 2
    one = "select is random: no draw below beta, and this is the smallest"
    assert sorted(reasons("the cat", select="random", beta=0)) == ["select is random: beta", one]
    assert "highest tf-idf" in reasons("the cat sat", variant="released", beta=0.01)


@pytest.mark.parametrize(("radius", "n_terms", "expected"), [
    (None, 451_691, 4000), (None, 400_000, 4000), (None, 23_515, 235), (None, 599, 5), (None, 40, 1),
    ("1%", 451_691, 4516), ("1%", 599, 5), (" 0.5 %", 1000, 5), (".1%", 99, 1), ("100%", 599, 599),
    (4000, 451_691, 4000), (4000, 599, 599), (np.int64(7), 599, 7), (7.0, 599, 7),
    (2**63, 599, 599), (1e300, 599, 599), (10**400, 599, 599),
])  # fmt: skip
def test_a_radius_is_a_number_of_ranks_or_a_share_of_the_vocabulary(radius, n_terms, expected):
    assert resolve_radius(radius, n_terms) == expected
    assert isinstance(resolve_radius(radius, n_terms), int)


def test_repr_shows_only_the_settings_that_differ_from_their_defaults(index):
    assert repr(una_fast.Augmenter(index)) == f"<una_fast.Augmenter of {index!r}>"
    words = [f"word{i}" for i in range(20)]
    una = una_fast.Augmenter(index, beta=0.5, keep_words=words)
    before, dots, after = repr(una).partition("...")
    assert before.startswith(f"<una_fast.Augmenter of {index!r}: beta=0.5, keep_words=frozenset({{'word")
    assert dots and after == ">" and len(before.partition("keep_words=")[2]) == 37
    assert (una.beta, una.seed, una.variant, una.keep_words) == (0.5, 42, "paper", frozenset(words))
    with pytest.raises(AttributeError, match="has no attribute 'bta'"):
        una.bta  # noqa: B018


def test_an_augmenter_resolves_its_radius(index):
    v = index.n_terms
    for radius, expected in ((None, 1), (3, 3), (4000, v), ("50%", v // 2)):
        una = una_fast.Augmenter(index, radius=radius)
        assert una.radius == expected
        for term in (0, v // 2, v - 1):  # a window is clipped at the first and last id, not shifted
            assert una.window(term) == (max(0, term - expected), min(v, term + expected + 1))
        assert pickle.loads(pickle.dumps(una)).radius == expected


def test_a_wide_radius_warns(index):
    with pytest.warns(InputWarning, match=f"radius=4000: a window has up to {index.n_terms} of the") as seen:
        una_fast.Augmenter(index, radius=4000)
    assert [warning.filename for warning in seen] == [__file__]  # the caller's line
    with pytest.warns(InputWarning, match="radius='20%'"):
        una_fast.Augmenter(index, radius="20%")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        una_fast.Augmenter(index)
        una_fast.Augmenter(index, radius=4000, replace="random")
    tiny = una_fast.build_index(["a window of two words"])
    with pytest.warns(InputWarning, match="differ in importance: give a larger corpus"):
        una_fast.Augmenter(tiny, radius="1%")  # no radius is smaller


def test_an_augmenter_can_be_pickled(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    una_fast.build_index(CORPUS * 50).save("index")
    una = una_fast.Augmenter(una_fast.load_index("index"), beta=0.7, variant="released", seed=9)
    sent = pickle.dumps(una)
    assert len(sent) < 1000  # the path of the index is pickled, not its arrays
    monkeypatch.chdir("/")
    again = pickle.loads(sent)
    assert again.texts(range(7)) == una.texts(range(7))
    assert pickle.loads(pickle.dumps(una_fast.build_index(CORPUS))).words(3) == una.index.words(3)  # never saved
    una_fast.build_index(CORPUS).save(tmp_path / "index")
    with pytest.raises(InputError, match="another index was saved there"):
        pickle.loads(sent)


def test_a_forked_process_starts_its_own_threads(minilm):
    from transformers import AutoTokenizer

    index = una_fast.build_index([f"{text} {i}" for i, text in enumerate(CORPUS * 100)])
    una = una_fast.Augmenter(index, tokenizer=AutoTokenizer.from_pretrained(minilm), n_jobs=2)
    rows = list(range(2048))
    for _ in range(2):  # starts both threads of the pool; a forked child does not inherit them
        expected = una.token_ids(rows)["input_ids"].tolist()
    context = multiprocessing.get_context("fork")
    equal = context.Value("b", False)

    def compare():
        equal.value = una.token_ids(rows)["input_ids"].tolist() == expected

    child = context.Process(target=compare)
    child.start()
    child.join(60)
    child.kill()
    assert equal.value


REFUSED = {
    "beta": [-0.1, math.nan, "0.5", True, np.array([0.5, 0.6])],
    "radius": [0, True, "4000", "0%", np.array([1, 2]), math.inf],
    "seed": ["x"], "variant": ["x", ["paper"]], "select": ["all"], "same_script": ["no"], "n_jobs": [2.5],
}  # fmt: skip


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in REFUSED for value in REFUSED[name]])
def test_settings_out_of_range_are_refused(index, name, value):
    with pytest.raises(InputError, match=f"^{name}="):
        una_fast.Augmenter(index, **{name: value})


@pytest.mark.parametrize(("call", "named"), [
    (lambda una: una.augment("a sentence"), "^sentences"),
    (lambda una: una.augment(pandas.DataFrame({"body": ["a"]})), "^sentences"),
    (lambda una: una.augment({"body": ["a"]}), "^sentences"),
    (lambda una: una.augment(["a", 1.5]), r"^sentences\[1\]"),
    (lambda una: una.explain("a \ud800"), r"^sentences\[0\].* character 2"),
    (lambda una: una_fast.Augmenter("folder"), "^index="),
    (lambda una: una_fast.Augmenter(una_fast.build_index(["word"])), "1 term"),
    (lambda una: una_fast.Augmenter(una.index, raduis=1), "'raduis'.* radius"),
    (lambda una: una_fast.build_index([], x=1), "'x'"),
    (lambda una: una.token_ids([0]), "tokenizer"),
    (lambda una: una.window("zebra"), "^term='zebra'"),
    (lambda una: una.window(1.5), "^term="),
    (lambda una: una_fast.build_index(CORPUS, n_jobs=2.5), "^n_jobs="),
    (lambda una: una_fast.build_index(CORPUS, lowercase="no"), "^lowercase="),
    (lambda una: una.texts(np.array([2**63], dtype=np.uint64)), "^rows: 9223372036854775808"),
    (lambda una: una.texts([[1], [1, 2]]), "^rows"),
    (lambda una: una.texts([0], epoch=-1), "^epoch="),
    (lambda una: una.texts([0], epoch=2**64), "^epoch="),
])  # fmt: skip
def test_misuse_names_the_argument(index, call, named):
    with pytest.raises(InputError, match=named):
        call(una_fast.Augmenter(index))
