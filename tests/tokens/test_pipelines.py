"""Which tokenizers make ids word by word, which encode whole texts, and which are refused; random tokenizers."""

import json
import random
import runpy
from functools import partial

import pytest
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import CanineTokenizer, PreTrainedTokenizerBase, PreTrainedTokenizerFast

import una_fast
from bench.endurance import fuzz_tokenizers as fuzz
from support.small_runs import ROOT
from support.token_ids import assert_ids
from support.tokenizer_families import (
    LLAMA3,
    NAMES,
    bert_uncased,
    gemma,
    llama2,
    llama3,
    roberta,
    sentencepiece_unigrams,
    superbpe,
    training_lines,
    wrap,
    xlm_roberta,
)  # fmt: skip
from una_fast import InputError
from una_fast.errors import InputWarning
from una_fast.tokens.pipelines import NotByWordError

UNSPLIT = pre_tokenizers.Metaspace(split=False)
TEXTS = [*training_lines()[:150], "", "  two  spaces ", "new york", "[MASK] <mask> 中文 é", "word " * 60]


def changed(make=roberta, **parts) -> PreTrainedTokenizerBase:
    """Make a tokenizer and replace some parts of its pipeline."""
    tokenizer = make()
    for name, part in parts.items():
        setattr(tokenizer.backend_tokenizer, name, part)
    return tokenizer


def setting(name: str, value, make=roberta) -> PreTrainedTokenizerBase:
    tokenizer = make()
    setattr(tokenizer, name, value)
    return tokenizer


def with_token(token: str | AddedToken, make=bert_uncased) -> PreTrainedTokenizerBase:
    tokenizer = make()
    tokenizer.add_tokens([token])
    return tokenizer


def split_by(expression: str, behavior: str = "isolated", use_regex: bool = False) -> PreTrainedTokenizerBase:
    split = pre_tokenizers.Split(Regex(expression), behavior=behavior)
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=use_regex)
    return changed(llama3, pre_tokenizer=pre_tokenizers.Sequence([split, byte_level]))


def with_dropout() -> PreTrainedTokenizerBase:
    tokenizer = roberta()
    tokenizer.backend_tokenizer.model.dropout = 0.1
    return tokenizer


def with_merge_across_a_space(make) -> PreTrainedTokenizerBase:
    """Make a tokenizer that merges "e" and "▁": the sub-word spans the end of a word and the space after it."""
    tokenizer = make()
    model = tokenizer.backend_tokenizer.model
    described = json.loads(model.__getstate__())
    described["vocab"]["e▁"] = len(described["vocab"])
    described["merges"].insert(0, ["e", "▁"])
    model.__setstate__(json.dumps(described).encode())
    tokenizer.backend_tokenizer.model = model
    return tokenizer


def framed(single: str) -> PreTrainedTokenizerBase:
    return changed(post_processor=processors.TemplateProcessing(single=single, special_tokens=[("</s>", 2)]))


def shouting() -> PreTrainedTokenizerBase:
    base = type(roberta())

    class Shouting(base):
        def __call__(self, text, *args, **kwargs):
            text = text.upper() if isinstance(text, str) else [line.upper() for line in text]
            return super().__call__(text, *args, **kwargs)

    tokenizer = roberta()
    tokenizer.__class__ = Shouting
    return tokenizer


with_types = partial(setting, "model_input_names", [*NAMES, "token_type_ids"])
REFUSED = {
    "a name": (lambda: "bert-base-uncased", "^tokenizer: is str"),
    "no padding": (lambda: llama3(pad_token=None), "tokenizer.pad_token"),
    "no mask": (lambda: setting("model_input_names", ["input_ids"]), "'attention_mask'"),
    "dropout": (with_dropout, "dropout 0.1"),
}
BY_TEXT = {
    "slow": (CanineTokenizer, "CanineTokenizer"),
    "left truncation": (lambda: setting("truncation_side", "left"), "truncation_side"),
    "types of padding": (lambda: setting("_pad_token_type_id", 3, with_types), "token_type_ids"),
    "types of text": (lambda: framed("$A:1 </s>:2"), "special tokens"),
    "token with space": (lambda: with_token("new york", roberta), "'new york'"),
    "digits": (lambda: changed(pre_tokenizer=pre_tokenizers.Digits()), "Digits"),
    "SuperBPE": (superbpe, "Split then ByteLevel"),
    "another expression": (lambda: split_by(LLAMA3.replace("{1,3}", "{1,2}")), "Split then ByteLevel"),
    "what the expression matches removed": (lambda: split_by(LLAMA3, "removed"), "Split then ByteLevel"),
    "two expressions": (lambda: split_by(LLAMA3, use_regex=True), "Split then ByteLevel"),
    "unigrams of one word": (lambda: changed(xlm_roberta, normalizer=None, pre_tokenizer=UNSPLIT), "Metaspace"),
    "byte-level words of one word": (lambda: changed(pre_tokenizer=UNSPLIT), "Metaspace"),
    "a merge across a space, Gemma": (lambda: with_merge_across_a_space(gemma), "Split"),
    "a merge across a space, Llama 2": (lambda: with_merge_across_a_space(llama2), "Metaspace"),
    "space prepended": (lambda: changed(normalizer=normalizers.Prepend("▁")), "Prepend"),
    "space replaced": (lambda: changed(normalizer=normalizers.Replace(" ", "▁")), "Replace"),
    "space stripped": (lambda: changed(normalizer=normalizers.Replace("x", " ")), "Replace"),
    "more than its pipeline": (shouting, "the ids of the text"),
}


@pytest.fixture(scope="module")
def index():
    return una_fast.build_index(TEXTS)


@pytest.mark.parametrize("case", REFUSED)
def test_an_unusable_tokenizer_is_refused(case, index):
    make, named = REFUSED[case]
    with pytest.raises(InputError, match=named) as caught:
        una_fast.TokenIds(index, make())
    assert not isinstance(caught.value, NotByWordError)


@pytest.mark.parametrize("case", BY_TEXT)
def test_any_other_tokenizer_encodes_whole_texts_after_one_warning(case, index):
    make, named = BY_TEXT[case]
    tokenizer = make()
    with pytest.warns(InputWarning, match=f"{named}.* per sentence") as caught:
        una = una_fast.Augmenter(index, beta=0.9, tokenizer=tokenizer)
    assert sum(" per sentence" in str(one.message) for one in caught) == 1
    assert not una.tokens.by_word
    rows = [*range(len(TEXTS) - 1, -1, -1), 3, 3]
    assert_ids(una.tokens.anchor_ids(rows, 12), tokenizer, [TEXTS[row] for row in rows], 12)
    assert_ids(una.token_ids(rows, 1, 12), tokenizer, una.texts(rows, 1), 12)


def test_a_tokenizer_that_does_not_truncate_is_refused(index):
    with pytest.warns(InputWarning):
        tokens = una_fast.TokenIds(index, framed("$A $A"))
    with pytest.raises(InputError, match="12 ids .* 16"):
        tokens.anchor_ids([0], 12)


def test_ids_after_a_space_are_right_if_the_normaliser_strips(index):
    """The tokenizer strips the first space of a text, so a chunk after a space is encoded after a word."""
    tokenizer = changed(normalizer=normalizers.Strip())
    tokens = una_fast.TokenIds(index, tokenizer)
    assert tokens.by_word and tokens.encoder.pipeline.kind.name == "ByteLevel with its regex"
    assert_ids(tokens.anchor_ids(range(len(TEXTS)), 20), tokenizer, TEXTS, 20)


def test_the_page_of_tokenizers_is_up_to_date():
    page = runpy.run_path(str(ROOT / "tools" / "make_tokenizer_table.py"))["page"]
    written = (ROOT / "docs" / "tokenizers.md").read_text(encoding="utf-8")
    assert written == page(), "write it again: python tools/make_tokenizer_table.py"


@pytest.mark.parametrize(("seed", "n_rows"), [(0, 5_000), pytest.param(1_000_000, 200_000, marks=pytest.mark.slow)])
def test_ids_are_exact_for_random_tokenizers(seed, n_rows):
    assert fuzz.differences(seed, n_rows) == {}


def unigrams(pieces: dict[str, float], *steps, normalizer=None) -> PreTrainedTokenizerFast:
    special = [(token, 0.0) for token in fuzz.SPECIAL]
    listed = {**dict(sentencepiece_unigrams()[0]), **pieces}
    backend = Tokenizer(models.Unigram([*special, *listed.items()], unk_id=1))
    backend.normalizer, backend.pre_tokenizer = normalizer, pre_tokenizers.Sequence([*steps])
    backend.add_special_tokens(fuzz.SPECIAL)
    return wrap(backend, "[CLS]", "[SEP]", pad_token="[PAD]", unk_token="[UNK]")


def word_piece_of_marks() -> PreTrainedTokenizerFast:
    backend = Tokenizer(models.WordPiece(fuzz._word_piece_vocabulary(), unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    return wrap(backend, "[CLS]", "[SEP]", pad_token="[PAD]", unk_token="[UNK]")


CASES = {  # a tokenizer, texts, and the word tokenizer of the index
    "a mark after a space is not the start": (
        lambda: unigrams({"▁(": -5.0}, pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()),
        ["the (old) song", "a (new) album", "(first) one", "some (other) name"], "treebank"),
    "an added token removes a space, and a term adds one": (
        lambda: with_token(AddedToken("web", rstrip=True, normalized=False)),
        ["web ^ alpha beta gamma", "alpha ^ web delta", "^ beta web gamma", "a b c d"], "whitespace"),
    "an added token inside a term": (
        lambda: with_token("URL"),
        ["the WEB-URL is here", "A WEB-URL was there", "OLD-NAME of the web-url", "URL-NAME and name-url"], "treebank"),
    "two marks that are one word": (
        word_piece_of_marks, ["¿Qué? ¿no", "¡Qué, no! ¿?", "¿ ? ¡ no", "¿Cuánto? sí ¿ya?"], "treebank"),
    "rows that the kernel cannot write": (
        bert_uncased,
        ["\u0130stanbul ``is'' old", "a\u0085b \u0130 ''name''", "the `` mark '' \u0130", "¿Qué \u0130 '' no?"],
        "whitespace"),
    "whether an added token is a single word depends on the word before it": (
        lambda: fuzz.tokenizer(random.Random(1_000_505)),
        ["a web b", "， web ；", "web ～ old web", "～ the ～ web"], "whitespace"),
    "an added token that begins with a space once it is normalised": (
        lambda: fuzz.tokenizer(random.Random(3_306_014)),
        ["x a b", "， a web", "web-▁a old", "the ▁a b", "· a", "▁a ▁a"], "whitespace"),
    "pairs of characters that a normaliser makes": (
        lambda: unigrams({"▁'s": -1.0, "'s": -1.0}, pre_tokenizers.Metaspace(), normalizer=normalizers.NFKC()),
        ["old 'ſ name", "it 'ſ new", "'ſ the 's", "one 'old' ſ"], "treebank"),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::una_fast.InputWarning")
@pytest.mark.parametrize("case", CASES)
def test_ids_are_exact_for_cases_that_the_fuzzer_found(case):
    make, texts, words = CASES[case]
    tokenizer, rows = make(), list(range(len(texts) * 3))
    for surface in ("kept", "paper"):
        index = una_fast.build_index(texts * 3, word_tokenizer=words)
        una = una_fast.Augmenter(index, beta=0.6, radius="60%", tokenizer=tokenizer, surface=surface)
        for epoch in range(10):
            for length in (6, 30):
                assert_ids(una.token_ids(rows, epoch, length), tokenizer, una.texts(rows, epoch), length)
