"""Sub-words made chunk by chunk, compared with the tokenizer on the whole text."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

import una_fast
from support.token_ids import assert_ids
from support.tokenizer_families import FAMILIES, bert_uncased, roberta, training_lines
from una_fast.arrays import StringTable
from una_fast.tokens.subwords import SubwordEncoder, encode_first_and_later, encode_sentences

NASTY = [
    *("", " ", "  ", " leading and trailing ", "two  spaces   three", "tab\there \t there \n new\nline"),
    "no-break\xa0space and\xa0 more \xa0and ideographic\u3000space \u3000here",
    "separators a\x1cb \x1c c\x85 \u2028 \u2029x \u180e y\u180e z",
    "nul \x00 and\x07 bell \x7f delete\x00",
    "zero width \u200b here\u200b there\ufeff \ufeff join\u200d er \u2060 soft\xadhyphen \xad",
    "emoji 😀 👨\u200d👩\u200d👧 🇬🇧🇫🇷 👍🏽 ☺\ufe0f",
    "CJK 中文字 and日本 한국어 \u1100\u1161\u11a8",
    "marks \u0301 a\u0301 \u0301b e\u0308 \u20e3 1\u20e3 x\u0600 \u06dd y \u0d4e z",
    "thai \u0e33 กำ \uff9e ｶﾞ \uff66",
    "compatibility ﬁn ½ ² Å ¨ ´ x¨ ¨x \ufdfa ㎏ …",
    "case İstanbul ß ΣΑΣ ǅ ſ",
    "[MASK] a [MASK]b c[SEP] [CLS] [UNK] [PAD] [mask]",
    "<mask> a<mask> b <s> </s> <pad><unk> c <MASK>",
    "low ▁ line ▁x y▁ ▁▁ Ġ Ġx",
    "marks of spaces x▁▁y ▁ ▁▁z w▁ <0x41> <0xE2><0x96><0x81>",
    "runs      of         spaces\t\ttabs\n\n\nlines \r\n x\ny <unused7> a<unused12>b <table>",
    "<|endoftext|> a<|im_start|>b <|begin_of_text|> <|end_of_text|> <|pad|> <bos> <eos>",
    "digits 1 22 333 4444 55555 6 7 8 x1y22 ٣٤٥ १२३ ２０２６",
    "'S don'T WE'LL ſ's it'ſ we’re x'",
    *("joints ^ ~ ` \\ { } | a^b ^^ ~~ ^", "it's 's don't 'S ''ll 're", "123 4,567.89 1/2 12a"),
    "word " + "x" * 101 + " " + "ab" * 300,
]


FAST = {
    "bert_uncased",
    "roberta",
    "xlm_roberta",
    "deberta",
    "llama3",
    "gemma",
    "llama2",
}  # one of each kind of pipeline


@pytest.fixture(
    scope="module", params=[pytest.param(name, marks=() if name in FAST else pytest.mark.slow) for name in FAMILIES]
)
def tokenizer(request):
    return FAMILIES[request.param]()


@pytest.fixture(scope="module")
def encoder(tokenizer):
    return SubwordEncoder(tokenizer)


def ids_of(tokenizer, texts: list[str]) -> list[list[int]]:
    return tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"]


def encode_terms(terms: StringTable, encoder: SubwordEncoder):
    return encode_first_and_later(terms, np.ones(len(terms), dtype=bool), encoder, n_jobs=1)


def rows_of(ragged) -> list[list[int]]:
    return [row.tolist() for row in ragged]


def test_ids_of_sentences_equal_those_of_the_tokenizer(tokenizer, encoder):
    texts = NASTY + training_lines()
    sentences = encode_sentences(una_fast.build_index(texts), encoder, n_jobs=2)[0]
    assert rows_of(sentences) == ids_of(tokenizer, texts)


def test_most_lines_are_encoded_chunk_by_chunk(monkeypatch, encoder):
    """The slow path gives the right ids too, so only a count shows that it is rare."""
    texts = [" ".join(line.split()) for line in training_lines()]
    whole, encode_texts = [], encoder.encode_texts
    monkeypatch.setattr(encoder, "encode_texts", lambda texts: encode_texts(whole.extend(texts) or texts))
    encode_sentences(una_fast.build_index(texts), encoder, n_jobs=1)
    assert len(whole) < len(texts) / 100


def test_terms_may_contain_spaces(tokenizer, encoder):
    def pairs(text):
        words = text.split()
        return [" ".join(words[i : i + 2]) for i in range(0, len(words), 2)]

    index = una_fast.build_index(["new york is in the state of new york"], word_tokenizer=pairs)
    assert "new york" in index.terms
    ids, _ = encode_terms(index.terms, encoder)
    before = len(ids_of(tokenizer, ["a"])[0])
    expected = [row[before:] for row in ids_of(tokenizer, ["a " + term for term in index.terms])]
    assert rows_of(ids)[: index.n_terms] == expected


@pytest.mark.parametrize(("make", "term"), [
    (bert_uncased, "[MASK]x"), (roberta, "x\xa0"), (FAMILIES["roberta_nfkc"], "¨"), (FAMILIES["gemma"], "x▁"),
])  # fmt: skip
def test_negatives_with_terms_that_depend_on_their_neighbours_get_exact_ids(make, term):
    corpus = [f"a {term} c", f"{term} b d", "b c d", f"d {term} {term}"]
    index = una_fast.build_index(corpus, word_tokenizer=lambda text: text.split(" "), lowercase=False)
    tokenizer = make()
    una = una_fast.Augmenter(index, beta=1.0, tokenizer=tokenizer)
    assert {index.terms[i % index.n_terms] for i in una.tokens.terms.empty_rows()} == {term}
    rows = list(range(4)) * 50
    for epoch in range(3):
        negatives = una.texts(rows, epoch)
        assert sum(term in negative for negative in negatives) > 0
        assert_ids(una.token_ids(rows, epoch, max_length=9), tokenizer, negatives, 9)


def test_a_sentence_with_an_added_token_is_encoded_as_a_whole():
    tokenizer = bert_uncased()
    tokenizer.add_tokens([AddedToken("unafast", normalized=True, rstrip=True, lstrip=True)])
    texts = ["a UnaFast b", "a únafast", "xUNAFASTy z", "una fast"]
    index = una_fast.build_index(texts)
    assert rows_of(encode_sentences(index, SubwordEncoder(tokenizer), 1)[0]) == ids_of(tokenizer, texts)
    _, known = encode_terms(index.terms, SubwordEncoder(tokenizer))
    assert {index.terms[i] for i in np.flatnonzero(~known)} == {"unafast", "únafast", "xunafasty"}


def test_ids_beyond_16_bits_are_stored_as_int32():
    words = {f"w{i}": i for i in range(70_000)} | {"[UNK]": 70_000, "[PAD]": 70_001}
    backend = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, pad_token="[PAD]", unk_token="[UNK]")
    texts = ["w1 w69999", "w65536 other"]
    tokens = una_fast.TokenIds(una_fast.build_index(texts), tokenizer)
    assert tokens.sentences.values.dtype == "int32"
    assert rows_of(tokens.sentences) == ids_of(tokenizer, texts) == [[1, 69_999], [65_536, 70_000]]


def test_thousands_of_added_tokens_are_not_searched_one_by_one(monkeypatch):
    """Gemma has thousands. Searching the chunks for each takes 0.8 ms per MB, so their ids reveal them instead."""
    tokenizer = FAMILIES["gemma"]()
    texts = ["a <unused17> b", "x<unused2999>y", "<table>", "<unk> a<unk>", "plain words", "\n"]
    searched, search = [], StringTable.containing
    monkeypatch.setattr(StringTable, "containing", lambda *of: searched.extend(of[1:]) or search(*of))
    sentences = encode_sentences(una_fast.build_index(texts), SubwordEncoder(tokenizer), 1)[0]
    assert rows_of(sentences) == ids_of(tokenizer, texts)
    assert len(tokenizer.added_tokens_decoder) > 3000 and {*searched} == {b"<unk>"}


@given(st.lists(st.text("ab", max_size=6), min_size=1, max_size=8), st.sampled_from(["a", "ab", "bab", "bb"]))
def test_containing_marks_the_strings_that_contain_a_text(strings, content):
    rows = StringTable.from_strings(strings).containing(content.encode(), b"b")
    assert rows.tolist() == [i for i, string in enumerate(strings) if content in string or "b" in string]


def test_a_text_without_sub_words_has_length_0():
    ids, known = encode_terms(StringTable.from_strings(["\x00", "a"]), SubwordEncoder(bert_uncased()))
    assert ids.lengths().tolist() == [0, 1] and known.all()
