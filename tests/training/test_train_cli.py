"""`python -m train.ddp`: its files, presets and losses, and a clear error message for every bad input."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from transformers import AutoConfig, AutoModel, AutoTokenizer

from support import small_runs as training
from support.small_runs import final_state, flat, metrics, options, refusal, train_here, write_dev
from support.staged import Killed, kill
from train.config import Run, make_run
from train.encoder.pooling import DEFAULT_POOLING
from train.encoder.pretrained import load_config, positions_of
from train.launch import resolve
from train.launch.prepare import PreparedRun
from train.launch.resolve import device_of, resolve_options
from train.losses import LOSSES
from una_fast.errors import InputError, InputWarning


class TestBadInput:
    """A clear error message for every bad input."""

    @pytest.fixture
    def values(self, tmp_path, tiny_model):
        return options(tmp_path, tiny_model)

    @pytest.fixture
    def models(self, tmp_path, tiny_model):
        """Return a folder of models that cannot be used."""
        for name, kept in (("weightless", "tokenizer.json"), ("wordless", "model.safetensors"), ("empty", "")):
            (tmp_path / name).mkdir()
            for file in filter(None, ("config.json" * bool(kept), kept)):
                (tmp_path / name / file).symlink_to(tiny_model / file)
        tokenizer = AutoTokenizer.from_pretrained(shutil.copytree(tiny_model, tmp_path / "grown"))
        tokenizer.add_tokens(["<new>", "<newer>"])
        tokenizer.save_pretrained(tmp_path / "grown")
        model = AutoModel.from_pretrained(shutil.copytree(tiny_model, tmp_path / "broken"))
        model.embeddings.word_embeddings.weight.data[7, 3] = float("nan")
        model.save_pretrained(tmp_path / "broken")
        for name, change in (
            ("endless", {"model_max_length": "x"}), ("negative", {"model_max_length": -1}),
            ("half", {"model_max_length": 64.5}), ("maskless", {"model_input_names": ["input_ids"]}),
            ("padless", {"tokenizer_class": "Nope", "pad_token": None}),
        ):  # fmt: skip
            file = shutil.copytree(tiny_model, tmp_path / name) / "tokenizer_config.json"
            file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
        return tmp_path

    @pytest.mark.parametrize(("model", "said"), [
        ("none", "no such folder"),
        ("weightless", "this folder contains no readable weights"),
        ("wordless", "the folder has no tokenizer"),
        ("empty", "this folder contains no readable configuration"),
        ("broken", "some of its weights are NaN or infinite"),
        ("grown", "has 4,002 entries, but the model has embeddings for only 4,000"),
        ("endless", "its tokenizer has no padding token or attention mask, or a model_max_length of "),
        *((kind, "or a model_max_length of ") for kind in ("negative", "half", "maskless")),
        ("padless", "its tokenizer has no padding token or attention mask, or a model_max_length of "),
    ])  # fmt: skip
    def test_unusable_models(self, capsys, values, models, model, said):
        assert said in refusal(capsys, {**values, "model": str(models / model)})

    @pytest.mark.parametrize(("change", "said"), [
        ({"corpus": ("none.txt",)}, "none.txt"),
        ({"batch_size": 69}, "the corpus has 68 sentences with words, fewer than --batch-size 69"),
        ({"max_length": 500}, "--max-length 500 is above the 128 positions of the model"),
        ({"dev": "none.tsv"}, "none.tsv"),
        ({"compile": "graphs"}, "--compile graphs needs a GPU, but this run uses the CPU"),
        ({"precision": "fp16"}, "--precision fp16 needs a GPU, but this run uses the CPU: choose bf16"),
        ({"model": "no-such/encoder"}, "model no-such/encoder: no readable configuration"),
        ({"output": __file__}, "test_train_cli.py: cannot be made or written: Not a directory"),
        ({"bach_size": 8}, "error: unknown option --bach-size: did you mean --batch-size?\n"),
        *[({name: "x" * 300}, "x" * 300) for name in ("output", "dev", "evaluate")],
    ])  # fmt: skip
    def test_unusable_values(self, capsys, values, change, said):
        text = refusal(capsys, {**values, **change})
        assert said in text and text.splitlines()[-1].startswith("error: ")

    def test_more_ranks_than_gpus(self, monkeypatch):
        monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
        with pytest.raises(InputError, match="--nproc 2 is above the 1 GPU of this machine"):
            device_of(Run(device="cuda", nproc=2))

    def test_an_index_whose_save_was_killed_is_built_again(self, values, monkeypatch):
        """The folder contains arrays but no manifest."""
        with monkeypatch.context() as patch, pytest.raises(Killed):
            patch.setattr("una_fast.storage.array_folder.write_bytes", kill)
            patch.setattr("una_fast.storage.array_folder._remove_unlisted", lambda *_: None)
            train_here({**values, "max_steps": 1})
        assert [*Path(values["index"]).glob("*.npy")] and not Path(values["index"], "manifest.json").exists()
        assert train_here({**values, "max_steps": 1}).status == "finished"

    def test_dev_sentences_longer_than_the_positions_are_truncated(self, values, tmp_path):
        dev = write_dev(tmp_path / "dev.tsv")
        dev.write_text(f"\ufeff{dev.read_text()}3.0\t{'river ' * 300}\tcastle\n", encoding="utf-8")
        assert train_here({**values, "dev": str(dev), "max_steps": 1}).status == "finished"


def test_the_number_of_positions_depends_on_the_model_type():
    sizes = {"max_position_embeddings": 512, "pad_token_id": 1}
    for kind in ("roberta", "xlm-roberta", "camembert", "mpnet"):
        assert positions_of(AutoConfig.for_model(kind, **sizes)) == 510
    assert positions_of(AutoConfig.for_model("bert", **{**sizes, "pad_token_id": 0})) == 512
    assert positions_of(AutoConfig.for_model("xlnet")) is None
    with pytest.raises(InputError, match="roberta: its config.json has no pad_token_id: add it"):
        positions_of(AutoConfig.for_model("roberta", pad_token_id=None))


DROPOUTS = {
    "bert": {"hidden_dropout_prob", "attention_probs_dropout_prob"},
    "distilbert": {"dropout", "attention_dropout"},
    "modernbert": {"embedding_dropout", "mlp_dropout", "attention_dropout"},
    "gpt2": {"embd_pdrop", "resid_pdrop", "attn_pdrop"},
}


@pytest.mark.parametrize("kind", DROPOUTS)
def test_dropout_reaches_hidden_states_and_attention(tmp_path, kind):
    AutoConfig.for_model(kind).save_pretrained(tmp_path)
    found = load_config(str(tmp_path), 0.37).to_dict()
    assert {name for name, value in found.items() if value == 0.37} == DROPOUTS[kind]


def test_an_encoder_decoder_is_refused_and_missing_dropout_gets_a_warning(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "t5"}))
    with pytest.raises(InputError, match="t5 is an encoder with a decoder"):
        load_config(str(tmp_path), 0.1)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "qwen2"}))
    with pytest.warns(InputWarning, match="qwen2 has no dropout in its hidden states"):
        with pytest.raises(InputError, match="has no tokenizer"):
            PreparedRun(make_run({"corpus": ("c",), "model": str(tmp_path), "output": "o"}))


@pytest.mark.parametrize(("model_type", "rate", "schedule"), [("bert", 3e-5, "linear"), ("roberta", 5e-6, "constant")])
def test_defaults_depend_on_the_model_type_and_the_loss(tmp_path, model_type, rate, schedule):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": model_type}))
    values = {"corpus": ("c",), "model": str(tmp_path), "output": "o"}
    config = load_config(str(tmp_path), 0.1)
    run = resolve_options(make_run(values), config, DEFAULT_POOLING)
    assert (run.learning_rate, run.schedule, run.augment) == (rate, schedule, "una")
    given = make_run({**values, "learning_rate": 1e-4, "schedule": "constant", "loss": "simcse"})
    chosen = resolve_options(given, config, DEFAULT_POOLING)
    assert (chosen.learning_rate, chosen.schedule, chosen.augment) == (1e-4, "constant", "none")


@pytest.mark.parametrize(("changes", "expected"), [
    ({}, "graphs"), ({"nproc": 2}, "graphs"), ({"compile": "on"}, "on"), ({"compile": "off"}, "off"),
    ({"device": "cpu"}, "off"), ({"grad_cache": 5}, "off"), ({"loss": "own_parts:margin"}, "off"),
    ({"loss": "own_parts:margin", "compile": "graphs"}, "graphs"),
])  # fmt: skip
def test_graphs_are_the_default_on_gpus_if_steps_can_be_captured(tiny_model, monkeypatch, changes, expected):
    monkeypatch.setattr(resolve, "loss_spec", lambda name: LOSSES["triplet"])
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda emulated: True)
    config = load_config(str(tiny_model), 0.1)
    run = Run(**{"model": str(tiny_model), "output": "o", "device": "cuda", **changes})
    assert resolve_options(run, config, DEFAULT_POOLING).compile == expected


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("has_bf16", [True, False])
def test_automatic_precision_is_bf16_if_the_device_supports_it(tmp_path, tiny_model, monkeypatch, device, has_bf16):
    monkeypatch.setattr(resolve, "has_bf16", lambda: has_bf16)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda emulated: has_bf16)
    run = PreparedRun(make_run(options(tmp_path, tiny_model, precision="auto", device=device))).run
    assert run.precision == ("bf16" if has_bf16 else "fp32")


@pytest.mark.slow
def test_losses_in_half_precision_are_close_to_fp32(tmp_path, tiny_model):
    values = options(tmp_path, tiny_model, precision="bf16", max_steps=6, dropout=0.0)
    train_here(values)
    exact = {**values, "precision": "fp32", "output": str(tmp_path / "exact")}
    train_here(exact)
    close, plain = ([line["loss"] for line in metrics(v["output"]) if "loss" in line] for v in (values, exact))
    assert close == pytest.approx(plain, rel=0.05) and close != plain


def test_best_loads_in_transformers_and_sentence_transformers_with_raw_cls(tmp_path, tiny_model):
    from sentence_transformers import SentenceTransformer

    values = options(tmp_path, tiny_model, max_steps=4)
    train_here(values)
    best = Path(values["output"]) / "best"
    model, tokenizer = AutoModel.from_pretrained(best).eval(), AutoTokenizer.from_pretrained(best)
    texts = ["A river and a castle.", "music"]
    with torch.no_grad():
        cls = model(**tokenizer(texts, padding=True, return_tensors="pt")).last_hidden_state[:, 0]
    transformer = SentenceTransformer(str(best), device="cpu")
    assert torch.allclose(torch.from_numpy(transformer.encode(texts)), cls, atol=1e-6)
    assert transformer.max_seq_length == 128
    last = SentenceTransformer(str(best.with_name("last")), device="cpu")[0].auto_model.state_dict()
    trained = flat(final_state(values["output"]))
    found = {name: tensor for key, tensor in trained.items() for name in last if key.endswith(f".{name}")}
    assert len(found) > 20 and all(torch.equal(last[name], tensor) for name, tensor in found.items())
    assert not torch.equal(last["embeddings.word_embeddings.weight"], model.embeddings.word_embeddings.weight)
    note = json.loads((best / "best.json").read_text())
    run = json.loads((Path(values["output"]) / "run.json").read_text())
    assert (note["step"], note["dev_score"]) == (run["progress"]["best_step"], run["scores"]["dev/dev"])
    assert 0 < run["this_process"]["share_of_time"]["data"] < 1


@pytest.mark.slow
def test_torchrun_on_two_machines_equals_one_machine_and_only_rank_0_evaluates(tmp_path, tiny_model):
    """Each machine has its own index and --output."""
    scored = {"evaluate": training.write_senteval(tmp_path / "data"), "tasks": "STSBenchmark"}
    values = options(tmp_path, tiny_model, max_steps=3)
    whole = training.start({**values, "nproc": 2, "output": str(tmp_path / "whole"), "index": str(tmp_path / "i")})
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "1"]
    torchrun += ["--master-addr", "127.0.0.1", "--master-port", str(training.free_port())]
    nodes = []
    for node in range(2):
        paths = {"output": tmp_path / f"run-{node}", "index": tmp_path / f"index-{node}"}
        command = [*torchrun, "--node-rank", str(node), *training.command({**values, **scored, **paths})[1:]]
        nodes.append(subprocess.Popen(command, cwd=training.ROOT, stderr=subprocess.PIPE, text=True))
    said = [node.communicate(timeout=240)[1] for node in nodes]
    assert [node.returncode for node in nodes] == [0, 0] and training.finish(whole)[0] == 0, said
    losses = [[line["loss"] for line in metrics(tmp_path / name) if "loss" in line] for name in ("run-0", "whole")]
    assert losses[0] == pytest.approx(losses[1], abs=1e-4)  # a rank that is alone on its machine has more threads
    output = tmp_path / "run-0"
    assert json.loads((output / "run.json").read_text())["ranks"] == 2 and not (tmp_path / "run-1").exists()
    assert json.loads((output / "evaluation.json").read_text())["sts"]["STSBenchmark"]["pairs"] == 24
    assert [err.count("evaluation.json") for err in said] == [1, 0]
