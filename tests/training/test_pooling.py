"""Pooling is read from the model's folder, and is the same in training, scores and best/; attention masks."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers.processors import TemplateProcessing
from transformers import BertModel, ModernBertConfig, ModernBertModel

from support.small_runs import metrics, options, train_here
from train.config import make_run
from train.encoder.encoder import accepts_bias, load_encoder
from train.encoder.pooling import OF_TRAINING
from train.encoder.pretrained import LENGTH, LIST, SETTINGS, load_tokenizer, read_modules
from train.evaluation.model import Batches, DevScorer, load_model
from train.evaluation.scoring import describe as describe_protocol
from train.evaluation.tasks.registry import EvaluationProtocol
from train.evaluation.tasks.sts import load_dev
from train.launch.finish import tell_end
from train.launch.prepare import PreparedRun
from train.record.checkpoint import save_encoder
from una_fast.errors import InputError, InputWarning
from una_fast.storage.files import read_json, write_json

POOLING = "1_Pooling/config.json"
TEXTS = ["A river and a castle.", "music", "one more sentence of a museum and an island"]
PROMPTS = {"prompts": {"query": "query: "}, "default_prompt_name": None, "similarity_fn_name": "dot"}
PROMPTED = {**PROMPTS, "default_prompt_name": "query"}


@pytest.fixture
def mean_model(tmp_path, tiny_model):
    """Save the tiny model by sentence-transformers, mean-pooled and normalised, with at most 64 tokens."""
    folder = Path(shutil.copytree(tiny_model, tmp_path / "mean"))
    paths = {"Transformer": "", "Pooling": "1_Pooling", "Normalize": "2_Normalize"}
    listed = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (kind, path) in enumerate(paths.items())
    ]
    for path in ("1_Pooling", "2_Normalize"):
        (folder / path).mkdir()
    write_json(folder / LIST, listed)
    write_json(folder / LENGTH, {"max_seq_length": 64, "do_lower_case": False})
    write_json(folder / SETTINGS, PROMPTS)
    write_json(folder / POOLING, {"word_embedding_dimension": 32, "pooling_mode_mean_tokens": True})
    return folder


def encoded(folder):
    """Embed TEXTS by sentence-transformers."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu")
    return model, torch.from_numpy(model.encode(TEXTS))


def ours(folder, pooling="auto"):
    """Embed TEXTS by this project's evaluation."""
    model = load_model(str(folder), pooling, device="cpu")
    with torch.no_grad():
        return model.encode(dict(model.tokenizer(TEXTS, padding=True, return_tensors="pt")))


def test_a_mean_pooled_model_is_mean_pooled_in_training_dev_scores_and_best(tmp_path, mean_model):
    values = options(tmp_path, mean_model, max_steps=4)
    train_here(values)
    best, run = Path(values["output"]) / "best", json.loads((Path(values["output"]) / "run.json").read_text())
    assert (run["settings"]["pooling"], run["settings"]["head"]) == ("mean", "none")
    model, embeddings = encoded(best)
    assert model.max_seq_length == 64 and model.prompts["query"] == "query: " and model.similarity_fn_name == "dot"
    assert [type(module).__name__ for module in model] == ["Transformer", "Pooling", "Normalize"]
    torch.testing.assert_close(embeddings, ours(best), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(embeddings.norm(dim=1), torch.ones(3))
    dev = load_dev(values["dev"])
    for folder, step in ((mean_model, 0), (best, run["progress"]["best_step"])):
        evaluated = load_model(str(folder), device="cpu")
        assert evaluated.layout.pooling == "avg"
        score = DevScorer(dev, evaluated.tokenizer)(evaluated.encode)
        (line,) = [line for line in metrics(values["output"]) if line["step"] == step and "dev/dev" in line]
        assert line["dev/dev"] == pytest.approx(score, abs=2e-3)


def test_the_maximum_length_of_the_model_overrides_that_of_the_tokenizer(mean_model):
    layout, tokenizer, seen = read_modules(str(mean_model)), load_tokenizer(str(mean_model)), []
    tokenizer.model_max_length = 8
    encoder = load_encoder(str(mean_model), 0.0, 1)
    assert layout.longest(tokenizer, encoder.backbone.config) == 64
    batches = Batches([["river " * 100]], tokenizer, 64)
    batches.embed(lambda batch: seen.append(batch) or torch.zeros(1, 2))
    assert seen[0]["input_ids"].shape == (1, 64)


def test_the_encoder_gets_the_token_type_ids_of_the_tokenizer(tiny_model):
    """GPT-2 adds their token embeddings, and XLNet marks [CLS] with them."""
    tokenizer, seen = load_tokenizer(str(tiny_model)), []
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single="[CLS]:2 $A:1 [SEP]:0", special_tokens=[("[CLS]", 101), ("[SEP]", 102)]
    )
    Batches([["river"]], tokenizer).embed(lambda batch: seen.append(batch) or torch.zeros(1, 2))
    assert seen[0]["token_type_ids"].tolist() == [[2, 1, 0]]


def test_a_model_without_token_type_ids_gets_none(tiny_model, monkeypatch):
    def forward(self, input_ids, attention_mask, output_hidden_states=None): ...

    monkeypatch.setattr(BertModel, "forward", forward)
    assert load_model(str(tiny_model), device="cpu").tokenizer.model_input_names == ["input_ids", "attention_mask"]


def test_best_has_no_random_pooler(tmp_path, tiny_model):
    folder = Path(shutil.copytree(tiny_model, tmp_path / "without"))
    weights = load_file(folder / "model.safetensors")
    save_file({name: value for name, value in weights.items() if "pooler" not in name}, folder / "model.safetensors")
    encoder = load_encoder(str(folder), 0.0, 1)
    save_encoder(tmp_path, "best", encoder, load_tokenizer(str(folder)), {}, encoder.backbone.state_dict())
    assert len({path.stat().st_mode for path in (tmp_path / "best").iterdir() if path.is_file()}) == 1  # not 0600
    with pytest.raises(InputError, match="the checkpoint has no pooler"):
        load_model(str(tmp_path / "best"), "cls", device="cpu")


def test_best_is_the_initial_encoder_if_no_step_was_better_and_last_is_the_trained_one(tmp_path, tiny_model, capsys):
    values = options(tmp_path, tiny_model, max_steps=4, learning_rate=0.5, dropout=0.0)
    outcome = train_here(values)
    assert outcome.progress.best_step == 0
    assert outcome.progress.start_score == outcome.progress.best_score > outcome.progress.last_score
    start, best = (load_file(Path(folder) / "model.safetensors") for folder in (tiny_model, tmp_path / "run" / "best"))
    assert all(torch.equal(best[name], weights) for name, weights in start.items())
    tell_end(tmp_path / "run")
    said = capsys.readouterr().err
    assert "No step beat the dev score" in said and f"last {100 * outcome.progress.last_score:.2f}" in said
    assert "(best/ is from step 0)" in said
    last = load_model(str(tmp_path / "run" / "last"), device="cpu")
    score = DevScorer(load_dev(values["dev"]), last.tokenizer)(last.encode)
    assert score == pytest.approx(outcome.progress.last_score, abs=2e-3)
    steps = [line for line in metrics(values["output"]) if "loss" in line]
    assert ["cosine_negative" in step for step in steps] == [step["negatives"] for step in steps]


@pytest.mark.slow
@pytest.mark.parametrize("name", list(OF_TRAINING))
def test_every_trained_pooling_is_saved_as_sentence_transformers_reads_it(tmp_path, tiny_model, name):
    encoder = load_encoder(str(tiny_model), 0.0, 1, name)
    tokenizer = load_tokenizer(str(tiny_model))
    save_encoder(tmp_path, "best", encoder, tokenizer, {}, encoder.backbone.state_dict())
    assert read_modules(str(tmp_path / "best")).pooling == OF_TRAINING[name]
    batch = dict(tokenizer(TEXTS, padding=True, return_tensors="pt"))
    with torch.no_grad():
        trained = encoder.eval().embed(batch)
    torch.testing.assert_close(encoded(tmp_path / "best")[1], trained, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(ours(tmp_path / "best"), trained, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(("config", "pooling"), [
    ({"embedding_dimension": 32, "pooling_mode": "lasttoken"}, "last"),
    ({"embedding_dimension": 32, "pooling_mode": ["max"]}, "max"),
    ({"pooling_mode_cls_token": True}, "cls_before_pooler"),
    ({"pooling_mode_weightedmean_tokens": True}, "weighted_mean"),
    ({"word_embedding_dimension": 32}, "avg"),
])  # fmt: skip
def test_poolings_of_all_versions_of_the_library_are_read(mean_model, config, pooling):
    write_json(mean_model / POOLING, config)
    assert read_modules(str(mean_model)).pooling == pooling


def test_a_named_pooling_overrides_only_the_pooling(tmp_path, tiny_model, mean_model):
    run = PreparedRun(make_run({**options(tmp_path, mean_model), "pooling": "cls"})).run
    assert (run.pooling, run.head) == ("cls", "mlp")
    layout = load_encoder(str(mean_model), 0.1, 1, "cls").layout
    assert (layout.pooling, layout.normalize, layout.max_length) == ("cls_before_pooler", True, 64)
    bare = PreparedRun(make_run(options(tmp_path, tiny_model))).run
    assert (bare.pooling, bare.head) == ("cls", "mlp")


@pytest.mark.parametrize(("files", "said"), [
    ({LIST: '[{"type": "Dense"}]'}, "the model's files ask for a module of type Dense, .*give --pool"),
    ({POOLING: '{"pooling_mode": ["cls", "mean"]}'}, "ask for a pooling of cls and mean"),
    ({POOLING: '{"pooling_mode": 5}'}, "ask for a pooling of 5"),
    ({LIST: "{"}, "modules.json cannot be read"),
    ({LIST: "[" * 5000}, "modules.json cannot be read"),
    ({SETTINGS: '{"truncate_dim": 8}'}, "a truncate_dim of 8, which is not supported"),
    ({SETTINGS: json.dumps(PROMPTED), POOLING: '{"include_prompt": false}'}, "ask for .* excludes the prompt's tokens"),
])  # fmt: skip
def test_unsupported_settings_are_refused_with_their_name(tmp_path, mean_model, files, said):
    for file, content in files.items():
        (mean_model / file).write_text(content)
    values = options(tmp_path, mean_model)
    for start in (lambda: PreparedRun(make_run(values)), lambda: load_model(str(mean_model), device="cpu")):
        with pytest.raises(InputError, match=said):
            start()
    if "ask for" in said:
        assert PreparedRun(make_run({**values, "pooling": "mean"})).run.pooling == "mean"


@pytest.mark.parametrize("head", ["mlp", "none"])
def test_the_option_head_chooses_whether_training_has_a_head(tiny_model, head):
    encoder = load_encoder(str(tiny_model), 0.0, 1, "mean", head).eval()
    batch = {"input_ids": torch.tensor([[101, 2003, 102]]), "attention_mask": torch.ones(1, 3, dtype=torch.int64)}
    assert ("head.weight" in encoder.state_dict()) == (head == "mlp")
    assert torch.equal(encoder([batch]), encoder.embed(batch)) == (head == "none")


@pytest.mark.slow
@pytest.mark.parametrize("prompt", [None, "query"])
@pytest.mark.parametrize("lower_case", [False, True])
def test_an_evaluation_encodes_as_sentence_transformers_does(tmp_path, mean_model, prompt, lower_case):
    """Pooling, Normalize, maximum length, default prompt and lower-casing apply, with a tokenizer that keeps case."""
    write_json(mean_model / SETTINGS, {**PROMPTS, "default_prompt_name": prompt})
    write_json(mean_model / LENGTH, {"max_seq_length": 9, "do_lower_case": lower_case})
    keep_case(mean_model)
    model = load_model(str(mean_model), device="cpu")
    described = describe_protocol(EvaluationProtocol(), model, model.max_length)
    assert (described["prompt"], described["lower_case"]) == ("query: " if prompt else "none", lower_case)
    found = torch.from_numpy(model.embed(TEXTS))
    torch.testing.assert_close(found, encoded(mean_model)[1], atol=1e-5, rtol=1e-5)
    write_json(mean_model / SETTINGS, PROMPTS)
    assert torch.allclose(found, encoded(mean_model)[1], atol=1e-5) == (prompt is None)  # the prompt has an effect


def keep_case(folder):
    """Make the BERT tokenizer in a folder keep the case of texts."""
    pipeline, settings = folder / "tokenizer.json", folder / "tokenizer_config.json"
    content = read_json(pipeline)
    content["normalizer"]["lowercase"] = False
    write_json(pipeline, content)
    write_json(settings, {**read_json(settings), "do_lower_case": False})


def test_a_default_prompt_applies_to_dev_scores_but_not_to_training_with_a_warning(tmp_path, mean_model):
    write_json(mean_model / SETTINGS, PROMPTED)
    values = options(tmp_path, mean_model, max_steps=1)
    with pytest.warns(InputWarning, match="default prompt 'query: ' is applied in dev scores .*but not in training"):
        train_here(values)
    model, dev = load_model(str(mean_model), device="cpu"), load_dev(values["dev"])
    score = DevScorer(dev, model.tokenizer, prepare=lambda texts: ["query: " + text for text in texts])
    assert metrics(values["output"])[0]["dev/dev"] == pytest.approx(score(model.encode), abs=2e-3)


def test_a_model_that_rejects_an_attention_bias_gets_the_mask(tiny_model):
    backbone = load_encoder(str(tiny_model), 0.0, 1).backbone
    plain = backbone.forward

    def refuse(input_ids, attention_mask):
        if attention_mask.ndim > 2:
            raise ValueError("wrong shape for attention_mask")
        return plain(input_ids=input_ids, attention_mask=attention_mask)

    for implementation in ("sdpa", "eager"):
        backbone.config._attn_implementation = implementation
        assert accepts_bias(backbone) and backbone.training
    backbone.forward = refuse
    assert not accepts_bias(backbone) and backbone.training
    sizes = {"vocab_size": 50, "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 32, "pad_token_id": 0}
    assert not accepts_bias(ModernBertModel(ModernBertConfig(**sizes)))  # it has sliding-window attention
