"""`--seeds`: one run per seed, equal to a run with --seed; the table of scores; and --resume after a stop."""

import io
import json
import os
import signal
import statistics
from contextlib import redirect_stderr

import pytest

from support import small_runs as training
from support.small_runs import assert_same_run, at_step, options, refusal, train_here
from train.config import make_run
from train.ddp import main
from train.launch import finish as scoring
from train.launch.ranks import launch
from train.record.checkpoint import has_checkpoint


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("seeds")


@pytest.fixture(scope="module")
def values(folder, tiny_model):
    """Return the option values of a command that trains several seeds, scores on STS-B and builds its own index."""
    values = options(folder, tiny_model, output=str(folder / "runs"), eval_every=6, epochs=1)
    del values["index"]
    scored = {"evaluate": str(training.write_senteval(folder / "data")), "tasks": "STSBenchmark"}
    return {**values, **scored, "seeds": "3,1"}


def trained_here(values):
    """Run the command in this process. Return its exit code and messages."""
    said = io.StringIO()
    with redirect_stderr(said):
        return main(training.command(values)[3:]), said.getvalue()


@pytest.fixture(scope="module")
def stopped(values):
    """Return the messages of a command that got a SIGTERM during its second seed, seed 1."""
    with at_step(5, lambda trainer: trainer.run.seed == 1 and os.kill(os.getpid(), signal.SIGTERM)):
        code, said = trained_here(values)
    assert code == 128 + signal.SIGTERM, said
    return said


@pytest.fixture(scope="module")
def finished(values, folder, stopped):
    """Repeat the command with --resume and a third seed. Return OUTPUT and the messages."""
    paths = folder / "runs" / "index", folder / "runs" / "seed-3" / "best" / "best.json"
    times = {path: path.stat().st_mtime_ns for path in paths}
    code, said = trained_here({**values, "seeds": "3,1,0", "resume": True})
    assert code == 0, said
    assert all(path.stat().st_mtime_ns == time for path, time in times.items())
    return folder / "runs", said


def test_a_stop_ends_all_seeds_and_tells_how_to_continue(stopped):
    assert "stopped by SIGTERM: continue from step 6 with --resume" in stopped
    assert "1 of 2 seeds are trained: repeat the command with --resume to train the others" in stopped


def test_the_run_of_a_seed_equals_a_run_without_seeds(values, finished, folder):
    output, said = finished
    assert "seed-3: already finished" in said
    plain = {name: value for name, value in values.items() if name not in ("seeds", "evaluate", "tasks")}
    train_here({**plain, "seed": 1, "output": str(folder / "alone"), "index": str(output / "index")})
    assert_same_run(folder / "alone", output / "seed-1")


def test_the_table_contains_mean_and_deviation(finished):
    output, said = finished
    table = json.loads((output / "seeds.json").read_text())
    assert list(table["seeds"]) == ["3", "1", "0"]
    for name in ("dev/dev", "STSBenchmark"):
        scores = [scores[name] for scores in table["seeds"].values()]
        assert len(scores) == 3
        assert table["mean"][name] == pytest.approx(statistics.mean(scores))
        assert table["deviation"][name] == pytest.approx(statistics.stdev(scores))
        assert f"{100 * table['mean'][name]:.2f}" in said and f"{100 * table['deviation'][name]:.2f}" in said


def test_existing_scores_are_kept_and_missing_ones_computed(values, finished, capsys):
    output, _ = finished
    kept, gone = (output / f"seed-{seed}" / "evaluation.json" for seed in (3, 1))
    before = kept.stat().st_mtime_ns, gone.read_text()
    gone.unlink()
    assert main(training.command({**values, "seeds": "3,1,0", "resume": True})[3:]) == 0
    assert kept.stat().st_mtime_ns == before[0]
    assert json.loads(gone.read_text())["sts"] == json.loads(before[1])["sts"]
    score = json.loads(before[1])["sts"]["STSBenchmark"]["spearman"]["all"]
    assert f"STS-B {100 * score:.2f}: {gone}" in capsys.readouterr().err


def test_a_second_start_without_resume_and_torchrun_are_refused(values, finished, capsys, monkeypatch):
    assert "--resume" in refusal(capsys, values)
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "x")
    assert "--seeds" in refusal(capsys, values)


def test_another_corpus_is_refused_before_a_missing_seed_is_trained(values, finished, capsys, tmp_path):
    corpus = str(training.write_corpus(tmp_path / "corpus.txt", seed=9))
    changed = {"seeds": "2,3", "resume": True, "corpus": (corpus,), "index": str(tmp_path / "index")}
    assert "--resume: corpus was" in refusal(capsys, {**values, **changed})
    assert not (finished[0] / "seed-2").exists()


@pytest.mark.parametrize(
    ("changed", "named"), [({"evaluate": "."}, "senteval/downstream"), ({"tasks": "STS12"}, "tasks")]
)
def test_missing_evaluation_data_is_refused_before_training(values, capsys, tmp_path, monkeypatch, changed, named):
    monkeypatch.chdir(tmp_path)
    output = tmp_path / "new"
    assert named in refusal(capsys, {**values, "output": str(output), **changed})
    assert not has_checkpoint(output / "seed-3")


def test_a_signal_while_scoring_tells_how_to_continue(values, finished, capsys, monkeypatch):
    handlers = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    output = finished[0] / "seed-0"
    monkeypatch.setattr(scoring, "is_scored", lambda run: False)
    monkeypatch.setattr(scoring, "score_best", lambda run: os.kill(os.getpid(), signal.SIGINT))
    plain = {name: value for name, value in values.items() if name != "seeds"}
    run = make_run({**plain, "seed": 0, "output": str(output), "resume": True})
    assert launch(run) == 128 + signal.SIGINT
    assert "stopped by SIGINT: continue from step 9 with --resume" in capsys.readouterr().err
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == handlers
