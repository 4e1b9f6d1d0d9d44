"""The encoder as training calls it: a batch in parts gives the embeddings of the batch as a whole."""

import pytest
import torch
from transformers import BertConfig, BertModel, ModernBertConfig, ModernBertModel, RobertaConfig, RobertaModel

from support.small_runs import options
from train.config.run import make_run
from train.encoder.encoder import SentenceEncoder, load_encoder, takes_ready_mask
from train.launch import prepare
from train.launch.prepare import resolve_options

SIZES = {"vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
PADDING = 1


@pytest.fixture(params=["bert", "roberta"])
def encoder(request):
    torch.manual_seed(0)
    if request.param == "bert":
        backbone = BertModel(BertConfig(**SIZES, pad_token_id=PADDING), add_pooling_layer=False)
    else:
        backbone = RobertaModel(RobertaConfig(**SIZES, pad_token_id=PADDING), add_pooling_layer=False)
    return SentenceEncoder(backbone, seed=0).eval()


def padded(rows):
    """Rows of ids as a batch padded on the right."""
    width = max(map(len, rows))
    ids = torch.tensor([row + [PADDING] * (width - len(row)) for row in rows])
    return {"input_ids": ids, "attention_mask": (ids != PADDING).long()}


def test_parts_are_one_batch(encoder):
    generator = torch.Generator().manual_seed(0)
    rows = [torch.randint(5, 50, (length,), generator=generator).tolist() for length in (3, 4, 4, 6, 9)]
    weight = torch.randn(len(rows), SIZES["hidden_size"], generator=generator)
    results, gradients = [], []
    for parts in ([padded(rows)], [padded(rows[:2]), padded(rows[2:4]), padded(rows[4:])]):
        encoder.zero_grad()
        results.append(encoder(parts)[0])
        (results[-1] * weight).sum().backward()
        gradients.append({name: p.grad.clone() for name, p in encoder.named_parameters() if p.grad is not None})
    torch.testing.assert_close(results[0], results[1], rtol=1e-5, atol=1e-6)
    assert gradients[0].keys() == gradients[1].keys()
    for name, gradient in gradients[0].items():
        torch.testing.assert_close(gradient, gradients[1][name], rtol=1e-4, atol=1e-6, msg=name)


def test_a_model_that_takes_no_ready_mask_gets_its_own(tiny_model):
    encoder = load_encoder(str(tiny_model), 0.0, 1)
    assert takes_ready_mask(encoder.backbone) and encoder.backbone.training
    encoder.backbone.config._attn_implementation = "eager"
    assert not takes_ready_mask(encoder.backbone)
    assert not takes_ready_mask(
        ModernBertModel(ModernBertConfig(**SIZES, pad_token_id=0))
    )  # it has windows of attention


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("has_bf16", [True, False])
def test_auto_is_bf16_where_the_device_has_it(tmp_path, tiny_model, monkeypatch, device, has_bf16):
    monkeypatch.setattr(prepare, "has_bf16", lambda: has_bf16)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda emulated: has_bf16)
    run = resolve_options(make_run(options(tmp_path, tiny_model, precision="auto", device=device)))
    assert run.precision == ("bf16" if has_bf16 else "fp32")
