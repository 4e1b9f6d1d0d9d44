"""Tiny seq2seq models with random weights and a tokenizer of whole words, and a Marian model with SentencePiece."""

import json
from pathlib import Path

import sentencepiece
import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import MarianConfig, MarianMTModel, PreTrainedTokenizerFast

from support.small_runs import WORDS
from support.tokenizer_families import training_lines

SPECIAL = ["<pad>", "</s>", "<unk>", "<s>"]
POSITIONS = 48


def tokenizer(words=WORDS) -> PreTrainedTokenizerFast:
    """Make a tokenizer with one token per word and </s> at the end."""
    vocabulary = {word: number for number, word in enumerate([*SPECIAL, *words])}
    made = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    roles = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>", "bos_token": "<s>"}
    # pads on the left, and the code must pad on the right nevertheless
    return PreTrainedTokenizerFast(tokenizer_object=made, padding_side="left", **roles)


def t5(size):
    config = transformers.T5Config(
        vocab_size=size, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, initializer_factor=3.0,
        decoder_start_token_id=0, pad_token_id=0, eos_token_id=1,
    )  # fmt: skip
    return transformers.T5ForConditionalGeneration(config)


def like_bart(config, model, start, padding=0, end=1):
    def make(size):
        return model(config(
            vocab_size=size, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
            decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, max_position_embeddings=POSITIONS,
            init_std=0.6, pad_token_id=padding, eos_token_id=end, bos_token_id=3, forced_eos_token_id=end,
            decoder_start_token_id=start,
        ))  # fmt: skip

    return make


FAMILIES = {
    "t5": t5,
    "bart": like_bart(transformers.BartConfig, transformers.BartForConditionalGeneration, start=3),
    "marian": like_bart(MarianConfig, MarianMTModel, start=0),
    "pegasus": like_bart(transformers.PegasusConfig, transformers.PegasusForConditionalGeneration, start=0),
}  # large initial weights, so that beam search has no ties


def save(folder: Path, family: str, words=WORDS, seed: int = 0) -> Path:
    """Save a model of the family and its tokenizer in `folder`."""
    own = tokenizer(words)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = FAMILIES[family](len(own))
    model.generation_config.no_repeat_ngram_size = 1  # random weights would repeat one word forever
    model.save_pretrained(folder)
    own.save_pretrained(folder)
    return folder


def save_marian(folder: Path) -> Path:
    """Save a Marian like those on the hub: two SentencePiece models, and padding as the last token."""
    settings = {"vocab_size": 600, "hard_vocab_limit": False, "num_threads": 1, "minloglevel": 2}
    lines, prefix = iter(training_lines()), str(folder / "units")
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=lines, model_prefix=prefix, **settings)
    units = folder / "units.model"
    processor = sentencepiece.SentencePieceProcessor(model_file=str(units))
    pieces = [processor.id_to_piece(number) for number in range(3, processor.get_piece_size())]
    ids = {piece: number for number, piece in enumerate(["</s>", "<unk>", *pieces, "<pad>"])}
    (folder / "ids.json").write_text(json.dumps(ids), encoding="utf-8")
    own = transformers.MarianTokenizer(source_spm=str(units), target_spm=str(units), vocab=str(folder / "ids.json"))
    padding = ids["<pad>"]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = like_bart(MarianConfig, MarianMTModel, padding, padding=padding, end=0)(len(ids))
    model.generation_config.update(no_repeat_ngram_size=1, bad_words_ids=[[padding]])
    model.save_pretrained(folder / "marian")
    own.save_pretrained(folder / "marian")
    return folder / "marian"
