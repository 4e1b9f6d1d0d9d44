"""Small tokenizers of families that were made for decoder models: Qwen 3, Llama 2 and 3, Gemma, SuperBPE."""

from __future__ import annotations

from functools import cache

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import (
    GemmaTokenizer,
    LlamaTokenizer,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
    Qwen2Tokenizer,
)

from support.tokenizer_training import Merges, template, train_bpe, wrap

LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
NO_WORDS = r"\p{N}{1,3}"  # SuperBPE's last stage splits numbers only, so a sub-word may hold several words
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]


def qwen3() -> PreTrainedTokenizerBase:
    """Like Qwen3-Embedding: an end-of-text token after each text, padding on the left."""
    vocabulary, merges = _train_byte_level(LLAMA3.replace("{1,3}", ""), ("<|endoftext|>", "<|im_start|>", "<|im_end|>"))
    tokenizer = Qwen2Tokenizer(vocab=vocabulary, merges=merges, padding_side="left")
    tokenizer.backend_tokenizer.post_processor = template("", "<|endoftext|>", tokenizer.backend_tokenizer)
    return tokenizer


def llama3(pad_token: str | None = "<|end_of_text|>", padding_side: str = "left") -> PreTrainedTokenizerFast:
    """Like Llama 3, which has no padding token: its users take the end-of-text token."""
    special = ("<|begin_of_text|>", "<|end_of_text|>")
    tokenizer = _byte_level(LLAMA3, special)
    tokenizer.post_processor = template(special[0], "", tokenizer)
    ends = {"bos_token": special[0], "eos_token": special[1]}
    return wrap(tokenizer, **ends, pad_token=pad_token, padding_side=padding_side, model_input_names=NAMES)


def eurobert() -> PreTrainedTokenizerFast:
    special = ("<|begin_of_text|>", "<|end_of_text|>", "<|pad|>", "<|mask|>")
    tokenizer = _byte_level(LLAMA3, special)
    tokenizer.post_processor = template(special[0], special[1], tokenizer)
    ends = {"bos_token": special[0], "eos_token": special[1], "pad_token": special[2], "mask_token": special[3]}
    return wrap(tokenizer, **ends, model_input_names=NAMES)


def superbpe() -> PreTrainedTokenizerFast:
    special = ("<|begin_of_text|>", "<|pad|>")
    tokenizer = _byte_level(NO_WORDS, special)
    return wrap(tokenizer, bos_token=special[0], pad_token=special[1], model_input_names=NAMES)


def gemma(padding_side: str = "left") -> PreTrainedTokenizerBase:
    """Like EmbeddingGemma: <bos> and <eos> around a text, and thousands of added tokens, runs of ▁ and of line ends."""
    special = ("<pad>", "<eos>", "<bos>", "<unk>", "<mask>")
    vocabulary, merges = _train_marked(special)
    tokenizer = GemmaTokenizer(vocab=vocabulary, merges=merges, padding_side=padding_side)
    runs = ["\n" * n for n in range(1, 5)] + ["\t"] + ["▁" * n for n in range(2, 9)]
    added = [*(f"<unused{i}>" for i in range(3000)), *runs, "<table>", "</table>"]
    tokenizer.add_tokens([AddedToken(content, normalized=False) for content in added])
    tokenizer.backend_tokenizer.post_processor = template("<bos>", "<eos>", tokenizer.backend_tokenizer)
    return tokenizer


def mmbert() -> PreTrainedTokenizerBase:
    """Gemma's tokenizer with padding on the right."""
    return gemma(padding_side="right")


def llama2() -> PreTrainedTokenizerBase:
    """As transformers 5 builds it: Metaspace without a split, ▁ before the first word only."""
    vocabulary, merges = _train_marked(("<unk>", "<s>", "</s>"))
    tokenizer = LlamaTokenizer(vocab=vocabulary, merges=merges)
    tokenizer.pad_token = "</s>"
    tokenizer.backend_tokenizer.post_processor = template("<s>", "", tokenizer.backend_tokenizer)
    return tokenizer


def llama2_file() -> PreTrainedTokenizerFast:
    """As in the file of Llama 2: ▁ before the text and instead of each space, no pre-tokenizer."""
    vocabulary, merges = _train_marked(("<unk>", "<s>", "</s>"))
    model = models.BPE(vocabulary, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.ByteFallback()
    tokenizer.post_processor = template("<s>", "", tokenizer)
    ends = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "</s>"}
    return wrap(tokenizer, **ends, padding_side="left", model_input_names=NAMES)


NAMES = ["input_ids", "attention_mask"]


@cache
def _train_byte_level(expression: str, special: tuple[str, ...]) -> tuple[dict[str, int], Merges]:
    return train_bpe(_without_vocabulary(expression), special, pre_tokenizers.ByteLevel.alphabet())


def _without_vocabulary(expression: str, model: models.Model | None = None) -> Tokenizer:
    tokenizer = Tokenizer(model or models.BPE())
    split = pre_tokenizers.Split(Regex(expression), behavior="isolated")
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, byte_level])
    return tokenizer


def _byte_level(expression: str, special: tuple[str, ...]) -> Tokenizer:
    """Byte-level BPE after a split, as in Llama 3: a word that is in the vocabulary needs no merges."""
    vocabulary, merges = _train_byte_level(expression, special)
    tokenizer = _without_vocabulary(expression, models.BPE(vocabulary, merges, ignore_merges=True))
    tokenizer.add_special_tokens(list(special))
    return tokenizer


@cache
def _train_marked(special: tuple[str, ...]) -> tuple[dict[str, int], Merges]:
    """BPE with bytes for unknown characters, trained word by word with ▁ before each, as SentencePiece does."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.pre_tokenizer = pre_tokenizers.Split("▁", "merged_with_next")
    return train_bpe(tokenizer, [*special, *BYTES], ["▁", "\n", "\t"])
