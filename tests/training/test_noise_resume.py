"""A run with noise on embeddings ends after a stop like a run without a stop."""

import os
import signal

import pytest

from support.small_runs import assert_same_run, metrics, options, train_here, write_corpus
from train.loop.trainer import Trainer

pytestmark = pytest.mark.slow


def stop_at(monkeypatch, at):
    plain = Trainer.step

    def step(self, batch):
        if batch.step == at:
            os.kill(os.getpid(), signal.SIGTERM)
        return plain(self, batch)

    monkeypatch.setattr(Trainer, "step", step)


@pytest.mark.parametrize("noise", ["gaussian", "linear"])  # their draws are normals and pairs; there are no others
def test_a_stopped_run_ends_with_the_same_bits(tmp_path, tiny_model, monkeypatch, noise):
    write_corpus(tmp_path / "corpus.txt", sentences=38)  # 5 steps an epoch
    settings = {"noise": noise, "noise_view": "all", "noise_strength": 0.3}
    whole = options(tmp_path, tiny_model, output=str(tmp_path / "whole"), **settings)
    parts = {**whole, "output": str(tmp_path / "parts")}
    assert train_here(whole).status == "finished"
    with monkeypatch.context() as patch:
        stop_at(patch, 6)  # in the second epoch, which has other draws
        assert train_here(parts).status == "stopped"
    assert train_here({**parts, "resume": True}).status == "finished"
    assert_same_run(parts["output"], whole["output"])


def test_noise_changes_a_run_and_another_noise_is_refused_on_resume(tmp_path, tiny_model):
    plain = options(tmp_path, tiny_model, output=str(tmp_path / "plain"), max_steps=2)
    noisy = {**plain, "output": str(tmp_path / "noisy"), "noise": "gaussian"}
    assert train_here(plain).status == train_here(noisy).status == "finished"
    assert metrics(plain["output"]) != metrics(noisy["output"])
    refused = train_here({**noisy, "noise": "linear", "resume": True})
    assert refused.status == "failed" and "--resume: --noise was gaussian" in refused.message
