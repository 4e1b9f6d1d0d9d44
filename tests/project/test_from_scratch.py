"""bench.evidence: the language model from random weights, and its runs within a given time."""

import json
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional

from bench.evidence import results, runs
from bench.evidence.conditions import FROM_SCRATCH_ARMS, STAGES, Condition
from bench.evidence.from_scratch import best_points, summary
from bench.evidence.page import pairs_of
from bench.evidence.pretrain import Masks, Plan, Sentences, eager_loss, join, new_model, save, split, states_of
from bench.evidence.runs import Workplace, run_all
from bench.evidence.token_ids import read_ids, write_ids
from support.tokenizer_families import bert_uncased, training_lines
from una_fast.errors import InputError

PLAN = Plan(layers=2, width=32, heads=2)


@pytest.fixture(scope="module")
def tokenizer():
    return bert_uncased()


def test_rows_hold_whole_sentences_and_their_tokens_are_masked(tmp_path, tokenizer) -> None:
    import gzip

    lines = [line.strip() for line in training_lines() if line.strip()][:300]
    source, ids = tmp_path / "text.gz", tmp_path / "ids.xz"
    source.write_bytes(gzip.compress("\n".join(lines).encode()))
    write_ids(source, tokenizer, ids, first=20)
    lengths, flat = read_ids(ids)
    expected = tokenizer(lines[20:], add_special_tokens=False, truncation=True, max_length=62)["input_ids"]
    assert [part.tolist() for part in np.split(flat, np.cumsum(lengths)[:-1])] == expected
    marks = tokenizer.cls_token_id, tokenizer.sep_token_id
    words = Sentences(lengths, flat, marks, PLAN, torch.device("cpu"))
    rows, again = words.epoch(), words.epoch()
    assert (rows[:, 0] == marks[0]).all() and len({*map(tuple, rows.tolist())}) == len(rows) > 10
    assert len(rows) != len(again) or (rows != again).any()
    sentences = {tuple(one) for one in expected}
    first = [row[1 : row.index(marks[1])] for row in rows.tolist() if marks[1] in row]
    assert {tuple(one) for one in first} <= sentences
    put, places, tokens = Masks(tokenizer.mask_token_id, marks, len(tokenizer), 6).of(rows)
    assert torch.equal(rows.flatten()[places], tokens) and len(places) == 6 * len(rows)
    assert not torch.isin(tokens, torch.tensor(marks)).any()
    changed = put != rows
    assert set(changed.flatten().nonzero()[:, 0].tolist()) <= {*places.tolist()}
    assert 0.7 < (put.flatten()[places] == tokenizer.mask_token_id).float().mean() < 0.9


def test_the_language_model_is_berts() -> None:
    torch.manual_seed(0)
    model = new_model(2000, PLAN).eval()
    weights = {name.removeprefix("bert."): value for name, value in model.named_parameters()}
    ids, places = torch.randint(2000, (3, 64)), torch.randint(3 * 64, (40,))
    tokens = ids.flatten()[places]
    with torch.no_grad():
        expected = model.bert(input_ids=ids).last_hidden_state
        assert functional.mse_loss(states_of(weights, ids, 2).float(), expected) < 1e-3 * expected.var()
        logits = model(input_ids=ids).logits.flatten(0, 1)[places]
        assert eager_loss(weights, ids, places, tokens, 2) == pytest.approx(
            functional.cross_entropy(logits, tokens).item(), abs=0.01
        )


def test_parts_of_half_precision_give_the_same_weights(tmp_path, tokenizer) -> None:
    from bench.evidence.pretrain import rounded_to_half

    model, names = new_model(len(tokenizer), PLAN), tmp_path / "tokenizer"
    rounded_to_half(model)
    tokenizer.save_pretrained(names)
    save(model, names, tmp_path / "made", {"steps": 1})
    split(tmp_path / "made", tmp_path / "parts")
    join(tmp_path / "parts", names, tmp_path / "joined")
    made, joined = (tmp_path / name / "model.safetensors" for name in ("made", "joined"))
    assert made.read_bytes() == joined.read_bytes()
    part = tmp_path / "parts" / "weights-2.bin"
    part.write_bytes(bytes(2) + part.read_bytes()[2:])
    with pytest.raises(InputError, match="the weights have the digest"):
        join(tmp_path / "parts", names, tmp_path / "other")


def kept(score: float) -> dict:
    return {"dev": {"0": 0.3, "128": score}, "scores": {"average": score - 0.1}}


def test_runs_of_another_machine_are_added(tmp_path, monkeypatch) -> None:
    points = STAGES["wiki-grid"].conditions({})
    assert len(points) == len({*points}) == 6 * len(FROM_SCRATCH_ARMS)
    there, here = tmp_path / "there.json", tmp_path / "here.json"
    monkeypatch.setattr(results, "EVIDENCE", there)
    results.keep_base("wiki-lm", "a1", {"average": 0.3})
    for number, one in enumerate(points):
        results.keep(one, "a1", 42, kept(0.5 + number / 1000), {"gpus": ["x"]})
    content = results.read_evidence()
    best = best_points(points, content["conditions"])
    assert [*best] == [*dict.fromkeys(best)] and {*best} == {*FROM_SCRATCH_ARMS}
    assert all(one.variation.startswith(arm) and one.base == base for (base, arm), one in best.items())
    assert best["wiki-lm", "una"] == max((p for p in points if p.variation.startswith("una")
                                          and p.base == "wiki-lm"), key=points.index)  # fmt: skip
    assert "6 of 6 points, dev 30.00 -> 52.60" in summary(best, points, content)
    compared = [shown for shown, *_ in pairs_of(content)]
    assert len(compared) == 4 and compared[:2] == ["UNA, both tuned", "UNA as in the paper, both tuned"]
    content["conditions"].pop(points[0].name)  # a grid that was not finished: the best of its other points counts
    assert len(pairs_of(content)) == 4
    monkeypatch.setattr(results, "EVIDENCE", here)
    results.keep(Condition("minilm-mlm", "una"), "b2", 0, kept(0.6), {"gpus": []})
    results.merge(there)
    merged = results.read_evidence()
    assert len(merged["conditions"]) == len(points) + 1 and len(merged["machines"]) == 2
    assert merged["conditions"][points[3].name]["runs"]["42"] == {**kept(0.503), "machine": "2"}
    other = json.loads(there.read_text())
    other["conditions"][points[0].name]["settings"]["beta"] = 0.9
    there.write_text(json.dumps(other))
    with pytest.raises(InputError, match="other settings"):
        results.merge(there)


def test_a_run_that_would_end_too_late_does_not_begin(tmp_path, monkeypatch) -> None:
    done, condition = [], Condition("wiki-lm", "none")
    place = Workplace(tmp_path, tmp_path, tmp_path / "corpus.txt", 1)
    monkeypatch.setattr(place, "command", lambda condition, seed: ("module", [str(seed)]))
    monkeypatch.setattr(runs, "on_cores", lambda *_: time.sleep(0.4) or 0)
    run_all(place, [(condition, seed) for seed in range(9)], False, lambda _, seed, said: done.append(seed),
            time.monotonic() + 1)  # fmt: skip
    assert done == [0, 1]


def test_commands_run_in_a_process_and_stop_at_the_first_that_fails(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(runs, "PRELOADED", [])
    log = tmp_path / "log"
    help_of = ("train.evaluate", ["--model", str(Path("/no/such")), "--data", str(tmp_path)])
    assert runs.on_cores([help_of, ("no.module", [])], {0}, log) == 2
    assert "error" in log.read_text() and "no.module" not in log.read_text()
