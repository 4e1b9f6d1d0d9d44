"""`una_fast.score_pairs` compared with plain loops, its intervals and files; and `una-fast probe --pairs`."""

import json
import math
from dataclasses import replace
from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

import una_fast
from support.small_runs import save_strict_verifier
from una_fast.pair_scores import PairScores, read_pairs, score_overlap
from una_fast_cli.__main__ import main
from una_fast_cli.probe_report import pairs_report, threshold_reports

COSINE = st.sampled_from([-0.5, 0.0, 0.25, 0.5, 0.75, 1.0])
COSINES = st.lists(COSINE, min_size=1, max_size=12)
ROWS = st.lists(st.tuples(COSINE, st.booleans(), st.sampled_from("xyz")), min_size=2, max_size=30)
GROUPED = ROWS.filter(lambda rows: {label for _, label, _ in rows} == {True, False})


def scores_of(rows, share=0.05):
    return PairScores(*map(np.array, zip(*rows, strict=True)), share)


def plain_auc(same, near):
    return np.mean([(x > y) + 0.5 * (x == y) for x, y in product(same, near)])


@given(COSINES, COSINES)
def test_auc_is_the_share_of_pairs_in_the_right_order(same, near):
    assert PairScores.of(np.array(same), np.array(near)).auc == pytest.approx(plain_auc(same, near))


@given(COSINES, COSINES, st.floats(0, 0.99))
def test_recall_uses_the_lowest_threshold_with_at_most_the_share_of_near_misses_above(same, near, share):
    passing = [t for t in near if sum(y > t for y in near) <= share * len(near)]
    plain = sum(x > min(passing) for x in same) / len(same)
    assert PairScores.of(np.array(same), np.array(near), share).recall == pytest.approx(plain)
    for one in (PairScores.of(np.array([]), np.array(near)), PairScores.of(np.array(same), np.array([]))):
        assert np.isnan([one.auc, one.recall]).all()
    assert math.isnan(one.threshold) and math.isnan(one.to_dict()["threshold"])  # there is no near-miss


@given(GROUPED)
def test_a_group_with_only_one_label_is_compared_with_all_pairs_of_the_other_label(rows):
    found = scores_of(rows).by_group()
    assert {*found} == {group for *_, group in rows}
    for name, group in found.items():
        sides = []
        for label in (True, False):
            own = [cosine for cosine, same, of in rows if same == label and of == name]
            sides.append(own or [cosine for cosine, same, _ in rows if same == label])
        assert group.auc == pytest.approx(plain_auc(*sides))


@given(GROUPED, st.floats(0, 0.99))
def test_the_curve_goes_through_the_recall_at_the_share(rows, share):
    scores = scores_of(rows, share)
    near, same = scores.curve()
    assert (np.diff(near) >= 0).all() and (np.diff(same) >= 0).all()
    assert scores.recall == pytest.approx(max(same[near <= share + 1e-9], default=0))
    json.dumps(scores.to_dict(), allow_nan=False)


@given(GROUPED, st.lists(st.booleans(), min_size=30, max_size=30), st.floats(0, 0.99))
def test_held_out_hits_exceed_the_threshold_of_the_other_half(rows, halves, share):
    half = halves[: len(rows)]
    scores = replace(scores_of(rows), half=np.array(half))
    if {own for own, (_, same, _) in zip(half, rows, strict=False) if not same} != {True, False}:
        with pytest.raises(una_fast.InputError, match="one half has no near-misses"):
            scores.held_out_hits(share)
        return
    found = scores.held_out_hits(share)
    for (cosine, _, _), own, hit in zip(rows, half, found, strict=True):
        near = [y for (y, same, _), other in zip(rows, half, strict=True) if other != own and not same]
        assert hit == any(sum(y > t for y in near) <= share * len(near) and cosine > t for t in near)


def test_pairs_that_share_a_sentence_are_in_one_half():
    rng = np.random.default_rng(0)
    pairs = [(f"{a}", f"{b}", i % 2) for i, (a, b) in enumerate(rng.integers(0, 3000, (1000, 2)).tolist())]
    half = una_fast.score_pairs(lambda texts: np.ones((len(texts), 2)), pairs).half
    texts = np.array(pairs)[:, :2]
    assert {*texts[half].flat}.isdisjoint(texts[~half].flat) and 450 < half.sum() < 550


@pytest.mark.parametrize(("n_same", "n_near"), [(5, 5), (10, 10), (5, 100), (90, 110), (500, 500)])
@pytest.mark.parametrize("shift", [1.0, 2.5])
def test_intervals_contain_the_true_value_as_often_as_they_claim(n_same, n_near, shift):
    """The AUC of normal cosines is Phi(shift / sqrt 2). The second encoder adds noise: Phi(shift / 2)."""
    rng, contained, change_contained, n_trials = np.random.default_rng(0), 0, 0, 200
    n = n_same + n_near
    same, groups, before_auc, after_auc = np.arange(n) < n_same, np.full(n, ""), *norm.cdf([shift / 2**0.5, shift / 2])
    for _ in range(n_trials):
        first = rng.normal(size=n) + shift * same
        before, after = (PairScores(cosines, same, groups) for cosines in (first, first + rng.normal(size=n)))
        low, high = before.interval()
        assert 0 <= low <= before.auc <= high <= 1 and high - low > 0.01
        contained += low < before_auc < high
        low, high = after.interval(before)
        change_contained += low < after_auc - before_auc < high
    assert min(contained, change_contained) >= 0.915 * n_trials  # 2.3 standard errors below 95%
    if n == 1000 and shift == 1.0:  # in large samples the intervals are no wider than they must be
        assert max(contained, change_contained) <= 0.985 * n_trials


def test_intervals_at_the_edges():
    perfect = PairScores.of(np.array([0.9, 0.8, 0.95]), np.array([0.1, 0.2]))
    low, high = perfect.interval()
    assert perfect.auc == high == 1.0 and low < 0.5
    single = PairScores.of(np.array([0.9]), np.array([0.1])).interval()
    assert single[0] < 0.1 and single[1] == 1.0
    for one in (PairScores.of(np.array([]), np.array([0.5])), PairScores.of(np.array([0.5]), np.array([]))):
        assert np.isnan(one.interval()).all() and np.isnan(one.interval(perfect)).all()
    assert perfect.interval(perfect) == (0.0, 0.0)  # one encoder twice


def test_each_pair_can_be_a_group_of_its_own():
    n = 4000
    scores = PairScores(np.linspace(0, 1, n), np.arange(n) % 2 > 0, np.array([f"g{i}" for i in range(n)]))
    groups = scores.by_group()
    assert [*groups] == [f"g{i}" for i in range(n)]
    assert len(groups["g7"].same) == 1 + n // 2 and groups["g7"].auc == pytest.approx(4 / (n // 2))


def test_each_sentence_is_encoded_once_and_its_cosines_are_correct():
    calls = []

    def encode(texts):
        calls.append(texts)
        return [[0.0, 0.0] if text == "zero" else [len(text), 1.0] for text in texts]

    pairs = [("a", "aaa", 1), ("aaa", "aa", 0, "g"), ("", "a", 0), ("zero", "a", 0)]
    scores = una_fast.score_pairs(encode, pairs, share=0.5)
    assert calls == [["a", "aaa", "aa", "", "zero"]] and scores.groups.tolist() == ["", "g", "", ""]
    assert scores.cosines == pytest.approx([4 / np.sqrt(20), 7 / np.sqrt(50), 1 / np.sqrt(2), 0])
    assert scores.threshold == pytest.approx(1 / np.sqrt(2)) and scores.recall == 1
    assert scores.auc == pytest.approx(2 / 3)


@pytest.mark.parametrize(("pairs", "share", "named"), [
    ([("a", "b", 2)], 0.05, "label 2"), ([("a", "b")], 0.05, r"^pairs: \('a', 'b'\)"),
    ([("a", None, 1)], 0.05, "^pairs: .*None"), (["ab1"], 0.05, "^pairs: 'ab1'"),
    ([("a", "b", 1)], "x", "^share='x'"), ([("a", "b", 1)], 1, "^share=1"),
    ([("a", "b", 1)], 0.05, "1 pairs, 1 of label 1"),
])  # fmt: skip
def test_bad_pairs_are_named(pairs, share, named):
    with pytest.raises(una_fast.InputError, match=named):
        una_fast.score_pairs(lambda texts: np.ones((len(texts), 2)), pairs, share)


@pytest.mark.parametrize("encoder", [torch.nn.Linear(2, 2), "all-MiniLM-L6-v2"])
def test_an_encoder_instead_of_its_method_is_named(encoder):
    """A SentenceTransformer can be called, but not with texts."""
    if not isinstance(encoder, str):
        encoder.encode = list
    index = una_fast.build_index(["the river flows north", "a market opens today", "music fills the hall"])
    for measure, of in ((una_fast.score_pairs, [("a", "b", 1), ("a", "c", 0)]), (una_fast.probe, index)):
        with pytest.raises(una_fast.InputError, match=r"^encode: is .*: give MODEL\.encode"):
            measure(encoder, of)


def test_pairs_are_read_from_files_with_tabs_or_commas(tmp_path):
    table, tabs = tmp_path / "pairs.csv", tmp_path / "pairs.tsv"
    table.write_text('\ufefflabel,sentence2,other,sentence1\n1,"b, ""c""",x,a\n0,d,x,a\n', encoding="utf-8")
    assert read_pairs(table) == [("a", 'b, "c"', 1, ""), ("a", "d", 0, "")]
    tabs.write_text('sentence1\tsentence2\tlabel\tgroup\na\t"b\t1\tg\n')
    assert read_pairs(tabs) == [("a", '"b', 1, "g")]
    for path, text, named in (
        (tabs, "", "'sentence1'"), (tabs, "sentence1\tsentence2\tlabel\na\tb\n", r"pairs\.tsv, line 2"),
        (tabs, "sentence1\tsentence2\tlabel\n\na\tb\tyes\n", r"pairs\.tsv, line 3: .*'yes'"),
        (table, 'sentence1,sentence2,label\n"a"b,c,1\n', r"pairs\.csv"),
        (tabs, "sentence1\tsentence2\tlabel\na\tb\t1\na\t \t1\n", r"pairs\.tsv, line 3: .*'sentence2'"),
        (table, "sentence1,sentence2,label\na,b,\n", r"pairs\.csv, line 2: .*'label'"),
    ):  # fmt: skip
        path.write_text(text)
        with pytest.raises(una_fast.InputError, match=named):
            read_pairs(path)
    with pytest.raises(una_fast.InputError, match=r"none\.tsv"):
        read_pairs(tmp_path / "none.tsv")


def test_labels_may_be_written_as_numbers_with_a_point_or_as_truth_values(tmp_path):
    table = tmp_path / "pairs.csv"
    for text, label in (("1.0", 1), ("0.0", 0), ("True", 1), ("False", 0), ("true", 1), (" 0", 0)):
        table.write_text(f"sentence1,sentence2,label\na,b,{text}\n")
        assert read_pairs(table) == [("a", "b", label, "")]
    for values in ([1.0, 0.0], [True, False]):
        pq.write_table(
            pa.table({"sentence1": ["a", "c"], "sentence2": ["b", "d"], "label": values}), tmp_path / "p.parquet"
        )
        assert [label for _, _, label, _ in read_pairs(tmp_path / "p.parquet")] == [1, 0]


def test_pairs_are_read_from_parquet(tmp_path):
    file, columns = tmp_path / "pairs.parquet", {"sentence1": ["a", "c"], "sentence2": ["b", "d"], "label": [1, 0]}
    pq.write_table(pa.table({**columns, "group": ["g", None]}), file)
    assert read_pairs(file) == [("a", "b", 1, "g"), ("c", "d", 0, "")]
    wrong = [({"sentence1": ["a"]}, ": .*'sentence2'"), ({**columns, "label": [1, 2]}, ", row 2: .*'2'")]
    for table, named in [*wrong, ({**columns, "sentence2": ["b", None]}, ", row 2: .*'sentence2'")]:
        pq.write_table(pa.table(table), file)
        with pytest.raises(una_fast.InputError, match=f"pairs.parquet{named}"):
            read_pairs(file)
    file.write_text("no table")
    with pytest.raises(una_fast.InputError, match=r"pairs\.parquet"):
        read_pairs(file)


def test_a_threshold_without_recall_is_not_usable_and_any_threshold_can_be_given():
    scores = PairScores.of(np.array([0.1, 0.2]), np.array([0.3, 0.9, 0.95]))
    assert str(scores).endswith("; no usable threshold: at 5% false positives, no pair with the same meaning passes")
    assert scores.passing(0.15) == (0.5, 1.0) and scores.passing(0.9) == (0.0, pytest.approx(1 / 3))
    assert threshold_reports(None, {"x": scores}, {}) == []
    [(text, figures)] = threshold_reports(0.15, {"x": scores}, {})
    assert text.splitlines()[-1].split() == ["x", "50.0%", "100.0%"]
    assert figures["at_threshold"]["x"] == {"same": 0.5, "near_misses": 1.0}


def test_the_command_compares_two_encoders(tiny_model, tmp_path, capsys):
    pairs, kept, page = (tmp_path / name for name in ("pairs.tsv", "scores.json", "page.html"))
    groups = ["same" if i % 2 else "few" if i == 2 else "y" for i in range(30)]
    rows = [f"the old dog {i}\ta dog of {i}\t{i % 2}\t{group}" for i, group in enumerate(groups)]
    pairs.write_text("\n".join(["sentence1\tsentence2\tlabel\tgroup", *rows]))
    other = tmp_path / "other"
    other.symlink_to(tiny_model)
    words = ["probe", "--model", tiny_model, "--model", other, "--pairs", pairs, "--json", kept, "--html", page]
    assert main([*map(str, words)]) == 0
    said, figures = capsys.readouterr().out, json.loads(kept.read_text())
    scores = figures["pairs_scores"]
    assert [(row["share"], row["same"]) for row in figures["held_out"]] == [*product((0.05, 0.1, 0.2), (True, False))]
    assert all(row["hits"][0] == row["hits"][1] and row["low"] == row["high"] == 0 for row in figures["held_out"])
    assert f"hits of {tiny_model.name}" in said.replace(f"{tiny_model.parent.name}/", "")
    assert "\n20%      near-misses" in said
    assert f"30 pairs of {pairs}, 15 with the same meaning" in said and "+0.0  +0.0 to +0.0" in said
    few, y = sorted(line.split() for line in said.splitlines() if line.startswith(("few", "y")))
    assert few[-2:] == ["too", "few"] and y[-3:] == ["+0.0", "to", "+0.0"]
    assert "\nsame " not in said.partition("AUC of")[2]  # left out: it has the figures of all pairs
    assert scores[str(other)] == scores[str(tiny_model)] and {*scores[str(other)]["groups"]} == {*groups}
    assert page.read_text().count("<polyline") == 2
    assert main([*map(str, words[:3]), "--pairs", str(tmp_path / "x.tsv")]) == 2


def test_the_threshold_of_a_share_is_not_lost_to_rounding():
    """0.29 * 100 is 28.999999999999996: 29 of the 100 near-misses may be above the threshold."""
    scores = PairScores.of(np.array([2.0]), np.arange(100.0), share=0.29)
    assert (scores.cosines[~scores.same] > scores.threshold).sum() == 29


def test_halves_are_equal_and_stay_with_their_groups():
    pairs = [(f"a{i}", f"b{i}", i % 2, "x" if i < 4 else "y") for i in range(8)]
    scores = una_fast.score_pairs(lambda texts: np.eye(len(texts)) + 0.1, pairs)
    assert scores.half.sum() == 4  # not 5: the pair at the middle begins the second half
    halves = np.concatenate([group.half for group in scores.by_group().values()])
    assert halves.tolist() == scores.half.tolist()


def test_the_printed_threshold_is_rounded_up_so_that_no_more_near_misses_pass():
    assert "threshold 0.801" in str(PairScores.of(np.array([0.9]), np.array([0.8004])))


def test_a_group_called_all_does_not_replace_the_row_of_all_pairs():
    scores = PairScores(
        np.array([0.9, 0.2, 0.8, 0.1]), np.array([1, 1, 0, 0], bool), np.array(["all", "all", "all", ""])
    )
    text, _ = pairs_report("pairs.tsv", {"encoder": scores}, scores)
    rows = [line.split() for line in text.splitlines() if line.startswith("all ")]
    assert rows == [["all", "2", "2", "75.0%", "75.0%"], ["all", "2", "1", "50.0%", "50.0%"]]


@given(st.lists(st.tuples(st.text("ab ", max_size=6), st.text("ab ", max_size=6), st.booleans()), min_size=2))
def test_the_baseline_counts_words_that_are_not_shared(pairs):
    scores = score_overlap([(*texts, int(label)) for *texts, label in pairs])
    for (first, second, label), score, same in zip(pairs, scores.cosines, scores.same, strict=True):
        words = [{*first.split()}, {*second.split()}]
        union = words[0] | words[1]
        assert score == pytest.approx(1 - len(words[0] & words[1]) / len(union) if union else 1) and same == label


def test_the_command_scores_a_verifier_and_warns_where_overlap_wins(tiny_model, tmp_path, capsys):
    torch.manual_seed(0)  # some random verifiers separate the pairs as well as overlap does
    save_strict_verifier(tiny_model, tmp_path / "verifier")
    rows = [f"one old dog {i}\ta new cat of {i}\t1" if i % 2 else f"one old dog {i}\tone old dog\t0" for i in range(30)]
    pairs, kept = tmp_path / "pairs.tsv", tmp_path / "scores.json"
    pairs.write_text("\n".join(["sentence1\tsentence2\tlabel", *rows]))
    words = ["probe", "--model", str(tiny_model), "--pairs", str(pairs)]
    assert main([*words, "--verifier", str(tmp_path / "verifier"), "--json", str(kept)]) == 0
    said, figures = capsys.readouterr().out, json.loads(kept.read_text())
    assert [*figures["pairs_scores"]] == [str(tiny_model), "verifier", "gate"]
    assert figures["pairs_scores"]["gate"]["auc"] == 0.5 and figures["overlap"]["auc"] == 1.0
    assert "AUC of 1 - overlap" in said and said.count("warning: 1 - word overlap") == 3
    assert main([*words[:3], str(tiny_model), *words[3:], "--verifier", "x"]) == 2
    assert "--verifier: needs --pairs and a single --model" in capsys.readouterr().err
