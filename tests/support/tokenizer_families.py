"""A small tokenizer of each family that encoders use: the rows of docs/tokenizers.md."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tokenizers import normalizers
from transformers import PreTrainedTokenizerBase

from support.decoder_tokenizers import eurobert, gemma, llama2, llama2_file, llama3, mmbert, qwen3, superbpe
from support.encoder_tokenizers import (
    bert_cased,
    bert_uncased,
    deberta,
    deberta_converted,
    modernbert,
    roberta,
    xlm_roberta,
)
from support.tokenizer_training import training_lines

__all__ = ["BY_TEXT", "FAMILIES", "bert_uncased", "roberta", "training_lines", "xlm_roberta"]


class Family(NamedTuple):
    """models: the models with such a tokenizer; make: makes a new one."""

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
    "xlm_roberta_metaspace": Family("the same, older files", lambda: xlm_roberta(split_white_space=False)),
    "xlm_roberta_collapse": Family(
        "the same, runs of spaces collapsed", lambda: xlm_roberta(split_white_space=False, collapse=True)
    ),
    "xlm_roberta_first": Family(
        "the same, ▁ before the first word only", lambda: xlm_roberta(split_white_space=False, scheme="first")
    ),
    "deberta": Family("DeBERTa-v3", deberta),
    "deberta_converted": Family("DeBERTa-v3, converted from the slow one", deberta_converted),
    "qwen3": Family("Qwen3-Embedding", qwen3),
    "llama3": Family("Llama 3", llama3),
    "eurobert": Family("EuroBERT", eurobert),
    "gemma": Family("EmbeddingGemma, Gemma 3", gemma),
    "mmbert": Family("mmBERT", mmbert),
    "llama2": Family("Llama 2", llama2),
    "llama2_file": Family("Llama 2, the pipeline of its file", llama2_file),
}
BY_TEXT = {"superbpe": Family("SuperBPE", superbpe)}  # these encode text by text
