"""bench: the language model from random weights, the GPU session, kernel speeds, and the style of negatives."""

import json
from functools import partial
from pathlib import Path

import pytest
import torch
from transformers import AutoModel

from bench import style
from bench.check import REFERENCES, slower, summary
from bench.evidence import pretrain
from bench.training import gpu
from bench.training.gpu_tables import tables
from support import graph_stand_in
from support.small_runs import ROOT
from support.tokenizer_families import bert_uncased, training_lines
from train.demo import write_corpus
from train.encoder.encoder import SentenceEncoder
from train.launch import prepare

LINES = [line for line in training_lines()[:400] if line.strip()]


@pytest.fixture(scope="module")
def tokenizer():
    return bert_uncased()


class TestLanguageModel:
    plan = pretrain.Plan(layers=1, width=32, heads=2, rows=4, steps=200, rate=1e-2)

    def test_rows_begin_with_whole_sentences_and_six_tokens_of_each_are_masked(self, tokenizer):
        ids = tokenizer(LINES[:300], truncation=True, max_length=64)["input_ids"]
        words = pretrain.Sentences(ids, 64, torch.device("cpu"))
        rows, again = words.epoch(), words.epoch()
        marks = tokenizer.cls_token_id, tokenizer.sep_token_id
        assert (rows[:, 0] == marks[0]).all() and len({*map(tuple, rows.tolist())}) == len(rows) > 10
        assert len(rows) != len(again) or (rows != again).any()
        first = [row[: row.index(marks[1]) + 1] for row in rows.tolist() if marks[1] in row]
        assert {*map(tuple, first)} <= {*map(tuple, ids)}
        batch, places, tokens = pretrain.mask_rows(rows, tokenizer, 6)
        put = batch["input_ids"]
        assert torch.equal(rows.flatten()[places], tokens) and len(places) == 6 * len(rows)
        assert not torch.isin(tokens, torch.tensor(marks)).any()
        changed = (put != rows).flatten().nonzero()[:, 0]
        assert {*changed.tolist()} <= {*places.tolist()}
        assert 0.7 < (put.flatten()[places] == tokenizer.mask_token_id).float().mean() < 0.9

    def test_a_language_model_learns(self, tmp_path, tiny_model):
        (tmp_path / "corpus.txt").write_text("\n".join(LINES))
        losses = pretrain.pretrain(Path(tiny_model), tmp_path / "corpus.txt", tmp_path / "made", self.plan)
        assert len(losses) == 2 and losses[1] < losses[0] - 0.3
        made = AutoModel.from_pretrained(tmp_path / "made")
        assert (made.config.hidden_size, made.config.hidden_dropout_prob) == (32, 0.1)


@pytest.mark.slow
def test_the_gpu_session_runs_on_a_cpu(tmp_path, tiny_model, monkeypatch):
    """The session times every variant, and a failed measurement does not end it."""
    for name in ("ROUNDS", "PLAIN", "NEGATIVES", "PROFILED"):
        monkeypatch.setattr(gpu, name, 2)
    graph_stand_in.install(monkeypatch)
    load = prepare.load_encoder
    monkeypatch.setattr(prepare, "load_encoder", lambda *given, **named: load(*given, **{**named, "device": "cuda"}))
    monkeypatch.setattr(SentenceEncoder, "_looked_up", lambda encoder, parts: parts)
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="aot_eager"))  # its kernels can be recorded
    session = gpu.Session(tmp_path / "made", tmp_path, str(write_corpus(tmp_path)), str(tiny_model), "cpu", share=8)
    for phase in ("batch 64", "runs"):
        gpu.PHASES[phase](session, phase)
    session.note("others", "broken", lambda: {}["x"])
    saved = json.loads((tmp_path / "made" / gpu.RESULT).read_text())
    found = saved["measured"]
    names = [f"una_fast, --compile {compile}" for compile in ("off", "graphs", "on")]
    assert [row[0] for row in saved["tables"][0]["rows"]] == names and "torch" in saved["tables"][0]["machine"]
    assert found["runs"]["off"]["exit_code"] == 0 and found["runs"]["off"]["steps"] == gpu.RUN_STEPS // 8
    assert found["others"]["broken"] == {"error": "KeyError: 'x'"}


def test_the_saved_tables_of_gpu_steps_match_the_saved_figures():
    saved = json.loads((ROOT / "bench" / "results" / "train_gpu.json").read_text(encoding="utf-8"))
    assert saved["tables"] == tables(saved["measured"])
    for *rows, total, _ in zip(*(row[1:] for row in saved["tables"][1]["rows"]), strict=True):
        assert sum(map(float, rows)) == pytest.approx(float(total), abs=0.3)


def test_a_slower_kernel_is_reported_with_its_last_good_commit():
    good = dict.fromkeys(REFERENCES, 0.5)
    saved = summary([good, {**good, "index": 0.55}], "abc1234")
    assert saved["kernels"]["index"] == {"ratio": 0.5, "tolerance": 0.3, "commit": "abc1234"}
    assert saved["kernels"]["augment"]["tolerance"] == 0.15
    assert slower({**good, "index": 0.64}, saved, 1.0) == slower({**good, "augment": 0.6}, saved, 2.0) == []
    said = "takes 0.6 times as long as nltk, and took 0.5 times as long at commit abc1234, with a tolerance of 15%"
    assert slower({**good, "augment": 0.6}, saved, 1.0) == [f"augment: {said}"]


@pytest.mark.parametrize("name", style.FEATURES)
def test_a_classifier_detects_marked_texts_but_does_not_separate_the_same_texts(name):
    shifted = LINES[1:] + LINES[:1]
    assert style.accuracy(style.FEATURES[name](), LINES, shifted) < 0.6
    assert style.accuracy(style.FEATURES[name](), LINES, [f"{line} ~ ^ ~ ^" for line in LINES]) > 0.95


def test_the_page_about_style_shows_the_saved_result():
    result = json.loads((ROOT / style.RESULT).read_text(encoding="utf-8"))
    assert list(result["rows"]) == list(style.SETTINGS)
    page = (ROOT / style.PAGE).read_text(encoding="utf-8")
    assert all(f"<!-- {name}: begin -->\n\n{table}\n\n" in page for name, table in style.tables(result).items())
