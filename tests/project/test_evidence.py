"""The comparison with and without UNA: its statistics, conditions and page, and which runs it repeats."""

import gzip
import json
import math
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats
from transformers import AutoTokenizer, BertForMaskedLM

import una_fast
from bench.evidence import __main__ as evidence
from bench.evidence import bases
from bench.evidence.bases import IGNORED, masked, masked_loss
from bench.evidence.conditions import BASES, VARIATIONS, Condition, find_conditions
from bench.evidence.controls import OtherSentence
from bench.evidence.corpora import write_lines, write_pairs
from bench.evidence.hardness import cosines
from bench.evidence.page import base_table, regimes_table, summary_table, task_table
from bench.evidence.runs import Workplace, run_all, with_average
from support.tokenizer_families import bert_uncased
from train.config.run import make_run
from train.evaluation.tasks.registry import suite
from train.record.folder import OutputFolder
from train.report.runs import compare
from una_fast.errors import InputError


def scores(shift: float) -> dict[str, dict[str, float]]:
    """Scores of five seeds: 0.7 + `shift` + 0.001 * seed."""
    return {str(seed): {"average": 0.7 + shift + 0.001 * seed} for seed in range(5)}


def content() -> dict:
    parts = {"settings": {}, "before": {"average": 0.65}}
    with_it = scores(0.01)
    with_it["0"] = {"average": 0.705}
    return {"minilm-mlm: none": {**parts, "seeds": scores(0.0)}, "minilm-mlm: una": {**parts, "seeds": with_it}}


def test_differences_are_paired_by_seed() -> None:
    without = {"42": 70.0, "0": 72.0, "1": 71.0, "9": 0.0}
    with_it = {"1": 71.5, "0": 72.1, "42": 70.6}
    found = compare(without, with_it)
    differences = np.array([0.5, 0.1, 0.6])
    assert found.n == 3
    assert found.difference == pytest.approx(0.4)
    assert found.deviation == pytest.approx(differences.std(ddof=1))
    assert found.p == pytest.approx(stats.ttest_1samp(differences, 0).pvalue)
    interval = stats.t.interval(0.95, 2, differences.mean(), differences.std(ddof=1) / math.sqrt(3))
    assert (found.low, found.high) == pytest.approx(interval)
    assert compare(without, {"7": 1.0}) is None
    one = compare(without, {"42": 70.5})
    assert (one.difference, math.isnan(one.p), math.isnan(one.low)) == (0.5, True, True)


def test_the_interval_covers_the_mean_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(60):
        differences = rng.normal(0.3, 1, 40)
        found = compare(
            dict.fromkeys(map(str, range(40)), 0.0), dict(zip(map(str, range(40)), differences, strict=True))
        )
        inside += found.low <= 0.3 <= found.high
    assert 50 <= inside < 60  # expected: 57; fewer than 50 has a chance below 0.1 %, all 60 one below 5 %


# where the reference is not trained, a run needs negatives in every step
NEED_NEGATIVES = {
    name for name, one in VARIATIONS.items() if not {"alpha", "variant"} & {*one} and one["augment"] != "none"
}


@pytest.mark.parametrize(
    ("base", "variation"),
    [(b, v) for b in BASES for v in VARIATIONS if v in NEED_NEGATIVES or not (BASES[b].untrained or BASES[b].pairs)],
)
def test_every_condition_is_a_run_of_train_ddp(base: str, variation: str) -> None:
    (condition,) = find_conditions(f"{base}: {variation}")
    run = make_run({"corpus": ["c.txt"], "model": "m", "output": "o", **condition.settings()})
    assert run.batch_size * run.max_steps == condition.n_sentences()
    differing = {name for name, value in condition.settings().items() if value != BASES[base].shared.get(name)}
    assert differing <= {"pooling", *VARIATIONS[variation]}


def test_the_control_takes_other_sentences() -> None:
    texts = [f"{word} and {word}s" for word in ("cat", "dog", "bird", "fish", "cow")]
    tokenizer = bert_uncased()
    control = OtherSentence(una_fast.build_index(texts), tokenizer=tokenizer)
    rows = np.arange(5).repeat(200)
    drawn = [control.texts(np.arange(5), epoch) for epoch in range(200)]
    for row, text in enumerate(texts):
        counts = Counter(one[row] for one in drawn)
        assert set(counts) == {*texts} - {text}
        assert stats.chisquare([*counts.values()]).pvalue > 1e-3
    expected = tokenizer(drawn[7], truncation=True, padding="max_length", max_length=12, return_tensors="pt")
    assert torch.equal(control.token_ids(rows[::200], 7, 12)["input_ids"], expected["input_ids"])
    assert control.explain("any text", 3) in texts


def test_masked_words_and_their_loss(tiny_model) -> None:
    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(tiny_model)
    model = BertForMaskedLM.from_pretrained(tiny_model).eval()
    ids = dict(tokenizer(["the old house of a king", "rain and snow"] * 40, padding=True, return_tensors="pt"))
    changed, places, targets = masked(ids, tokenizer)
    known = targets != IGNORED
    assert len(places) % 64 == 0 and 0.1 < int(known.sum()) / int((ids["input_ids"] > 103).sum()) < 0.2
    assert torch.equal(ids["input_ids"].flatten()[places[known]], targets[known])
    assert not torch.isin(targets, torch.tensor(tokenizer.all_special_ids)).any()
    labels = torch.full_like(ids["input_ids"], IGNORED).flatten()
    labels[places[known]] = targets[known]
    with torch.autocast("cpu", torch.bfloat16):
        expected = model(**changed, labels=labels.view(ids["input_ids"].shape)).loss
    assert masked_loss(model, changed, places, targets).item() == pytest.approx(float(expected), rel=1e-2)


def test_unknown_conditions_are_named() -> None:
    with pytest.raises(InputError, match="--conditions 'bert: una': give BASE: VARIATION"):
        find_conditions("minilm-cls: una; bert: una")


def test_tables_show_pairs_alone() -> None:
    row = summary_table(content()).splitlines()[2]
    assert row.startswith("| a language model, mean pooling; una | none | 5 | 65.00 | 70.20 | 71.10 | +0.90 ± 0.22 |")
    control = {"minilm-mlm: other sentences": {"settings": {}, "before": {"average": 0.65}, "seeds": scores(-0.01)}}
    rows = summary_table({**content(), **control}).splitlines()[2:]
    assert rows[1].startswith(
        "| a language model, mean pooling; una | other sentences | 5 | 65.00 | 69.20 | 71.10 | +1.90"
    )
    assert len(rows) == 3  # and other sentences against none
    assert task_table(content(), Condition("minilm-mlm", "una")).splitlines()[2].startswith("| average | 70.20 | 71.10")
    pairs = base_table(content(), "minilm-mlm", ["average"]).splitlines()[2:]
    assert pairs[:2] == ["| before training |  | 65.00 |", "| none | 5 | 70.20 |"]
    assert pairs[2].startswith("| una | 5 | 71.10 (+0.90, +0.62 to +1.18) |")
    first = regimes_table(content(), find_conditions("minilm-cls: una; minilm-mlm: una")).splitlines()[2:]
    assert len(first) == 1 and first[0].startswith(
        "| a language model, mean pooling | 8,192 | 5 | 65.00 | 70.20 | 71.10 |"
    )
    alone = {"minilm-mlm: una": content()["minilm-mlm: una"]}
    assert len(summary_table(alone).splitlines()) == 2


def test_an_average_is_of_all_seven_tasks() -> None:
    every = dict.fromkeys(suite("sts"), 0.5)
    assert with_average(every)["average"] == 0.5
    assert "average" not in with_average({"STS12": 0.5, "STS13": 0.6})


def test_kept_seeds_and_repeated_scores(tmp_path, monkeypatch, capsys) -> None:
    condition = Condition("minilm-cls", "una")
    result = {"settings": condition.settings(), "before": {}, "seeds": {"42": {"average": 0.7}}}
    file = tmp_path / "evidence.json"
    file.write_text(json.dumps({"conditions": {condition.name: result}}))
    monkeypatch.setattr(evidence, "EVIDENCE", file)
    assert evidence.kept_seeds(condition) == result["seeds"]
    assert evidence.kept_seeds(condition.reference) == {}
    near, far = ({condition: {"seeds": {"42": {"average": 0.7 + by}}}} for by in (0.0009, 0.0011))
    assert (evidence.compared(near), evidence.compared(far)) == (0, 1)
    assert "0.001100 from the committed scores" in capsys.readouterr().out
    with pytest.raises(InputError, match="holds no seed 7"):
        evidence.compared({condition: {"seeds": {"7": {}}}})


def test_cosines_are_those_of_anchors_with_negatives_and_with_each_other(tiny_model) -> None:
    anchors = ["a cat", "the old house of a king", "rain and snow"]
    lists = {"same": anchors, "turned": anchors[1:] + anchors[:1]}
    found = cosines(tiny_model, "avg", anchors, lists)
    assert found["same"] == 1 and found["turned"] == found["other sentences"] < 1  # of three, each turn has all pairs


def measured() -> dict:
    """evidence.json of two conditions with two seeds."""
    found = {}
    for shift, name in ((0.0, "minilm-mlm: none"), (0.01, "minilm-mlm: una")):
        averages = {"42": {"STS12": 0.7 + shift, "average": 0.7 + shift}, "0": {"STS12": 0.71, "average": 0.705}}
        found[name] = {
            "settings": {},
            "before": {"STS12": 0.65, "average": 0.65},
            "seeds": averages,
            "dev": {seed: {"0": 0.7, "160": 0.75 + shift} for seed in averages},
            "cosines": {seed: {"positive": [0.8, 0.9], "negative": [0.6, 0.4] if shift else []} for seed in averages},
        }
    hardness = {"before training": {"other sentences": 0.25, "beta 0.5": 0.5}}
    return {"conditions": found, "hardness": hardness}


@pytest.fixture
def pages(tmp_path, monkeypatch) -> tuple[Path, Path]:
    """A page for the tables and a README for their sentence, each with its markers."""
    page, readme = tmp_path / "page.md", tmp_path / "README.md"
    page.write_text("# Title\n\n<!-- measured: begin -->\nold\n<!-- measured: end -->\n\n## After\n")
    readme.write_text("Before\n<!-- evidence: begin -->\nold\n<!-- evidence: end -->\nAfter\n")
    monkeypatch.setattr(evidence, "PAGE", page)
    monkeypatch.setattr(evidence, "README", readme)
    return page, readme


def test_the_pages_get_tables_and_a_chart_of_the_same_bytes_each_time(tmp_path, pages) -> None:
    page, readme = pages
    evidence.write_page(measured())
    first, chart = page.read_text(), (tmp_path / evidence.CHART).read_bytes()
    assert "old" not in first and first.startswith("# Title\n") and first.endswith("\n## After\n")
    assert first.count("+0.50 ± 0.71") == 3 and f"]({evidence.CHART})" in first
    assert "| cosine of anchors with | other sentences | beta 0.5 |" in first and "| 0.25 | 0.50 |" in first
    words = set(re.findall(r">([^<>\n]+)</text>", chart.decode()))
    assert {"STS12", "with UNA", "without UNA", "anchor and positive", "anchor and negative"} <= words
    said = readme.read_text()
    assert said.startswith("Before\n") and said.endswith("\nAfter\n") and "old" not in said
    assert "| a language model, mean pooling | 8,192 | 2 | 65.00 | 70.25 | 70.75 | +0.50 ± 0.71 |" in said
    evidence.write_page(measured())
    assert (page.read_text(), (tmp_path / evidence.CHART).read_bytes()) == (first, chart)
    assert readme.read_text() == said


def test_pages_without_pairs_have_an_empty_table_alone(tmp_path, pages) -> None:
    page, readme = pages
    evidence.write_page({"conditions": {}})
    assert "images" not in page.read_text() and not (tmp_path / evidence.CHART).exists()
    assert "old" in readme.read_text()


def test_a_page_without_markers_is_an_error(tmp_path, pages) -> None:
    pages[1].write_text("no markers")
    with pytest.raises(InputError, match="README.md lacks the line <!-- evidence: begin --> or"):
        evidence.write_page(measured())


def test_what_cannot_be_done_is_said_before_a_run(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(evidence, "run_all", lambda *arguments: pytest.fail("a run was started"))
    occupied, folder = tmp_path / "file", tmp_path / "folder"
    occupied.touch()
    lock = OutputFolder(folder, evidence.COMMAND, resume=False)
    for output, more, said in (
        (folder, ["--check", "--seeds", "77"], "holds no seed 77 of minilm-mlm: none"),
        (occupied, [], "file: cannot be read: Not a directory"),
        (folder, [], "folder: in use by another run"),
    ):
        monkeypatch.setattr("sys.argv", ["evidence", "--data", str(tmp_path), "--output", str(output), *more])
        assert evidence.main() == 2
        assert said in capsys.readouterr().err
    lock.close()


def test_an_encoder_of_somebody_else_is_refused_before_the_training(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(bases, "train_language_model", lambda *arguments: pytest.fail("a training was started"))
    name, steps = next((name, base.mlm_steps) for name, base in BASES.items() if base.mlm_steps)
    (tmp_path / "bases").mkdir()
    (tmp_path / "bases" / f"mlm-{steps}").write_text("mine")
    with pytest.raises(InputError, match="is no encoder that this command made, and stays: move it away"):
        bases.base_folder(name, tmp_path / "none.txt", tmp_path)


def test_a_log_of_somebody_else_stays(tmp_path, monkeypatch) -> None:
    class Place(Workplace):
        command = evaluate = lambda *_: ["false"]

    place = Place(tmp_path, tmp_path, tmp_path / "none.txt", 1)
    condition = Condition("minilm-cls", "una")
    mine = place.run_folder(condition, 1).with_name("seed-1.log")
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    (said,) = run_all(place, [(condition, 1)], lambda line: None)
    assert mine.read_text() == "mine" and Path(said.rpartition("see ")[2]).is_file()


def test_sentences_come_from_a_whole_file(tmp_path) -> None:
    whole = gzip.compress(b"".join(b"%d\n" % i for i in range(2000)))
    (tmp_path / "whole.gz").write_bytes(whole)
    written = write_lines(tmp_path / "whole.gz", tmp_path / "corpus.txt", 10, 3)
    assert written.read_text() == "10\n11\n12\n"
    (tmp_path / "cut.gz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "other.gz").write_bytes(b"no gzip")
    for name, said in (
        ("cut.gz", "damaged or cut short"),
        ("other.gz", "damaged or cut short"),
        ("whole.gz", "has fewer than 2,001 lines"),
    ):
        with pytest.raises(InputError, match=rf"{name}: {said}"):
            write_lines(tmp_path / name, tmp_path / "new.txt", 1, 2000)
    assert not (tmp_path / "new.txt").exists()


def test_paraphrases_are_the_positive_pairs(tmp_path) -> None:
    downstream = tmp_path / "senteval" / "downstream"
    (downstream / "MRPC").mkdir(parents=True)
    (downstream / "STS" / "STSBenchmark").mkdir(parents=True)
    rows = ["Quality\t#1 ID\t#2 ID\t#1 String\t#2 String", "1\t1\t2\ta b\tb a", "0\t3\t4\tc\td"]
    (downstream / "MRPC" / "msr_paraphrase_train.txt").write_text("\n".join(rows) + "\n")
    rows = [f"g\tf\ty\t{i}\t{score}\tx {i}\ty {i}" for i, score in enumerate(("4.4", "4.5", "5.000"))]
    (downstream / "STS" / "STSBenchmark" / "sts-train.csv").write_text("\n".join(rows) + "\n")
    first, second = write_pairs(tmp_path, tmp_path)
    assert first.read_text() == "a b\nx 1\nx 2\n" and second.read_text() == "b a\ny 1\ny 2\n"


def test_sentences_may_be_of_some_lengths_alone(tmp_path) -> None:
    (tmp_path / "text.txt").write_text("a\na b\na b c\na b c d\n")
    assert write_lines(tmp_path / "text.txt", tmp_path / "some.txt", 0, 2, (2, 3)).read_text() == "a b\na b c\n"
    (tmp_path / "some.txt").write_text("a b\na b d\n")
    with pytest.raises(InputError, match=r"some.txt: was changed, or what it is made from: it stays"):
        write_lines(tmp_path / "text.txt", tmp_path / "some.txt", 0, 2, (2, 3))
    with pytest.raises(InputError, match="has fewer than 3 lines of that length"):
        write_lines(tmp_path / "text.txt", tmp_path / "more.txt", 0, 3, (2, 3))


def test_a_reference_that_is_not_trained_has_the_scores_before(monkeypatch) -> None:
    (none,) = find_conditions("minilm-near: none")
    before = {"replace": 0.7}
    monkeypatch.setattr(evidence, "scores_before", lambda place, base: before)
    assert none.is_untrained and none.settings() == {"max_steps": 0}
    assert evidence.results(None, none, [42, 0])["seeds"] == {"42": before, "0": before}
