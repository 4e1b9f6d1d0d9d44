"""`python -m train.report`: records, means over seeds, charts, and a page that asks nothing of the network."""

import json
import math
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import una_fast
from train.report.__main__ import main
from train.report.charts import MOST_POINTS, Line, Marks, Scale, columns_chart, line_chart, scatter, thin, ticks
from train.report.figures import binned_means, mean_and_band, smooth
from train.report.page import make_page
from train.report.runs import Spread, differing_settings, find_runs, group_runs, read_run
from train.report.samples import sample_negatives
from una_fast.errors import InputError

TEXTS = [f"the {colour} {thing} near house number {i}" for i, (colour, thing) in
         enumerate((c, t) for c in ("red", "old", "wide") for t in ("bridge", "garden", "river"))]  # fmt: skip


def write_run(folder: Path, score: float, n_steps: int = 20, **settings: Any) -> Path:
    """A run's folder as training leaves it."""
    folder.mkdir(parents=True)
    summary = {
        "status": "finished",
        "settings": {"augment": "none", "seed": 42, "model": "m", "output": str(folder), **settings},
        "scores": {"stsb_dev": score, "stsb_dev_last": score - 0.01},
    }
    (folder / "run.json").write_text(json.dumps(summary))
    lines = [
        {"step": i, "loss": 1 / (i + 1), "lr": 1e-5, "negatives": i % 5 == 0, "sentences_per_second": 100 + i}
        for i in range(n_steps)
    ]
    lines += [{"step": 10, "stsb_dev": score - 0.02}, {"step": 20, "stsb_dev": score}]
    (folder / "metrics.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    return folder


def write_evaluation(folder: Path, sts: float) -> None:
    evaluation = {
        "protocol": {"aggregate": "all", "split": "test"},
        "sts": {"STSBenchmark": {"spearman": {"all": sts}, "similarity": [0.1, 0.8, 0.5], "gold": [1.0, 5.0, 2.5]},
                "STS12": {"spearman": {"all": None}}},
        "transfer": {"CR": {"accuracy": 80.0}},
        "averages": {"sts": sts, "transfer": 80.0},
    }  # fmt: skip
    (folder / "evaluation.json").write_text(json.dumps(evaluation))


@pytest.fixture
def four_runs(tmp_path: Path) -> Path:
    """Two settings of two seeds each; one of them with an index to show negatives of."""
    index = tmp_path / "index"
    una_fast.build_index(TEXTS).save(index)
    for seed, score in ((42, 0.80), (0, 0.82)):
        write_run(tmp_path / "una" / f"seed-{seed}", score, augment="una", seed=seed, index=str(index), beta=0.5)
        write_run(tmp_path / "none" / f"seed-{seed}", score - 0.03, seed=seed, beta=0.5)
    write_evaluation(tmp_path / "una" / "seed-42", 0.77)
    return tmp_path


# --- records and groups ---


def test_seeds_of_one_setting_are_one_group_with_mean_and_deviation(four_runs: Path) -> None:
    groups = group_runs(find_runs([four_runs / "una", four_runs / "none"]))
    assert [group.label for group in groups] == ["augment una", "augment none"]
    spread = groups[0].spreads()["stsb_dev"]
    assert (spread.mean, spread.n) == (pytest.approx(0.81), 2)
    assert spread.deviation == pytest.approx(math.sqrt(2) * 0.01)
    assert str(spread) == "81.00 ± 1.41"
    assert str(groups[0].spreads()["STSBenchmark"]) == "77.00"
    assert "STS12" not in groups[0].spreads()  # undefined


def test_the_papers_table_of_seeds_has_its_mean_and_deviation() -> None:
    seeds = [0.7767, 0.7691, 0.7680, 0.7655, 0.7668, 0.7646, 0.7726, 0.7692, 0.7739, 0.7707]
    spread = Spread.of(seeds)
    assert (round(spread.mean, 4), round(spread.deviation, 4)) == (0.7697, 0.0038)


def test_names_are_as_short_as_tells_runs_apart(four_runs: Path) -> None:
    runs = find_runs([four_runs / "una", four_runs / "none"])
    assert [run.name for run in runs] == ["una/seed-0", "una/seed-42", "none/seed-0", "none/seed-42"]
    assert [run.name for run in find_runs([four_runs / "una"] * 2)] == ["seed-0", "seed-42"]
    assert differing_settings(runs) == ["augment"]


def test_a_line_cut_short_by_a_kill_is_left_out_and_a_broken_one_named(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", 0.8)
    metrics = folder / "metrics.jsonl"
    whole = metrics.read_text()
    metrics.write_text(whole + '{"step": 21, "lo')
    assert len(read_run(folder).steps) == 20
    metrics.write_text('{"step": 1}\nnot json\n' + whole)
    with pytest.raises(InputError, match="line 2: not a line of metrics"):
        read_run(folder)


def test_folders_without_runs_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    broken = write_run(tmp_path / "broken", 0.5)
    (broken / "run.json").write_text("{")
    for folder, message in ((tmp_path / "none", "no such folder"), (tmp_path / "empty", "holds no run"),
                            (broken, "cannot be read")):  # fmt: skip
        assert main([str(folder), "--output", str(tmp_path / "page.html")]) == 2
        assert f"error: {folder}" in (said := capsys.readouterr().err) and message in said
    assert not (tmp_path / "page.html").exists()


# --- charts ---


def svg_of(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(text)


def heights(svg: ElementTree.Element, kind: str) -> list[float]:
    """The y of every point that the paths of a class go through, in absolute coordinates."""
    paths = [path.get("d", "") for path in svg.iter("path") if path.get("class") == kind]
    return [float(y) for path in paths for y in re.findall(r"(?<=,)-?[\d.]+|(?<=V)-?[\d.]+", path)]


def test_lines_and_bands_stay_inside_the_frame_and_skip_what_is_not_a_number() -> None:
    points = [(0.0, 1.0), (1.0, math.nan), (2.0, -3.0), (3.0, 7.0)]
    band = [(0.0, 0.5, 1.5), (3.0, 2.0, 12.0)]
    svg = svg_of(line_chart([Line("a <b> & 'c'", "#000", points, band)], "steps", "loss"))
    (path,) = [e for e in svg.iter("path") if e.get("class") == "line"]
    assert len(heights(svg, "line")) == 3
    assert all(0 <= y <= 320 for y in heights(svg, "line") + heights(svg, "band"))
    assert path.findtext("title") == "a <b> & 'c'"
    assert "nothing recorded" in line_chart([Line("a", "#000", [(0.0, math.inf)])], "x", "y")


def test_a_log_scale_is_one_where_it_can_be() -> None:
    scale = Scale(0.01, 1.0, 0, 100, log=True)
    assert [scale(0.01), scale(0.1), scale(1.0)] == pytest.approx([0, 50, 100])
    assert scale.ticks() == pytest.approx([0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0])
    for lowest in (0.1, 0.0):
        svg = svg_of(line_chart([Line("a", "#000", [(0.0, 1.0), (1.0, lowest), (2.0, 0.5)])], "x", "y", log=True))
        assert all(0 <= y <= 320 for y in heights(svg, "line"))


def test_columns_show_every_run_and_whiskers_of_a_deviation() -> None:
    columns = {
        "STS12": [Marks("una", "#000", [70.0, 74.0]), Marks("none", "#111", [71.0])],
        "STS13": [Marks("una", "#000", [])],
    }
    svg = svg_of(columns_chart(columns, "score"))
    assert len(list(svg.iter("circle"))) == 3
    assert len(heights(svg, "whisker")) == 2  # a run alone has none
    assert all(0 <= y <= 320 for y in heights(svg, "whisker"))
    assert "una, STS12: 72.00 ± 2.83" in {title.text for title in svg.iter("title")}
    assert "nothing recorded" in columns_chart({"STS12": []}, "score")


def test_constant_and_single_points_can_be_drawn() -> None:
    assert svg_of(line_chart([Line("flat", "#000", [(0.0, 2.0), (1.0, 2.0)])], "x", "y")) is not None
    plot = svg_of(scatter([(0.0, 0.0)], [(0.0, 0.0)], "#000", ("x", "y"), (0.0, 0.0)))
    assert len(list(plot.iter("circle"))) == 2


def test_means_by_bin_and_over_seeds() -> None:
    points = [(0.0, 0.1), (0.5, 0.3), (5.0, 0.9), (4.9, math.nan)]
    assert binned_means(points) == [(0.25, pytest.approx(0.2)), (5.0, 0.9)]
    assert binned_means([(3.0, 0.5), (3.0, 0.7)]) == [(3.0, pytest.approx(0.6))]
    mean, band = mean_and_band([[(1, 2.0), (2, 4.0)], [(1, 4.0), (3, 9.0)]])
    assert mean == [(1, 3.0)]  # steps that both have
    assert band == [(1, pytest.approx(3 - math.sqrt(2)), pytest.approx(3 + math.sqrt(2)))]


def test_long_lines_are_thinned_by_means() -> None:
    points = [(float(i), float(i % 2)) for i in range(10_000)]
    thinned = thin(points)
    assert len(thinned) == MOST_POINTS
    assert all(0.4 < y < 0.6 for _, y in thinned)
    assert sum(x for x, _ in thinned) / MOST_POINTS == pytest.approx(4999.5, rel=1e-3)


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-0.013, 0.2), (3, 70_000), (5, 5), (79.1, 79.4)])
def test_ticks_are_few_round_and_inside(low: float, high: float) -> None:
    found = ticks(low, high)
    assert 1 <= len(found) <= 11
    assert all(low - 1e-9 <= tick <= high + 1e-9 for tick in found)


def test_smoothing_has_no_start_bias_and_skips_nan() -> None:
    assert smooth([(0, 5.0), (1, 5.0), (2, math.nan), (3, 5.0)]) == [(0, 5.0), (1, 5.0), (3, 5.0)]


# --- samples and page ---


def test_samples_are_the_runs_own_negatives(four_runs: Path) -> None:
    run = read_run(four_runs / "una" / "seed-42")
    samples = sample_negatives(run, 3)
    assert 0 < len(samples) <= 3
    augmenter = una_fast.Augmenter(una_fast.load_index(run.settings["index"]), beta=0.5, seed=42)
    for sample in samples:
        assert " ".join(sample.negative) == augmenter.negatives([sample.row])[0]
        assert sample.words != sample.negative
    assert sample_negatives(read_run(four_runs / "none" / "seed-42"), 3) == []


class Links(HTMLParser):
    """Collects what a page would fetch, and whether its tags close."""

    void = frozenset(("meta", "link", "path", "circle", "br", "!doctype"))

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.fetched += [value or "" for name, value in attrs if name in ("src", "href", "srcset", "data", "action")]
        if tag not in self.void:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.void:
            assert self.open.pop() == tag


def test_the_page_is_whole_and_fetches_nothing(
    four_runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out" / "report.html"
    assert main([str(four_runs / "una"), str(four_runs / "none"), "--output", str(output)]) == 0
    page = output.read_text(encoding="utf-8")
    links = Links()
    links.feed(page)
    assert links.open == [] and links.fetched == ["data:,"]
    assert "<script" not in page and "url(" not in page and "@import" not in page
    for said in ("81.00 <small>± 1.41</small>", "augment una", "augment una, mean of 2", "loss of steps with negatives",
                 "<mark>", "<del>", "cosine similarity", "Spearman × 100: 77.00"):  # fmt: skip
        assert said.lower() in page.lower()
    assert str(output) in capsys.readouterr().out


def test_names_and_texts_are_escaped(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a<b>&c", 0.8, model="<script>alert(1)</script>")
    page = make_page([read_run(folder)])
    assert "<script" not in page and "a&lt;b&gt;&amp;c" in page


def test_scores_that_are_not_there_yet_do_not_count(tmp_path: Path) -> None:
    """Of two seeds one is still in training: its group's score is that of one seed."""
    for seed in (1, 2):
        write_run(tmp_path / f"seed-{seed}", 0.8, seed=seed)
    (tmp_path / "seed-2" / "run.json").write_text(
        json.dumps({"settings": {"augment": "none", "seed": 2, "model": "m"}})
    )
    page = make_page(find_runs([tmp_path]))
    assert "dev, best, one seed" in page and "nan" not in page


def test_a_run_whose_index_is_gone_says_so(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", 0.8, augment="una", index=str(tmp_path / "gone"))
    page = make_page([read_run(folder)])
    assert str(tmp_path / "gone") in page
    links = Links()
    links.feed(page)
    assert links.open == []
