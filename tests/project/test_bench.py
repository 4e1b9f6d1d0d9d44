"""The scripts of bench on a tiny model: what they measure, the tables that they write, and messages for bad input."""

import json
from pathlib import Path

import pytest

from bench import report, style
from bench.check import REFERENCES, slower, summary
from bench.training import train_gpu, trainers
from bench.training.step_table import COLUMNS
from support.small_runs import write_corpus
from support.tokenizer_families import training_lines

ROOT = Path(__file__).parents[2]
LINES = [line for line in training_lines()[:400] if line.strip()]


@pytest.fixture
def corpus(tmp_path):
    return str(write_corpus(tmp_path / "corpus.txt"))


def on_cpu(corpus, model, path, *arguments):
    """Runs bench.training.train_gpu's own code, one round of two steps on the CPU."""
    return train_gpu.main(
        ["--device", "cpu", "--corpus", corpus, "--model", str(model), "--batch-size", "8", "--steps", "2",
         "--rounds", "1", "--max-steps", "3", "--epoch-compile", "off", "--json", str(path), *arguments]
    )  # fmt: skip


@pytest.mark.slow
def test_the_gpu_bench_runs_whole_and_in_parts(corpus, tiny_model, tmp_path, capsys):
    path = tmp_path / "results" / "train_gpu.json"
    assert on_cpu(corpus, tiny_model, path, "--only", "steps", "--contenders", "una_fast, bf16") == 0
    assert on_cpu(corpus, tiny_model, path, "--only", "steps", "--contenders", "batches") == 0
    assert on_cpu(corpus, tiny_model, path, "--only", "epoch") == 0
    saved = json.loads(path.read_text())
    assert list(saved["measured"]["steps"]) == ["una_fast, bf16", "una_fast, bf16, 2 parts", "(batches alone)"]
    steps, epoch, shares = saved["tables"]
    assert steps["columns"] == COLUMNS and len(steps["rows"]) == 3
    assert epoch["rows"][0][:3] == ["off", "24", "3"] and epoch["rows"][0][7].endswith(" %")
    assert sum(float(cell.removesuffix(" %")) for cell in shares["rows"][0][1:]) == pytest.approx(100, abs=1)
    assert "torch" in steps["machine"] and "Where an epoch's time goes" in capsys.readouterr().out


@pytest.mark.slow
def test_every_way_is_measured(corpus, tiny_model, tmp_path, capsys):
    places = ["--corpus", corpus, "--model", str(tiny_model), "--json", str(tmp_path / "trainers.json")]
    assert trainers.main([*places, "--batch-size", "8", "--rounds", "1", "--steps", "2"]) == 0
    (table,) = json.loads((tmp_path / "trainers.json").read_text())["tables"]
    assert table["columns"] == trainers.COLUMNS
    ways = {name: cells for name, *cells in table["rows"]}
    assert list(ways) == ["no negatives", trainers.FROZEN, "UNA by text", "UNA by rows", "mine_hard_negatives"]
    for name, (preparation, batch, step, speed, share, added) in ways.items():
        numbers = [float(cell.replace(",", "")) for cell in (batch, step, speed, preparation)]
        assert all(number > 0 for number in numbers[:3]) and numbers[3] >= 0
        assert share.endswith(" %") and added.endswith(" %") == name.startswith("UNA by")
    assert report.single_table(table).count("\n|") >= 6 and "UNA by rows" in capsys.readouterr().out


def test_a_slower_kernel_is_named_with_its_last_good_commit():
    good = dict.fromkeys(REFERENCES, 0.5)
    saved = summary([good, {**good, "index": 0.55}], "abc1234")
    assert saved["kernels"]["index"] == {"ratio": 0.5, "tolerance": 0.3, "commit": "abc1234"}
    assert saved["kernels"]["augment"]["tolerance"] == 0.15
    assert slower({**good, "index": 0.64}, saved, 1.0) == []
    (message,) = slower({**good, "augment": 0.6}, saved, 1.0)
    assert message.endswith(
        "takes 0.6 times as long as nltk, and took 0.5 times as long at commit abc1234, with a tolerance of 15%"
    )
    assert message.startswith("augment: ")
    assert slower({**good, "augment": 0.6}, saved, 2.0) == []


@pytest.mark.parametrize("name", style.FEATURES)
def test_texts_of_one_kind_cannot_be_told_and_marked_ones_can(name):
    shifted = LINES[1:] + LINES[:1]
    assert style.accuracy(style.FEATURES[name](), LINES, shifted) < 0.6
    assert style.accuracy(style.FEATURES[name](), LINES, [f"{line} ~ ^ ~ ^" for line in LINES]) > 0.95


def test_the_page_shows_the_result():
    result = json.loads((ROOT / style.RESULT).read_text(encoding="utf-8"))
    assert list(result["rows"]) == list(style.SETTINGS)
    assert (ROOT / style.PAGE).read_text(encoding="utf-8") == style.page(result)
