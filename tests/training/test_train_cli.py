"""`python -m train.ddp`: its files, presets and losses, and one sentence for every bad input."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from transformers import AutoTokenizer

from support import small_runs as training
from support.small_runs import final_state, flat, metrics, options, refusal, train_here
from support.staged import Killed, kill
from train.config.run import make_run
from train.launch.resolve import resolve_options
from una_fast.errors import InputError


class TestBadInput:
    @pytest.fixture
    def values(self, tmp_path, tiny_model):
        return options(tmp_path, tiny_model)

    def test_missing_corpus(self, capsys, values, tmp_path):
        assert str(tmp_path / "none.txt") in refusal(capsys, {**values, "corpus": (str(tmp_path / "none.txt"),)})

    def test_corpus_smaller_than_a_batch(self, capsys, values):
        said = refusal(capsys, {**values, "batch_size": 69})
        assert "the corpus has 68 sentences with words, fewer than --batch-size 69" in said

    def test_blank_corpus(self, capsys, values, tmp_path):
        blank = tmp_path / "blank.txt"
        blank.write_text("\n\n \n")
        assert str(blank) in refusal(capsys, {**values, "corpus": (str(blank),)})

    def test_paraphrases_of_another_length(self, capsys, values, tmp_path):
        short = training.write_corpus(tmp_path / "short.txt", sentences=60)
        said = refusal(capsys, {**values, "paraphrases": str(short)})
        assert "short.txt: has 60 sentences and the corpus 70" in said

    def test_model_that_is_not_there(self, capsys, values, tmp_path):
        assert "there is no such folder" in refusal(capsys, {**values, "model": str(tmp_path / "none")})
        assert ", and there is no such folder (" in refusal(capsys, {**values, "model": "none/here"})

    def test_model_by_name_without_a_network(self, capsys, values):
        assert "model no-such/encoder: no configuration" in refusal(capsys, {**values, "model": "no-such/encoder"})

    def test_folder_that_is_no_model(self, capsys, values, tmp_path):
        assert "no configuration in this folder" in refusal(capsys, {**values, "model": str(tmp_path)})

    @pytest.mark.parametrize(
        ("file", "message"),
        [("model.safetensors", "the folder has no tokenizer"), ("tokenizer.json", "no weights in this folder")],
    )
    def test_model_without_tokenizer_or_weights(self, capsys, values, tmp_path, tiny_model, file, message):
        (tmp_path / "bare").mkdir()
        for name in ("config.json", file):
            (tmp_path / "bare" / name).symlink_to(tiny_model / name)
        assert message in refusal(capsys, {**values, "model": str(tmp_path / "bare")})

    def test_longer_than_the_model_can_take(self, capsys, values):
        said = refusal(capsys, {**values, "max_length": 500})
        assert "--max-length 500 is above the 128 positions of the model" in said

    def test_missing_dev_file(self, capsys, values, tmp_path):
        assert "none.tsv" in refusal(capsys, {**values, "dev": str(tmp_path / "none.tsv")})

    @pytest.mark.parametrize("name", ["model", "output", "dev", "evaluate"])
    def test_a_name_that_no_file_can_have(self, capsys, values, name):
        said = refusal(capsys, {**values, name: "x" * 300})
        assert "x" * 300 in said and said.count("\n") == 1

    @pytest.mark.parametrize("change", [{"model_max_length": "x"}, {"tokenizer_class": "Nope", "pad_token": None}])
    def test_tokenizer_that_cannot_pad(self, capsys, values, tmp_path, tiny_model, change):
        folder = shutil.copytree(tiny_model, tmp_path / "odd")
        settings = json.loads((folder / "tokenizer_config.json").read_text())
        (folder / "tokenizer_config.json").write_text(json.dumps({**settings, **change}))
        said = refusal(capsys, {**values, "model": str(folder)})
        assert "its tokenizer has no padding token, or a model_max_length that is no number" in said

    def test_tokenizer_larger_than_the_embeddings(self, capsys, values, tmp_path, tiny_model):
        folder = shutil.copytree(tiny_model, tmp_path / "grown")
        tokenizer = AutoTokenizer.from_pretrained(folder)
        tokenizer.add_tokens(["<new>", "<newer>"])
        tokenizer.save_pretrained(folder)
        said = refusal(capsys, {**values, "model": str(folder)})
        assert f"has {len(tokenizer):,} entries, and the model embeddings of {len(tokenizer) - 2:,} tokens" in said

    def test_more_ranks_than_gpus(self, capsys, values, monkeypatch):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
        said = refusal(capsys, {**values, "device": "auto", "nproc": 2})
        assert "--nproc 2 is above the 1 GPU of this machine" in said

    def test_gpu_where_there_is_none(self, capsys, values, monkeypatch):
        monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
        assert "--nproc 1 is above the 0 GPUs" in refusal(capsys, {**values, "device": "cuda"})

    def test_index_of_a_corpus_that_has_changed(self, capsys, values, tmp_path):
        train_here({**values, "max_steps": 1})
        training.write_corpus(Path(values["corpus"][0]), seed=1)
        said = refusal(capsys, {**values, "output": str(tmp_path / "other")})
        assert "made from another corpus" in said

    def test_index_whose_save_was_killed(self, values, monkeypatch):
        """The folder holds arrays and no manifest: the next start builds the index anew."""
        with monkeypatch.context() as patch, pytest.raises(Killed):
            patch.setattr("una_fast.storage.folder.write_bytes", kill)
            patch.setattr("una_fast.storage.folder._remove_unlisted", lambda *_: None)
            train_here({**values, "max_steps": 1})
        assert [*Path(values["index"]).glob("*.npy")] and not Path(values["index"], "manifest.json").exists()
        assert train_here({**values, "max_steps": 1}).status == "finished"

    def test_index_with_a_cut_file(self, capsys, values, tmp_path):
        train_here({**values, "max_steps": 1})
        (array,) = Path(values["index"]).glob("words_values-*.npy")
        array.write_bytes(array.read_bytes()[:-1])
        assert "words_values-" in refusal(capsys, {**values, "output": str(tmp_path / "other")})

    def test_output_that_is_a_file(self, capsys, values, tmp_path):
        (tmp_path / "file").write_text("")
        assert "file: cannot be read: Not a directory" in refusal(capsys, {**values, "output": str(tmp_path / "file")})


def test_unknown_option(capsys, tmp_path, tiny_model):
    said = refusal(capsys, {**options(tmp_path, tiny_model), "bach_size": 8})
    assert said == "error: unknown option --bach-size: did you mean --batch-size?\n"


@pytest.mark.parametrize(("model_type", "rate", "schedule"), [("bert", 3e-5, "linear"), ("roberta", 5e-6, "constant")])
def test_presets_follow_the_model(tmp_path, model_type, rate, schedule):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": model_type}))
    values = {"corpus": ("c",), "model": str(tmp_path), "output": "o"}
    run = resolve_options(make_run(values))
    assert (run.learning_rate, run.schedule, run.augment) == (rate, schedule, "una")
    chosen = resolve_options(make_run({**values, "learning_rate": 1e-4, "schedule": "constant", "loss": "simcse"}))
    assert (chosen.learning_rate, chosen.schedule, chosen.augment) == (1e-4, "constant", "none")


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["triplet", "simcse", "decoupled"])
def test_every_loss_trains(tmp_path, tiny_model, loss):
    values = options(tmp_path, tiny_model, loss=loss, max_steps=6)
    assert train_here(values).status == "finished"
    steps = [line for line in metrics(values["output"]) if "loss" in line]
    assert [line["negatives"] for line in steps] == [loss != "simcse" and step in (0, 5) for step in range(6)]


def test_a_paraphrase_is_that_of_its_own_line(tmp_path, tiny_model):
    """With the corpus as its own paraphrases the loss stays; moved by one line, it rises."""
    values = options(tmp_path, tiny_model, dropout=0.0, max_steps=2, augment="none", dev="")
    lines = Path(values["corpus"][0]).read_text().splitlines()
    losses = {}
    for name, text in {"none": None, "same": lines, "moved": lines[1:] + lines[:1]}.items():
        one = {**values, "output": str(tmp_path / name), "index": str(tmp_path / f"index {name}")}
        if text:
            (tmp_path / f"{name}.txt").write_text("\n".join(text) + "\n")
            one["paraphrases"] = str(tmp_path / f"{name}.txt")
        train_here(one)
        losses[name] = metrics(one["output"])[0]["loss"]
    assert losses["same"] == pytest.approx(losses["none"], abs=1e-6) and losses["moved"] > losses["none"] + 5e-5
    assert json.loads((tmp_path / "moved" / "run.json").read_text())["corpus"]["blank_paraphrases"] == 2


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_precision(tmp_path, tiny_model, precision):
    values = options(tmp_path, tiny_model, precision=precision, max_steps=6, dropout=0.0)
    train_here(values)
    exact = {**values, "precision": "fp32", "output": str(tmp_path / "exact")}
    train_here(exact)
    close, plain = ([line["loss"] for line in metrics(v["output"]) if "loss" in line] for v in (values, exact))
    assert close == pytest.approx(plain, rel=0.05) and close != plain
    assert (final_state(Path(values["output"]))["scaler"].get("scale", 0) > 0) == (precision == "fp16")


def test_best_loads_everywhere_and_reads_raw_cls(tmp_path, tiny_model):
    from sentence_transformers import SentenceTransformer
    from transformers import AutoModel, AutoTokenizer

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
    assert (note["step"], note["stsb_dev"]) == (run["progress"]["best_step"], run["scores"]["stsb_dev"])
    assert {"data", "forward", "backward", "optimiser", "evaluation"} <= {*run["this_process"]["share_of_time"]}


@pytest.mark.slow
def test_torchrun_on_two_machines_is_the_job_of_one_and_its_first_rank_scores(tmp_path, tiny_model):
    """Each machine has its own index and --output."""
    data = training.write_senteval(tmp_path / "data")
    values = options(tmp_path, tiny_model, max_steps=3, nproc=2)
    whole = training.start_prepared({**values, "output": str(tmp_path / "whole"), "index": str(tmp_path / "i")})
    values = {name: value for name, value in values.items() if name != "nproc"} | {
        "evaluate": data,
        "tasks": "STSBenchmark",
    }
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "1"]
    torchrun += ["--master-addr", "127.0.0.1", "--master-port", str(training.free_port())]
    outputs = [tmp_path / f"run-{node}" for node in range(2)]
    nodes = []
    for node, output in enumerate(outputs):
        own = training.command({**values, "output": output, "index": tmp_path / f"index-{node}"})[3:]
        command = [*torchrun, "--node-rank", str(node), "-m", "train.ddp", *own]
        nodes.append(subprocess.Popen(command, cwd=training.ROOT, stderr=subprocess.PIPE, text=True))
    said = [node.communicate(timeout=240)[1] for node in nodes]
    assert [node.returncode for node in nodes] == [0, 0], said
    assert training.finish(whole)[0] == 0
    found, expected = (
        [line["loss"] for line in metrics(o) if "loss" in line] for o in (outputs[0], tmp_path / "whole")
    )
    assert found == pytest.approx(expected, abs=1e-4)  # a rank on a machine of its own has more threads
    assert json.loads((outputs[0] / "run.json").read_text())["ranks"] == 2 and not outputs[1].exists()
    assert json.loads((outputs[0] / "evaluation.json").read_text())["sts"]["STSBenchmark"]["pairs"] == 24
    assert [err.count("evaluation.json") for err in said] == [1, 0]


@pytest.mark.parametrize("name", ["folder", "missing"])
def test_a_corpus_is_a_path_whatever_its_name(tmp_path, tiny_model, name):
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match=name):
        train_here(options(tmp_path, tiny_model, corpus=(str(tmp_path / name),), device="cpu"))
