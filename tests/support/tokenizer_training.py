"""Train the small tokenizers of the tests, in a second, on text that comes with Python."""

from __future__ import annotations

import io
import json
import pydoc_data.topics
from collections.abc import Sequence
from functools import cache
from typing import Any

import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import Tokenizer, processors, trainers
from transformers import PreTrainedTokenizerFast

VOCABULARY = 800
Merges = list[tuple[str, str]]


@cache
def training_lines() -> list[str]:
    lines = [line.strip() for topic in pydoc_data.topics.topics.values() for line in topic.split("\n")]
    return [line for line in lines if line][:3000] + ["naïve café ﬁn Ελλάδα 中文 12½ ¨ é ^ ~ a ^ a"] * 20


def train(tokenizer: Tokenizer, trainer: Any) -> Tokenizer:
    """A new tokenizer of the same pipeline, trained; the same training takes place once in a process."""
    key = tokenizer.to_str(), trainer.vocab_size, *(token.content for token in trainer.special_tokens)
    if key not in _TRAINED:
        tokenizer.train_from_iterator(training_lines(), trainer)
        _TRAINED[key] = tokenizer.to_str()
    return Tokenizer.from_str(_TRAINED[key])


_TRAINED: dict[tuple, str] = {}


def train_bpe(tokenizer: Tokenizer, special: Sequence[str], alphabet: Sequence[str] = ()) -> tuple[dict, Merges]:
    """Vocabulary and merges, for classes of transformers that build their pipeline themselves."""
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY + 300,
        special_tokens=list(special),
        initial_alphabet=list(alphabet),
        limit_alphabet=500,
        show_progress=False,
    )
    model = json.loads(train(tokenizer, trainer).to_str())["model"]
    return model["vocab"], [tuple(merge) for merge in model["merges"]]


@cache
def sentencepiece_unigrams() -> tuple[list[tuple[str, float]], bytes]:
    """Sub-words with their scores, without special tokens, and the compiled nmt_nfkc map."""
    file = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(training_lines()),
        model_writer=file,
        vocab_size=VOCABULARY,
        hard_vocab_limit=False,
        model_type="unigram",
        normalization_rule_name="nmt_nfkc",
        num_threads=1,
        minloglevel=2,
    )
    model = sentencepiece_model_pb2.ModelProto()
    model.ParseFromString(file.getvalue())
    return [(piece.piece, piece.score) for piece in model.pieces[3:]], model.normalizer_spec.precompiled_charsmap


def template(before: str, after: str, tokenizer: Tokenizer) -> processors.TemplateProcessing:
    """A text between two special tokens; "" leaves one out."""
    ids = [(token, tokenizer.token_to_id(token)) for token in (before, after) if token]
    return processors.TemplateProcessing(single=f"{before} $A {after}".strip(), special_tokens=ids)


def wrap(tokenizer: Tokenizer, **settings: Any) -> PreTrainedTokenizerFast:
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **settings)
