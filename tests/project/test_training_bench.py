"""`train_cpu` and `train_gpu` of `bench.training` on a tiny model: their tables, and messages for bad input."""

import json

import pytest
import torch

from bench.training import train_cpu, train_gpu
from bench.training.step_table import BASE, COLUMNS
from bench.training.utilisation import step_flops
from support.small_runs import write_corpus

pytestmark = pytest.mark.slow


@pytest.fixture
def corpus(tmp_path):
    return str(write_corpus(tmp_path / "corpus.txt"))


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    """Use one thread: a tiny model gains nothing from more."""
    threads = torch.get_num_threads()
    monkeypatch.setattr(train_cpu, "n_cores", lambda n_jobs: 1)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def on_cpu(corpus, model, path, *arguments):
    """Runs bench.training.train_gpu's own code, one round of two steps on the CPU."""
    return train_gpu.main(
        ["--device", "cpu", "--corpus", corpus, "--model", str(model), "--batch-size", "8", "--steps", "2",
         "--rounds", "1", "--max-steps", "3", "--epoch-compile", "off", "--json", str(path), *arguments]
    )  # fmt: skip


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
    assert on_cpu(corpus, tiny_model, path, "--only", "steps", "--contenders", "batches", "--batch-size", "4") == 0
    assert list(json.loads(path.read_text())["measured"]["steps"]) == ["(batches alone)"]  # another batch


def test_the_cpu_bench_measures_sentence_transformers_too(corpus, tiny_model, tmp_path, capsys):
    pytest.importorskip("accelerate")
    path = tmp_path / "train_cpu.json"
    arguments = ["--corpus", corpus, "--model", str(tiny_model), "--batch-size", "8", "--rounds", "1"]
    assert train_cpu.main([*arguments, "--json", str(path)]) == 0
    (table,) = json.loads(path.read_text())["tables"]
    assert [row[0] for row in table["rows"]] == [
        "una_fast, fp32", "una_fast, bf16", "(batches alone)", "sentence-transformers, fp32",
        "sentence-transformers, bf16",
    ]  # fmt: skip
    assert all(float(row[1].replace(",", "")) > 0 for row in table["rows"][:2])


@pytest.mark.parametrize(
    ("main", "arguments", "message"),
    [
        (train_gpu.main, ["--device", "cpu", "--corpus", "none.txt"], "none.txt"),
        (train_cpu.main, ["--corpus", "CORPUS", "--released", "nowhere"], "--released nowhere: no una.py in it"),
        (train_gpu.main, ["--device", "cpu", "--contenders", "zzz", "--corpus", "CORPUS"], "no contender has that"),
    ],
)
def test_bad_input_is_a_sentence(capsys, monkeypatch, corpus, tiny_model, tmp_path, main, arguments, message):
    monkeypatch.setattr(train_gpu.importlib.util, "find_spec", lambda name: None)
    arguments = [corpus if argument == "CORPUS" else argument for argument in arguments]
    own = ["--model", str(tiny_model), "--batch-size", "8", "--json", str(tmp_path / "x.json")]
    assert main([*arguments, *own]) == 2
    said = capsys.readouterr().err
    assert "error: " in said and message in said and "Traceback" not in said


def test_operations_are_those_of_the_formula():
    """BERT-base, one sentence of 32 tokens: 6 operations a weight and token, and the attention's own."""

    class Config:
        hidden_size, intermediate_size, num_hidden_layers = 768, 3072, 12

    weights = 12 * (4 * 768**2 + 2 * 768 * 3072)
    expected = 6 * weights * 32 + 12 * 12 * 32**2 * 768
    assert step_flops(Config, torch.tensor([32]).numpy()) == pytest.approx(expected)


def test_an_epoch_stands_beside_the_released_codes_steps():
    about = {"peak_memory": {"gpu_reserved_bytes": 2**31}, "share_of_time": {"forward": 0.4, "backward": 0.5}}
    epochs = {"graphs": {"steps": 100, "seconds": 1.0, "seconds_from_start": 9.0, "sentences_of_step": 64, **about}}
    ours = {"plain": 0.008, "negatives": 0.013, "flops": 1e9, "peak": 1e12}
    steps = {"una_fast, bf16, --compile graphs": ours, BASE: {"plain": 0.05, "negatives": 0.1}}
    times, shares = train_gpu.epoch_tables(epochs, steps, "")
    assert times["rows"][0] == ["graphs", "6,400", "100", "1.0", "9.0", "10.00", "6,400", "12.0 %", "2.00", ""]
    assert times["rows"][1][:6] == [f"{BASE}, its steps alone", "6,400", "100", "6.0", "", "60.00"]
    assert shares["rows"] == [["graphs", "0.0 %", "40.0 %", "50.0 %", "0.0 %", "0.0 %", "0.0 %", "10.0 %"]]
