"""torch.compile of the encoder: what it computes, what later calls may overwrite, and what happens where it fails."""

from functools import partial

import pytest
import torch
from transformers import AutoModel, BertConfig, DebertaV2Config, ModernBertConfig, MPNetConfig, RobertaConfig

from support.fake_tokens import train
from support.small_runs import assert_same_run, at_step, options, train_here
from train.encoder.encoder import SentenceEncoder, compile_encoder


class StaticMemory:
    """Stands in for `torch.compile(mode="reduce-overhead")`: outputs and gradients lie where the next call writes too.

    As CUDA graphs do, a backward pass hands out a new tensor over the same memory, which autograd keeps as `.grad`.
    """

    def __init__(self, run, **how):
        self.run, self.how, self.memory = run, how, {}

    def held(self, name, value):
        return self.memory.setdefault((name, value.shape), torch.empty_like(value)).copy_(value).detach()

    def __call__(self, part):
        encoder = self.run.__self__
        weights = [weight for weight in encoder.backbone.parameters() if weight.requires_grad]
        outer = self

        class Replay(torch.autograd.Function):
            @staticmethod
            def forward(ctx, *leaves):
                with torch.enable_grad():
                    ctx.rows = outer.run(part)
                return outer.held("output", ctx.rows.detach())

            @staticmethod
            def backward(ctx, gradient):
                gradients = torch.autograd.grad(ctx.rows, weights, gradient, allow_unused=True)
                return tuple(value if value is None else outer.held(i, value) for i, value in enumerate(gradients))

        return Replay.apply(*weights)


def weights_of(trainer):
    return {name: weight.detach() for name, weight in trainer.encoder.named_parameters()}


@pytest.mark.parametrize("settings", [{"grad_cache": 5, "pooling": "mean"}, {"precision": "fp16"}])
def test_memory_that_later_calls_overwrite_changes_no_bit(tiny_model, monkeypatch, settings):
    monkeypatch.setattr(SentenceEncoder, "_looked_up", lambda encoder, parts: parts)  # as compiled functions get them
    losses, plain = train(tiny_model, n_parts=1, **settings)
    monkeypatch.setattr(torch, "compile", StaticMemory)
    same, replayed = train(tiny_model, compile="graphs", n_parts=1, **settings)
    assert replayed.encoder.compiled is not None and same == losses
    assert all(torch.equal(weight, weights_of(plain)[name]) for name, weight in weights_of(replayed).items())


def test_what_cannot_be_compiled_is_said_in_a_line_and_runs_as_it_is(tiny_model, monkeypatch, capsys):
    losses, _ = train(tiny_model, dropout=0.1)
    errors = [RuntimeError("no C++ compiler\nmore"), torch.OutOfMemoryError("CUDA out of memory")]

    def refuse(part):
        torch.rand(3)
        raise errors.pop(0)

    monkeypatch.setattr(torch, "compile", lambda run, **how: refuse)
    same, plain = train(tiny_model, compile="on", dropout=0.1)
    said = [line for line in capsys.readouterr().err.splitlines() if "not compiled" in line]
    assert said == ["--compile: this run is not compiled, because the encoder cannot be: no C++ compiler"]
    assert plain.encoder.compiled is None and same == losses
    with pytest.raises(torch.OutOfMemoryError):  # ends the rank
        train(tiny_model, compile="on")


SIZES = {"vocab_size": 100, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
SIZES |= {"intermediate_size": 64, "max_position_embeddings": 64}
TOKENS = dict.fromkeys(("pad_token_id", "bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id"), 0)
DISENTANGLED = {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 16}
FAMILIES = {
    "bert": BertConfig(**SIZES),
    "roberta": RobertaConfig(**SIZES),
    "mpnet": MPNetConfig(**SIZES),
    "deberta-v3": DebertaV2Config(**SIZES, **DISENTANGLED, norm_rel_ebd="layer_norm", share_att_key=True),
    "modernbert": ModernBertConfig(**SIZES, **TOKENS),
}


def random_part(rows, columns):
    generator = torch.Generator().manual_seed(rows * columns)
    ids = torch.randint(5, 90, (rows, columns), generator=generator)
    mask = torch.ones_like(ids)
    mask[0, columns // 2 :] = 0
    return {"input_ids": ids, "attention_mask": mask}


@pytest.mark.slow
@pytest.mark.parametrize("family", [*FAMILIES, "inductor"])
def test_one_function_serves_all_shapes_of_a_family(family, monkeypatch):
    """Without graph breaks, and with the embeddings and gradients of the plain kernels within rounding.

    Graphs are those of the family; that inductor's kernels compute them right is seen by BERT's alone.
    """
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    encoder = SentenceEncoder(AutoModel.from_config(FAMILIES.get(family, FAMILIES["bert"])), 0).train()
    for layer in encoder.modules():
        if isinstance(layer, torch.nn.Dropout):
            layer.p = 0.0
    if family != "inductor":
        monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager"))
    assert not compile_encoder(encoder, random_part(12, 32), torch.autocast("cpu", enabled=False), False)
    for shape in ((6, 16), (5, 9), (12, 32), (3, 7)):
        rows, gradients = [], []
        for embed in (encoder.compiled, encoder.embed):
            encoder.zero_grad()
            rows.append(embed(random_part(*shape)))
            rows[-1].square().sum().backward()
            gradients.append([weight.grad for weight in encoder.backbone.parameters() if weight.grad is not None])
        torch.testing.assert_close(*rows, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-4)
    for columns in range(4, 36):  # widths of real batches
        encoder.compiled(random_part(2 + columns % 7, columns))
    counters = torch._dynamo.utils.counters
    assert counters["stats"]["unique_graphs"] == 1 and not counters["graph_break"]


@pytest.mark.slow
def test_a_compiled_run_repeats_its_bits_after_a_stop(tmp_path, tiny_model):
    values = options(tmp_path, tiny_model, compile="on", grad_cache=5)
    whole, cut = ({**values, "output": str(tmp_path / name)} for name in ("whole", "cut"))
    assert train_here(whole).status == "finished"
    with at_step(7, lambda trainer: 1 / 0), pytest.raises(ZeroDivisionError):
        train_here(cut)
    torch._dynamo.reset()  # as in a new process
    assert train_here({**cut, "resume": True}).status == "finished"
    assert_same_run(cut["output"], whole["output"])
