"""bench: the comparison with and without UNA, its statistics, conditions and page; and the other scripts."""

import json
import math
import re
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats

import una_fast
from bench import style
from bench.check import REFERENCES, slower, summary
from bench.evidence import results, runs
from bench.evidence.conditions import BASES, GRID, LANGUAGE_MODEL, VARIATIONS, Condition, find_conditions, grid, tuned
from bench.evidence.controls import Deleted, Masked, OtherSentence
from bench.evidence.corpora import write_pairs
from bench.evidence.page import (
    NEAR_ROWS,
    base_table,
    difference,
    holm,
    near_table,
    pair_table,
    pairs_of,
    run_table,
    task_table,
)
from bench.evidence.runs import Workplace, run_all, with_average
from bench.evidence.word_classes import window, word_classes
from bench.training.card_tables import tables
from support.tokenizer_families import bert_uncased, training_lines
from train.config import make_run
from train.evaluation.tasks.registry import suite
from train.report.runs import STS_AVERAGE
from una_fast.augment.registry import make_augmentation
from una_fast.errors import InputError

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
    drawn = [control.texts(np.arange(5), epoch) for epoch in range(200)]
    for row, text in enumerate(texts):
        counts = Counter(one[row] for one in drawn)
        assert set(counts) == {*texts} - {text}
        assert stats.chisquare([*counts.values()]).pvalue > 1e-3
    expected = tokenizer(drawn[7], truncation=True, padding="max_length", max_length=12, return_tensors="pt")
    assert torch.equal(control.token_ids(np.arange(5), 7, 12)["input_ids"], expected["input_ids"])


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


def test_a_name_states_options() -> None:
    (found,) = find_conditions("minilm-mlm: una, words at random, temperature 0.03, max_steps 256")
    changed = {"select": "random", "temperature": 0.03, "max_steps": 256, "augment": "una", "pooling": "mean"}
    assert found.settings() == {**LANGUAGE_MODEL, **changed}
    assert found.reference == Condition("minilm-mlm", "none, temperature 0.03, max_steps 256")
    for name in ("minilm-mlm: una, temprature 0.1", "minilm-mlm: unas", "minilm-cls: una; bert: una"):
        with pytest.raises(InputError, match="give BASE: VARIATION"):
            find_conditions(name)


def test_dev_chooses_the_point_of_the_grid() -> None:
    points = grid("una")
    assert len(points) == math.prod(map(len, GRID.values())) and Condition("minilm-mlm", "una") in points
    runs = {one.name: {"runs": {"42": {"dev": {"0": 0.7, "128": 0.7 + i / 100}}}} for i, one in enumerate(points)}
    runs[points[3].name]["runs"]["42"]["dev"]["128"] = 0.99
    assert tuned("una", runs) == points[3].variation
    (found,) = find_conditions("minilm-mlm-102400: una, tuned, batch_size 256", runs)
    assert found == Condition("minilm-mlm-102400", f"{points[3].variation}, batch_size 256")
    (found,) = find_conditions("minilm-mlm: mined, and una, tuned", runs)  # a control has UNA's settings
    assert found.variation == points[3].variation.replace("una", "mined, and una", 1)
    with pytest.raises(InputError, match="una, tuned: 18 points of the grid have no dev score"):
        find_conditions("minilm-mlm: una, tuned")
    wide = [grid(arm, "minilm-mlm-102400") for arm in ("none", "una")]
    assert [len({*points}) for points in wide] == [12, 12]  # each arm has a grid of its own there
    runs |= {
        one.name: {"runs": {"42": {"dev": {"1": 0.5 + i / 100}}}} for points in wide for i, one in enumerate(points)
    }
    names = [f"minilm-mlm-102400: {arm}, tuned at its size" for arm in ("none", "una")]
    assert find_conditions(";".join(names), runs) == [points[-1] for points in wide]
    with pytest.raises(InputError, match="--conditions 'minilm-mlm-32768: una, tuned at its size'"):
        find_conditions("minilm-mlm-32768: una, tuned at its size", runs)


def run(average: float) -> dict:
    return {"dev": {"0": 0.6, "128": 0.7}, "scores": {"STS12": average, "average": average}, "machine": "1"}


def measured() -> dict:
    """evidence.json of two conditions with five seeds."""
    without = {str(seed): run(0.7 + 0.001 * seed) for seed in range(5)}
    with_it = {str(seed): run(0.71 + 0.001 * seed) for seed in range(1, 5)} | {"0": run(0.705)}
    conditions = {
        "minilm-mlm: none": {"settings": {}, "runs": without},
        "minilm-mlm: una": {"settings": {}, "runs": with_it},
    }
    before = {"STS12": 0.65, "average": 0.65}
    return {"failed": {}, "bases": {"minilm-mlm": {"digest": "", "before": before}}, "conditions": conditions}


def test_the_table_of_near_misses_shows_what_was_run_with_intervals_from_three_seeds() -> None:
    conditions = {
        f"minilm-questions: {name}": {
            "runs": {
                str(seed): {"scores": dict.fromkeys(NEAR_ROWS.values(), score)} for seed, score in enumerate(scores)
            }
        }
        for name, scores in (("near-misses", (0.7, 0.71, 0.72)), ("near-misses, max_steps 320", (0.75,)))
    }
    before = {"minilm-questions": {"before": dict.fromkeys(NEAR_ROWS.values(), 0.6)}}
    head, _, seeds, *rows = near_table({"bases": before, "conditions": conditions}).splitlines()
    assert head == "|  | before | 160 steps | preset: 320 steps |" and seeds == "| seeds |  | 3 | 1 |"
    assert [row.split("| ")[2:] for row in rows] == [["60.0 ", "71.0 ± 2.5 ", "75.0 |"]] * len(NEAR_ROWS)


def test_tables_show_pairs_alone() -> None:
    pairs = pairs_of(measured())
    assert [one.name for _, *both in pairs for one in both] == ["minilm-mlm: una", "minilm-mlm: none"]
    row = "| MiniLM, made a language model again | UNA, the defaults | 8,192 | 5 | 65.00 | 70.20 | 71.10 | +0.90 "
    assert pair_table(measured(), pairs).splitlines()[2].startswith(f"{row}± 0.22 | +0.62 to +1.18 |")
    assert pair_table(measured(), pairs, brief=True).splitlines()[2] == f"{row}| +0.62 to +1.18 |"
    assert run_table(measured()).splitlines()[-1].endswith("| una | 8,192 | 5 | 70.00 | 71.10 |")
    assert task_table(measured(), *pairs[0][1:]).splitlines()[-1].startswith("| average | 70.20 | 71.10")
    rows = base_table(measured(), "minilm-mlm", ["average"]).splitlines()[2:]
    assert rows[:2] == ["| before training |  | 65.00 |", "| none | 5 | 70.20 |"]
    assert rows[2].startswith("| una | 5 | 71.10 (+0.90, +0.62 to +1.18) |")
    assert pairs_of({"bases": {}, "conditions": {}}) == []


def test_a_reference_that_is_not_trained_has_the_scores_before() -> None:
    una, none = find_conditions("minilm-near: una; minilm-near: none")
    before = {"digest": "", "before": {"average": 0.7}}
    runs = {una.name: {"settings": {}, "runs": {str(seed): run(0.72) for seed in range(3)}}}
    assert none.is_untrained and none.settings() == {"max_steps": 0}
    found = difference({"bases": {"minilm-near": before}, "conditions": runs}, una, none)
    assert (found.n, found.difference) == (3, pytest.approx(2))


def test_a_run_is_kept_when_it_ends_before_an_earlier_one(tmp_path, monkeypatch) -> None:
    (condition,), kept, ended = find_conditions("minilm-cls: una"), [], threading.Event()

    def on_cores(commands: list[list[str]], *_: object) -> int:
        return 0 if "--seed=1" in commands[0] else int(not ended.wait(60))  # seed 0 ends once seed 1 is kept

    def done(condition: Condition, seed: int, said: str) -> None:
        kept.append((seed, said))
        ended.set()

    place = Workplace(tmp_path, tmp_path, tmp_path / "corpus.txt", 1)
    place.shares *= 2
    monkeypatch.setattr(place, "command", lambda condition, seed: [f"--seed={seed}"])
    monkeypatch.setattr(runs, "on_cores", on_cores)
    run_all(place, [(condition, 0), (condition, 1)], False, done)
    assert kept == [(1, ""), (0, "")]


def test_runs_are_kept_one_by_one(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(results, "EVIDENCE", tmp_path / "evidence.json")
    every = dict.fromkeys((*suite("sts"), STS_AVERAGE), 0.5)
    assert with_average(every)["average"] == 0.5 and "average" not in with_average({"STS12": 0.5, "STS13": 0.6})
    condition, machine = Condition("minilm-cls", "una"), {"cores": 1}
    result = {"dev": {"0": 0.5}, "scores": {"average": 0.7}}
    results.keep_failure(condition, 42, "exit code 1")
    for seed in (42, 0):
        results.keep(condition, "a1", seed, result, machine)
    content = results.read_evidence()
    kept = [results.is_kept(content, condition, digest, 42, scored=True) for digest in ("a1", "b2")]
    assert kept == [True, False] and not content["failed"] and len(content["machines"]) == 1
    assert results.furthest(condition, 42, {"dev": {}, "scores": {"average": 0.7011}}) == pytest.approx(0.0011)
    with pytest.raises(InputError, match="holds no seed 7"):
        results.committed(condition, 7)
    results.keep(condition, "b2", 1, result, machine)
    assert [*results.read_evidence()["conditions"][condition.name]["runs"]] == ["1"]  # of other weights: replaced


def test_words_are_deleted_and_masked_in_the_sentence_as_it_is_written() -> None:
    texts = ["The old house, of a king!", "Rain and snow don't fall.", "A cat saw the dog (twice)."] * 30
    index = una_fast.build_index(texts)
    for control, mark in ((Deleted(index, beta=0.4), ""), (Masked(index, beta=0.4), "[MASK]")):
        altered = control.texts(range(90))
        words = [{word for word in text.replace("[MASK]", "").split() if word.isalpha()} for text in altered]
        assert all(some <= {*re.findall(r"\w+", text)} for some, text in zip(words, texts, strict=True))
        assert 0.4 < sum(map(len, words)) / sum(map(len, map(str.split, texts))) < 0.75
        assert not mark or any(mark in text for text in altered)


def test_mined_sentences_are_those_of_the_runs_encoder(tiny_model) -> None:
    texts = [f"{one} and {other}" for one in ("rain", "snow", "wind", "sun") for other in map(str, range(15))]
    index = una_fast.build_index(texts)
    offered = {"model": str(tiny_model), "pooling": "mean", "beta": 0.9}
    made = [make_augmentation(f"bench.evidence.controls:{name}", index, offered) for name in ("Mined", "MinedAndUna")]
    mined, mixed = (one.texts(range(60)) for one in made)
    assert all(one in texts and one != text for one, text in zip(mined, texts, strict=True))
    assert 10 < sum(one == other for one, other in zip(mined, mixed, strict=True)) < 50


def test_terms_with_the_same_neighbours_are_of_one_class() -> None:
    nouns, verbs = ("cat", "dog", "bird", "fish", "cow"), ("sees", "hears", "meets", "finds", "hits")
    index = una_fast.build_index([f"the {a} {v} the {b}" for a in nouns for v in verbs for b in nouns if a != b])
    classes = word_classes(index, 3)
    of = {term: classes[index.term_ids[term]] for term in (*nouns, *verbs)}
    assert len({of[noun] for noun in nouns}) == len({of[verb] for verb in verbs}) == 1 and of["cat"] != of["sees"]
    members = np.flatnonzero(classes == of["cat"])
    assert sorted(window(members, members[2])) == sorted(set(members) - {members[2]})
    assert sorted(window(np.arange(0, 600, 2), 300)) == [*range(240, 300, 2), *range(302, 362, 2)]


def test_comparisons_are_corrected_step_by_step() -> None:
    values = [0.001, 0.04, math.nan, 0.03, *[0.9] * 8]
    expected = [0.011, 0.36, math.nan, 0.3, *[1] * 8]  # times 11, 9, -, 10
    assert holm(values) == pytest.approx(expected, nan_ok=True)


ROOT = Path(__file__).parents[2]
LINES = [line for line in training_lines()[:400] if line.strip()]


@pytest.mark.slow
def test_the_gpu_session_runs_on_a_cpu(tmp_path):
    """Of bits, steps and a run: each variant is timed, and graphs of recorded kernels change no bit."""
    command = [sys.executable, "-m", "bench.training.card_session", "--small", "--output", str(tmp_path)]
    process = subprocess.run([*command, "--phases", "bits,batch 64,runs"], cwd=ROOT, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    saved = json.loads((tmp_path / "train_gpu.json").read_text())
    found = saved["measured"]
    assert found["bits"]["bf16"]["graphs"]["other_weights"] == 0 < found["bits"]["bf16"]["graphs"]["captured"]
    names = [f"una_fast, --compile {compile}" for compile in ("off", "graphs", "on")]
    assert [row[0] for row in saved["tables"][0]["rows"]] == names and "torch" in saved["tables"][0]["machine"]
    assert found["runs"]["off"]["exit_code"] == 0 and found["runs"]["off"]["steps"] == 20


def test_the_tables_of_gpu_steps_are_those_of_the_saved_results():
    saved = json.loads((ROOT / "bench" / "results" / "train_gpu.json").read_text(encoding="utf-8"))
    assert saved["tables"] == tables(saved["measured"])
    for *rows, total, _ in zip(*(row[1:] for row in saved["tables"][1]["rows"]), strict=True):
        assert sum(map(float, rows)) == pytest.approx(float(total), abs=0.3)


def test_a_slower_kernel_is_named_with_its_last_good_commit():
    good = dict.fromkeys(REFERENCES, 0.5)
    saved = summary([good, {**good, "index": 0.55}], "abc1234")
    assert saved["kernels"]["index"] == {"ratio": 0.5, "tolerance": 0.3, "commit": "abc1234"}
    assert saved["kernels"]["augment"]["tolerance"] == 0.15
    assert slower({**good, "index": 0.64}, saved, 1.0) == []
    (message,) = slower({**good, "augment": 0.6}, saved, 1.0)
    assert message.endswith(
        "takes 0.6 times as long as nltk, and took 0.5 times as long at commit abc1234, with a tolerance of 15%"
    )
    assert message.startswith("augment: ")
    assert slower({**good, "augment": 0.6}, saved, 2.0) == []


@pytest.mark.parametrize("name", style.FEATURES)
def test_texts_of_one_kind_cannot_be_told_and_marked_ones_can(name):
    shifted = LINES[1:] + LINES[:1]
    assert style.accuracy(style.FEATURES[name](), LINES, shifted) < 0.6
    assert style.accuracy(style.FEATURES[name](), LINES, [f"{line} ~ ^ ~ ^" for line in LINES]) > 0.95


def test_the_page_shows_the_result():
    result = json.loads((ROOT / style.RESULT).read_text(encoding="utf-8"))
    assert list(result["rows"]) == list(style.SETTINGS)
    page = (ROOT / style.PAGE).read_text(encoding="utf-8")
    assert all(f"<!-- {name}: begin -->\n\n{table}\n\n" in page for name, table in style.tables(result).items())
