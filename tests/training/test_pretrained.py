"""Loading a model: every weight comes from the checkpoint, or an error names the ones that do not."""

import json
import shutil
from functools import partial
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModel, AutoModelForMaskedLM

from train.encoder.encoder import load_encoder
from train.encoder.pretrained import load_pretrained, load_tokenizer, quiet
from train.evaluation.model import load_model
from train.record.checkpoint import save_encoder
from una_fast.errors import InputError, InputWarning
from una_fast_cli.probe import load_encode

WEIGHTS, CONFIG = "model.safetensors", "config.json"


@pytest.fixture
def changed(tmp_path, tiny_model):
    """Return a function that copies the model and changes the names of its weights or its configuration."""
    quiet()

    def change(rename=str, **config):
        folder = Path(shutil.copytree(tiny_model, tmp_path / "changed"))
        weights = {rename(name): value for name, value in load_file(folder / WEIGHTS).items()}
        save_file(weights, folder / WEIGHTS, metadata={"format": "pt"})
        (folder / CONFIG).write_text(json.dumps(json.loads((folder / CONFIG).read_text()) | config))
        return folder

    return change


@pytest.mark.parametrize("prefix", ["_orig_mod.", "module.", "module._orig_mod.", "_orig_mod.bert."])
def test_prefixes_of_compile_and_ddp_are_removed_with_a_warning(tmp_path, tiny_model, changed, prefix):
    folder = changed(lambda name: prefix + name)
    with pytest.warns(InputWarning, match=f"removed {prefix.removesuffix('bert.')}, which"):
        encoder = load_encoder(str(folder), 0.1, 1)
    with pytest.warns(InputWarning, match="from the names"):
        evaluated = load_model(str(folder), device="cpu").network.state_dict()
    with pytest.warns(InputWarning, match="from the names"):
        probed = load_encode(str(folder))(["a river"])
    assert (probed == load_encode(str(tiny_model))(["a river"])).all()
    expected = AutoModel.from_pretrained(tiny_model, add_pooling_layer=False).state_dict()
    for found in (encoder.backbone.state_dict(), evaluated):
        assert found.keys() == expected.keys() and all(torch.equal(found[name], expected[name]) for name in expected)
    save_encoder(tmp_path, "best", encoder, load_tokenizer(str(folder)), {}, encoder.backbone.state_dict())
    assert load_file(tmp_path / "best" / WEIGHTS).keys() == expected.keys()


@pytest.mark.parametrize(("rename", "config", "said"), [
    (str, {"num_hidden_layers": 3}, "encoder.layer.2.attention.output.LayerNorm.bias, .* 13 more"),
    (str, {"num_hidden_layers": 1}, "config.json .*encoder.layer.1.attention.output.LayerNorm.bias, .* more"),
    (str, {"intermediate_size": 48}, "shapes .*encoder.layer.0.intermediate.dense.bias, "),
    (lambda name: name.replace("query", "q"), {}, "encoder.layer.0.attention.self.query.bias"),
    (lambda name: f"0.auto_model.{name}", {}, "embeddings.LayerNorm.bias"),
])  # fmt: skip
def test_missing_and_unexpected_weights_are_named(changed, rename, config, said):
    folder = str(changed(rename, **config))
    for load in (partial(load_encoder, dropout=0.1, seed=1), partial(load_model, device="cpu"), load_encode):
        with pytest.raises(InputError, match=f"model {folder}: (the checkpoint .*{said}|.*ignore_mismatched_sizes)"):
            load(folder)


FILES = {
    "modules.json": [
        {}, [1], [{"type": 3}], [{"type": "a.Transformer", "path": 1}], "x", [None],
    ],
    "sentence_bert_config.json": [
        [], {"max_seq_length": "64"}, {"max_seq_length": 1.5}, {"max_seq_length": [1]}, {"do_lower_case": "yes"},
        {"max_seq_length": -1}, {"max_seq_length": 1}, {"max_seq_length": True},
    ],
    "config_sentence_transformers.json": [
        [], 3, {"prompts": ["query"]}, {"prompts": {}, "default_prompt_name": ["query"]}, {"truncate_dim": "x"},
    ],
    "1_Pooling/config.json": [[], {"pooling_mode": 3}, {"pooling_mode": [[]]}, {"include_prompt": "no"}],
}  # fmt: skip


@pytest.mark.parametrize(("file", "content"), [(file, content) for file in FILES for content in FILES[file]])
def test_invalid_files_of_sentence_transformers_are_errors(tmp_path, tiny_model, file, content):
    folder = Path(shutil.copytree(tiny_model, tmp_path / "odd"))
    (folder / "1_Pooling").mkdir()
    listed = [{"type": "a.Transformer", "path": ""}, {"type": "a.Pooling", "path": "1_Pooling"}]
    for name, value in {"modules.json": listed, "1_Pooling/config.json": {}, file: content}.items():
        (folder / name).write_text(json.dumps(value))
    try:
        load_model(str(folder), device="cpu").embed(["a river"])
    except InputError as error:
        assert f"model {folder}: {file} cannot be read: " in str(error) or "--pooling auto" in str(error)
    else:
        assert content == {}


@pytest.mark.parametrize(("file", "content"), [
    ("modules.json", [{"idx": 0, "name": "0", "path": "", "type": "planted.Module"}]),
    ("2_Dense/config.json", {"in_features": 1, "activation_function": "planted.Module"}),
    ("2_Dense/router_config.json", {"types": {"a": "planted.Module"}}),
])  # fmt: skip
def test_probe_runs_no_code_that_a_model_names(tmp_path, tiny_model, monkeypatch, file, content):
    folder = Path(shutil.copytree(tiny_model, tmp_path / "odd"))
    (folder / "2_Dense").mkdir()
    listed = [{"idx": 0, "name": "0", "path": path, "type": f"sentence_transformers.models.{kind}"}
              for path, kind in (("", "Transformer"), ("2_Dense", "Dense"))]  # fmt: skip
    for name, value in {"modules.json": listed, file: content}.items():
        (folder / name).write_text(json.dumps(value))
    (tmp_path / "planted.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(InputError, match=f"model {folder}: its files name the Python code planted.Module"):
        load_encode(str(folder))
    assert not (tmp_path / "ran").exists()


def test_unused_heads_and_a_missing_pooler_are_accepted(tmp_path, tiny_model):
    state = torch.get_rng_state()
    AutoModelForMaskedLM.from_config(AutoConfig.from_pretrained(tiny_model)).save_pretrained(tmp_path)
    torch.set_rng_state(state)
    network, has_pooler = load_pretrained(str(tmp_path))
    assert network.pooler is None and not has_pooler
    assert torch.equal(torch.get_rng_state(), state)


def test_a_configuration_cannot_change_how_outputs_are_read(tiny_model, changed):
    folders = tiny_model, changed(return_dict=False, chunk_size_feed_forward=7)
    texts = ["a river", "a longer sentence of more words"]
    expected, found = (load_model(str(folder), device="cpu").embed(texts) for folder in folders)
    assert (expected == found).all()
