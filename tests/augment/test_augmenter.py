"""The public names: an index and an augmenter on text, against the reference and against each other."""

from __future__ import annotations

import math
import multiprocessing
import pickle
import warnings

import numpy as np
import pytest

import una_fast
from support import reference
from una_fast import InputError
from una_fast.augment.radius import resolve_radius
from una_fast.errors import InputWarning
from una_fast.index.scores import inverse_document_frequency

CORPUS = [
    "The quick brown fox jumps over the lazy dog .",
    "A quick survey of brown bears found the forest empty .",
    "",
    "The the THE cat sat .",
    "Hello",
    "Bears jump over the forest when the survey is empty .",
    "Nobody found the lazy cat in the forest of bears .",
] * 3


@pytest.fixture(scope="module")
def index():
    return una_fast.build_index(CORPUS)


def documents(index):
    return [index.words(row) for row in range(index.n_documents)]


def test_the_index_is_equation_2(index):
    rows = documents(index)
    assert list(index.terms) == reference.ranking(rows)
    idf = reference.idf(rows)
    np.testing.assert_allclose(index.idf, [idf[t] for t in index.terms], rtol=1e-15)
    z = index.tfidf()
    for row, words in enumerate(rows):
        expected = reference.tfidf(words, idf, 0.0)
        found = {index.terms[j]: v for j, v in zip(z[[row]].indices, z[[row]].data, strict=True)}
        assert found == pytest.approx(expected, rel=1e-14)
        assert index.counts[[row]].sum() == len(words)
    np.testing.assert_array_equal(z.tocsc().max(axis=0).toarray().ravel(), index.max_tfidf)


def test_dtypes_and_shapes_are_the_documented_ones(index):
    v = index.n_terms
    assert (index.document_frequency.dtype, index.document_frequency.shape) == (np.int64, (v,))
    assert (index.idf.dtype, index.idf.shape) == (np.float64, (v,))
    assert (index.max_tfidf.dtype, index.max_tfidf.shape) == (np.float64, (v,))
    assert index.counts.shape == index.tfidf().shape == (index.n_documents, v)
    assert index.n_documents == len(CORPUS)
    assert index.sentence(3) == CORPUS[3]
    assert index.words(3) == ["the", "the", "the", "cat", "sat", "."]


@pytest.mark.parametrize("variant", ["paper", "released"])
@pytest.mark.parametrize("radius", [1, 4, 4000])
def test_negatives_are_those_of_the_reference(index, variant, radius):
    una = una_fast.Augmenter(index, radius=radius, variant=variant, seed=5)
    idf, scores = dict(enumerate(index.idf)), index.max_tfidf.tolist()
    expected = [
        " ".join(
            index.terms[i]
            for i in reference.negative(
                [index.term_ids[w] for w in words],
                scores,
                idf,
                0.0,
                lambda term, z: reference.rank_window(scores, term, z, radius),
                row,
                beta=0.5,
                seed=5,
                epoch=2,
                variant=variant,
            )
        )
        for row, words in enumerate(documents(index))
    ]
    assert una.negatives(range(index.n_documents), epoch=2) == expected


def test_a_negative_differs_from_its_sentence_in_the_paper_variant(index):
    una = una_fast.Augmenter(index, beta=0.0, radius=4000)
    for row, negative in enumerate(una.negatives(range(len(CORPUS)))):
        words, new = index.words(row), negative.split()
        p = una.replacement_probabilities(CORPUS[row])[1]
        assert [w != v for w, v in zip(words, new, strict=True)] == [bool(x) for x in p]


def test_probabilities_are_one_a_word_unseen_words_included(index):
    una = una_fast.Augmenter(index)
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


def test_a_one_word_sentence_is_always_replaced(index):
    una = una_fast.Augmenter(index)
    assert una.replacement_probabilities("Hello")[1].tolist() == [1.0]
    assert all(una.augment(["Hello"], epoch=e) != ["hello"] for e in range(50))


def test_text_has_the_same_negative_in_every_batch_and_another_in_every_epoch(index):
    una = una_fast.Augmenter(index)
    texts = [text for text in CORPUS[:7] if text] + ["an unseen zebra slept"]
    together = una.augment(texts)
    assert [una.augment([text])[0] for text in texts] == together
    assert una.augment(reversed(texts)) == together[::-1]
    assert una.augment(texts, epoch=1) != together
    assert una_fast.Augmenter(index, seed=43).augment(texts) != together


def test_explain_says_what_augment_did(index):
    una = una_fast.Augmenter(index, radius=3)
    for text in ("The zebra sat , the zebra slept .", CORPUS[0], "Hello"):
        for variant in ("paper", "released"):
            una = una_fast.Augmenter(index, radius=3, variant=variant)
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


def test_window_is_clipped_not_shifted(index):
    una = una_fast.Augmenter(index, radius=2)
    assert una.window(0) == (0, 3)
    assert una.window(index.n_terms - 1) == (index.n_terms - 3, index.n_terms)
    assert una.window(index.terms[5]) == (3, 8)


def test_a_radius_beyond_the_vocabulary_is_the_whole_of_it(index):
    expected = una_fast.Augmenter(index, radius=index.n_terms).negatives(range(7))
    for radius in (4000, 2**63, 1e300, 10**400):
        una = una_fast.Augmenter(index, radius=radius)
        assert una.window(0) == una.window(index.n_terms - 1) == (0, index.n_terms)
        assert una.negatives(range(7)) == expected


@pytest.mark.parametrize(
    ("radius", "n_terms", "expected"),
    [
        (None, 451_691, 4000),
        (None, 400_000, 4000),
        (None, 23_515, 235),
        (None, 599, 5),
        (None, 40, 1),
        ("1%", 451_691, 4516),
        ("1%", 599, 5),
        (" 0.5 %", 1000, 5),
        (".1%", 99, 1),
        ("100%", 599, 599),
        (4000, 451_691, 4000),
        (4000, 599, 599),
        (np.int64(7), 599, 7),
        (7.0, 599, 7),
    ],
)
def test_a_radius_is_a_number_of_ranks_or_a_share_of_the_vocabulary(radius, n_terms, expected):
    assert resolve_radius(radius, n_terms) == expected
    assert isinstance(resolve_radius(radius, n_terms), int)


def test_the_radius_that_a_setting_came_to_is_read_from_the_augmenter(index):
    v = index.n_terms
    for given, expected in ((None, 1), (3, 3), (4000, v), ("50%", v // 2)):
        una = una_fast.Augmenter(index, radius=given)
        assert una.radius == expected and f"radius={expected}," in repr(una)
        assert una.window(v // 2) == (max(0, v // 2 - expected), min(v, v // 2 + expected + 1))
        assert pickle.loads(pickle.dumps(una)).radius == expected
    assert una_fast.Augmenter(index, radius=0.05, window="score").radius == 0.05


def test_a_given_radius_that_reaches_words_of_unlike_importance_is_warned_of(index):
    with pytest.warns(InputWarning, match=f"radius=4000: a window holds up to {index.n_terms} of the"):
        una_fast.Augmenter(index, radius=4000)
    with pytest.warns(InputWarning, match="radius='20%'"):
        una_fast.Augmenter(index, radius="20%")
    with pytest.warns(InputWarning, match="radius=9.0"):
        una_fast.Augmenter(index, radius=9.0, window="score")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        una_fast.Augmenter(index)
        una_fast.Augmenter(index, radius=4000, replace="random")


def test_an_unseen_word_weighs_as_a_term_of_one_document_bit_for_bit():
    """For every number of documents: a difference in the last bit makes one of equal words the highest."""
    for n in range(2, 2000):
        expected = inverse_document_frequency(np.ones(3), n)
        assert inverse_document_frequency(1, n) == expected[0] == expected[2], n
    index = una_fast.build_index([*(f"filler{i}" for i in range(9)), "alpha beta gamma"])
    assert una_fast.Augmenter(index).replacement_probabilities("alpha zebra gamma")[1].tolist() == [1.0, 0.5, 0.5]
    assert una_fast.Augmenter(index).replacement_probabilities("zebra alpha beta gamma")[1].tolist() == [
        1,
        0.5,
        0.5,
        0.5,
    ]


def test_score_windows_replace_by_terms_within_the_distance(index):
    una = una_fast.Augmenter(index, radius=0.05, window="score")
    for row, negative in enumerate(una.negatives(range(len(CORPUS)))):
        for old, new in zip(index.words(row), negative.split(), strict=True):
            a, b = index.term_ids[old], index.term_ids[new]
            assert abs(index.max_tfidf[a] - index.max_tfidf[b]) <= 0.05 or abs(a - b) == 1 or a == b


def test_a_saved_index_is_the_same_index(index, tmp_path):
    index.save(tmp_path / "index")
    loaded = una_fast.load_index(tmp_path / "index", corpus=CORPUS)
    assert list(loaded.terms) == list(index.terms)
    assert loaded.fingerprint == index.fingerprint
    rows = list(range(len(CORPUS)))
    expected = una_fast.Augmenter(index).negatives(rows)
    assert una_fast.Augmenter(loaded).negatives(rows) == expected
    assert una_fast.Augmenter(loaded).augment(CORPUS) == una_fast.Augmenter(index).augment(CORPUS)
    assert (loaded.counts != index.counts).nnz == 0
    with pytest.raises(InputError, match="made from another corpus"):
        una_fast.load_index(tmp_path / "index", corpus=CORPUS[:-1])


def test_an_augmenter_travels_to_another_process(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    una_fast.build_index(CORPUS * 50).save("index")
    una = una_fast.Augmenter(una_fast.load_index("index"), beta=0.7, variant="released", seed=9)
    sent = pickle.dumps(una)
    assert len(sent) < 1000  # the path travels, not the arrays
    monkeypatch.chdir("/")
    again = pickle.loads(sent)
    assert again.negatives(range(7)) == una.negatives(range(7))
    assert pickle.loads(pickle.dumps(una_fast.build_index(CORPUS))).words(3) == una.index.words(3)  # never saved
    una_fast.build_index(CORPUS).save(tmp_path / "index")
    with pytest.raises(InputError, match="another index was saved there"):
        pickle.loads(sent)


def test_an_index_travels_with_its_word_tokenizer(tmp_path):
    una_fast.build_index(CORPUS, word_tokenizer=split_at_commas).save(tmp_path / "index")
    with pytest.raises(InputError, match="to load_index too"):
        una_fast.Augmenter(una_fast.load_index(tmp_path / "index"))
    index = una_fast.load_index(tmp_path / "index", word_tokenizer=split_at_commas)
    assert pickle.loads(pickle.dumps(index)).word_tokenizer is split_at_commas


def test_an_index_of_named_words_takes_no_function(index, tmp_path):
    index.save(tmp_path / "index")
    with pytest.raises(InputError, match="its words are 'treebank' ones; leave word_tokenizer away"):
        una_fast.load_index(tmp_path / "index", word_tokenizer=split_at_commas)


def split_at_commas(text):
    return [part for part in text.split(",") if part]


def test_a_forked_process_has_threads_of_its_own(minilm):
    from transformers import AutoTokenizer

    index = una_fast.build_index([f"{text} {i}" for i, text in enumerate(CORPUS * 100)])
    una = una_fast.Augmenter(index, tokenizer=AutoTokenizer.from_pretrained(minilm), n_jobs=2)
    rows = list(range(2048))
    for _ in range(2):  # at rest both threads wait for work, which the child's copy of the pool would hand to nobody
        expected = una.negative_ids(rows)["input_ids"].tolist()
    context = multiprocessing.get_context("fork")
    equal = context.Value("b", False)

    def compare():
        equal.value = una.negative_ids(rows)["input_ids"].tolist() == expected

    child = context.Process(target=compare)
    child.start()
    child.join(60)
    child.kill()
    assert equal.value


def test_indexes_are_equal_byte_for_byte_for_any_number_of_threads(tmp_path):
    for n_jobs in (1, 2, 5):
        una_fast.build_index(CORPUS * 50, n_jobs=n_jobs).save(tmp_path / str(n_jobs))
    files = {path.name: path.read_bytes() for path in (tmp_path / "1").iterdir()}
    for n_jobs in (2, 5):
        assert {path.name: path.read_bytes() for path in (tmp_path / str(n_jobs)).iterdir()} == files


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"beta": -0.1}, r"beta=-0.1: .* must be in \[0, 1\]"),
        ({"beta": 1.1}, "beta=1.1"),
        ({"beta": math.nan}, "beta=nan"),
        ({"radius": 0}, "radius=0: a number of ranks must be an integer of at least 1"),
        ({"radius": 2.5}, "radius=2.5"),
        ({"radius": True}, "radius=True: a number of ranks"),
        ({"radius": "4000"}, "radius='4000': give a number of ranks as a number"),
        ({"radius": "wide"}, "radius='wide': a share must be a percentage"),
        ({"radius": "0%"}, "radius='0%': a share must be a percentage above 0 and up to 100"),
        ({"radius": "101%"}, "radius='101%'"),
        ({"radius": np.array([1, 2])}, "radius=array"),
        ({"radius": None, "window": "score"}, "radius=None: a distance in score"),
        ({"radius": "1%", "window": "score"}, "radius='1%': a distance in score"),
        ({"beta": "0.5"}, r"beta='0.5': give a number in \[0, 1\]"),
        ({"beta": None}, "beta=None: give a number"),
        ({"beta": True}, "beta=True: give a number"),
        ({"beta": np.array([0.5, 0.6])}, "beta=array"),
        ({"seed": "x"}, "seed='x': give an integer"),
        ({"variant": ["paper"]}, r"variant=\['paper'\]: must be"),
        ({"radius": math.nan}, "radius=nan"),
        ({"radius": math.inf}, "radius=inf: a number of ranks"),
        ({"radius": math.inf, "window": "score"}, "radius=inf: a distance in score must be finite"),
        ({"radius": 0, "window": "score"}, "above 0"),
        ({"select": "all"}, "select='all': must be 'tfidf' or 'random'"),
        ({"replace": "x"}, "replace='x'"),
        ({"variant": "x"}, "variant='x': must be 'paper' or 'released'"),
        ({"window": "x"}, "window='x': must be 'rank' or 'score'"),
    ],
)
def test_settings_out_of_range_are_refused(index, setting, message):
    with pytest.raises(InputError, match=message):
        una_fast.Augmenter(index, **setting)


def test_a_vocabulary_of_one_term_is_refused():
    with pytest.raises(InputError, match="vocabulary has one term \\('word'\\)"):
        una_fast.Augmenter(una_fast.build_index(["word", "word word"]))


def test_misuse_is_answered_with_a_sentence(index):
    una = una_fast.Augmenter(index)
    with pytest.raises(InputError, match="got one str"):
        una.augment("a sentence")
    with pytest.raises(InputError, match=r"sentences\[1\] is float, not str"):
        una.augment(["a", 1.5])
    with pytest.raises(InputError, match=r"sentences\[0\] holds a lone surrogate, '\\ud800' at character 2"):
        una.explain("a \ud800")
    with pytest.raises(InputError, match=r"index: got 'folder', and an Index is needed: una_fast\.load_index"):
        una_fast.Augmenter("folder")
    with pytest.raises(InputError, match="needs a tokenizer"):
        una.negative_ids([0])
    with pytest.raises(InputError, match="'zebra' is not a term"):
        una.window("zebra")
    with pytest.raises(InputError, match="rows: 21 \\(at position 1\\)"):
        una.negatives([0, 21])
    with pytest.raises(InputError, match="rows: 9223372036854775808 \\(at position 0\\)"):
        una.negatives(np.array([2**63], dtype=np.uint64))
    with pytest.raises(InputError, match="rows: a list or array of integers is needed"):
        una.negatives([[1], [1, 2]])
    for epoch in (-1, 2**64):
        with pytest.raises(InputError, match=f"epoch={epoch}"):
            una.negatives([0], epoch=epoch)
    with pytest.raises(IndexError, match="row 21 of an index of 21 documents"):
        index.words(21)
