"""bench.evidence: conditions and their settings, controls, the pool of runs, statistics and pages."""

import json
import math
import re
import threading
from collections import Counter

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from scipy import stats

import una_fast
from bench.evidence import conditions, page, results, runs
from bench.evidence.bases import copy_encoder
from bench.evidence.conditions import BASES, STAGES, VARIATIONS, Condition, find_condition, grid
from bench.evidence.controls import Deleted, Masked, OtherSentence
from bench.evidence.corpora import write_pairs
from bench.evidence.word_classes import window, word_classes
from support.tokenizer_families import bert_uncased
from train.config import make_run
from train.evaluation.tasks.registry import suite
from una_fast.augment.registry import make_augmentation
from una_fast.errors import InputError

# variations with negatives in every step: a base with an untrained reference or with pairs allows only these
NEED_NEGATIVES = {
    name for name, one in VARIATIONS.items() if not {"alpha", "variant"} & {*one} and one["augment"] != "none"
}


def run_of(condition: Condition):
    return make_run({"corpus": ["c.txt"], "model": "m", "output": "o", **condition.settings()})


@pytest.mark.parametrize(("base", "variation"), [
    (b, v) for b in BASES for v in VARIATIONS if v in NEED_NEGATIVES or not (BASES[b].untrained or BASES[b].pairs)
])  # fmt: skip
def test_every_condition_gives_valid_options_of_train_ddp(base, variation):
    condition = find_condition(f"{base}: {variation}")
    run = run_of(condition)
    assert run.batch_size * run.max_steps == condition.n_sentences()
    differing = {name for name, value in condition.settings().items() if value != BASES[base].shared.get(name)}
    assert differing <= {"pooling", *VARIATIONS[variation]}


def test_no_two_near_miss_runs_have_the_same_settings():
    near, ablations = (STAGES[name].conditions({}) for name in ("near", "near-ablations"))
    settings = [(one.base, run_of(one)) for one in (*near, *ablations)]
    assert all(settings.index(one) == place for place, one in enumerate(settings))
    assert all(run.precision in ("fp32", "bf16") and BASES[base].start == conditions.HALF for base, run in settings)
    recipe = near[0].settings()
    preset = {**conditions.PRESETS["near_misses"], **conditions.BEFORE_SEARCH}
    assert recipe == {**recipe, **preset} and len(near) == len(conditions.NEAR)


def test_the_name_of_a_condition_contains_its_options():
    found = find_condition("minilm-mlm: una, words at random, temperature 0.03, max_steps 256")
    changed = {"select": "random", "temperature": 0.03, "max_steps": 256, "augment": "una", "pooling": "mean"}
    assert found.settings() == {**conditions.LANGUAGE_MODEL, **changed}
    assert found.reference == Condition("minilm-mlm", "none, temperature 0.03, max_steps 256")
    for name in ("minilm-mlm: una, temprature 0.1", "minilm-mlm: unas", "bert: una"):
        with pytest.raises(InputError, match="give BASE: VARIATION"):
            find_condition(name)


def with_dev_scores(points, first):
    """Return conditions as in evidence.json, where the dev score increases from point to point."""
    return {one.name: {"runs": {"42": {"dev": {"0": 0.3, "128": first + i / 1000}}}} for i, one in enumerate(points)}


def test_tuned_selects_the_grid_point_with_the_best_dev_score():
    points = grid("una")
    assert len(points) == math.prod(map(len, conditions.GRID.values())) and Condition("minilm-mlm", "una") in points
    runs = with_dev_scores(points, 0.7)
    runs[points[3].name]["runs"]["42"]["dev"]["128"] = 0.99
    assert conditions.tuned("una", runs) == points[3].variation
    found = find_condition("minilm-mlm-102400: una, tuned, batch_size 256", runs)
    assert found == Condition("minilm-mlm-102400", f"{points[3].variation}, batch_size 256")
    found = find_condition("minilm-mlm: mined, and una, tuned", runs)  # a control uses UNA's settings
    assert found.variation == points[3].variation.replace("una", "mined, and una", 1)
    with pytest.raises(InputError, match="una, tuned: 18 points of the grid have no dev score"):
        find_condition("minilm-mlm: una, tuned")
    wide = [grid(arm, "minilm-mlm-102400") for arm in ("none", "una")]
    assert [len({*points}) for points in wide] == [12, 12]  # on this base each arm has its own grid
    names = [f"minilm-mlm-102400: {arm}, tuned at its size" for arm in ("none", "una")]
    runs |= with_dev_scores(wide[0], 0.5) | with_dev_scores(wide[1], 0.5)
    assert [find_condition(name, runs) for name in names] == [points[-1] for points in wide]
    with pytest.raises(InputError, match="--conditions 'minilm-mlm-32768: una, tuned at its size'"):
        find_condition("minilm-mlm-32768: una, tuned at its size", runs)


class TestControls:
    def test_other_sentences_are_drawn_evenly(self):
        texts = [f"{word} and {word}s" for word in ("cat", "dog", "bird", "fish", "cow")]
        tokenizer = bert_uncased()
        control = OtherSentence(una_fast.build_index(texts), tokenizer=tokenizer)
        drawn = [control.texts(np.arange(5), epoch) for epoch in range(200)]
        for row, text in enumerate(texts):
            counts = Counter(one[row] for one in drawn)
            assert set(counts) == {*texts} - {text}
            assert stats.chisquare([*counts.values()]).pvalue > 1e-3
        expected = tokenizer(drawn[7], padding="max_length", max_length=12)["input_ids"]
        assert control.token_ids(np.arange(5), 7, 12)["input_ids"].tolist() == expected

    def test_deleting_and_masking_words_keeps_the_rest_of_the_sentence(self):
        texts = ["The old house, of a king!", "Rain and snow don't fall.", "A cat saw the dog (twice)."] * 30
        index = una_fast.build_index(texts)
        for control, mark in ((Deleted(index, beta=0.4), ""), (Masked(index, beta=0.4), "[MASK]")):
            altered = control.texts(range(90))
            words = [{word for word in text.replace("[MASK]", "").split() if word.isalpha()} for text in altered]
            assert all(some <= {*re.findall(r"\w+", text)} for some, text in zip(words, texts, strict=True))
            assert 0.4 < sum(map(len, words)) / sum(map(len, map(str.split, texts))) < 0.75
            assert not mark or any(mark in text for text in altered)
        chosen = {"beta": 0.2, "select": "random", "keep_punctuation": True}  # options of a run reach the control
        masked = make_augmentation("bench.evidence.controls:Masked", index, {**chosen, "alpha": 1})
        assert {name: getattr(masked, name) for name in chosen} == chosen

    def test_sentences_are_mined_with_the_runs_encoder(self, tiny_model):
        texts = [f"{one} and {other}" for one in ("rain", "snow", "wind", "sun") for other in map(str, range(15))]
        index, offered = una_fast.build_index(texts), {"model": str(tiny_model), "pooling": "mean", "beta": 0.9}
        names = ("Mined", "MinedAndUna")
        made = [make_augmentation(f"bench.evidence.controls:{name}", index, offered) for name in names]
        mined, mixed = (one.texts(range(60)) for one in made)
        assert all(one in texts and one != text for one, text in zip(mined, texts, strict=True))
        assert 10 < sum(one == other for one, other in zip(mined, mixed, strict=True)) < 50

    def test_terms_with_the_same_neighbours_are_in_one_class(self):
        nouns, verbs = ("cat", "dog", "bird", "fish", "cow"), ("sees", "hears", "meets", "finds", "hits")
        index = una_fast.build_index([f"the {a} {v} the {b}" for a in nouns for v in verbs for b in nouns if a != b])
        classes = word_classes(index, 3)
        of = {term: classes[index.term_ids[term]] for term in (*nouns, *verbs)}
        assert len({of[noun] for noun in nouns}) == len({of[verb] for verb in verbs}) == 1 and of["cat"] != of["sees"]
        members = np.flatnonzero(classes == of["cat"])
        assert sorted(window(members, members[2])) == sorted(set(members) - {members[2]})
        assert sorted(window(np.arange(0, 600, 2), 300)) == [*range(240, 300, 2), *range(302, 362, 2)]


def test_paraphrases_are_the_positive_pairs(tmp_path):
    downstream = tmp_path / "senteval" / "downstream"
    (downstream / "MRPC").mkdir(parents=True)
    (downstream / "STS" / "STSBenchmark").mkdir(parents=True)
    rows = ["Quality\t#1 ID\t#2 ID\t#1 String\t#2 String", "1\t1\t2\ta b\tb a", "0\t3\t4\tc\td"]
    (downstream / "MRPC" / "msr_paraphrase_train.txt").write_text("\n".join(rows) + "\n")
    rows = [f"g\tf\ty\t{i}\t{score}\tx {i}\ty {i}" for i, score in enumerate(("4.4", "4.5", "5.000"))]
    (downstream / "STS" / "STSBenchmark" / "sts-train.csv").write_text("\n".join(rows) + "\n")
    first, second = write_pairs(tmp_path, tmp_path)
    assert first.read_text() == "a b\nx 1\nx 2\n" and second.read_text() == "b a\ny 1\ny 2\n"


def test_converting_an_encoder_to_half_precision_and_back_only_rounds_its_weights(tiny_model, tmp_path):
    half = copy_encoder(tiny_model, tmp_path / "half", torch.half)
    back = copy_encoder(half, tmp_path / "back", torch.float)
    at_once = copy_encoder(tiny_model, tmp_path / "at-once", torch.half, torch.float)
    paths = [folder / "model.safetensors" for folder in (tiny_model, back, at_once)]
    assert paths[1].read_bytes() == paths[2].read_bytes()
    weights, rounded = map(load_file, paths[:2])
    assert all(torch.allclose(rounded[name], weights[name], rtol=1e-3, atol=1e-6) for name in weights)
    assert (back / "config.json").read_text() == (tiny_model / "config.json").read_text()


class TestRuns:
    """The pool of runs, tested with stand-ins for trainings."""

    @pytest.fixture
    def place(self, tmp_path, monkeypatch):
        place = runs.Workplace(tmp_path, tmp_path, tmp_path / "corpus.txt", 1)
        monkeypatch.setattr(place, "command", lambda condition, seed: ("module", seed))
        return place

    def run_all(self, place, n_seeds, done, **settings):
        wanted = [(Condition("wiki-lm", "none"), seed) for seed in range(n_seeds)]
        runs.run_all(place, wanted, False, lambda _, seed, said: done(seed, said), **settings)

    def test_a_run_is_stored_as_soon_as_it_ends(self, place, monkeypatch):
        kept, ended = [], threading.Event()

        def on_cores(commands, *_):
            ((_, seed),) = commands
            return 0 if seed else int(not ended.wait(60))  # seed 0 ends after seed 1 is stored

        def done(seed, said):
            kept.append((seed, said))
            ended.set()

        place.shares *= 2
        monkeypatch.setattr(runs, "on_cores", on_cores)
        self.run_all(place, 2, done)
        assert kept == [(1, ""), (0, "")]

    def test_commands_run_until_one_fails(self, tmp_path):
        log, missing = tmp_path / "log", ("train.evaluate", ["--model", "/no/such", "--data", str(tmp_path)])
        assert runs.on_cores([missing, ("no.module", [])], {0}, log) == 2
        assert "error" in log.read_text() and "no.module" not in log.read_text()


class TestResults:
    def test_runs_are_stored_one_by_one(self, tmp_path, monkeypatch):
        monkeypatch.setattr(results, "EVIDENCE", tmp_path / "evidence.json")
        condition, machine = Condition("minilm-cls", "una"), {"cores": 1}
        result = {"dev": {"0": 0.5}, "scores": {"average": 0.7}}
        with results.changed_evidence() as content:
            content["failed"][f"{condition.name}, seed 42"] = "exit code 1"
        for seed in (42, 0):
            results.keep(condition, "a1", seed, result, machine)
        content = results.read_evidence()
        kept = [results.is_kept(content, condition, digest, 42, scored=True) for digest in ("a1", "b2")]
        assert kept == [True, False] and not content["failed"] and len(content["machines"]) == 1
        assert results.furthest(condition, 42, {"dev": {}, "scores": {"average": 0.7011}}) == pytest.approx(0.0011)
        with pytest.raises(InputError, match="has no seed 7"):
            results.committed(condition, 7)
        results.keep(condition, "b2", 1, result, machine)
        assert [*results.read_evidence()["conditions"][condition.name]["runs"]] == ["1"]  # the digest changed

    def test_the_auc_of_each_group_of_pairs_is_stored(self, tmp_path):
        groups = {"number": {"auc": 0.25}, "name": {"auc": 0.5}}
        file = tmp_path / "scores.json"
        near = {"sick_auc": 0.7, "qqp_near": {"auc": 0.8, "recall": 0.1, "groups": groups}}
        sts = {name: {"spearman": {"all": 0.5}} for name in suite("sts")}
        file.write_text(json.dumps({"near-miss": near, "sts": sts, "protocol": {"split": "test"}}))
        scores = {"sick_auc": 0.7, "qqp_near recall": 0.1, "qqp_near number": 0.25, "qqp_near name": 0.5}
        found = runs.scores_in(file)
        assert found == {**scores, "qqp_near": 0.8, **dict.fromkeys((*suite("sts"), "average"), 0.5)}

    def test_in_an_unfinished_grid_the_best_finished_point_counts(self, tmp_path, monkeypatch):
        points = STAGES["wiki-grid"].conditions({})
        assert len(points) == len({*points}) == 6 * len(conditions.FROM_SCRATCH_ARMS)
        monkeypatch.setattr(results, "EVIDENCE", tmp_path / "evidence.json")
        with results.changed_evidence() as content:
            content["bases"]["wiki-lm"] = {"digest": "a1", "before": {"average": 0.3}}
        for number, one in enumerate(points):
            score = 0.5 + number / 1000
            kept = {"dev": {"0": 0.3, "128": score}, "scores": {"average": score - 0.1}}
            results.keep(one, "a1", 42, kept, {"gpus": ["x"]})
        content = results.read_evidence()
        compared = [shown for shown, *_ in page.pairs_of(content)]
        assert len(compared) == 4 and compared[:2] == ["UNA, both tuned", "UNA as in the paper, both tuned"]
        content["conditions"].pop(points[0].name)
        assert len(page.pairs_of(content)) == 4


def test_holms_correction_ignores_comparisons_without_p():
    values = [0.001, 0.04, math.nan, 0.03, *[0.9] * 8]
    expected = [0.011, 0.36, math.nan, 0.3, *[1] * 8]  # times 11, 9, -, 10
    assert page.holm(values) == pytest.approx(expected, nan_ok=True)


def run(average: float) -> dict:
    return {"dev": {"0": 0.6, "128": 0.7}, "scores": {"STS12": average, "average": average}, "machine": "1"}


def test_tables_show_differences_paired_by_seed():
    without = {str(seed): run(0.7 + 0.001 * seed) for seed in range(5)}
    with_it = {str(seed): run(0.71 + 0.001 * seed) for seed in range(1, 5)} | {"0": run(0.705)}
    before = {"minilm-mlm": {"digest": "", "before": {"STS12": 0.65, "average": 0.65}}}
    conditions = {"minilm-mlm: none": {"settings": {}, "runs": without}}
    conditions["minilm-mlm: una"] = {"settings": {}, "runs": with_it}
    measured = {"failed": {}, "bases": before, "conditions": conditions}
    pairs = page.pairs_of(measured)
    assert [one.name for _, *both in pairs for one in both] == ["minilm-mlm: una", "minilm-mlm: none"]
    row = "| MLM MiniLM | UNA, default settings | 8,192 | 5 | 65.00 | 70.20 | 71.10 | +0.90 "
    assert page.pair_table(measured, pairs).splitlines()[2].startswith(f"{row}± 0.22 | +0.62 to +1.18 |")
    assert page.pair_table(measured, pairs, brief=True).splitlines()[2] == f"{row}| +0.62 to +1.18 |"
    assert page.run_table(measured).splitlines()[-1].endswith("| una | 8,192 | 5 | 70.00 | 71.10 |")
    assert page.task_table(measured, *pairs[0][1:]).splitlines()[-1].startswith("| average | 70.20 | 71.10")
    rows = page.base_table(measured, "minilm-mlm", ["average"]).splitlines()[2:]
    assert rows[:2] == ["| before training |  | 65.00 |", "| none | 5 | 70.20 |"]
    assert rows[2].startswith("| una | 5 | 71.10 (+0.90, +0.62 to +1.18) |")
    assert page.pairs_of({"bases": {}, "conditions": {}}) == []


def test_the_table_of_near_misses_has_intervals_from_three_seeds_on():
    def seeds(*scores):
        return {"runs": {str(i): {"scores": dict.fromkeys(page.NEAR_ROWS.values(), x)} for i, x in enumerate(scores)}}

    conditions = {"minilm-questions: one word": seeds(0.7, 0.71, 0.72)}
    conditions["minilm-questions: near-misses"] = seeds(0.75)
    before = {"minilm-questions": {"before": dict.fromkeys(page.NEAR_ROWS.values(), 0.6)}}
    head, _, n_seeds, *rows = page.near_table({"bases": before, "conditions": conditions}).splitlines()
    assert head == "|  | before | one word | `--near-misses` |" and n_seeds == "| seeds |  | 3 | 1 |"
    assert [row.split("| ")[2:] for row in rows] == [["60.0 ", "71.0 ± 2.5 ", "75.0 |"]] * len(page.NEAR_ROWS)


def test_an_untrained_reference_has_the_scores_before_training():
    una, none = map(find_condition, ("minilm-near: una", "minilm-near: none"))
    bases = {"minilm-near": {"digest": "", "before": {"average": 0.7}}}
    conditions = {una.name: {"settings": {}, "runs": {str(seed): run(0.72) for seed in range(3)}}}
    assert none.is_untrained and none.settings() == {"max_steps": 0}
    found = page.difference({"bases": bases, "conditions": conditions}, una, none)
    assert (found.n, found.difference) == (3, pytest.approx(2))
