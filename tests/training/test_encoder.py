"""The encoder as training calls it: a batch in parts gives the embeddings of the batch as a whole."""

import pytest
import torch
from transformers import BertConfig, BertModel, RobertaConfig, RobertaModel

from train.encoder.encoder import SentenceEncoder

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
