"""Every stop is quick and quiet, and a resumed run is bit-identical to an uninterrupted one."""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import ClassVar

import psutil
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModel

from bench.endurance.kill_and_resume import run_with_kills
from support import rank_processes
from support import small_runs as training
from support.small_runs import assert_same_run, at_step, finish, metrics, options, refused, start, train_here
from train import ddp
from train.config import Run
from train.distributed import Ranks
from train.evaluation.model import DevScorer
from train.launch.ranks import launch
from train.launch.run import starting_point
from train.loop.trainer import Trainer
from train.record.checkpoint import Progress
from train.record.folder import RUN, output_folder, saved_step
from train.signals import Stopped, raise_stopped, signals_blocked, signals_handled
from una_fast.errors import InputError

STEPS = 10


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return the folder of all runs. An epoch of its corpus has 5 steps, and the last one has fewer sentences."""
    folder = tmp_path_factory.mktemp("resume")
    training.write_corpus(folder / "corpus.txt", sentences=38)
    return folder


@pytest.fixture(scope="module")
def whole(folder, tiny_model):
    """Return the output of an uninterrupted run on one rank."""
    values = options(folder, tiny_model, output=str(folder / "whole"))
    assert train_here(values).status == "finished"
    return Path(values["output"])


def test_steps_and_evaluations_do_not_wait_for_the_disk(folder, tiny_model, whole, monkeypatch):
    """The first write to the disk ends only when step 9 of 10 begins, after four evaluations and four saves."""
    sync, ready, late = os.fsync, threading.Event(), []

    def slow(file):
        if threading.current_thread().name.startswith("saves") and not ready.wait(30):
            late.append(file)
        sync(file)

    monkeypatch.setattr(os, "fsync", slow)
    values = options(folder, tiny_model, output=str(folder / "slow"))
    with at_step(9, lambda trainer: ready.set()):
        assert train_here(values).status == "finished"
    assert not late
    assert_same_run(values["output"], whole)


def test_a_run_writes_run_json_metrics_and_tensorboard(whole):
    run = json.loads((whole / "run.json").read_text())
    assert run["status"] == "finished" and run["progress"]["step"] == STEPS
    assert run["corpus"]["blank"] == 2 and run["corpus"]["trained_on"] == 36
    assert run["settings"]["seed"] == 42 and run["versions"]["torch"]
    lines = metrics(whole)
    steps = [line for line in lines if "loss" in line]
    assert [line["step"] for line in steps] == list(range(STEPS))
    assert [line["negatives"] for line in steps] == [step % 5 == 0 for step in range(STEPS)]
    assert steps[0]["lr"] == 1e-3 and steps[5]["lr"] == pytest.approx(0.5e-3)
    assert [line["step"] for line in lines if "dev/dev" in line] == [0, 4, 8, 10]
    assert list((whole / "tensorboard").glob("events*"))


def slow(*case):
    return pytest.param(*case, marks=pytest.mark.slow)


@pytest.mark.parametrize("at", [0, 3, 9, slow(4), slow(5)])
def test_a_signal_saves_and_stops_the_run(folder, tiny_model, whole, at):
    number = signal.SIGINT if at == 3 else signal.SIGTERM
    values = options(folder, tiny_model, output=str(folder / f"signal{at}"))
    with at_step(at, lambda trainer: os.kill(os.getpid(), number)):
        outcome = train_here(values)
    assert (outcome.status, outcome.code, outcome.progress.step) == ("stopped", number, at + 1)
    assert train_here({**values, "resume": True}).status == "finished"
    assert_same_run(values["output"], whole)


@pytest.mark.parametrize(("number", "step", "evaluated"), [(2, 8, 4), slow(0, 0, None), slow(3, 10, 8)])
def test_a_signal_interrupts_an_evaluation(folder, tiny_model, whole, monkeypatch, number, step, evaluated):
    """The resumed run repeats the evaluation before the next step, and is bit-identical to an uninterrupted run."""
    values = options(folder, tiny_model, output=str(folder / f"evaluation{number}"))
    plain, calls = DevScorer.__call__, []

    def score(*arguments):
        calls.append(arguments)
        if len(calls) > number:
            monkeypatch.undo()
            monkeypatch.setattr(Trainer, "embed", None)
            os.kill(os.getpid(), signal.SIGTERM)
        return plain(*arguments)

    monkeypatch.setattr(DevScorer, "__call__", score)
    outcome = train_here(values)
    monkeypatch.undo()
    progress = outcome.progress
    assert (outcome.status, progress.step, progress.evaluated_step) == ("stopped", step, evaluated)
    assert train_here({**values, "resume": True}).status == "finished"
    assert_same_run(values["output"], whole)


SCHEDULE = {"warmup_steps": 5, "weight_decay": 0.1, "max_grad_norm": 0.5, "schedule": "cosine"}


@pytest.mark.slow
@pytest.mark.parametrize("settings", [
    {"positives": "eda-swap"},
    {**SCHEDULE, "epochs": 40, "early_stopping_patience": 10},
    {"neighbours": True, "neighbours_pool": 30, "positives": "eda-delete", "positives_share": 0.5},
])  # fmt: skip
def test_draws_and_schedules_are_the_same_after_a_resume(folder, tiny_model, tmp_path, whole, settings, monkeypatch):
    """The run stops in the second epoch, which has different draws. best/ contains only the encoder."""
    monkeypatch.setattr("train.neighbours.HIGHEST", 1.0)  # all sentences are near under random weights
    undisturbed, stopped = (options(folder, tiny_model, output=str(tmp_path / name), **settings) for name in "ab")
    assert train_here(undisturbed).status == "finished"
    with at_step(6):
        assert train_here(stopped).status == "stopped"
    assert train_here({**stopped, "resume": True}).status == "finished"
    assert_same_run(tmp_path / "a", tmp_path / "b")
    assert metrics(tmp_path / "a") != metrics(whole) and len(metrics(tmp_path / "a")) < 200  # it stops early
    weights = load_file(tmp_path / "a" / "best" / "model.safetensors")
    assert {*load_file(tiny_model / "model.safetensors")} <= {*weights}


def test_another_corpus_or_model_is_refused(whole, folder, tiny_model, tmp_path):
    """For other settings, see test_folder.py."""
    resumed = partial(options, folder, output=str(whole), resume=True)
    corpus = str(training.write_corpus(tmp_path / "other.txt", seed=1))
    assert "--resume: corpus was" in refused(resumed(tiny_model, corpus=(corpus,), index=str(tmp_path / "index")))
    other = shutil.copytree(tiny_model, tmp_path / "other")
    model = AutoModel.from_pretrained(other)
    model.embeddings.word_embeddings.weight.data[7, 3] += 1
    model.save_pretrained(other)
    assert re.search(r"--resume: model .* was", refused(resumed(other)))


@pytest.fixture(scope="module")
def values(folder, tiny_model):
    return options(folder, tiny_model, nproc=2, epochs=21, eval_every=50)


@pytest.fixture(scope="module")
def whole2(values, folder):
    """Return the output of an uninterrupted run on two ranks."""
    code, said = finish(start({**values, "output": str(folder / "whole2")}))
    assert code == 0, said
    return folder / "whole2"


@pytest.mark.slow
def test_a_run_killed_at_random_moments_is_bit_identical(values, folder, whole2):
    values = {**values, "output": str(folder / "killed")}
    assert run_with_kills(values, random.Random(0), kills=3)
    assert_same_run(values["output"], whole2)


@pytest.mark.slow
def test_a_dead_rank_ends_the_run_and_it_can_be_resumed(values, folder, whole2):
    values = {**values, "output": str(folder / "dead")}
    process = start(values)
    training.wait_for_step(process, Path(values["output"]), 4)
    psutil.Process(process.pid).children()[0].kill()
    code, said = finish(process)
    assert code == 1 and re.search(r"error: rank \d died: exit code -9: continue from step", said), said
    assert_quiet(said)
    assert finish(start({**values, "resume": True}))[0] == 0
    assert_same_run(values["output"], whole2)


@pytest.mark.slow
def test_ranks_end_with_their_launcher(folder, tiny_model):
    values = options(folder, tiny_model, output=str(folder / "orphans"), nproc=2, epochs=100_000)
    launcher = start(values)
    training.wait_for_step(launcher, Path(values["output"]), 2)
    launcher.kill()
    launcher.wait()
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        try:
            os.killpg(launcher.pid, 0)  # fails once the last process of the group has ended
        except ProcessLookupError:
            return
        time.sleep(0.1)
    os.killpg(launcher.pid, signal.SIGKILL)
    pytest.fail("ranks were left behind")


class TestSeveralMachines:
    """Each machine has its own index folder and --output, and all continue from the checkpoint of rank 0."""

    fingerprint: ClassVar = {"--learning-rate": "a", "corpus": "a", "model": "a"}
    other = Ranks(2, 3, 0, torch.device("cpu"))

    @pytest.fixture(autouse=True)
    def rank_0(self, monkeypatch):
        """Rank 0 sends its fingerprint, and a checkpoint of step 5."""
        sent = [(self.fingerprint, Progress(step=5), {"weights": 1})]
        monkeypatch.setattr(torch.distributed, "broadcast_object_list", lambda to: to.__setitem__(slice(None), sent))

    def test_a_machine_without_a_checkpoint_begins_where_rank_0_does(self, tmp_path):
        run = Run(output=str(tmp_path / "none"), resume=True)
        assert starting_point(run, self.other, self.fingerprint) == (Progress(step=5), {"weights": 1})

    @pytest.mark.parametrize("name", fingerprint)
    def test_machines_that_differ_are_refused(self, name):
        with pytest.raises(InputError, match=f"rank 2 has {name} b, and rank 0 a: give all machines the same options"):
            starting_point(Run(output=""), self.other, {**self.fingerprint, name: "b"})


LONGEST = 20  # seconds for a stop on a busy machine; on an idle one it takes less than one


def sent(process, number, to_group=False):
    """Send a signal to a run or its process group. Return the seconds until it ended, its exit code and output."""
    begun = time.monotonic()
    os.killpg(process.pid, number) if to_group else process.send_signal(number)
    code, said = finish(process)
    return time.monotonic() - begun, code, said


def assert_quiet(said):
    for noise in ("Traceback", "leaked", "forcefully", "resource_tracker", "KeyboardInterrupt"):
        assert noise not in said, said


@pytest.mark.parametrize(("nproc", "name", "to_group"), [
    (2, "SIGINT", True), slow(2, "SIGTERM", False), slow(1, "SIGUSR1", True), slow(2, "SIGHUP", True),
    slow(1, "SIGQUIT", False),
])  # fmt: skip
def test_a_signal_saves_and_ends_within_seconds(tmp_path, tiny_model, nproc, name, to_group):
    values = options(tmp_path, tiny_model, nproc=nproc, epochs=100_000, eval_every=1000, save_every=10)
    process = start(values)
    training.wait_for_step(process, Path(values["output"]), 10)
    number = getattr(signal, name)
    seconds, code, said = sent(process, number, to_group)
    assert code == 128 + number
    step = saved_step(Path(values["output"]))
    assert f"stopped by {name}: continue from step {step} with --resume" in said
    assert_quiet(said)
    assert seconds < LONGEST


@pytest.mark.slow
@pytest.mark.parametrize("after", [0.3, 4.0])
def test_a_signal_in_the_first_seconds_gives_one_message(tmp_path, tiny_model, after):
    process = start(options(tmp_path, tiny_model, nproc=2, epochs=100_000))
    while b"SigCgt" not in (status := Path(f"/proc/{process.pid}/status").read_bytes()) or not caught(status):
        time.sleep(0.01)  # Python needs a moment to start
    time.sleep(after)
    _, code, said = sent(process, signal.SIGINT)
    assert code == 128 + signal.SIGINT
    assert said.count("stopped by SIGINT") == 1
    assert_quiet(said)


def caught(status):
    """Return whether a process handles SIGTERM. status: the content of its /proc file."""
    mask = int(next(line for line in status.splitlines() if line.startswith(b"SigCgt")).split()[1], 16)
    return mask >> (signal.SIGTERM - 1) & 1


@pytest.mark.slow
def test_a_run_under_nohup_ignores_sighup(monkeypatch):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with signals_handled(raise_stopped):
            os.kill(os.getpid(), signal.SIGHUP)
            with pytest.raises(Stopped, match="SIGTERM"):
                os.kill(os.getpid(), signal.SIGTERM)
                time.sleep(1)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_blocked_signals_arrive_inside_handled():
    noted = []
    handlers = signal.getsignal(signal.SIGUSR1)
    with signals_blocked():
        signal.raise_signal(signal.SIGUSR1)  # to this thread, which blocks it; threads of libraries may not
        assert not noted
        with signals_handled(lambda number, frame: noted.append(number)):
            time.sleep(0)
        assert noted == [signal.SIGUSR1]
        assert signal.SIGUSR1 in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    assert signal.getsignal(signal.SIGUSR1) == handlers


class TestProcesses:
    """The processes of ranks, which execute simple functions instead of training."""

    def launch(self, run, work, monkeypatch):
        program = f"from support.rank_processes import be_rank_that; be_rank_that({work!r})"
        monkeypatch.setattr("train.launch.ranks.RANK_PROGRAM", program)
        return launch(run)

    @pytest.mark.parametrize(("work", "code", "said"), [
        ("number", 5, ""),  # the highest exit code of the ranks
        ("divides", 1, "error: rank 1 died: exit code 1: no checkpoint was saved yet"),
        ("is_killed", 1, "error: rank 1 died: exit code -9: no checkpoint"),
        ("refuses", 2, "error: no such corpus"),  # on all ranks
        slow("rank_1_refuses", 2, "error: no such index"),
        ("sleeps", 143, "stopped by SIGTERM: no checkpoint"),  # before training, with nothing to save
        slow("saves_for_long", 130, "stopped by SIGINT: no checkpoint"),  # at the second signal
    ])  # fmt: skip
    def test_all_ranks_end_when_one_ends(self, work, code, said, tmp_path, capfd, monkeypatch):
        if work == "is_killed":  # so late that a rank which does not wait shows its traceback
            monkeypatch.setattr("train.launch.ranks.WATCH_SECONDS", 0.4)
        assert self.launch(Run(nproc=2, output=str(tmp_path)), work, monkeypatch) == code
        shown = capfd.readouterr().err
        assert shown.count(said or shown) == 1 and ("Traceback" in shown) == (work == "divides")

    @pytest.mark.parametrize(("restarts", "code"), [(0, 0), (1, 7)])
    def test_ranks_that_torchrun_restarts_resume_the_run(self, tmp_path, monkeypatch, restarts, code):
        with output_folder(tmp_path, RUN, False):
            pass
        monkeypatch.setattr("train.launch.ranks.end_with_launcher", lambda: None)
        monkeypatch.setenv("TORCHELASTIC_RUN_ID", "x")
        monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", str(restarts))
        monkeypatch.setattr("train.launch.run.run_rank", rank_processes.resumes)
        assert launch(Run(output=str(tmp_path))) == code


@pytest.mark.slow
def test_a_closed_terminal_does_not_stop_a_run(monkeypatch):
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-c", "from train.messages import tell_user; tell_user('a line'); print('went on')"]
    done = subprocess.run(command, cwd=training.ROOT, stderr=write, stdout=subprocess.PIPE, text=True)
    os.close(write)
    assert done.stdout == "went on\n" and done.returncode in (0, 120)  # 120: Python could not flush stderr itself


def test_a_system_that_cannot_block_signals_is_refused(monkeypatch, capsys):
    monkeypatch.delattr(signal, "pthread_sigmask")
    with pytest.raises(SystemExit, match="^2$"):
        ddp.main([])
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith("error: this command needs Linux or macOS")
