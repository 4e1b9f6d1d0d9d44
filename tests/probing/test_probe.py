"""`una_fast.probe` compared with plain loops: its sample, figures and threshold; and `una-fast probe`."""

import html
import itertools
import json
import math
import shutil
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import una_fast
from support.small_runs import ROOT, write_corpus
from una_fast.probing import THRESHOLDS, Probe
from una_fast_cli.__main__ import main
from una_fast_cli.probe_report import shortened

COSINES = st.lists(st.floats(-1, 1), min_size=2, max_size=60).map(np.array)
NO_DIGITS = dict.fromkeys(map(ord, "0123456789"))
LETTERS = "abcdefghijklmnopqrstuvwxyz"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("probe") / "corpus.txt", 60)


@pytest.fixture(scope="module")
def index(corpus):
    return una_fast.build_index(corpus)


def letters(texts):
    """Return letter counts as embeddings, which are not of unit length."""
    return [[1.0 + text.lower().count(letter) for letter in LETTERS] for text in texts]


def plain_cosine(first, second):
    a, b = (np.array(letters([text])[0]) for text in (first, second))
    return a @ b / math.sqrt(a @ a) / math.sqrt(b @ b)


def test_the_threshold_is_the_right_order_statistic():
    """Its place must be computed with rounding: in floating point, 10 * (1 - 0.7) is above 3."""
    for n, hundredths in itertools.product(range(2, 60), (5, 10, 30, 70, 90)):
        place = n + 1 - (n + 1) * hundredths // 100
        expected = place / 100 if place <= n else None
        assert Probe(np.arange(1, n + 1) / 100, np.zeros(n), hundredths / 100).threshold == expected


@given(COSINES, COSINES, st.floats(0.01, 0.99))
def test_figures_are_shares_that_json_can_store(near, usual, share):
    found = Probe(near, usual, share, edits=(Probe(usual, near, share, "polarity"),))
    assert found.passing(0.5) == sum(x > 0.5 for x in near) / len(near)
    written = json.loads(json.dumps(found.to_dict(), allow_nan=usual.mean() == 1 or near.mean() == 1))
    assert written["n"] == len(near) and written["edits"]["polarity"]["n"] == len(usual)
    assert [*written["passing"].values()] == [found.passing(threshold) for threshold in THRESHOLDS]
    head, word, polarity = str(found).splitlines()[2:5]
    assert len(head) == len(word) == len(polarity)
    assert ("no threshold separates the two" in str(found)) == (usual.mean() > 0.8)
    assert "no threshold" not in str(found.edits[0])
    if not (usual.mean() == 1 or near.mean() == 1):
        assert f"of {len(near)} near-misses (word)" in repr(found) and "edits polarity>" in repr(found)
        assert len(repr(found)) < 150


def test_cosines_compare_sentences_with_their_near_misses_and_with_other_sentences(index):
    seen = []
    found = una_fast.probe(lambda texts: (seen.append(texts), letters(texts))[1], index, n=20)
    sentences, near_misses = seen
    una = una_fast.Augmenter(index, beta=0.0, seed=42, surface="kept", keep_punctuation=True)
    rows = [list(index).index(sentence) for sentence in sentences]
    assert una.texts(rows) == near_misses and len({*sentences}) == 20
    assert all(sentence != near_miss for sentence, near_miss in zip(sentences, near_misses, strict=True))
    others = [sentences[-1], *sentences[:-1]]
    for cosines, compared in ((found.near_misses, near_misses), (found.usual, others)):
        assert cosines == pytest.approx([*map(plain_cosine, sentences, compared)])


def test_the_interval_of_a_change_contains_the_true_change_as_often_as_it_claims():
    """The distances are 0.2 / 0.8 and 0.3 / 0.8. Both encoders share part of their random error."""
    rng, n_contained, n = np.random.default_rng(0), 0, 300
    for _ in range(400):
        shared, usual = rng.normal(scale=0.1, size=n), 0.2 + rng.normal(scale=0.1, size=n)
        before = Probe(0.8 + shared, usual, 0.05)
        after = Probe(0.7 + shared + rng.normal(scale=0.1, size=n), usual + rng.normal(scale=0.05, size=n), 0.05)
        low, high = after.interval(before)
        n_contained += low < 0.125 < high
    assert 370 <= n_contained <= 391


TEXTS = ["Is it safe?", "Is it dangerous?", "I have 3 dogs", "We see 40 cats", "Tea for Anna", "Cake by Bert", "is it"]


@pytest.mark.filterwarnings("error")
def test_each_edit_is_probed_on_the_sentences_that_it_fits():
    seen = []
    index = una_fast.build_index(TEXTS)
    edits = ["word", "number", "polarity"]
    found = una_fast.probe(lambda texts: (seen.append(texts), letters(texts))[1], index, edits=edits)
    assert [one.name for one in found.edits] == ["polarity", "number"]
    polarity, number = ({*zip(*texts, strict=True)} for texts in (seen[2:4], seen[4:]))
    assert {one for one, _ in number} == {"I have 3 dogs", "We see 40 cats"} < {*TEXTS}
    assert all(one.translate(NO_DIGITS) == other.translate(NO_DIGITS) != one for one, other in number)
    assert {one for one, _ in polarity} == {"Is it safe?", "Is it dangerous?"}
    for one, pairs in zip(found.edits, seen[2::2], strict=True):
        assert len(one.near_misses) == len(pairs) == len({*pairs})
    with pytest.warns(una_fast.InputWarning, match="edits: swap fits 0 sentences: left out"):
        assert una_fast.probe(letters, una_fast.build_index(["a b", "d e"]), edits=["swap"]).edits == ()


def test_a_seed_fixes_the_sample_and_a_short_text_is_used_completely(index):
    one, same, other = (una_fast.probe(letters, index, n=20, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(one.near_misses, same.near_misses) and not np.array_equal(one.near_misses, other.near_misses)
    distinct = {sentence for sentence in index if sentence.strip()}
    assert len(una_fast.probe(letters, index, n=10_000).usual) <= len(distinct)
    own = una_fast.EDA(index, operation="delete", strength=0.5)
    assert una_fast.probe(letters, index, n=20, augmenter=own).distance > 0


@pytest.mark.parametrize(("arguments", "named"), [
    ({"n": 1}, "^n=1"), ({"share": 0}, "^share=0"),
    ({"encode": lambda texts: letters(texts)[1:]}, r"\(19, 26\) for 20"),
    ({"encode": lambda texts: np.full((len(texts), 3), np.nan)}, "encode.* finite"),
    ({"encode": lambda texts: np.full((len(texts), 3), 0.1, np.float32)}, "encode .* same vector"),
    ({"encode": lambda texts: ["a"] * len(texts)}, "encode .* list"),
    ({"index": una_fast.build_index(["a b", "", " "])}, "1 sentence "), ({"edits": ["numbr"]}, "'numbr'"),
])  # fmt: skip
def test_bad_calls_are_named(index, arguments, named):
    with pytest.raises(una_fast.InputError, match=named):
        una_fast.probe(**{"encode": letters, "index": index, "n": 20, **arguments})


def test_the_command_prints_and_stores_the_figures(corpus, tiny_model, tmp_path, capsys):
    kept, other = tmp_path / "probe.json", shutil.copy(corpus, tmp_path / "other.txt")

    def call(text=corpus, *more):
        words = ["probe", "--model", tiny_model, "--corpus", text, "--n", "15", "--json", kept, *more]
        return main([*map(str, words)]), capsys.readouterr()

    code, said = call()
    figures = json.loads(kept.read_text())
    label = "/".join(tiny_model.parts[-2:])
    assert code == 0 and f"\n{label}, 15 sentences of {corpus}" in f"\n{said.out}"
    phases = [f"indexing {corpus}", f"{tiny_model}: encoding sentences and their near-misses"]
    assert [line for line in said.err.splitlines() if "ing " in line] == phases
    assert "too few" in said.out and figures["probes"][str(tiny_model)]["threshold"] is None
    assert figures["probes"][str(tiny_model)]["n"] == 15 and figures["model"] == [str(tiny_model)]
    page = tmp_path / "probe.html"
    out = call(corpus, "--share", "0.25", "--edits", "swap", "--html", page)[1].out
    assert "At most 25% of near-misses that are made in the same way pass the threshold." in out
    assert f"<pre>{html.escape(out)}</pre>" in page.read_text() and "\nswap " in out
    before = kept.read_bytes()
    code, said = call(other)
    assert code == 2 and "probe.json: contains something other than figures" in said.err and kept.read_bytes() == before


def test_the_command_refuses_what_it_cannot_read(corpus, tmp_path, capsys):
    for model, text, message in (
        (tmp_path / "none", corpus, "no such folder, and sentence-transformers cannot load it"),
        (tmp_path, tmp_path / "none.txt", "none.txt"),
    ):
        assert main([*map(str, ["probe", "--model", model, "--corpus", text])]) == 2
        *phases, said = capsys.readouterr().err.splitlines()
        assert message in said and said.startswith("error: ") and phases == [f"indexing {text}"], said


def test_the_command_compares_two_encoders_and_refuses_the_folder_of_a_run(corpus, tiny_model, tmp_path, capsys):
    best, kept = tmp_path / "run/best", tmp_path / "probe.json"
    best.parent.mkdir()
    best.symlink_to(tiny_model)
    words = ["probe", "--corpus", corpus, "--n", "15", "--edits", "swap", "--json", kept, "--model", tiny_model]
    assert main([*map(str, [*words, best])]) == 0
    out, changes = capsys.readouterr().out, json.loads(kept.read_text())["probes_change"]
    assert f"distance of {'/'.join(tiny_model.parts[-2:])}  distance of run/best  change" in out
    assert changes["swap"] == {"distance": 0, "distance_low": 0, "distance_high": 0} and [*changes] == ["word", "swap"]
    assert main([*map(str, ["probe", "--corpus", corpus, "--model", best.parent])]) == 2
    assert f"run: is the folder of a training run, not of an encoder: give {best}\n" in capsys.readouterr().err


def test_paths_are_shortened_to_what_distinguishes_them():
    for names, labels in (
        (["model"], ["model"]),
        (["/home/somebody/runs/near/best"], ["near/best"]),
        (["google/bert", "runs/a/best"], ["google/bert", "a/best"]),
        (["/x/a/near/best", "/x/b/near/best"], ["a/near/best", "b/near/best"]),
    ):
        assert shortened(names) == labels


def test_tensors_of_any_type_are_accepted(index):
    plain = una_fast.probe(letters, index, n=20)
    for change in (torch.Tensor.double, lambda rows: rows.clone().requires_grad_()):
        found = una_fast.probe(lambda texts, change=change: change(torch.as_tensor(letters(texts))), index, n=20)
        assert found.distance == pytest.approx(plain.distance)
    una_fast.probe(lambda texts: torch.as_tensor(letters(texts)).bfloat16(), index, n=20)


def test_labelled_pairs_need_no_index():
    code = (
        "import una_fast_cli.probe as p, sys; p._checked(p.ProbeOptions(model=['m'], pairs='p')); print(*sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert "una_fast.errors" in ran.stdout.split() and "una_fast.index.index" not in ran.stdout.split()
