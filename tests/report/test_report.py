"""`python -m train.report`: reading the files of runs, comparing groups, and a page that fetches nothing."""

import json
import math
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from support.run_folders import STS_TASKS, write_evaluation, write_run
from train.report import runs as records
from train.report.__main__ import main
from train.report.page import FIGURES, MOST_POINTS, make_page, points
from train.report.runs import Group, compare, find_runs, group_runs, read_run, score_table
from una_fast.errors import InputError, InputWarning

BROWSER = next(filter(None, map(shutil.which, ("chromium", "google-chrome", "chromium-browser"))), None)
LARGEST_PAGE = 6e6  # bytes


@pytest.fixture
def two_settings(tmp_path) -> Path:
    """Two settings of two seeds each."""
    for seed, score in ((42, 0.80), (0, 0.82)):
        una = {"augment": "una", "seed": seed, "dev": "x/pairs.tsv.gz"}
        write_run(tmp_path / "una" / f"seed-{seed}", score, start=0.7, **una)
        lower = score - 0.03 - seed / 10_000
        write_run(tmp_path / "none" / f"seed-{seed}", lower, start=0.7, seed=seed, dev="pairs.tsv")
    return tmp_path


def test_a_file_that_is_not_a_report_is_not_overwritten(two_settings, capsys):
    page, notes = two_settings / "page.html", two_settings / "notes.txt"
    assert main([str(two_settings / "una"), "--output", str(page)]) == 0
    assert main([str(two_settings / "none"), "--output", str(page)]) == 0
    notes.write_text("my notes")
    assert main([str(two_settings / "una"), "--output", str(notes)]) == 2
    assert "this command did not write it" in capsys.readouterr().err and notes.read_text() == "my notes"


def test_runs_with_the_same_settings_are_one_group_named_after_its_folder(two_settings):
    found = [run.name for run in find_runs([two_settings])]
    assert found == ["none/seed-0", "none/seed-42", "una/seed-0", "una/seed-42"]
    write_run(two_settings / "alone", 0.5)
    runs = find_runs([two_settings / "una", two_settings / "none", two_settings / "alone", two_settings / "una"])
    assert [run.name for run in runs] == ["una/seed-0", "una/seed-42", "none/seed-0", "none/seed-42", "alone"]
    assert [(group.label, len(group.runs)) for group in group_runs(runs)] == [("una", 2), ("none", 2), ("alone", 1)]
    for seed in (1, 2, 3):
        write_run(two_settings / "mixed" / f"try-{seed}", 0.5, seed=seed, beta=0.1)
    write_run(two_settings / "mixed" / "other", 0.5, beta=0.2)
    labels = [group.label for group in group_runs(find_runs([two_settings / "una", two_settings / "mixed"]))]
    assert labels == ["una", "mixed/other", "mixed"]


def test_scores_are_read_from_the_files_of_a_run(tmp_path):
    """Undefined scores are absent, and the average needs all seven tasks."""
    for name, tasks in (("all", STS_TASKS), ("some", ("STS13", "STS14", "STSBenchmark"))):
        write_evaluation(write_run(tmp_path / name, 0.8, beta=name, dev="data/sts-dev.csv"), 0.7, tasks)
    whole, some = find_runs([tmp_path])
    assert whole.scores["STS average"] == pytest.approx(0.7) and "STS average" not in some.scores
    assert some.scores.keys() == {"dev/sts-dev", "dev_last/sts-dev", "STS13", "STS14", "STSBenchmark", "CR"}
    assert [records.title(name) for name in some.scores if name.startswith("dev")] == ["sts-dev, best", "sts-dev, last"]
    lines = [{"step": 5, "dev/sts-dev": 0.7}, {"step": 9, "dev/sts-dev": None}]
    (some.folder / "metrics.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert read_run(some.folder).curves["dev"] == {5: 0.7}


def test_runs_that_never_beat_the_initial_encoder_are_named(tmp_path):
    starts = {"better": 0.79, "equal": 0.8, "unknown": None, "worse": 0.9}
    for name, start in starts.items():
        write_run(tmp_path / name, 0.8, start=start)
    runs = find_runs([tmp_path])
    assert "before training in equal, worse: best/ is" in records.unimproved_note(runs)
    assert {run.name: run.scores.get("dev_start/dev") for run in runs} == starts
    short = write_run(tmp_path / "short", 0.8)
    (short / "run.json").write_text('{"settings": {}}')
    assert not records.unimproved_note([read_run(short)])


def test_the_table_has_runs_means_and_paired_differences(two_settings):
    none, una = group_runs(find_runs([two_settings / "none", two_settings / "una"]))
    assert records.differing_settings([none, una]) == ["augment", "dev"]
    pair = una.compared(none)["dev/pairs"]
    assert (pair.n, pair.difference) == (2, pytest.approx(0.0321))  # 0.03 and 0.0342
    assert pair.deviation == pytest.approx(0.0042 / math.sqrt(2)) and pair.low < pair.difference < pair.high
    head, rows = score_table([none, una], none)
    assert head == ["", "runs", "pairs, best", "pairs, last", "pairs, start", "augment", "dev"]
    assert [(row.group, row.kind, *row.cells[:3]) for row in rows] == [
        (0, "run", "none/seed-0", "seed 0", "79.00"), (0, "run", "none/seed-42", "seed 42", "76.58"),
        (0, "mean", "none", "2 runs", "77.79 ± 1.71"),
        (1, "run", "una/seed-0", "seed 0", "82.00"), (1, "run", "una/seed-42", "seed 42", "80.00"),
        (1, "mean", "una", "2 runs", "81.00 ± 1.41"),
        (1, "difference", "difference to none", "", "+3.21 (+0.54 to +5.88)"),
    ]  # fmt: skip
    assert una.compared(Group("", none.runs[:1]))["dev/pairs"].n == 1  # one common seed
    write_run(two_settings / "none" / "again", 0.75, seed=0, dev="pairs.tsv")  # runs with the same seed are averaged
    (again,) = group_runs(find_runs([two_settings / "none"]))
    assert again.by_seed("dev/pairs")["0"] == pytest.approx((0.79 + 0.75) / 2)


def test_retrieval_sets_are_compared_query_by_query(tmp_path):
    """Each query's mean over the seeds counts once. A query that only one condition has is left out."""
    for name, seed, found in (("none", 0, (0.2, 0.4)), ("una", 0, (0.3, 0.9)), ("una", 1, (0.5, 0.5))):
        queries = {"a": found[0], "b": found[1], **({"c": 0.1} if name == "una" else {})}
        folder = write_run(tmp_path / name / f"seed-{seed}", 0.8, seed=seed)
        one = {"ndcg@10": sum(queries.values()) / len(queries), "per_query": queries}
        content = {"protocol": {"aggregate": "all", "split": "test"}, "retrieval": {"retrieval": {"cranfield": one}}}
        (folder / "evaluation.json").write_text(json.dumps(content))
    none, una = (Group(name, find_runs([tmp_path / name])) for name in ("none", "una"))
    pair, expected = una.compared(none)["cranfield"], stats.ttest_rel([0.4, 0.7], [0.2, 0.4])
    assert (pair.n, pair.difference, pair.p) == (2, pytest.approx(0.25), pytest.approx(expected.pvalue))
    assert (pair.low, pair.high) == pytest.approx(tuple(expected.confidence_interval()))
    assert una.compared()["cranfield"].with_it == pytest.approx((1.3 + 1.1) / 6)
    assert una.compared(none)["dev/dev"].n == 1  # the seed that both have


def test_a_missing_score_is_a_dash():
    scores = ({"dev": 0.8, "STS12": 0.5}, {"dev": 0.7})
    runs = [records.RunRecord(f"seed-{seed}", Path(), {"seed": seed}, {}, {}, of) for seed, of in enumerate(scores, 1)]
    cells = [row.cells[1:] for row in score_table([Group("all", runs)])[1]]
    assert cells == [["seed 1", "80.00", "50.00"], ["seed 2", "70.00", "-"], ["2 runs", "75.00 ± 7.07", "50.00"]]


def test_damaged_lines_of_metrics_are_skipped(tmp_path):
    metrics = write_run(tmp_path / "run", 0.8) / "metrics.jsonl"
    whole = metrics.read_text()
    metrics.write_text('{"step": 1}\nnot json\n{"step": 3, "loss": "high"}\n[]\n' + whole + '{"step": 21, "lo')
    curves = read_run(metrics.parent).curves
    plain, negatives = (curves[name] for name in records.LOSS_CURVES)
    assert [*negatives] == [*curves["cosine_negative"]] == [0, 5, 10, 15] and len(plain) == 16
    assert curves["dev"] == {10: pytest.approx(0.78), 20: 0.8} and len(curves["cosine_positive"]) == 20


def test_a_run_with_an_invalid_file_is_refused(tmp_path):
    folder = write_run(tmp_path / "run", 0.8)
    for name, content in (
        ("evaluation.json", '{"protocol": {"aggregate": "all", "split": "test"}, "sts": {"STS12": 7}}'),
        ("run.json", '{"settings": {}, "scores": {"dev/dev": "high"}}'),
        ("run.json", "{"),
    ):
        (folder / name).write_text(content)
        with pytest.raises(InputError, match=name):
            read_run(folder)


@pytest.mark.parametrize("n", [2, 3, 10])
def test_differences_are_paired_by_seed(n):
    first, second = np.random.default_rng(n).normal(size=(2, n))
    without, with_it = ({str(seed): float(x) for seed, x in enumerate(scores)} for scores in (first, second))
    pair = compare({**without, "of no use": 0.0}, dict(reversed(with_it.items())))
    test = stats.ttest_rel(second, first)
    assert pair is not None and pair.n == n
    assert (pair.without, pair.with_it) == (pytest.approx(first.mean()), pytest.approx(second.mean()))
    assert pair.difference == pytest.approx((second - first).mean())
    assert pair.deviation == pytest.approx((second - first).std(ddof=1))
    assert (pair.p, pair.low, pair.high) == pytest.approx((test.pvalue, *test.confidence_interval(0.95)))


def test_one_seed_has_no_interval_and_equal_differences_one_of_width_0():
    assert compare({"1": 0.5}, {"2": 0.5}) is None
    one = compare({"42": 70.0}, {"42": 70.5})
    assert one is not None and one.difference == 0.5 and math.isnan(one.p) and math.isnan(one.low)
    for step, p in ((0.25, 0.0), (0.0, 1.0)):
        pair = compare({"1": 0.5, "2": 0.25}, {"1": 0.5 + step, "2": 0.25 + step})
        assert pair is not None and (pair.low, pair.high, pair.p) == (step, step, p)


def charts_of(page: str) -> dict[str, dict]:
    """The data of the page's charts, by name."""
    found = map(json.loads, re.findall(r'<script type="application/json">(.*?)</script>', page, re.DOTALL))
    return {chart["name"]: chart for chart in found}


def text_of(page: str) -> str:
    """What the page shows, except its charts."""
    return " ".join(re.sub(r"<(script|style)\b.*?</\1>|<[^>]*>", " ", page, flags=re.DOTALL).split())


def page_of(*folders: Path) -> str:
    return make_page(group_runs(find_runs(folders)))


def test_the_page_is_complete_and_fetches_nothing(two_settings, capsys):
    output, una, none = (two_settings / name for name in ("out/report.html", "una", "none"))
    for _ in range(2):  # a page is written again
        assert main([str(una), "--baseline", str(none), "--output", str(output)]) == 0
    assert str(output) in capsys.readouterr().out and output.stat().st_size < LARGEST_PAGE
    source = output.read_text(encoding="utf-8")
    tags = re.findall(r"<[^>]*>", re.sub(r"(<script>).*?</script>", r"\1", source, flags=re.DOTALL))
    assert re.findall(r'\b(?:src|href|srcset|data|action)="(.*?)"', "".join(tags)) == ["data:,"]
    assert "default-src 'none'" in source.split("<style>")[0]
    assert source.count("plotly.js v") == 1 and {*charts_of(source)} == {*FIGURES}
    text = text_of(source)
    for said in ("4 training runs", "81.00 ± 1.41", "70.00 ± 0.00", "pairs, start", "+3.21 (+0.54 to +5.88)"):
        assert said in text


def test_charts_show_what_the_runs_recorded(two_settings):
    charts = charts_of(page_of(two_settings / "una"))
    dev = [(line["x"], line["y"]) for line in charts["Dev score"]["lines"]]
    assert dev == [([0, 10, 20], [70, 80, 82]), ([0, 10, 20], [70, 78, 80])]
    lines = charts["Similarity over training"]["lines"]
    expected = [(f"seed-{seed}: {kind}", kind == "negative") for kind in ("positive", "negative") for seed in (0, 42)]
    assert [(line["name"], line["dashed"]) for line in lines] == expected
    assert lines[2]["y"] == [0.5] * 4 and lines[2]["x"] == [0, 5, 10, 15]


def test_long_lines_are_reduced_to_means():
    line = points({i: float(i % 2) for i in range(10_000)}, 1)
    assert len(line["x"]) == MOST_POINTS and all(0.4 < y < 0.6 for y in line["y"])
    assert sum(line["x"]) / MOST_POINTS == pytest.approx(4999.5, rel=1e-3)


def test_losses_of_different_kinds_have_their_own_figures(two_settings):
    write_run(two_settings / "margin", 0.5, loss="margin")
    charts = charts_of(page_of(two_settings / "una", two_settings / "margin"))
    assert len(charts["Dev score"]["lines"]) == 3
    for heading in ("Loss of the steps without negatives", "Loss of the steps with negatives"):
        assert heading not in charts and len(charts[f"{heading}: margin"]["lines"]) == 1
        assert len(charts[f"{heading}: None"]["lines"]) == 2


def test_a_run_without_scores_has_no_section_of_scores(tmp_path):
    run = write_run(tmp_path / "run", 0.5, n_steps=2)
    (run / "run.json").write_text('{"settings": {}}')
    (run / "metrics.jsonl").write_text('{"step": 0, "loss": 1.0, "negatives": true}\n')
    text = text_of(page_of(run))
    assert "Scores" not in text and "Loss of the steps with negatives" in text


def test_names_and_texts_are_escaped(tmp_path):
    source = page_of(write_run(tmp_path / "a<b>&c", 0.8, model="</script><script>alert(1)</script>"))
    assert "<script>alert" not in source and "a&lt;b&gt;&amp;c" in source
    assert charts_of(source)["Dev score"]["lines"][0]["name"] == "a<b>&c"


def test_the_page_shows_the_scores_of_the_trained_and_the_initial_encoder(tmp_path):
    """If no step beat the initial encoder, the scores of best/ are equal whatever the training was."""
    for name, score in (("una", 0.62), ("none", 0.6)):
        write_evaluation(write_run(tmp_path / name, score, start=0.6471, augment=name), 0.75)
    (write_run(tmp_path / "unscored", 0.5, beta=0.1) / "run.json").write_text('{"settings": {"beta": 0.1}}')
    page = page_of(tmp_path)
    cells = dict(re.findall(r'<td data-title="([^"]*)">(\d[^<]*)</td>', page.partition(">una</td>")[2]))
    assert [cells[f"dev, {when}"] for when in ("best", "last", "start")] == ["62.00", "61.00", "64.71"]
    text = text_of(page)
    assert "No step beat the dev score before training in none, una: best/ is the model before training" in text
    assert "unscored" in text and "nan" not in text and "nDCG@10 of retrieval sets" in text


def test_unusable_folders_are_refused(tmp_path, capsys):
    for name, message in (("none", "no such folder"), ("", "contains no run")):
        assert main([str(tmp_path / name), "--output", str(tmp_path / "page.html")]) == 2
        assert f"error: {tmp_path / name}: {message}" in capsys.readouterr().err and not [*tmp_path.iterdir()]
    una, none = (str(write_run(tmp_path / name / "run", 0.5, augment=name).parent) for name in ("una", "none"))
    write_run(tmp_path / "none" / "other", 0.5, beta=0.9)
    assert main([una, "--baseline", none]) == 2
    assert "none: contains runs with different settings" in capsys.readouterr().err


def test_a_run_of_the_verifier_is_left_out_of_training_runs(tmp_path, capsys):
    verifier, page = write_run(tmp_path / "runs" / "verifier", 0.5), tmp_path / "page.html"
    summary = {"command": "train.verifier", "settings": {"seed": 1}, "scores": {"auc": 0.9, "said": "of the pairs"}}
    (verifier / "run.json").write_text(json.dumps(summary))
    assert main([str(verifier), "--output", str(page)]) == 2
    assert f"{verifier}: is a run of train.verifier" in capsys.readouterr().err and not page.exists()
    write_run(tmp_path / "runs" / "una", 0.5)
    with pytest.warns(InputWarning, match="verifier: is a run of train.verifier.*: left out"):
        assert [run.name for run in find_runs([tmp_path / "runs"])] == ["una"]
    assert main([str(tmp_path / "runs"), "--output", str(page)]) == 0 and "Training run una" in text_of(
        page.read_text()
    )


def test_without_a_package_the_message_names_the_extra(tmp_path, monkeypatch, capsys):
    monkeypatch.delitem(sys.modules, "train.report.page", raising=False)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert main([str(write_run(tmp_path / "run", 0.5)), "--output", str(tmp_path / "page.html")]) == 2
    assert "pip install '.[report]'" in capsys.readouterr().err and not (tmp_path / "page.html").exists()


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no browser of the Chromium family")
@pytest.mark.parametrize(("width", "widest"), [(1200, 580), (390, 366)])
def test_a_browser_draws_every_chart_within_the_page(two_settings, tmp_path, width, widest):
    assert BROWSER is not None
    page = tmp_path / "page.html"
    assert main([str(two_settings / "una"), str(two_settings / "none"), "--output", str(page)]) == 0
    done = subprocess.run(
        [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
         f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=10000", f"--window-size={width},2000",
         "--dump-dom", page.as_uri()],
        capture_output=True, text=True, timeout=100,
    ).stdout  # fmt: skip
    widths = [float(found) for found in re.findall(r'<svg class="main-svg"[^>]* width="([\d.]+)"', done)]
    assert done.count('class="plot-container') == len(FIGURES) and 300 < max(widths) <= widest
    assert re.search(r"stroke: rgb\(0, 114, 178\)", done)  # --c0 of the light page
    buttons = " ".join(re.findall(r'data-title="[^"]*"', done))
    assert 'data-title="Zoom in"' in buttons and "cloud" not in buttons
