"""`python -m train.report`: one page that is complete, names what it shows, and loads nothing from a network."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.run_folders import write_evaluation, write_run
from train.report.__main__ import main
from train.report.page import FIGURES, MOST_POINTS, make_page, points
from train.report.runs import find_runs, group_runs

BROWSER = next(filter(None, map(shutil.which, ("chromium", "google-chrome", "chromium-browser"))), None)
LARGEST_PAGE = 6e6  # bytes


@pytest.fixture
def four_runs(tmp_path: Path) -> Path:
    """Two settings of two seeds each."""
    for seed, score in ((42, 0.80), (0, 0.82)):
        write_run(tmp_path / "una" / f"seed-{seed}", score, start=0.7, augment="una", seed=seed, dev="sts-dev.csv")
        write_run(tmp_path / "none" / f"seed-{seed}", score - 0.03, start=0.7, seed=seed, dev="sts-dev.csv")
    write_evaluation(tmp_path / "una" / "seed-42", 0.77)
    return tmp_path


def charts_of(page: str) -> dict[str, dict]:
    """The data of the page's charts, by name."""
    found = map(json.loads, re.findall(r'<script type="application/json">(.*?)</script>', page, re.DOTALL))
    return {chart["name"]: chart for chart in found}


def text_of(page: str) -> str:
    """What the page shows, but for its charts."""
    return " ".join(re.sub(r"<(script|style)\b.*?</\1>|<[^>]*>", " ", page, flags=re.DOTALL).split())


def page_of(*folders: Path) -> str:
    return make_page(group_runs(find_runs(folders)))


def test_the_page_is_whole_and_fetches_nothing(four_runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output, una, none = (four_runs / name for name in ("out/report.html", "una", "none"))
    for _ in range(2):  # a page is written again
        assert main([str(una), "--baseline", str(none), "--output", str(output)]) == 0
    assert str(output) in capsys.readouterr().out and output.stat().st_size < LARGEST_PAGE
    source = output.read_text(encoding="utf-8")
    tags = re.findall(r"<[^>]*>", re.sub(r"(<script>).*?</script>", r"\1", source, flags=re.DOTALL))
    assert re.findall(r'\b(?:src|href|srcset|data|action)="(.*?)"', "".join(tags)) == ["data:,"]
    assert "default-src 'none'" in source.split("<style>")[0]
    assert source.count("plotly.js v") == 1 and {*charts_of(source)} == {*FIGURES}
    text = text_of(source)
    for said in ("4 training runs", "80.00 ± 1.41", "70.00 ± 0.00", "sts-dev, start", "+3.00 (+3.00 to +3.00)"):
        assert said in text


def test_charts_show_what_the_runs_recorded(four_runs: Path) -> None:
    charts = charts_of(page_of(four_runs / "una"))
    dev = charts["Dev score"]
    assert [(line["x"], line["y"]) for line in dev["lines"]] == [
        ([0, 10, 20], [70, 80, 82]),
        ([0, 10, 20], [70, 78, 80]),
    ]
    lines = charts["Similarity over training"]["lines"]
    assert [(line["name"], line["dashed"]) for line in lines] == [
        ("seed-0: positive", 0), ("seed-42: positive", 0), ("seed-0: negative", 1), ("seed-42: negative", 1),
    ]  # fmt: skip
    assert lines[2]["y"] == [0.5] * 4 and lines[2]["x"] == [0, 5, 10, 15]


def test_long_lines_are_thinned_by_means() -> None:
    line = points({i: float(i % 2) for i in range(10_000)})
    assert len(line["x"]) == MOST_POINTS and all(0.4 < y < 0.6 for y in line["y"])
    assert sum(line["x"]) / MOST_POINTS == pytest.approx(4999.5, rel=1e-3)


def test_names_and_texts_are_escaped(tmp_path: Path) -> None:
    source = page_of(write_run(tmp_path / "a<b>&c", 0.8, model="</script><script>alert(1)</script>"))
    assert "<script>alert" not in source and "a&lt;b&gt;&amp;c" in source
    assert charts_of(source)["Dev score"]["lines"][0]["name"] == "a<b>&c"


def test_the_score_of_what_was_trained_stands_beside_the_start(tmp_path: Path) -> None:
    """Scores of best/ are equal by construction where no step beat the start, whatever the runs were trained with."""
    for name, score in (("una", 0.62), ("none", 0.6)):
        write_evaluation(write_run(tmp_path / name, score, start=0.6471, augment=name), 0.75)
    (write_run(tmp_path / "unscored", 0.5, beta=0.1) / "run.json").write_text('{"settings": {"beta": 0.1}}')
    page = page_of(tmp_path)
    assert "<td>62.00</td><td>61.00</td><td>64.71</td>" in page and "dev, start" in page
    text = text_of(page)
    assert "No step beat the dev score before training in none, una: best/ is the model that was given" in text
    assert "unscored" in text and "nan" not in text


def test_folders_without_runs_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, message in (("none", "no such folder"), ("", "holds no run")):
        assert main([str(tmp_path / name), "--output", str(tmp_path / "page.html")]) == 2
        assert f"error: {tmp_path / name}: {message}" in capsys.readouterr().err and not [*tmp_path.iterdir()]


def test_without_a_package_a_sentence_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "train.report.page", raising=False)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert main([str(write_run(tmp_path / "run", 0.5)), "--output", str(tmp_path / "page.html")]) == 2
    assert "pip install 'una_fast[report]'" in capsys.readouterr().err and not (tmp_path / "page.html").exists()


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no browser of the Chromium family")
@pytest.mark.parametrize(("width", "widest"), [(1200, 580), (390, 366)])
def test_a_browser_draws_every_chart_within_the_page(four_runs: Path, tmp_path: Path, width: int, widest: int) -> None:
    assert BROWSER is not None
    page = tmp_path / "page.html"
    assert main([str(four_runs / "una"), str(four_runs / "none"), "--output", str(page)]) == 0
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
