"""`python -m train.report`: one page that is complete, names what it shows, and loads nothing from a network."""

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import una_fast
from support.run_folders import write_evaluation, write_run
from train.report.__main__ import main
from train.report.figures import CURVES
from train.report.page import make_page
from train.report.runs import find_runs, read_run

TEXTS = [f"the {colour} {thing} near house number {i}" for i, (colour, thing) in
         enumerate((c, t) for c in ("red", "old", "wide") for t in ("bridge", "garden", "river"))]  # fmt: skip
BROWSER = next(filter(None, map(shutil.which, ("chromium", "google-chrome", "chromium-browser"))), None)
LARGEST_PAGE = 6e6  # bytes


@pytest.fixture
def four_runs(tmp_path: Path) -> Path:
    """Two settings of two seeds each; one of them has an index, from which negatives are shown."""
    index = tmp_path / "index"
    una_fast.build_index(TEXTS).save(index)
    for seed, score in ((42, 0.80), (0, 0.82)):
        write_run(
            tmp_path / "una" / f"seed-{seed}", score, start=0.7, augment="una", seed=seed, index=str(index), beta=0.5
        )
        write_run(tmp_path / "none" / f"seed-{seed}", score - 0.03, start=0.7, seed=seed, beta=0.5)
    write_evaluation(tmp_path / "una" / "seed-42", 0.77)
    return tmp_path


class Page(HTMLParser):
    """The addresses that a page loads, its visible text, its charts, and its unclosed tags."""

    void = frozenset(("meta", "link", "br", "!doctype"))

    def __init__(self, page: str) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.open: list[str] = []
        self.charts: dict[str, dict] = {}
        self.text = ""
        self._label = ""
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.fetched += [value or "" for name, value in attrs if name in ("src", "href", "srcset", "data", "action")]
        self._label = dict(attrs).get("aria-label") or self._label
        if tag not in self.void:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.void:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script" and data.startswith('{"data"'):
            self.charts[self._label] = json.loads(data)
        elif self.open and self.open[-1] not in ("script", "style"):
            self.text += data


def test_the_page_is_whole_and_fetches_nothing(
    four_runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out" / "report.html"
    runs = [str(four_runs / "una"), str(four_runs / "none")]
    assert main([*runs, "--baseline", runs[1], "--output", str(output)]) == 0
    assert output.stat().st_size < LARGEST_PAGE
    source = output.read_text(encoding="utf-8")
    page = Page(source)
    assert page.fetched == ["data:,"]
    assert "default-src 'none'" in source.split("<style>")[0]
    assert source.count("plotly.js v") == 1
    for said in ("4 training runs in 2 settings", "81.00 ± 1.41", "mean ± deviation of 2 runs",
                 "+3.00 (2 seeds, +3.00 to +3.00) against the baseline",
                 "dev 70.00 before training, 81.00 at best"):  # fmt: skip
        assert said in page.text
    assert {*page.charts} == {*CURVES}
    assert str(output) in capsys.readouterr().out


def test_charts_show_what_the_runs_recorded(four_runs: Path) -> None:
    charts = Page(make_page(find_runs([four_runs / "una"]))).charts
    assert [trace["y"] for trace in charts["Dev score"]["data"] if trace.get("name") == "una, mean of 2"] == [
        [70, 79, 81]
    ]
    assert charts["Dev score"]["layout"]["annotations"][0]["text"] == "before training 70.00"
    negative = [trace for trace in charts["Similarity over training"]["data"] if "negative" in trace.get("name", "")]
    assert all(trace["y"] == [0.5] * 4 and trace["x"] == [0, 5, 10, 15] for trace in negative) and len(negative) == 3


def test_names_and_texts_are_escaped(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a<b>&c", 0.8, model="</script><script>alert(1)</script>")
    write_evaluation(folder, 0.7)
    page = make_page([read_run(folder, "</script><script>alert(2)</script>")])
    assert "<script>alert" not in page and "a&lt;b&gt;&amp;c" in page
    assert Page(page).charts["Dev score"]["data"][0]["name"] == "a&lt;b&gt;&amp;c"  # plotly reads names as HTML


def test_scores_that_are_not_there_yet_do_not_count(tmp_path: Path) -> None:
    """One of two seeds is still in training, so the group has the score of the other."""
    for seed in (1, 2):
        write_run(tmp_path / f"seed-{seed}", 0.8, seed=seed)
    (tmp_path / "seed-2" / "run.json").write_text(
        json.dumps({"settings": {"augment": "none", "seed": 2, "model": "m"}})
    )
    page = Page(make_page(find_runs([tmp_path])))
    assert "dev, best, one run" in page.text and "nan" not in page.text


def test_runs_that_kept_the_model_that_was_given_show_their_last_step(tmp_path: Path) -> None:
    """Their best scores are equal by construction, whatever they were trained with."""
    for name in ("una", "none"):
        write_run(tmp_path / name, 0.8, start=0.9408, augment=name)
    text = Page(make_page(find_runs([tmp_path]))).text
    assert "dev, last" in text and "79.00 after the last step" in text
    assert "No step beat the dev score before training in none, una: best/ is the model that was given" in text
    page = Page(make_page([read_run(write_run(tmp_path / "better", 0.8, start=0.7))])).text
    assert "after the last step" in page and "No step beat" not in page


def test_what_could_not_be_read_is_said_on_the_page_and_in_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(tmp_path / "runs" / "whole", 0.8)
    (write_run(tmp_path / "runs" / "broken", 0.8) / "evaluation.json").write_text("[1]")
    output = tmp_path / "page.html"
    assert main([str(tmp_path / "runs"), "--output", str(output)]) == 0
    said, text = capsys.readouterr().err, Page(output.read_text(encoding="utf-8")).text
    for part in ("evaluation.json: cannot be read", "the run is left out"):
        assert part in said and part in text


def test_folders_without_runs_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    broken = write_run(tmp_path / "broken", 0.5)
    (broken / "run.json").write_text("{")
    for folder, message in ((tmp_path / "none", "no such folder"), (tmp_path / "empty", "holds no run"),
                            (broken, "cannot be read")):  # fmt: skip
        assert main([str(folder), "--output", str(tmp_path / "page.html")]) == 2
        assert f"error: {folder}" in (said := capsys.readouterr().err) and message in said
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize("package", ["plotly", "jinja2"])
def test_without_a_package_a_sentence_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], package: str
) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == package or name.startswith("train.report")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    assert main([str(write_run(tmp_path / "run", 0.5)), "--output", str(tmp_path / "page.html")]) == 2
    assert "pip install 'una_fast[report]'" in capsys.readouterr().err
    assert not (tmp_path / "page.html").exists()


def test_seeds_are_tabled_without_plotly(monkeypatch: pytest.MonkeyPatch) -> None:
    """`train.ddp --seeds` reads runs too, but draws no chart."""
    for name in [name for name in sys.modules if name.split(".")[0] == "plotly" or name.startswith("train.report")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "plotly", None)
    assert importlib.import_module("train.report.runs").title("STSBenchmark") == "STS-B"


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no browser of the Chromium family")
def test_a_browser_draws_every_chart_in_the_pages_colours(four_runs: Path, tmp_path: Path) -> None:
    assert BROWSER is not None
    page = tmp_path / "page.html"
    assert main([str(four_runs / "una"), str(four_runs / "none"), "--output", str(page)]) == 0
    done = subprocess.run(
        [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
         f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=10000", "--dump-dom", page.as_uri()],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    drawn = done.stdout.count('class="plot-container')
    assert drawn == len(Page(page.read_text(encoding="utf-8")).charts) > 3
    assert re.search(r"stroke: rgb\(0, 114, 178\)", done.stdout)  # --c0 of the light page
    assert 'data-title="Zoom in"' in done.stdout and "cloud" not in " ".join(
        re.findall(r'data-title="[^"]*"', done.stdout)
    )


def test_a_page_is_replaced_by_one_of_the_same_runs_alone(four_runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, (una, none) = four_runs / "report.html", (str(four_runs / name) for name in ("una", "none"))
    page.write_text("mine")
    assert main([una, "--output", str(page)]) == 2
    assert "report.html: is not as this program wrote it, and stays" in capsys.readouterr().err
    assert page.read_text() == "mine"
    page.unlink()
    assert main([una, "--output", str(page)]) == main([una, "--output", str(page)]) == 0
    before = page.read_bytes()
    assert main([una, none, "--output", str(page)]) == 2 and page.read_bytes() == before
    page.write_bytes(before.replace(b"<h1>", b"<h1>My ", 1))
    assert main([una, "--output", str(page)]) == 2 and b"<h1>My " in page.read_bytes()


def test_a_folder_whose_name_is_no_utf_8_has_a_page(tmp_path: Path, four_runs: Path) -> None:
    run = tmp_path / os.fsdecode(b"\xff")
    shutil.copytree(four_runs / "una", run)
    words = [str(run), "--output", str(tmp_path / "report.html")]
    assert main(words) == main(words) == 0
