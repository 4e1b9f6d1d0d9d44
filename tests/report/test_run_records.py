"""Folders -> records, groups, differences and the table: which files are read, and which runs are compared."""

import json
import math
from pathlib import Path

import pytest

from support.run_folders import STS_TASKS, write_evaluation, write_run
from train.record.folder import old_names
from train.report.__main__ import main
from train.report.runs import (
    LOSSES,
    Group,
    RunRecord,
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


def test_seeds_of_one_setting_are_one_group_with_mean_and_deviation(two_settings: Path) -> None:
    write_evaluation(two_settings / "una" / "seed-42", 0.77)
    groups = group_runs(find_runs([two_settings / "una", two_settings / "none"]))
    assert [(group.label, len(group.runs)) for group in groups] == [("una", 2), ("none", 2)]
    scores = groups[0].compared()
    assert (scores["dev/pairs"].with_it, scores["dev/pairs"].n) == (pytest.approx(0.81), 2)
    assert scores["dev/pairs"].deviation == pytest.approx(math.sqrt(2) * 0.01)
    assert scores["STSBenchmark"].with_it == pytest.approx(0.77) and "STS12" not in scores  # undefined
    assert differing_settings(groups) == ["augment", "dev"]


def test_the_papers_table_of_seeds_has_its_mean_and_deviation() -> None:
    seeds = [0.7767, 0.7691, 0.7680, 0.7655, 0.7668, 0.7646, 0.7726, 0.7692, 0.7739, 0.7707]
    runs = [RunRecord(str(i), Path(), {"seed": i}, {}, {}, {"average": score}) for i, score in enumerate(seeds)]
    mean = Group("", runs).compared()["average"]
    assert (round(mean.with_it, 4), round(mean.deviation, 4)) == (0.7697, 0.0038)


def test_groups_and_runs_are_called_by_their_folders(two_settings: Path) -> None:
    write_run(two_settings / "alone", 0.5)
    runs = find_runs([two_settings / "una", two_settings / "none", two_settings / "alone", two_settings / "una"])
    assert [run.name for run in runs] == ["una/seed-0", "una/seed-42", "none/seed-0", "none/seed-42", "alone"]
    for seed in (1, 2, 3):
        write_run(two_settings / "mixed" / f"try-{seed}", 0.5, seed=seed, beta=0.1)
    write_run(two_settings / "mixed" / "other", 0.5, beta=0.2)
    labels = [group.label for group in group_runs(find_runs([two_settings / "una", two_settings / "mixed"]))]
    assert labels == ["una", "mixed/other", "mixed"]


def test_a_dev_score_is_called_after_its_file_and_by_its_old_name(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "run", 0.8, dev="data/sts-dev.csv"))
    assert run.scores == {"dev/sts-dev": 0.8, "dev_last/sts-dev": pytest.approx(0.79)}
    assert old_names(run.scores) == {**run.scores, "stsb_dev": 0.8, "stsb_dev_last": pytest.approx(0.79)}
    assert [*map(title, run.scores)] == ["sts-dev, best", "sts-dev, last"]
    assert run.curves["dev"] == {10: pytest.approx(0.78), 20: 0.8}
    lines = [{"step": 5, "dev/sts-dev": 0.7, "stsb_dev": 0.7}, {"step": 9, "dev/sts-dev": None, "stsb_dev": None}]
    (run.folder / "metrics.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert read_run(run.folder).curves == {"dev": {5: 0.7}}


def test_a_run_of_which_no_step_beat_the_start_is_known(tmp_path: Path) -> None:
    for name, start in (("better", 0.79), ("equal", 0.8), ("worse", 0.9), ("unknown", None)):
        write_run(tmp_path / name, 0.8, start=start)
    runs = find_runs([tmp_path])
    assert "before training in equal, worse: best/ is" in kept_start(runs)
    assert {run.name: Group("", [run]).start for run in runs} == {
        "better": 0.79, "equal": 0.8, "unknown": None, "worse": 0.9,
    }  # fmt: skip
    short = write_run(tmp_path / "short", 0.8)
    (short / "run.json").write_text('{"status": "running"}')
    assert not kept_start([read_run(short)])


def test_the_table_has_runs_means_and_paired_differences(two_settings: Path) -> None:
    none, una = group_runs(find_runs([two_settings / "none", two_settings / "una"]))
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
    for run in (*none.runs, *una.runs):
        run.scores.update({f"task {i}": 0.5 for i in range(9)})
    cells = score_table([none, una], none)[1][-1].cells  # of more than ten comparisons p is shown, as Holm corrects it
    assert cells[2].endswith("), p 0.46") and cells[5] == "+0.00 (+0.00 to +0.00), p 1.00"


def test_a_score_of_some_runs_is_a_dash_elsewhere() -> None:
    def record(seed: int, **scores: float) -> RunRecord:
        return RunRecord(f"seed-{seed}", Path(), {"seed": seed}, {}, {}, scores)

    rows = score_table([Group("all", [record(1, dev=0.8, STS12=0.5), record(2, dev=0.7)])])[1]
    assert [row.cells[1:] for row in rows] == [
        ["seed 1", "80.00", "50.00"], ["seed 2", "70.00", "-"], ["2 runs", "75.00 ± 7.07", "50.00"],
    ]  # fmt: skip


def test_a_baseline_of_several_settings_is_refused(two_settings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(two_settings / "none" / "other", 0.5, beta=0.9)
    assert main([str(two_settings / "una"), "--baseline", str(two_settings / "none")]) == 2
    assert "none: holds runs of 2 settings (" in capsys.readouterr().err


def test_a_mean_of_fewer_than_seven_tasks_is_not_called_the_average(tmp_path: Path) -> None:
    for name, tasks in (("all", STS_TASKS), ("some", ("STS13", "STS14", "STSBenchmark"))):
        write_evaluation(write_run(tmp_path / name, 0.8, beta=name), 0.7, tasks)
    whole, some = (run.scores for run in find_runs([tmp_path]))
    assert whole["STS average"] == pytest.approx(0.7) and "STS average" not in some and "STS13" in some


def test_damaged_lines_of_metrics_are_left_out(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", 0.8)
    metrics = folder / "metrics.jsonl"
    whole = metrics.read_text()
    metrics.write_text('{"step": 1}\nnot json\n{"step": 3, "loss": "high"}\n[]\n' + whole + '{"step": 21, "lo')
    curves = read_run(folder).curves
    assert [*curves[LOSSES[1]]] == [*curves["cosine_negative"]] == [0, 5, 10, 15] and len(curves[LOSSES[0]]) == 16
    assert curves["dev"] == {10: pytest.approx(0.78), 20: 0.8} and len(curves["cosine_positive"]) == 20


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("run.json", '{"settings": {}, "scores": {"stsb_dev": "high"}}'), ("run.json", '{"settings": [1]}'),
        ("run.json", "{"), ("run.json", "[]"), ("evaluation.json", '{"protocol": 3}'),
        ("evaluation.json", '{"protocol": {"aggregate": "all", "split": "test"}, "sts": {"STS12": 7}}'),
    ],
)  # fmt: skip
def test_a_run_with_a_file_that_no_run_writes_is_refused(tmp_path: Path, name: str, content: str) -> None:
    folder = write_run(tmp_path / "run", 0.8)
    (folder / name).write_text(content)
    with pytest.raises(InputError, match=f"{name}.* cannot be read"):
        read_run(folder)
