"""Near-misses: scores compared with plain references, the files of SugarCrepe++ and SICK, and MiniLM's scores."""

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from train.evaluate import main
from train.evaluation.model import load_model
from train.evaluation.scoring import evaluate
from train.evaluation.tasks.near_miss import COLUMNS, PAIR_SETS, REPLACED, is_dev
from train.evaluation.tasks.registry import SUGARCREPE, EvaluationProtocol, read_task, suite
from una_fast.errors import InputError


@pytest.fixture
def data(tmp_path) -> Path:
    """Make a data folder with the five subsets, with two entries per image, and with SICK's test and trial pairs."""
    folder, sick = tmp_path / "data", tmp_path / "data" / "senteval" / "downstream" / "SICK"
    (folder / "near_miss").mkdir(parents=True)
    sick.mkdir(parents=True)
    for name in SUGARCREPE:
        texts = [{column: f"{name} {i} {column}" for column in COLUMNS} for i in range(30)]
        entries = [{"filename": f"{i // 2:012}.jpg", **of} for i, of in enumerate(texts)]
        (folder / "near_miss" / f"{name}.json").write_text(json.dumps(entries))
    judgements = ("ENTAILMENT", "NEUTRAL", "CONTRADICTION")
    for file, n in (("SICK_test_annotated.txt", 15), ("SICK_trial.txt", 9)):
        pairs = [f"{i}\ta {i}\t b  {i}\t3\t{judgements[i % 3]}" for i in range(n)]
        (sick / file).write_text("\r\n".join(["id\tA\tB\tscore\tjudgment", *pairs, ""]), newline="")
    (folder / "near_miss" / "pairs").mkdir()
    for name in PAIR_SETS:
        lines = [f"{name} {i}\tb  {i}\t{i % 2}\t{'xy'[i > 4]}" for i in range(9)]
        text = "\n".join(["sentence1\tsentence2\tlabel\tgroup", *lines, ""])
        (folder / "near_miss" / "pairs" / f"{name}_dev.tsv").write_text(text)
    return folder


def cosine(u: np.ndarray, v: np.ndarray) -> float:
    return float(u @ v / np.linalg.norm(u) / np.linalg.norm(v))


@pytest.mark.parametrize(("mode", "held_out", "kept"), [("dev", False, {True}), ("test", False, {True, False}),
                                                        ("test", True, {False})])  # fmt: skip
def test_scores_of_dev_all_and_held_out_images_equal_plain_references(data, mode, held_out, kept):
    protocol = EvaluationProtocol(mode=mode, held_out=held_out)
    for name in (*SUGARCREPE, "replace", "recall_at_5"):
        subsets = [name] if name in SUGARCREPE else REPLACED
        read = [one for of in subsets for one in json.loads((data / "near_miss" / f"{of}.json").read_text())]
        texts = list(dict.fromkeys(one[column] for one in read for column in COLUMNS))
        embeddings = dict(zip(texts, np.random.default_rng(1).normal(size=(len(texts), 4)), strict=True))
        task = read_task(data / "senteval" / "downstream", name, protocol.split)
        score = task.score([np.array([embeddings[text] for text in side]) for side in task.texts], protocol)

        sides = [[embeddings[one[column]] for column in COLUMNS] for one in read if is_dev(one["filename"]) in kept]
        near = [cosine(caption, near_miss) for caption, _, near_miss in sides]
        if name == "recall_at_5":
            threshold = min(t for t in near if sum(y > t for y in near) <= 0.05 * len(near))
            plain = np.mean([cosine(caption, same) > threshold for caption, same, _ in sides])
        else:
            plain = np.mean([cosine(a, b) > max(cosine(a, c), cosine(b, c)) for a, b, c in sides])
        assert score == pytest.approx(plain), name


def test_entailments_and_contradictions_of_sick(data):
    for split, n in (("test", 5), ("dev", 3)):
        task = read_task(data / "senteval" / "downstream", "sick_auc", split)
        judged = [range(0, 3 * n, 3), range(2, 3 * n, 3)]
        assert task.texts == [[f"{side} {i}" for i in of] for of in judged for side in "ab"]
        assert task.sizes == {split: 2 * n}
        sides = np.random.default_rng(1).normal(size=(4, n, 8))
        score = task.score(sides, EvaluationProtocol())
        same, other = ([cosine(u, v) for u, v in zip(*pair, strict=True)] for pair in (sides[:2], sides[2:]))
        assert score == pytest.approx(np.mean([x > y for x, y in product(same, other)]))


def test_labelled_pairs_have_an_auc_over_all_pairs_and_per_group(data):
    downstream = data / "senteval" / "downstream"
    task = read_task(downstream, "qqp_near")
    assert task.sizes == {"dev": 9} and task.texts[1][:2] == ["b 0", "b 1"]
    sides = np.random.default_rng(1).normal(size=(2, 9, 8))
    scores, cosines = task.score(sides, EvaluationProtocol()), [cosine(u, v) for u, v in zip(*sides, strict=True)]
    plain = np.mean([x > y for x, y in product(cosines[1::2], cosines[::2])])
    assert scores["auc"] == pytest.approx(plain) and [*scores["groups"]] == ["x", "y"]
    plain = np.mean([x > y for x, y in product(cosines[1:5:2], cosines[:5:2])])
    assert scores["groups"]["x"]["auc"] == pytest.approx(plain)
    (data / "near_miss" / "pairs" / "qqp_near_test.tsv").write_text("sentence1\tsentence2\tlabel\na\tb\t1\n")
    assert read_task(downstream, "qqp_near").sizes == {"test": 1}
    assert read_task(downstream, "qqp_near", "dev").sizes == {"dev": 9}


def test_near_miss_data_is_scored_without_the_rest_of_senteval(data, tiny_model, tmp_path, capsys):
    words = ["--model", str(tiny_model), "--tasks", "near-miss", "--device", "cpu", "--data"]
    assert main([*words, str(data), "--json", str(tmp_path / "scores.json")]) == 0
    scores = json.loads((tmp_path / "scores.json").read_text())
    assert [*scores["near-miss"]] == suite("near-miss") and "near-miss" not in scores["averages"]
    assert scores["protocol"]["held_out"] is False and "12 of 12 tasks" in capsys.readouterr().out
    (data / "near_miss").rename(tmp_path / "near_miss")
    assert main([*words, str(tmp_path)]) == 0
    assert "note: sick_auc left out: " in capsys.readouterr().out


@pytest.mark.parametrize("content", [
    None, "[" * 5000, '[{"caption": "a"}]', json.dumps([{**dict.fromkeys(COLUMNS, "a"), "filename": 3}]), "[]",
])  # fmt: skip
def test_damaged_files_are_named(data, content):
    path = data / "near_miss" / "replace_obj.json"
    path.unlink() if content is None else path.write_text(content)
    with pytest.raises(InputError, match="replace_obj"):
        read_task(data / "senteval" / "downstream", "replace_obj")


def test_a_file_of_pairs_without_a_pair_is_named(data):
    (data / "near_miss" / "pairs" / "qqp_near_dev.tsv").write_text("sentence1\tsentence2\tlabel\n")
    with pytest.raises(InputError, match=r"qqp_near_dev\.tsv"):
        read_task(data / "senteval" / "downstream", "qqp_near")


@pytest.mark.slow
def test_minilm_has_the_known_scores(data_dir, minilm):
    """The expected hit rate, 65.1%, was measured without this evaluation, with mean pooling in fp32."""
    if not (data_dir / "near_miss").is_dir():
        pytest.skip("needs near_miss/ in UNA_FAST_DATA: python -m train.download --only near-miss")
    task = read_task(data_dir / "senteval" / "downstream", "replace_att")
    assert 0.18 < task.dev.mean() < 0.22
    scores = evaluate(load_model(str(minilm), device="cpu"), [task], EvaluationProtocol())["near-miss"]
    assert 100 * scores["replace_att"] == pytest.approx(65.1, abs=0.3)
