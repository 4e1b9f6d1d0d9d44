"""A new task needs a file and a row: a test adds one, and the command scores it with SentEval's tasks."""

import json
import sys
from pathlib import Path

import pytest

from train.evaluate import main
from train.evaluation.model import PairScorer, load_model
from train.evaluation.tasks.registry import TASKS, TaskRow, suite, task_names
from train.evaluation.tasks.sts import load_dev

PAIRS = (
    "4.5\ta man plays\ta man is playing\n1\ttwo dogs run\train\n3\tit rains\train on the town\n2\tone\tan old bridge\n"
)
MODULE = '''
"""Pairs with their scores in a file of three columns."""

import numpy as np

from train.evaluation.tasks.registry import read_rows, score_in
from train.evaluation.tasks.sts import StsTask


def read(folder, name, split):
    gold, *sides = zip(*read_rows(folder / name / f"{split}.tsv", (0, 1, 2), score_in))
    return StsTask(name, [*map(list, sides)], {split: len(gold)}, np.array(gold))
'''


def test_a_file_and_a_row_are_a_task_of_the_command(
    tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pairs_of_a_test.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(
        TASKS, "NEWPAIRS", TaskRow("NEWPAIRS", "sts", {"test": 4}, short="NEW", module="pairs_of_a_test")
    )
    pairs = tmp_path / "senteval" / "downstream" / "NEWPAIRS" / "test.tsv"
    pairs.parent.mkdir(parents=True)
    pairs.write_text(PAIRS)
    assert "NEWPAIRS" not in suite("sts") and task_names("new, sts-b") == ["NEWPAIRS", "STSBenchmark"]

    words = ["--data", tmp_path, "--tasks", "new-pairs", "--pooling", "avg", "--json", tmp_path / "scores.json"]
    assert main(["--model", str(tiny_model), "--device", "cpu", *map(str, words)]) == 0
    sys.modules.pop("pairs_of_a_test")
    model = load_model(str(tiny_model), "avg", device="cpu")
    expected = PairScorer(load_dev(pairs), model.tokenizer)(model.encode)
    scores = json.loads((tmp_path / "scores.json").read_text())
    assert scores["sts"]["NEWPAIRS"]["spearman"]["all"] == pytest.approx(expected, abs=1e-9)
    assert scores["averages"] == {"sts": scores["sts"]["NEWPAIRS"]["spearman"]["all"], "transfer": None}
    said = capsys.readouterr().out.splitlines()
    table = said.index("Spearman x 100, 'all', test")
    assert said[table + 1].strip() == "NEW" and said[table + 2].strip() == f"{100 * expected:.2f}"
