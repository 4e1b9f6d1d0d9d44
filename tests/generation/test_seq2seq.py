"""Seq2seq models: the same text in any batch, sentences that are cut, and models of other kinds, which are refused."""

import dataclasses
import json
import shutil

import numpy as np
import pytest
import torch

from support.seq2seq_models import FAMILIES, POSITIONS, save, save_marian
from support.small_runs import WORDS
from support.tokenizer_families import training_lines
from train.generation.options import Job
from train.generation.write import Seq2Seq
from una_fast.errors import InputError

CPU = torch.device("cpu")
JOB = Job(prefix="", beams=3, max_source_length=12, max_target_length=20, device="cpu")


def lines_of(writer, texts):
    """The line that is written for each text, and whether it was cut."""
    return writer.write(texts, [False] * len(texts))


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
    together, _ = lines_of(writer, texts)
    assert together == [lines_of(writer, [text])[0][0] for text in texts]
    assert together[::-1] == lines_of(writer, texts[::-1])[0]
    assert len(set(together)) > 4 and len({len(line.split()) for line in together}) > 1  # lines differ


def test_a_marian_with_its_own_tokenizer_reads_and_writes(tmp_path):
    writer = Seq2Seq(str(save_marian(tmp_path)), JOB, CPU)
    texts = training_lines()[:9]
    lines, cut = lines_of(writer, texts)
    assert {*cut} == {True, False} and cut == [length > 12 for length in writer.lengths(texts)]
    assert lines == [lines_of(writer, [text])[0][0] for text in texts] and len(set(lines)) > 5
    assert not any("<pad>" in line or "▁" in line for line in lines)


def test_what_is_cut_is_said_and_ends_as_a_sentence_does(model, monkeypatch):
    writer = Seq2Seq(str(model), JOB, CPU)
    generate, read = writer._network.generate, []
    monkeypatch.setattr(writer._network, "generate", lambda **inputs: read.append(inputs) or generate(**inputs))
    lines, cut = writer.write(["", " ".join(WORDS[:11]), " ".join(WORDS[:12])], [True, False, False])
    assert cut == [True, False, True] and lines[0] == ""  # as the model before left it
    assert read[0]["input_ids"].shape == (2, 12) and read[0]["input_ids"][:, -1].tolist() == [1, 1]


def test_a_batch_too_large_for_the_gpu_says_what_to_change(tmp_path, texts, monkeypatch):
    writer = Seq2Seq(str(save(tmp_path, "bart")), JOB, CPU)

    def small_gpu(**_):
        raise torch.OutOfMemoryError

    monkeypatch.setattr(writer._network, "generate", small_gpu)
    with pytest.raises(InputError, match="does not hold 12 sentences with 3 beams: give smaller --batch-tokens"):
        lines_of(writer, texts)


def test_settings_of_the_model_that_sample_are_not_taken(tmp_path, texts):
    folder = save(tmp_path, "bart")
    plain = lines_of(Seq2Seq(str(folder), JOB, CPU), texts)
    path = folder / "generation_config.json"
    settings = {"do_sample": True, "temperature": 9.0, "num_return_sequences": 2, "max_length": 5, "num_beams": 2}
    path.write_text(json.dumps(json.loads(path.read_text()) | settings))
    assert lines_of(Seq2Seq(str(folder), JOB, CPU), texts) == plain


def test_lengths_beyond_the_positions_are_refused(tmp_path):
    folder = str(save(tmp_path, "marian"))
    with pytest.raises(InputError, match=f"--max-target-length {POSITIONS + 1} is above the {POSITIONS} positions"):
        Seq2Seq(folder, dataclasses.replace(JOB, max_target_length=POSITIONS + 1), CPU)
    edge = dataclasses.replace(JOB, max_source_length=POSITIONS, max_target_length=POSITIONS)
    assert lines_of(Seq2Seq(folder, edge, CPU), [" ".join(WORDS * 5)])[1] == [True]


def test_a_digest_tells_models_apart_wherever_they_lie(tmp_path):
    first, second = (save(tmp_path / f"{seed}", "t5", seed=seed) for seed in (0, 1))
    moved = shutil.copytree(first, tmp_path / "moved")
    digests = [Seq2Seq(str(folder), JOB, CPU).digest for folder in (first, moved, second)]
    assert digests[0] == digests[1] != digests[2]
