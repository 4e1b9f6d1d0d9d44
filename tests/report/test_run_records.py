"""Folders -> records, groups and differences: which files are read or left out, and which runs are compared."""

import json
import math
from pathlib import Path

import pytest

from support.run_folders import STS_TASKS, metrics_line, write_evaluation, write_run
from train.record.folder import SCORES, write_json
from train.report.runs import (
    Group,
    RunRecord,
    differences,
    differing_settings,
    find_runs,
    group_runs,
    groups_with_baseline,
    kept_start,
    read_run,
    title,
)
from una_fast.errors import InputError


@pytest.fixture
def two_settings(tmp_path: Path) -> Path:
    """Two settings of two seeds each."""
    for seed, score in ((42, 0.80), (0, 0.82)):
        write_run(tmp_path / "una" / f"seed-{seed}", score, augment="una", seed=seed)
        write_run(tmp_path / "none" / f"seed-{seed}", score - 0.03 - seed / 10_000, seed=seed)
    return tmp_path


# --- groups ---


def test_seeds_of_one_setting_are_one_group_with_mean_and_deviation(two_settings: Path) -> None:
    write_evaluation(two_settings / "una" / "seed-42", 0.77)
    groups = group_runs(find_runs([two_settings / "una", two_settings / "none"]))
    assert [(group.label, len(group.runs)) for group in groups] == [("una", 2), ("none", 2)]
    spread = groups[0].spreads()["stsb_dev"]
    assert (spread.mean, spread.n) == (pytest.approx(0.81), 2)
    assert spread.deviation == pytest.approx(math.sqrt(2) * 0.01)
    assert groups[0].spreads()["STSBenchmark"].mean == pytest.approx(0.77)
    assert "STS12" not in groups[0].spreads()  # undefined


def test_the_papers_table_of_seeds_has_its_mean_and_deviation() -> None:
    seeds = [0.7767, 0.7691, 0.7680, 0.7655, 0.7668, 0.7646, 0.7726, 0.7692, 0.7739, 0.7707]
    runs = [RunRecord(str(i), Path(), {}, {}, [], [], {"average": score}) for i, score in enumerate(seeds)]
    spread = Group("", runs).spreads()["average"]
    assert (round(spread.mean, 4), round(spread.deviation, 4)) == (0.7697, 0.0038)


def test_names_are_as_short_as_tells_runs_apart(two_settings: Path) -> None:
    write_run(two_settings / "alone", 0.5)
    runs = find_runs([two_settings / "una", two_settings / "none", two_settings / "alone"])
    assert [run.name for run in runs] == ["una/seed-0", "una/seed-42", "none/seed-0", "none/seed-42", "alone"]
    assert [run.name for run in find_runs([two_settings / "una"] * 2)] == ["seed-0", "seed-42"]
    assert differing_settings(runs) == ["augment"]


def test_a_group_is_called_by_its_folders(tmp_path: Path) -> None:
    """Seeds of one command have the name of their common folder; runs of mixed folders have their own."""
    for i in range(5):
        write_run(tmp_path / "mine" / f"try-{i}", 0.5, seed=i, beta=0.1)
    for seed in (1, 2):
        write_run(tmp_path / "mixed" / f"seed-{seed}", 0.5, seed=seed, beta=seed)
    labels = [group.label for group in group_runs(find_runs([tmp_path / "mine", tmp_path / "mixed"]))]
    assert labels == ["try-0, try-1, try-2 and 2 more", "seed-1", "seed-2"]


def test_the_start_score_of_a_group_is_the_dev_score_before_the_first_step(tmp_path: Path) -> None:
    write_run(tmp_path / "a", 0.8, start=0.735)
    write_run(tmp_path / "b", 0.8, augment="una")
    groups = group_runs(find_runs([tmp_path]))
    assert [group.start for group in groups] == [pytest.approx(0.735), None]


def test_a_run_of_which_no_step_beat_the_start_is_known(tmp_path: Path) -> None:
    for name, start in (("better", 0.79), ("equal", 0.8), ("worse", 0.9), ("unknown", None)):
        write_run(tmp_path / name, 0.8, start=start)
    assert "before training in equal, worse: best/ is" in kept_start(find_runs([tmp_path]))
    short = write_run(tmp_path / "short", 0.8)
    (short / "run.json").write_text('{"status": "running"}')
    assert not kept_start([read_run(short)])


# --- differences to a baseline ---


def test_differences_are_paired_by_seed(two_settings: Path) -> None:
    runs = find_runs([two_settings / "una", two_settings / "none"])
    groups, marked = groups_with_baseline(runs, two_settings / "none", [])
    assert [group.label for group in groups] == ["none", "una"] and marked is groups[0]
    found = differences(groups[1], groups[0])["stsb_dev"]
    assert (found.n, found.difference) == (2, pytest.approx(0.0321))  # 0.03 and 0.0342
    assert found.deviation == pytest.approx(0.0042 / math.sqrt(2)) and found.low < found.difference < found.high


def test_runs_without_a_common_seed_have_no_difference(tmp_path: Path) -> None:
    write_run(tmp_path / "a", 0.8, seed=1)
    write_run(tmp_path / "b", 0.7, seed=2, augment="una")
    groups, marked = groups_with_baseline(find_runs([tmp_path / "b"]), tmp_path / "a", [])
    assert marked is not None and [group.label for group in groups] == ["a", "b"]  # the baseline is added to the runs
    assert differences(groups[1], marked) == {}


def test_a_baseline_of_several_settings_is_refused(two_settings: Path) -> None:
    write_run(two_settings / "none" / "other", 0.5, beta=0.9)
    with pytest.raises(InputError, match=r"--baseline .*holds runs of 2 settings"):
        groups_with_baseline(find_runs([two_settings / "una"]), two_settings / "none", [])


# --- averages ---


def test_a_mean_of_fewer_than_seven_tasks_is_not_called_the_average(tmp_path: Path) -> None:
    for name, tasks in (("all", STS_TASKS), ("some", ("STS13", "STS14", "STSBenchmark")), ("one", ("STSBenchmark",))):
        write_evaluation(write_run(tmp_path / name, 0.8, beta=name), 0.7, tasks)
    scores = {run.name: run.scores for run in find_runs([tmp_path])}
    averages = {name: [one for one in found if "average" in one or "mean" in one] for name, found in scores.items()}
    assert averages == {"all": ["STS average"], "some": ["mean of STS13, STS14, STSBenchmark"], "one": []}
    assert title(averages["some"][0]) == "mean of 3 tasks"
    assert scores["all"]["STS average"] == pytest.approx(0.7)


# --- files that no finished training leaves ---


def test_damaged_lines_of_metrics_are_left_out(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", 0.8)
    metrics = folder / "metrics.jsonl"
    whole = metrics.read_text()
    metrics.write_text('{"step": 1}\nnot json\n{"step": 3, "loss": "high"}\n' + whole + '{"step": 21, "lo')
    run = read_run(folder)
    assert len(run.steps) == 20 and run.dev == [(10, pytest.approx(0.78)), (20, 0.8)]


def test_steps_carry_the_cosines_of_their_batch(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", 0.8)
    (folder / "metrics.jsonl").write_text(json.dumps(metrics_line(1)) + "\n")
    (step,) = read_run(folder).steps
    assert step.cosine_positive == 0.9 and math.isnan(step.cosine_negative)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("run.json", {"settings": {}, "scores": {"stsb_dev": "high"}}),
        ("run.json", {"settings": [1]}),
        ("evaluation.json", {"protocol": 3}),
        ("evaluation.json", {"protocol": {"aggregate": "all", "split": "test"}, "sts": {"STS12": 7}}),
    ],
)
def test_a_run_with_a_file_that_no_run_writes_is_refused(tmp_path: Path, name: str, content: object) -> None:
    folder = write_run(tmp_path / "run", 0.8)
    (folder / name).write_text(json.dumps(content))
    with pytest.raises(InputError, match=f"{name}.* cannot be read"):
        read_run(folder)


@pytest.mark.parametrize(("name", "about"), [("run.json", ""), ("evaluation.json", SCORES)])
def test_a_changed_figure_is_not_shown(tmp_path: Path, name: str, about: str) -> None:
    """The seal of a file that the program wrote tells; a file without one, of an earlier version, is read."""
    folder = write_run(tmp_path / "run", 0.8125)
    write_evaluation(folder, 0.8125)
    content = json.loads((folder / name).read_text())
    (folder / name).unlink()
    write_json(folder / name, content, about)
    assert 0.8125 in read_run(folder).scores.values()
    (folder / name).write_text((folder / name).read_text().replace("0.8125", "0.9125"))
    with pytest.raises(InputError, match=f"{name}: was changed since it was written"):
        read_run(folder)


@pytest.mark.parametrize("content", ["{", "[]", "[" * 100_000, "\udcff"])
def test_a_run_that_cannot_be_read_is_refused_alone_and_left_out_beside_others(tmp_path: Path, content: str) -> None:
    broken = write_run(tmp_path / "broken", 0.5)
    (broken / "run.json").write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(InputError, match="run.json: cannot be read"):
        find_runs([broken])
    write_run(tmp_path / "whole", 0.5)
    notes: list[str] = []
    assert [run.name for run in find_runs([tmp_path], notes)] == ["whole"]
    (note,) = notes
    assert str(broken) in note and note.endswith("the run is left out")
