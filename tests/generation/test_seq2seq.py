"""Seq2seq models: the same text in any batch, sentences that are cut, and models of other kinds, which are refused."""

import dataclasses
import json
import shutil

import numpy as np
import pytest
import torch

from support.seq2seq_models import FAMILIES, POSITIONS, save, save_marian
from support.small_runs import WORDS
from support.tokenizer_training import training_lines
from train.generation.options import Job
from train.generation.write import Seq2Seq, check_model
from una_fast.errors import InputError

CPU = torch.device("cpu")
JOB = Job(prefix="", beams=3, max_source_length=12, max_target_length=20, device="cpu")


@pytest.fixture(scope="module", params=FAMILIES)
def model(request, tmp_path_factory):
    return save(tmp_path_factory.mktemp(request.param), request.param)


@pytest.fixture(scope="module")
def texts():
    generator = np.random.default_rng(0)
    return [" ".join(generator.choice(WORDS, generator.integers(1, 11))) for _ in range(12)]


@pytest.mark.parametrize("beams", [pytest.param(1, marks=pytest.mark.slow), 3])
def test_a_sentence_has_the_same_text_in_any_batch(model, texts, beams):
    writer = Seq2Seq(str(model), dataclasses.replace(JOB, beams=beams), CPU)
    rows, _ = writer.encode(texts)
    together = writer.write(rows)
    assert together == [writer.write([row])[0] for row in rows]
    assert together[::-1] == writer.write(rows[::-1])
    assert len(set(together)) > 4 and len({len(text.split()) for text in together}) > 1  # texts differ


def test_a_marian_with_its_own_tokenizer_reads_and_writes(tmp_path):
    writer = Seq2Seq(str(save_marian(tmp_path)), JOB, CPU)
    rows, cut = writer.encode(training_lines()[:9])
    assert {True, False} == {*cut.tolist()} and all(row[-1] == 0 and len(row) <= 12 for row in rows)
    texts = writer.write(rows)
    assert texts == [writer.write([row])[0] for row in rows] and len(set(texts)) > 5
    assert not any("<pad>" in text or "▁" in text for text in texts)


def test_what_is_cut_is_said_and_ends_as_a_sentence_does(model):
    writer = Seq2Seq(str(model), JOB, CPU)
    rows, cut = writer.encode([" ".join(WORDS[:11]), " ".join(WORDS[:12])])
    assert [len(row) for row in rows] == [12, 12] and cut.tolist() == [False, True] and rows[1][-1] == 1


def test_a_batch_too_large_for_the_gpu_says_what_to_change(tmp_path, texts, monkeypatch):
    writer = Seq2Seq(str(save(tmp_path, "bart")), JOB, CPU)
    rows, _ = writer.encode(texts)

    def small_gpu(**_):
        raise torch.OutOfMemoryError

    monkeypatch.setattr(writer._network, "generate", small_gpu)
    said = f"does not hold {len(rows)} sentences with 3 beams: give smaller --batch-tokens"
    with pytest.raises(InputError, match=said):
        writer.write(rows)


def test_settings_of_the_model_that_sample_are_not_taken(tmp_path, texts):
    folder = save(tmp_path, "bart")
    plain = Seq2Seq(str(folder), JOB, CPU)
    rows, _ = plain.encode(texts)
    path = folder / "generation_config.json"
    own = json.loads(path.read_text()) | {"do_sample": True, "temperature": 9.0, "num_return_sequences": 2}
    path.write_text(json.dumps(own | {"max_length": 5, "num_beams": 2}))
    assert Seq2Seq(str(folder), JOB, CPU).write(rows) == plain.write(rows)


def test_lengths_beyond_the_positions_are_refused(tmp_path):
    folder = save(tmp_path, "marian")
    job = dataclasses.replace(JOB, max_target_length=POSITIONS + 1)
    with pytest.raises(InputError, match=f"--max-target-length {POSITIONS + 1} is above the {POSITIONS} positions"):
        check_model(str(folder), job)
    edge = dataclasses.replace(JOB, max_source_length=POSITIONS, max_target_length=POSITIONS)
    assert check_model(str(folder), edge)
    writer = Seq2Seq(str(folder), edge, CPU)
    rows, cut = writer.encode([" ".join(WORDS * 5)])
    assert cut.tolist() == [True] and len(writer.write(rows)) == 1


def test_an_encoder_is_no_seq2seq_model(tiny_model):
    with pytest.raises(InputError, match="is a bert model, which does not turn text into text: give a seq2seq model"):
        check_model(str(tiny_model), JOB)


def test_weights_of_another_network_are_refused(tmp_path, tiny_model):
    folder = save(tmp_path, "t5")
    shutil.copy(tiny_model / "model.safetensors", folder)
    with pytest.raises(InputError, match="its weights do not fit a T5ForConditionalGeneration"):
        Seq2Seq(str(folder), JOB, CPU)


def test_a_digest_tells_models_apart_wherever_they_lie(tmp_path):
    one, two = (save(tmp_path / name, "t5", seed=seed) for name, seed in (("one", 0), ("two", 1)))
    shutil.copytree(one, tmp_path / "moved")
    first, moved, second = (check_model(str(folder), JOB) for folder in (one, tmp_path / "moved", two))
    assert first == moved != second
