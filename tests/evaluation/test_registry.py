"""A new task needs a file and a row: a test adds one, and the command scores it with SentEval's tasks."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

from bench.parity.senteval import Batcher
from train.evaluate import main
from train.evaluation.model import load_model
from train.evaluation.tasks.registry import TASKS, TaskRow, suite, task_names

PAIRS = [
    ("4.5", "a man plays", "a man is playing"),
    ("1.0", "two dogs run", "rain"),
    ("3.0", "it rains", "rain on the town"),
    ("2.0", "one stone", "an old bridge"),
]
MODULE = '''
"""Pairs with their scores in a file of three columns."""

import numpy as np

from train.evaluation.tasks.registry import number_in, read_columns
from train.evaluation.tasks.sts import StsTask


def read(folder, name, split):
    path = folder / name / f"{split}.tsv"
    rows = list(read_columns(path, (0, 1, 2)))
    gold = np.array([number_in(row[0], path, line) for line, row in rows])
    return StsTask(name, [[row[1] for _, row in rows], [row[2] for _, row in rows]], {split: len(rows)}, gold)
'''


@pytest.fixture
def new_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of data with the files of a new task, which a module outside the package reads."""
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "pairs_of_a_test.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path / "modules")
    row = TaskRow("NEWPAIRS", "sts", {"test": len(PAIRS)}, short="NEW", module="pairs_of_a_test")
    monkeypatch.setitem(TASKS, row.name, row)
    folder = tmp_path / "data" / "senteval" / "downstream" / "NEWPAIRS"
    folder.mkdir(parents=True)
    (folder / "test.tsv").write_text("".join("\t".join(row) + "\n" for row in PAIRS))
    yield tmp_path / "data"
    sys.modules.pop("pairs_of_a_test", None)


def test_a_file_and_a_row_are_a_task_of_the_command(
    new_task: Path, tiny_model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "NEWPAIRS" not in suite("sts") and task_names("new, sts-b") == ["NEWPAIRS", "STSBenchmark"]
    kept = new_task / "scores.json"
    arguments = ["--data", new_task, "--tasks", "new-pairs", "--pooling", "avg", "--device", "cpu", "--json", kept]
    assert main(["--model", str(tiny_model), *map(str, arguments)]) == 0
    embed = Batcher(load_model(str(tiny_model), "avg", device="cpu"))
    similarity = []
    for _, *pair in PAIRS:
        first, second = (embed({}, [text.split()])[0].astype(np.float64) for text in pair)
        similarity.append(first @ second / np.linalg.norm(first) / np.linalg.norm(second))
    expected = spearmanr(similarity, [float(gold) for gold, *_ in PAIRS]).statistic
    scores = json.loads(kept.read_text())
    assert scores["sts"]["NEWPAIRS"]["spearman"]["all"] == pytest.approx(expected, abs=1e-9)
    assert scores["averages"] == {"sts": scores["sts"]["NEWPAIRS"]["spearman"]["all"], "transfer": None}
    said = capsys.readouterr().out.splitlines()
    table = said.index("Spearman x 100, 'all', test")
    assert said[table + 1].strip() == "NEW" and said[table + 2].strip() == f"{100 * expected:.2f}"
