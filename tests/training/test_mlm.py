"""`--mlm-weight`: the masked tokens, and the loss and its gradient compared with transformers."""

import numpy as np
import pytest
import torch
import xxhash
from transformers import (
    AlbertConfig,
    AlbertForMaskedLM,
    AutoTokenizer,
    BertConfig,
    BertForMaskedLM,
    DistilBertConfig,
    DistilBertForMaskedLM,
    ElectraConfig,
    ElectraForMaskedLM,
    ModernBertConfig,
    ModernBertForMaskedLM,
    RobertaConfig,
    RobertaForMaskedLM,
)

from support import reference
from train.encoder.encoder import load_encoder
from train.encoder.mlm import Masking, masking_of
from una_fast.errors import InputError

MASK, PAD, TOKENS = 103, 0, 500
MASKING = Masking(42, MASK, TOKENS, (PAD, 101, 102, MASK))


def sentences(n, width=12):
    """Token ids of sentences of 3 to `width` tokens, special ones at both ends, and their mask."""
    generator = np.random.default_rng(0)
    ids = np.zeros((n, width), np.int64)
    for row in ids:
        length = generator.integers(3, width + 1)
        row[:length] = [101, *generator.integers(200, TOKENS, length - 2), 102]
    ids = torch.from_numpy(ids)
    return {"input_ids": ids, "attention_mask": (ids != PAD).long()}


@pytest.mark.parametrize("order", [range(40), [4, 0, 7]])
def test_masks_are_those_of_a_plain_reading_of_bert(order):
    """In any batch, which is cut to its longest sentence."""
    part, rows, epoch = {name: ids[[*order]] for name, ids in sentences(40).items()}, np.arange(7, 47)[[*order]], 3
    part = {name: ids[:, : part["attention_mask"].sum(1).max()] for name, ids in part.items()}
    wide = {name: torch.nn.functional.pad(ids, (0, 3)) for name, ids in part.items()}
    masked = MASKING.mask(wide, rows, epoch)
    key = xxhash.xxh3_64_intdigest(b"mlm 42")
    expected, targets = part["input_ids"].clone(), []
    for i, row in enumerate(rows.tolist()):
        for position, token in enumerate(part["input_ids"][i].tolist()):
            choice, kind, drawn = (reference.draw64(key, epoch, row, position, number) for number in range(3))
            if token not in MASKING.special and (choice >> 11) / 2**53 < 0.15:
                targets.append(token)
                place = (kind >> 11) / 2**53
                expected[i, position] = MASK if place < 0.8 else drawn * TOKENS >> 64 if place < 0.9 else token
    assert torch.equal(masked.part["input_ids"], expected) and masked.targets.tolist() == targets
    assert torch.equal(part["input_ids"].flatten()[masked.positions], masked.targets)


FAMILIES = {
    "bert": (BertConfig, BertForMaskedLM, {}),
    "roberta": (RobertaConfig, RobertaForMaskedLM, {"max_position_embeddings": 40, "pad_token_id": 0}),
    "albert": (AlbertConfig, AlbertForMaskedLM, {"embedding_size": 16}),
    "electra": (ElectraConfig, ElectraForMaskedLM, {"embedding_size": 16}),
    "modernbert": (ModernBertConfig, ModernBertForMaskedLM, {"pad_token_id": 0}),
    "distilbert": (DistilBertConfig, DistilBertForMaskedLM, {"dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 64}),
}
TINY = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}


@pytest.mark.parametrize("family", FAMILIES)
def test_loss_and_gradient_are_those_of_transformers_with_the_head_of_the_checkpoint(family, minilm, tmp_path):
    kind, model, more = FAMILIES[family]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        whole = model(kind(vocab_size=TOKENS, **(more if family == "distilbert" else {**TINY, **more})))
        for name, parameter in whole.named_parameters():
            if "bias" in name:
                torch.nn.init.normal_(parameter, std=0.1)
    whole.save_pretrained(tmp_path)
    AutoTokenizer.from_pretrained(minilm).save_pretrained(tmp_path)
    encoder = load_encoder(str(tmp_path), 0.0, 42, with_mlm=True)
    masked = MASKING.mask(sentences(8), np.arange(8), 0)
    rows, loss = encoder([masked.part], masked)
    loss = loss / len(masked.targets)
    loss.backward()

    labels = torch.full_like(masked.part["input_ids"], -100).flatten()
    labels[masked.positions] = masked.targets
    expected = whole.eval()(**masked.part, labels=labels.view_as(masked.part["input_ids"])).loss
    expected.backward()
    assert rows.shape == (8, 32) and loss.item() == pytest.approx(expected.item(), rel=1e-5)
    theirs = dict(whole.base_model.named_parameters())
    for name, parameter in encoder.backbone.named_parameters():
        if parameter.grad is not None:
            assert torch.allclose(parameter.grad, theirs[name].grad, atol=1e-6), name


def test_a_tokenizer_without_a_mask_is_refused(minilm):
    tokenizer = AutoTokenizer.from_pretrained(minilm)
    assert masking_of(tokenizer, 1).mask_id == MASK
    tokenizer.mask_token = None
    message = "--mlm-weight: the model's tokenizer has no mask token: leave the option out"
    with pytest.raises(InputError, match=f"^{message}$"):
        masking_of(tokenizer, 1)
