"""Compare the token ids of negatives with the tokenizer's ids for their text, for random tokenizers and texts.

python -m bench.endurance.fuzz_tokenizers 7 1000000      # a seed, and the number of rows

A case is a random tokenizer, a random index, and one augmenter per surface. The same seed gives the same case. Prints a
text for each case with a difference.
"""

from __future__ import annotations

import random
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import torch
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizerFast

import una_fast
from bench import script

script.import_tests()
from support import tokenizer_families as families  # noqa: E402
from support.tokenizer_families import BERT_SPECIAL as SPECIAL  # noqa: E402
from support.tokenizer_families import LLAMA3  # noqa: E402

SENTENCES, EPOCHS = 150, 2
WORDS = """the of old song album class module URL web name returns value object Python iPod McDonald can't don't gonna
cannot it's 'tis 3,000 10:30 U.S. state-of-the-art and/or e.g. mask beta alpha straße naïve café Ελλάδα ΣΑΣ σας привет
中文 東京 カタカナ ひらがな ภาษาไทย ສະບາຍ ខ្មែរ 한국어 مرحبا שלום हिन्दी ﬁn ½ ² ① Ⅳ ㎏ ǆ ǅ ß ẞ ſ ı İ ŉ ﬃ ª Å K""".split()
RARE = [*"\u0301\u0308\u0345\u200d\u200c\u00ad\u200b\u2060\ufeff\x00\x07\x1c\x1f\x7f\x85", "\ufe0f", "👩\u200d👧", "🙂"]
RARE += [*"ｆｕｌｌ０！（＾／｀＇\u064b\u0e33\u0e4d\uff9e\u1100\u1161\u202e\u2028\u180e▁Ġ", "##", "\U00010400", "𝒳"]
MARKS = [*"""'"`.,:;@#$%&?!*()[]{}<>-_/\\^~|+=–—«»“”‘’„…¿¡、。「」！？·•€£""", "''", "``", "--", "...", "'s", "n't"]
SPACES = [" "] * 30 + ["  ", "\t", "\xa0", "\u3000", " \u2003"]
ADDED = "URL url web ^ ~ - 's a, [X] <x> ( the 中 é ss i̇ K ▁a . of".split()


def text(draw: random.Random) -> str:
    """Draw a sentence of up to nine chunks."""
    chunks = []
    for _ in range(draw.randrange(1, 10)):
        word = draw.choice(WORDS)
        word = draw.choice([word, word, word, word.upper(), word.capitalize(), word + draw.choice(WORDS)])
        if draw.random() < 0.2:
            at = draw.randrange(len(word) + 1)
            word = word[:at] + draw.choice(RARE) + word[at:]
        if draw.random() < 0.4:
            word = draw.choice([draw.choice(MARKS) + word, word + draw.choice(MARKS), draw.choice(MARKS)])
        if draw.random() < 0.2:
            word += draw.choice(MARKS) + draw.choice(["", draw.choice(WORDS)])
        chunks += [word, draw.choice(SPACES)]
    return "".join(chunks[: -draw.randrange(2) or None])


def _normalizers(draw: random.Random) -> list[Any]:
    steps: list[Callable[[], Any]] = [
        lambda: normalizers.BertNormalizer(
            lowercase=draw.random() < 0.7, strip_accents=draw.choice([None, True, False])
        ),
        normalizers.Lowercase,
        normalizers.NFC,
        normalizers.NFD,
        normalizers.NFKC,
        normalizers.NFKD,
        normalizers.Nmt,
        normalizers.StripAccents,
        lambda: normalizers.Precompiled(families.sentencepiece_unigrams()[1]),
        lambda: normalizers.Strip(left=draw.random() < 0.5, right=True),
        lambda: normalizers.Replace(draw.choice(["ﬁ", "``", "''", "x", "-"]), draw.choice(['"', "y", "fi"])),
        lambda: normalizers.Replace(Regex(" {2,}"), " "),
    ]
    return [draw.choice(steps)() for _ in range(draw.choice([0, 1, 1, 1, 2, 3]))]


def _metaspace(draw: random.Random) -> Any:
    return pre_tokenizers.Metaspace(prepend_scheme=draw.choice(["always", "first", "never"]))


def _byte_level(draw: random.Random) -> Any:
    return pre_tokenizers.ByteLevel(add_prefix_space=draw.random() < 0.4)


def _word_piece(draw: random.Random) -> tuple[Any, list[Any], list[Any]]:
    first = draw.choice([pre_tokenizers.BertPreTokenizer, pre_tokenizers.Whitespace, pre_tokenizers.WhitespaceSplit])()
    more = [lambda: pre_tokenizers.Digits(True), pre_tokenizers.Punctuation, pre_tokenizers.BertPreTokenizer]
    vocabulary = _word_piece_vocabulary()
    model = models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=draw.choice([5, 100]))
    return model, _normalizers(draw), [first, *(draw.choice(more)() for _ in range(draw.choice([0, 0, 1])))]


def _byte_level_bpe(draw: random.Random) -> tuple[Any, list[Any], list[Any]]:
    splits = [
        lambda: [_byte_level(draw)],
        lambda: [pre_tokenizers.WhitespaceSplit(), _byte_level(draw)],
        lambda: [
            pre_tokenizers.Split(Regex(LLAMA3), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ],
        lambda: [pre_tokenizers.BertPreTokenizer(), _byte_level(draw)],
    ]
    vocabulary, merges = families._train_byte_level(LLAMA3, tuple(SPECIAL))
    model = models.BPE(vocabulary, merges, ignore_merges=draw.random() < 0.3)
    return model, _normalizers(draw), draw.choice(splits)()


def _unigram(draw: random.Random) -> tuple[Any, list[Any], list[Any]]:
    pieces = (
        [(token, 0.0) for token in SPECIAL]
        + families.sentencepiece_unigrams()[0]
        + [("'s", -4.0), ("▁(", -5.0), ("▁'s", -3.0)]
    )
    splits: list[Any] = draw.choice([[], [pre_tokenizers.WhitespaceSplit()], [pre_tokenizers.BertPreTokenizer()]])
    return models.Unigram(pieces, unk_id=1), _normalizers(draw), [*splits, _metaspace(draw)]


def _marked_bpe(draw: random.Random) -> tuple[Any, list[Any], list[Any]]:
    vocabulary, merges = families._train_marked(tuple(SPECIAL))
    model = models.BPE(
        dict(vocabulary), list(merges), unk_token="[UNK]", fuse_unk=True, byte_fallback=draw.random() < 0.6
    )
    shapes: list[Callable[[], tuple[list[Any], list[Any]]]] = [
        lambda: ([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")], []),
        lambda: ([normalizers.Replace(" ", "▁")], [pre_tokenizers.Split(" ", "merged_with_previous")]),
        lambda: ([], [pre_tokenizers.Metaspace(prepend_scheme="first", split=False)]),
        lambda: (_normalizers(draw), [_metaspace(draw)]),
        lambda: (_normalizers(draw), [pre_tokenizers.WhitespaceSplit(), _metaspace(draw)]),
    ]
    parts = draw.choice(shapes)()
    return model, *parts


@cache
def _word_piece_vocabulary() -> dict[str, int]:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    vocabulary = families.train_word_piece(tokenizer, 900)
    more = [piece for piece in ("¿?", "##¿", "##?", "##,", "##'", "¡", "¿") if piece not in vocabulary]
    return vocabulary | {piece: len(vocabulary) + i for i, piece in enumerate(more)}


def tokenizer(draw: random.Random) -> PreTrainedTokenizerFast:
    """Draw a tokenizer: one of four models in a random pipeline, with some added tokens."""
    model, steps, splits = draw.choice([_word_piece, _byte_level_bpe, _unigram, _marked_bpe])(draw)
    backend = Tokenizer(model)
    backend.normalizer = normalizers.Sequence(steps) if steps else None
    backend.pre_tokenizer = pre_tokenizers.Sequence(splits) if len(splits) != 1 else splits[0]
    if not splits:
        backend.pre_tokenizer = None
    backend.add_special_tokens(SPECIAL)
    flags = ("lstrip", "rstrip", "single_word", "normalized")
    for _ in range(draw.choice([0, 0, 1, 3])):
        backend.add_tokens([AddedToken(draw.choice(ADDED), **{flag: draw.random() < 0.4 for flag in flags})])
    before, side = draw.choice(["[CLS]", ""]), draw.choice(["right", "left"])
    return families.wrap(backend, before, "[SEP]", pad_token="[PAD]", unk_token="[UNK]", padding_side=side)


def words_and_marks(sentence: str) -> list[str]:
    """Split a sentence into words and punctuation marks, as a user's custom word tokenizer could."""
    return re.findall(r"\w+|[^\w\s]", sentence)


def case(seed: int, surfaces: tuple[str, ...] = ("paper", "kept")) -> Iterator[tuple[int, list[str]]]:
    """Compare the texts of one case, and yield (number of texts compared, texts whose ids differ) for each batch.

    Yields nothing if una_fast cannot make the tokenizer's ids word by word.
    """
    draw = random.Random(seed)
    made = tokenizer(draw)
    index = una_fast.build_index(
        [text(draw) for _ in range(SENTENCES)] + ["never a blank corpus"],
        word_tokenizer=draw.choice(["treebank", "treebank", "whitespace", words_and_marks]),
        lowercase=draw.random() < 0.8,
    )
    settings = {"keep_punctuation": draw.random() < 0.5, "beta": draw.choice([0.3, 0.6, 1.0]), "radius": "50%"}
    tokens = None
    for surface in surfaces:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            una = una_fast.Augmenter(index, tokenizer=made, surface=surface, n_jobs=1, **settings)
        if tokens is None and not una.tokens.by_word:
            return
        tokens, rows = una.tokens, list(range(len(index)))
        for epoch in range(EPOCHS):
            length = draw.choice([*range(4, 12), 40, 40, 200])
            yield len(rows), compare(made, una.texts(rows, epoch), una.token_ids(rows, epoch, length), length)
    yield len(rows), compare(made, list(index), tokens.anchor_ids(rows, 40), 40)


def compare(made: Any, texts: list[str], found: dict[str, torch.Tensor], length: int) -> list[str]:
    """Return the texts whose ids or mask in `found`, both (n_texts, length), differ from the tokenizer's output."""
    expected = made(texts, truncation=True, padding="max_length", max_length=length, return_tensors="pt", verbose=False)
    same = torch.stack([(found[name] == expected[name]).all(1) for name in found]).all(0)
    return [texts[i] for i in torch.nonzero(~same).flatten().tolist()]


def differences(seed: int, n_rows: int) -> dict[int, str]:
    """Compare the cases seed, seed + 1, ... until `n_rows` texts are compared.

    Returns a dict: for each case with a difference, its seed and one text that differs.
    """
    compared, wrong = 0, {}
    while compared < n_rows:
        for n, texts in case(seed):
            compared += n
            if texts:
                wrong[seed] = texts[0]
        seed += 1
    return wrong


if __name__ == "__main__":
    sys.stdout.write(f"{differences(int(sys.argv[1]), int(sys.argv[2]))}\n")
