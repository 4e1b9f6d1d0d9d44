"""Folders -> records, groups, differences and the table: which files are read, and which runs are compared."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from support.run_folders import STS_TASKS, write_evaluation, write_run
from train.record.folder import old_names
from train.report.__main__ import main
from train.report.runs import (
    LOSSES,
    Group,
    RunRecord,
    compare,
    differing_settings,
    find_runs,
    group_runs,
    kept_start,
    read_run,
    title,
)
from train.report.table import score_table
from una_fast.errors import InputError


@pytest.fixture
def two_settings(tmp_path: Path) -> Path:
    """Two settings of two seeds each."""
    for seed, score in ((42, 0.80), (0, 0.82)):
        write_run(tmp_path / "una" / f"seed-{seed}", score, augment="una", seed=seed, dev="x/pairs.tsv.gz")
        write_run(tmp_path / "none" / f"seed-{seed}", score - 0.03 - seed / 10_000, seed=seed, dev="pairs.tsv")
    return tmp_path


def test_runs_of_one_setting_are_one_group_called_by_its_folder(two_settings: Path) -> None:
    write_run(two_settings / "alone", 0.5)
    runs = find_runs([two_settings / "una", two_settings / "none", two_settings / "alone", two_settings / "una"])
    assert [run.name for run in runs] == ["una/seed-0", "una/seed-42", "none/seed-0", "none/seed-42", "alone"]
    assert [(group.label, len(group.runs)) for group in group_runs(runs)] == [("una", 2), ("none", 2), ("alone", 1)]
    for seed in (1, 2, 3):
        write_run(two_settings / "mixed" / f"try-{seed}", 0.5, seed=seed, beta=0.1)
    write_run(two_settings / "mixed" / "other", 0.5, beta=0.2)
    labels = [group.label for group in group_runs(find_runs([two_settings / "una", two_settings / "mixed"]))]
    assert labels == ["una", "mixed/other", "mixed"]


def test_the_scores_of_a_run_are_those_of_its_files(tmp_path: Path) -> None:
    """A score that is not defined is absent, and a mean of fewer than seven tasks is not called the average."""
    for name, tasks in (("all", STS_TASKS), ("some", ("STS13", "STS14", "STSBenchmark"))):
        write_evaluation(write_run(tmp_path / name, 0.8, beta=name, dev="data/sts-dev.csv"), 0.7, tasks)
    whole, some = find_runs([tmp_path])
    assert whole.scores["STS average"] == pytest.approx(0.7) and "STS average" not in some.scores
    assert some.scores.keys() == {
        "dev/sts-dev", "dev_last/sts-dev", "STS13", "STS14", "STSBenchmark", "CR",
    }  # fmt: skip
    assert [title(name) for name in some.scores if name.startswith("dev")] == ["sts-dev, best", "sts-dev, last"]
    names = old_names(some.scores)
    assert (names["stsb_dev"], names["stsb_dev_last"]) == (0.8, pytest.approx(0.79))
    lines = [{"step": 5, "dev/sts-dev": 0.7, "stsb_dev": 0.7}, {"step": 9, "dev/sts-dev": None, "stsb_dev": None}]
    (some.folder / "metrics.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert read_run(some.folder).curves["dev"] == {5: 0.7}


def test_a_run_of_which_no_step_beat_the_start_is_known(tmp_path: Path) -> None:
    starts = {"better": 0.79, "equal": 0.8, "unknown": None, "worse": 0.9}
    for name, start in starts.items():
        write_run(tmp_path / name, 0.8, start=start)
    runs = find_runs([tmp_path])
    assert "before training in equal, worse: best/ is" in kept_start(runs)
    assert {run.name: run.scores.get("dev_start/dev") for run in runs} == starts
    short = write_run(tmp_path / "short", 0.8)
    (short / "run.json").write_text('{"settings": {}}')
    assert not kept_start([read_run(short)])


def test_the_table_has_runs_means_and_paired_differences(two_settings: Path) -> None:
    none, una = group_runs(find_runs([two_settings / "none", two_settings / "una"]))
    assert differing_settings([none, una]) == ["augment", "dev"]
    pair = una.compared(none)["dev/pairs"]
    assert (pair.n, pair.difference) == (2, pytest.approx(0.0321))  # 0.03 and 0.0342
    assert pair.deviation == pytest.approx(0.0042 / math.sqrt(2)) and pair.low < pair.difference < pair.high
    head, rows = score_table([none, una], none)
    assert head == ["", "runs", "pairs, best", "pairs, last", "augment", "dev"]
    assert [(row.group, row.kind, *row.cells[:3]) for row in rows] == [
        (0, "run", "none/seed-0", "seed 0", "79.00"), (0, "run", "none/seed-42", "seed 42", "76.58"),
        (0, "mean", "none", "2 runs", "77.79 ± 1.71"),
        (1, "run", "una/seed-0", "seed 0", "82.00"), (1, "run", "una/seed-42", "seed 42", "80.00"),
        (1, "mean", "una", "2 runs", "81.00 ± 1.41"),
        (1, "difference", "difference to none", "", "+3.21 (+0.54 to +5.88)"),
    ]  # fmt: skip
    assert una.compared(Group("", none.runs[:1]))["dev/pairs"].n == 1  # one common seed


def test_a_score_of_some_runs_is_a_dash_elsewhere() -> None:
    scores = ({"dev": 0.8, "STS12": 0.5}, {"dev": 0.7})
    runs = [RunRecord(f"seed-{seed}", Path(), {"seed": seed}, {}, {}, of) for seed, of in enumerate(scores, 1)]
    assert [row.cells[1:] for row in score_table([Group("all", runs)])[1]] == [
        ["seed 1", "80.00", "50.00"], ["seed 2", "70.00", "-"], ["2 runs", "75.00 ± 7.07", "50.00"],
    ]  # fmt: skip


def test_a_baseline_of_several_settings_is_refused(two_settings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(two_settings / "none" / "other", 0.5, beta=0.9)
    assert main([str(two_settings / "una"), "--baseline", str(two_settings / "none")]) == 2
    assert "none: holds runs of several settings" in capsys.readouterr().err


def test_damaged_lines_of_metrics_are_left_out(tmp_path: Path) -> None:
    metrics = write_run(tmp_path / "run", 0.8) / "metrics.jsonl"
    whole = metrics.read_text()
    metrics.write_text('{"step": 1}\nnot json\n{"step": 3, "loss": "high"}\n[]\n' + whole + '{"step": 21, "lo')
    curves = read_run(metrics.parent).curves
    assert [*curves[LOSSES[1]]] == [*curves["cosine_negative"]] == [0, 5, 10, 15] and len(curves[LOSSES[0]]) == 16
    assert curves["dev"] == {10: pytest.approx(0.78), 20: 0.8} and len(curves["cosine_positive"]) == 20


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("run.json", '{"settings": {}, "scores": {"stsb_dev": "high"}}'),
        ("run.json", "{"),
        ("evaluation.json", '{"protocol": {"aggregate": "all", "split": "test"}, "sts": {"STS12": 7}}'),
    ],
)
def test_a_run_with_a_file_that_no_run_writes_is_refused(tmp_path: Path, name: str, content: str) -> None:
    folder = write_run(tmp_path / "run", 0.8)
    (folder / name).write_text(content)
    with pytest.raises(InputError, match=f"{name}.* cannot be read"):
        read_run(folder)


@pytest.mark.parametrize("n", [2, 3, 10])
def test_differences_are_paired_by_seed(n: int) -> None:
    first, second = np.random.default_rng(n).normal(size=(2, n))
    without, with_it = ({str(seed): float(x) for seed, x in enumerate(scores)} for scores in (first, second))
    pair = compare({**without, "of no use": 0.0}, dict(reversed(with_it.items())))
    test = stats.ttest_rel(second, first)
    assert pair is not None and pair.n == n
    assert (pair.without, pair.with_it) == (pytest.approx(first.mean()), pytest.approx(second.mean()))
    assert pair.difference == pytest.approx((second - first).mean())
    assert pair.deviation == pytest.approx((second - first).std(ddof=1))
    assert (pair.p, pair.low, pair.high) == pytest.approx((test.pvalue, *test.confidence_interval(0.95)))


def test_one_seed_has_no_interval_and_equal_differences_one_of_no_length() -> None:
    assert compare({"1": 0.5}, {"2": 0.5}) is None
    one = compare({"42": 70.0}, {"42": 70.5})
    assert one is not None and one.difference == 0.5 and math.isnan(one.p) and math.isnan(one.low)
    for step, p in ((0.25, 0.0), (0.0, 1.0)):
        pair = compare({"1": 0.5, "2": 0.25}, {"1": 0.5 + step, "2": 0.25 + step})
        assert pair is not None and (pair.low, pair.high, pair.p) == (step, step, p)
