"""torch.compile of the encoder's layers: what they compute, and errors."""

from functools import partial

import pytest
import torch
from transformers import AutoModel, BertConfig, DebertaV2Config, ModernBertConfig, MPNetConfig, RobertaConfig

from support.fake_tokens import train
from support.small_runs import assert_resume_is_bit_identical, options
from train.encoder.encoder import SentenceEncoder, compile_layers
from una_fast.errors import InputError


def test_an_encoder_that_cannot_be_compiled_is_refused(tiny_model, monkeypatch):
    errors = [RuntimeError("no C++ compiler\nmore"), torch.OutOfMemoryError("CUDA out of memory")]

    def refuse(*given, **named):
        raise errors.pop(0)

    monkeypatch.setattr(torch, "compile", lambda run, **how: refuse)
    with pytest.raises(InputError, match="no C[+]{2} compiler"):
        train(tiny_model, compile="on")
    with pytest.raises(torch.OutOfMemoryError):  # ends the rank
        train(tiny_model, compile="on")


SIZES = {"vocab_size": 100, "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 2}
SIZES |= {"intermediate_size": 64, "max_position_embeddings": 64}
TOKENS = dict.fromkeys(("pad_token_id", "bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id"), 0)
DISENTANGLED = {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 16}
FAMILIES = {  # configuration, and number of programs for all layers and any number of rows and columns
    "bert": (BertConfig(**SIZES), 2),
    "roberta": (RobertaConfig(**SIZES), 2),
    "mpnet": (MPNetConfig(**SIZES), 2),
    "deberta-v3": (DebertaV2Config(**SIZES, **DISENTANGLED, norm_rel_ebd="layer_norm", share_att_key=True), 2),
    "modernbert": (ModernBertConfig(**SIZES, **TOKENS), 4),
}


def random_part(rows, columns):
    generator = torch.Generator().manual_seed(rows * columns)
    ids = torch.randint(5, 90, (rows, columns), generator=generator)
    mask = torch.ones_like(ids)
    mask[0, columns // 2 :] = 0
    return {"input_ids": ids, "attention_mask": mask}


@pytest.mark.slow
@pytest.mark.parametrize("family", [*FAMILIES, "inductor"])
def test_one_program_serves_all_layers_and_shapes_of_a_family(family, monkeypatch):
    """There are no graph breaks, and embeddings and gradients equal those of the plain kernels within rounding.

    The families only test the graphs. "inductor" tests the compiled kernels, with BERT only.
    """
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    config, most = FAMILIES.get(family, FAMILIES["bert"])
    encoder = SentenceEncoder(AutoModel.from_config(config), 0).train()
    for layer in encoder.modules():
        if isinstance(layer, torch.nn.Dropout):
            layer.p = 0.0
    if family != "inductor":
        monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager"))
    compile_layers(encoder, random_part(12, 32), torch.autocast("cpu", enabled=False))
    for shape in ((6, 16), (5, 9), (12, 32), (3, 7)):
        rows, gradients = [], []
        for stance in ("default", "force_eager"):
            encoder.zero_grad()
            with torch.compiler.set_stance(stance):
                rows.append(encoder.embed(random_part(*shape)))
            rows[-1].square().sum().backward()
            gradients.append([weight.grad for weight in encoder.backbone.parameters() if weight.grad is not None])
        torch.testing.assert_close(*rows, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-4)
    for columns in range(4, 36):  # widths of real batches
        encoder.embed(random_part(2 + columns % 7, columns))
    counters = torch._dynamo.utils.counters
    assert 0 < counters["stats"]["unique_graphs"] <= most and not counters["graph_break"]


@pytest.mark.slow
def test_a_resumed_compiled_run_is_bit_identical(tmp_path, tiny_model):
    assert_resume_is_bit_identical(options(tmp_path, tiny_model, compile="on", grad_cache=5), tmp_path)
