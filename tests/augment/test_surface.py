"""The surfaces: "kept", the original sentence except for replaced words, and "paper", the words of the index."""

import threading
import time

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import una_fast
from support.alphabet import text
from support.surface import write_kept
from support.token_ids import assert_ids
from support.tokenizer_families import bert_uncased, roberta, training_lines
from una_fast import InputError
from una_fast.augment.counter_rng import SampleKey
from una_fast.augment.surface import KeptSurface
from una_fast.tokens import ids as token_ids

LINES = training_lines()[:200]
ODD = [
    *('He said "Don\'t  STOP!" (twice) ,', "\u0130stanbul Σας", "a\tb c", " lead", "", "caf\u00e9, ΣΑΣ!"),
    "¿Cuánto? ¡¡Qué!! ¿ ? ÑANDÚ ǅ ǅa ǆ ªb \U00010400b 🙂ok",
    "[MASK] of [NASA] (mask) sep",
    "ß ΣΑΣ İ €5 5€ №1 a\u0301b",
    "σαςİ K\u0307İİ aİ\u0308 ΣaİΣ",
    *('can\'t cannot "gonna" x', "song,by«him»", "''a'' ``b``", "可以修改删去地址吗? ทดสอบ"),
]


@pytest.fixture(scope="module")
def index():
    return una_fast.build_index([*LINES, *ODD])


@settings(max_examples=200)
@given(sentences=st.lists(text | st.sampled_from([*LINES, *ODD]), min_size=1, max_size=4), epoch=st.integers(0, 2))
def test_both_surfaces_replace_the_same_words(index, sentences, epoch):
    paper, kept = (una_fast.Augmenter(index, surface=kind, same_script=False) for kind in ("paper", "kept"))
    results = (una.augment(sentences, epoch) for una in (paper, kept))
    for sentence, plain, result in zip(sentences, *results, strict=True):
        explanation = kept.explain(sentence, epoch)
        words, new = ([getattr(word, name) for word in explanation.words] for name in ("word", "replacement"))
        assert explanation.result == result and " ".join(b or a for a, b in zip(words, new, strict=True)) == plain
        assert result == write_kept(sentence, words, new)


def test_ids_are_right_after_an_interrupted_call(index, monkeypatch):
    """Ctrl-C in a notebook while new strings are encoded: the cache then contains strings without ids."""
    whole, una = (una_fast.Augmenter(index, tokenizer=bert_uncased()) for _ in range(2))
    una.token_ids(range(50))

    def interrupted(*strings):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(una.tokens.encoder, "encode", interrupted)
        with pytest.raises(KeyboardInterrupt):
            una.token_ids(range(50, 150))
    for epoch in range(3):
        ids, expected = (each.token_ids(range(200), epoch)["input_ids"] for each in (una, whole))
        assert torch.equal(ids, expected)


def test_a_word_tokenizer_that_rewrites_words_is_refused():
    index = una_fast.build_index(
        ["some words", "other words"], word_tokenizer=lambda text: [w[::-1] for w in text.split()]
    )
    with pytest.raises(InputError, match="^surface=\"kept\".* 'some words'"):
        una_fast.Augmenter(index).texts([0])


def split_at_commas(text):
    """Split a text into words that can contain spaces, and drop the commas."""
    return [part.strip() for part in text.split(",") if part.strip()]


@pytest.mark.parametrize(
    "settings", [{}, {"lowercase": False}, {"word_tokenizer": "whitespace"}, {"word_tokenizer": split_at_commas}]
)
def test_negatives_equal_those_of_plain_python(settings):
    index = una_fast.build_index([*LINES, *ODD], **settings)
    una, rows, lowercase = una_fast.Augmenter(index, radius=500), range(len(index)), index.lowercase
    for epoch in range(3):
        drawn = una._draw(una._documents, np.arange(len(index)), SampleKey(epoch))
        expected = []
        for row in rows:
            new = [None if i == j else index.terms[j] for i, j in zip(index.word_ids[row], drawn[row], strict=True)]
            expected.append(write_kept(index[row], index.words(row), new, lowercase, index.word_tokenizer))
        assert una.texts(rows, epoch) == expected


def test_the_cache_of_subwords_stays_within_its_limit(index, monkeypatch):
    """Above the limit the cache is emptied, which changes no ids."""
    una, bounded = (una_fast.Augmenter(index, tokenizer=roberta(), beta=0.6, n_jobs=1) for _ in range(2))
    rows, of_a_batch, forgotten = range(32), 32 * 40 * 100, 0
    for epoch in range(12):
        monkeypatch.setattr(token_ids, "MOST_BYTES", 2**26)
        expected, before = una.token_ids(rows, epoch), bounded.tokens.cache.n_bytes
        monkeypatch.setattr(token_ids, "MOST_BYTES", 10_000)
        assert torch.equal(bounded.token_ids(rows, epoch)["input_ids"], expected["input_ids"])
        forgotten += bounded.tokens.cache.n_bytes < before
        assert bounded.tokens.cache.n_bytes < 10_000 + of_a_batch
    assert forgotten > 1 and una.tokens.cache.n_bytes > 20_000


@pytest.mark.parametrize("kind", ["kept", "paper"])
def test_rows_are_copied_before_they_are_read(index, kind):
    """If a thread overwrites the array during a call, each row of the result is that of an old or a new row number."""
    una = una_fast.Augmenter(index, tokenizer=bert_uncased(), surface=kind, n_jobs=2)
    by_length = np.argsort(index.word_ids.lengths(), kind="stable")
    fillings = [np.resize(by_length[:20], 3000), np.resize(by_length[-20:], 3000)]
    expected = [una.token_ids(filling)["input_ids"] for filling in fillings]
    anchors = [una.tokens.anchor_ids(filling)["input_ids"] for filling in fillings]
    rows, stop = fillings[0].copy(), threading.Event()

    def fill_again():
        while not stop.is_set():
            for filling in fillings:
                rows[:] = filling

    thread = threading.Thread(target=fill_again)
    thread.start()
    try:
        for make, of_rows in ((una.token_ids, expected), (una.tokens.anchor_ids, anchors)) * 20:
            ids = make(rows)["input_ids"]
            assert torch.stack([(ids == other).all(1) for other in of_rows]).any(0).all()
        assert len(una.texts(rows)) == len(rows)
    finally:
        stop.set()
        thread.join()


def test_few_rows_need_the_tokenizer(monkeypatch):
    """A row that needs the tokenizer takes 100 us, any other 1 us."""
    words = sorted({word for line in LINES for word in line.lower().split() if word.isalpha()})
    groups = [words[i : i + 5] for i in range(0, len(words) - 5, 5)]
    lines = ["The {}, a {} of {}, was seen ({} and {}).".format(*group) for group in groups]
    una = una_fast.Augmenter(una_fast.build_index(lines), tokenizer=roberta(), keep_punctuation=True, radius=10)
    batch = np.empty((2, len(lines), 32), dtype=np.int64)
    assert not una._write_ids(np.arange(len(lines)), SampleKey(), *batch).any()
    near = una_fast.NearMisses(una.index, edits=["polarity"], tokenizer=una.tokens)
    monkeypatch.setattr(una.tokens, "_write_whole", None)  # fails if it is called
    assert torch.equal(near.token_ids([0, 1])["input_ids"][1:], near.token_ids([1])["input_ids"])


def test_a_negative_that_spells_an_added_token_gets_its_id():
    """If "mask" replaces "HELLO" in "[HELLO]", the text contains the token "[MASK]"."""
    index = una_fast.build_index(["the [HELLO] was seen", "the mask was seen", "x [NO] y"] * 3)
    tokenizer = bert_uncased()
    una = una_fast.Augmenter(index, beta=0.5, tokenizer=tokenizer, radius=50)
    rows, spelled = range(index.n_documents), 0
    for epoch in range(20):
        texts = una.texts(rows, epoch)
        spelled += sum("[MASK]" in text for text in texts)
        assert_ids(una.token_ids(rows, epoch, 16), tokenizer, texts, 16)
    assert spelled


def test_upper_and_title_case_of_terms_equal_pythons():
    words = "the x-200 UPPER `a `` '' \u00dfa \u0130i \u01c6x \u00bfqu\u00e9 \u03c3\u03c2 \U00010428".split()
    index = una_fast.build_index([" ".join(words), "the"], word_tokenizer="whitespace", lowercase=False)
    terms, forms = [*index.terms], KeptSurface(index, None).forms
    plain = [word.lstrip("\u00bf\u00a1") for word in terms]
    assert [*forms] == [*plain, *(word[:1].upper() + word[1:].lower() for word in plain), *map(str.upper, plain)]


def test_no_spaces_are_added_in_scripts_without_spaces():
    lines = ["可以修改地址吗", "我们明天去北京", "他在图书馆看书", "请问洗手间在哪里", "การทดสอบ ภาษา", "ខ្ញុំស្រឡាញ់ភាសា"]
    index = una_fast.build_index(lines, word_tokenizer=pairs)
    una = una_fast.Augmenter(index, beta=0.5, tokenizer=bert_uncased())
    for epoch in range(5):
        texts = una.texts(range(len(lines)), epoch)
        assert [text.count(" ") for text in texts] == [line.count(" ") for line in lines]
        assert all(text != line for text, line in zip(texts, lines, strict=True))


def pairs(sentence):
    """Split a sentence into words of two characters, as a segmenter does."""
    return [part[i : i + 2] for part in sentence.split() for i in range(0, len(part), 2)]


def test_the_released_variant_uses_the_paper_surface(index):
    settings = ({}, {"surface": "paper"})
    plain, paper = (una_fast.Augmenter(index, radius=20, variant="released", **given) for given in settings)
    assert plain.texts(range(len(index))) == paper.texts(range(len(index)))
    for wrong in ({"surface": "kept", "variant": "released"}, {"surface": "x"}):
        with pytest.raises(InputError, match="^surface="):
            una_fast.Augmenter(index, radius=20, **wrong)


def test_a_negative_without_a_replacement_equals_its_sentence(index):
    una = una_fast.Augmenter(index, keep_words=index.terms[2:], tokenizer=bert_uncased())
    changed = {*index.terms[:2]}
    rows = np.array([row for row in range(len(index)) if index.words(row) and not changed & {*index.words(row)}])
    assert una.texts(rows) == [index[row] for row in rows.tolist()]
    assert torch.equal(una.token_ids(rows)["input_ids"], una.tokens.anchor_ids(rows)["input_ids"])


def test_time_is_linear_in_the_length_of_a_sentence(index):
    """If each quotation mark started a search to the end of the text, 920 KB would take 98 s."""
    una = una_fast.Augmenter(index, radius=3)

    def cost(n):
        start = time.process_time()
        una.augment(['"He said" and "so" on. ' * n])
        una.explain('the "cat" sat. ' * (n // 16))
        return time.process_time() - start

    cost(100)
    assert min(cost(16_000) for _ in range(2)) < 40 * min(cost(1_600) for _ in range(3))
