"""bench.evidence.verifier: figures of a gate, and what is kept of them; and the pairs that were written by hand."""

from pathlib import Path

import numpy as np
import pytest

from bench.evidence import results, verifier
from una_fast.pair_scores import PairScores, read_pairs, score_overlap

HAND = Path(verifier.__file__).with_name("hand_pairs.tsv")


def test_the_figures_of_a_gate():
    same = np.array([1, 1, 1, 1, 0, 0, 0, 0], bool)
    cosines = np.array([0.95, 0.9, 0.85, 0.7, 0.97, 0.88, 0.86, 0.5])
    found = np.array([0.1, 0.2, 0.9, 0.1, 0.8, 0.9, 0.1, 0.1])
    scores = PairScores(cosines, same, np.array(["x", "x", "y", "y", "x", "x", "y", "y"]))
    checked = np.array([0, 0, 1, 0, 1, 0, 0, 0], bool)
    figures = verifier.figures(scores, scores, found, checked, 0.5)
    assert figures["right"] == 50 and figures["false"] == 25  # the pairs 0, 1 and 6 pass
    assert figures["cosine_right"] == 50  # above 0.88, the second highest of the near-misses
    assert figures["check_right"] == 50  # above 0.86, the second highest that does not contradict, without pair 2
    assert figures["rejected"] == 25 and figures["overlap"] == figures["cosine"] == round(100 * scores.auc, 2)
    assert figures["x 1"] == 0 and figures["y 1"] == 50 and figures["x 0"] == 100 and figures["y 0"] == 0


def test_runs_are_kept_by_name_and_seed(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "EVIDENCE", tmp_path / "evidence.json")
    scores = {"set": dict.fromkeys(verifier.COLUMNS, 50.0)}
    for seed, value in (("42", 50.0), ("0", 60.0)):
        verifier.keep("own", {seed: {"threshold": 0.5, "scores": {"set": {**scores["set"], "right": value}}}})
    kept = results.read_evidence()["verifiers"]["own"]
    assert [*kept] == ["42", "0"] and verifier.table(kept).splitlines()[2].count("50.0") == 7
    assert "| 55.0 |" in verifier.table(kept)
    third = {"1": {"scores": {"set": {**scores["set"], "right": 70.0}}}}
    assert "| 60.0 ± 24.8 |" in verifier.table(kept | third)  # 4.303 * 10 / sqrt(3)


def test_verifiers_that_differ_in_one_setting_share_a_table():
    scores = {name: dict.fromkeys(verifier.COLUMNS, 50.0) for name in ("hand_pairs", "qqp_all")}
    other = {name: {**of, "verifier": 40.0, "rejected": 9.0} for name, of in scores.items()}
    kept = {"small": {"42": {"scores": scores}}, "small, no names": {"42": {"scores": other}}, "own": {}}
    lines = verifier.settings_table(kept).splitlines()
    assert lines[0] == "|  | hand_pairs | qqp_all | qqp_all: wrongly rejected |"
    assert lines[2] == "| `1 - word overlap` | 50.0 | 50.0 |  |"
    assert lines[3:] == ["| small | 50.0 | 50.0 | 50.0 |", "| no names | 40.0 | 40.0 | 9.0 |"]


def test_overlap_does_not_separate_the_pairs_written_by_hand():
    pairs = read_pairs(HAND)
    assert len(pairs) == len({pair[:2] for pair in pairs}) == 150 and sum(label for _, _, label, _ in pairs) == 75
    assert score_overlap(pairs).auc == pytest.approx(0.5, abs=0.05)
    assert len({group for *_, group in pairs}) == 16
