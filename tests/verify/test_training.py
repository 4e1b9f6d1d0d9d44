"""`python -m train.verifier`: the folder, one seed, a stop and --resume, labelled pairs, and refusals."""

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import una_fast
from support.small_runs import ROOT
from train.record.folder import METRICS, SUMMARY
from train.verifier import data
from train.verifier.__main__ import main
from train.verifier.data import Pairs, make_pairs
from train.verifier.options import VerifierOptions
from una_fast.verify.encoder import open_encoder
from una_fast.verify.model import EncodedText
from una_fast.verify.templates import Pair
from una_fast.verify.verifier import SETTINGS, WEIGHTS

SUBJECTS = "cat dog king teacher river castle train doctor farmer ship".split()
VERBS = "visited helped painted followed watched admired".split()
SENTENCES = [
    f"The {a} {verb} the {b} in {1900 + 7 * i} before the {SUBJECTS[(i + 3) % 10]} left."
    for i, verb in enumerate(VERBS)
    for a in SUBJECTS
    for b in SUBJECTS[::3]
    if a != b
]
SMALL = ["--templates", "60", "--batch-size", "8", "--layers", "1", "--width", "8", "--save-every", "2"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("corpus") / "corpus.txt"
    path.write_text("\n".join(SENTENCES) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def arguments(corpus, tiny_model, tmp_path):
    return ["--corpus", str(corpus), "--model", str(tiny_model), "--output", str(tmp_path / "run"), *SMALL]


def weights(folder):
    return (folder / WEIGHTS).read_bytes()


def test_a_run_writes_a_verifier_and_one_seed_gives_the_same_bits(arguments, tmp_path, capsys):
    assert main([*arguments, "--max-steps", "5"]) == 0
    said = capsys.readouterr().err
    assert "finished after 5 steps" in said and "AUC" in said and "encoding" in said
    run = tmp_path / "run"
    summary = json.loads((run / SUMMARY).read_text())
    assert summary["status"] == "finished" and summary["progress"]["step"] == 5 and summary["scores"]["auc"] >= 0
    assert summary["command"] == "train.verifier" and summary["versions"]["torch"] and summary["pairs"]
    steps = [json.loads(line)["step"] for line in (run / METRICS).read_text().splitlines()]
    assert steps == [0, 1, 2, 3, 4]
    verifier = una_fast.Verifier(run)
    assert 0 < verifier.near_miss([("The cat visited the dog.", "The dog visited the cat.")])[0] < 1
    assert json.loads((run / SETTINGS).read_text())["least_shared"] == 0.35
    arguments[arguments.index("--output") + 1] = str(tmp_path / "again")
    assert main([*arguments, "--max-steps", "5"]) == 0
    assert weights(tmp_path / "again") == weights(run)
    assert (tmp_path / "again" / SETTINGS).read_bytes() == (run / SETTINGS).read_bytes()
    arguments[arguments.index("--output") + 1] = str(tmp_path / "other")
    assert main([*arguments, "--max-steps", "5", "--seed", "1"]) == 0
    assert weights(tmp_path / "other") != weights(run)


def start(arguments):
    command = [sys.executable, "-m", "train.verifier", *arguments]
    return subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)


def wait_for_step(run, step):
    for _ in range(1200):
        lines = (run / METRICS).read_text().count("\n") if (run / METRICS).exists() else 0
        if lines > step:
            return
        time.sleep(0.05)
    raise AssertionError(f"no step {step}")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_stop_costs_nothing(arguments, tmp_path, number):
    """A stopped or killed run continues from its checkpoint and ends with the same weights."""
    arguments += ["--max-steps", "40"]
    run = tmp_path / "run"
    process = start(arguments)
    wait_for_step(run, 9)
    process.send_signal(number)
    said = process.communicate()[1]
    if number == signal.SIGINT:
        assert process.returncode == 130 and "stopped by SIGINT: continue from step" in said
        assert json.loads((run / SUMMARY).read_text())["status"] == "stopped"
    assert not (run / SETTINGS).exists()
    assert main(["--output", str(run), "--resume"]) == 0
    steps = [json.loads(line)["step"] for line in (run / METRICS).read_text().splitlines()]
    assert steps == [*range(40)]
    arguments[arguments.index("--output") + 1] = str(tmp_path / "whole")
    assert main(arguments) == 0
    assert weights(run) == weights(tmp_path / "whole")
    assert (run / SETTINGS).read_bytes() == (tmp_path / "whole" / SETTINGS).read_bytes()


def test_folders_and_settings_are_refused(arguments, tmp_path, capsys):
    run = tmp_path / "run"
    assert main([*arguments, "--max-steps", "2"]) == 0
    assert main([*arguments, "--max-steps", "2"]) == 2
    assert "contains a run of train.verifier: give --resume" in capsys.readouterr().err
    assert main([*arguments, "--max-steps", "2", "--resume"]) == 0 and "already finished" in capsys.readouterr().err
    (run / SUMMARY).write_text((run / SUMMARY).read_text().replace('"finished"', '"stopped"'))
    assert (
        main(["--output", str(run), "--resume", "--max-steps", "2", "--seed", "7"]) == 0
    )  # no checkpoint: starts again
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("mine")
    arguments[arguments.index("--output") + 1] = str(tmp_path / "mine")
    assert main(arguments) == 2 and "contains thesis.txt" in capsys.readouterr().err
    assert main(["--output", str(tmp_path / "nothing"), "--resume"]) == 2


def test_resume_refuses_other_settings(arguments, tmp_path, capsys):
    run = tmp_path / "run"
    assert main([*arguments, "--max-steps", "4"]) == 0
    (run / SUMMARY).write_text((run / SUMMARY).read_text().replace('"finished"', '"stopped"'))
    assert main(["--output", str(run), "--resume", "--learning-rate", "0.5"]) == 2
    assert "--learning-rate was 0.001 when" in capsys.readouterr().err


@pytest.mark.parametrize(("added", "named"), [
    (["--width", "10"], "--width 10"), (["--corpus", "nowhere.txt"], "nowhere.txt"),
    (["--corpus", "few.txt"], "1 distinct"),
    (["--wordnet", "nowhere"], "wordnet='nowhere'"), (["--pairs", "nowhere.tsv"], "nowhere.tsv"),
    (["--sentenses", "300"], "--sentences"),
])  # fmt: skip
def test_wrong_options_are_refused(arguments, added, named, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "few.txt").write_text("One sentence of six words only.\n" * 200)
    assert main([*(arguments[2:] if "--corpus" in added else arguments), *added]) == 2
    assert named in capsys.readouterr().err


def test_pairs_that_are_held_back_are_never_trained_on(corpus, tiny_model, tmp_path):
    own = [(f"{a} is big", f"{a} is large", 1) for a in SUBJECTS * 2]  # each pair twice, and once turned round
    own += [(second, first, label) for first, second, label in own[:10]] + [(f"{VERBS} " * 9, "too long", 0)]
    lines = ["sentence1\tsentence2\tlabel", *("\t".join(map(str, pair)) for pair in own)]
    (tmp_path / "pairs.tsv").write_text("\n".join(lines) + "\n")
    encoder = open_encoder(tiny_model)
    options = VerifierOptions(
        corpus=(str(corpus),), pairs=str(tmp_path / "pairs.tsv"), sentences=100, templates=20, neighbours=2
    )
    for seed in range(3):
        pairs = make_pairs(replace(options, seed=seed), encoder)
        assert sum(pair.kind == "labelled" for pair in pairs.pairs) == 11
        pairs.encode(encoder)
        counts = Counter(pair for pair in pairs.training if pair.kind == "labelled")
        (times,) = {*counts.values()}
        assert times == round(0.3 * sum(pair.kind != "labelled" for pair in pairs.pairs) / 11) > 1
        back = pairs.pairs[: len(pairs.pairs) - len({*pairs.training})]
        assert sum(pair.kind == "labelled" for pair in back) == 10 - len(
            counts
        )  # the pair that is too long is left out


def test_pairs_without_labelled_ones_keep_their_order_and_their_training():
    """The packaged verifier can be trained again, to the bit, only with the same pairs in the same order."""
    made = [Pair(f"a {i}", f"b {i}", i % 2, "kind") for i in range(2000)]
    pairs = Pairs(made, 42)
    assert pairs.pairs == [made[i] for i in np.random.default_rng(42).permutation(2000)]
    pairs.encode(FakeEncoder())
    assert pairs.training == pairs.pairs[80:] and len(pairs.held_back()[1]) == 80  # 4%


class FakeEncoder:
    def encode(self, texts, max_tokens):
        return [EncodedText(np.zeros(1, np.int32), np.zeros((1, 2), np.float16))] * len(texts)


def test_the_time_of_choosing_sentences_is_linear(monkeypatch):
    monkeypatch.setattr(data, "has_roles", lambda text: text.endswith("1"))

    def seconds(n):
        monkeypatch.setattr(data, "_suitable", lambda options: map(str, range(10 * n)))
        started = time.process_time()
        assert len(data.read_sentences(VerifierOptions(corpus=("x",), sentences=n))) == n
        return time.process_time() - started

    short, long = (min(seconds(n) for _ in range(3)) for n in (400, 3200))
    assert long < 20 * short + 0.01  # 8 times as many: a quadratic search takes 64 times as long


def test_every_seed_trains(arguments):
    assert main([*arguments, "--max-steps", "2", "--seed", str(2**64 - 1)]) == 0


@pytest.mark.slow
def test_labelled_pairs_change_the_verifier(arguments, tmp_path):
    pairs = [(f"{a} is big", f"{a} is {b}", int(b == "large")) for a in SUBJECTS for b in ("large", "small")]
    lines = ["sentence1\tsentence2\tlabel", *("\t".join(map(str, pair)) for pair in pairs)]
    (tmp_path / "pairs.tsv").write_text("\n".join(lines) + "\n")
    added = ["--max-steps", "150", "--pairs", str(tmp_path / "pairs.tsv"), "--learning-rate", "0.01"]
    assert main([*arguments, *added]) == 0
    assert json.loads((tmp_path / "run" / SETTINGS).read_text())["least_shared"] == 0  # distant labels were learned
    found = una_fast.Verifier(tmp_path / "run").near_miss([pair[:2] for pair in pairs])
    labels = np.array([label for *_, label in pairs])
    assert found[labels == 0].mean() > found[labels == 1].mean() + 0.3
