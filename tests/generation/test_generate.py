"""`python -m train.generate`: one line per sentence with any batch and model, continued jobs, and bad input."""

import gzip
import json
import os
import shutil
import signal

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from support.seq2seq_models import FAMILIES, POSITIONS, save, save_marian
from support.small_runs import WORDS, write_corpus
from support.tokenizer_families import training_lines
from train.generate import Job, main
from train.generation import Seq2Seq, one_line, open_record
from una_fast.errors import InputError

BREAKS = ["\n", "\r", "\r\n", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]
LINES = 40
CPU = torch.device("cpu")
JOB = Job(prefix="", beams=3, max_length=20)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return {family: save(folder / family, family) for family in ("t5", "marian", "bart")}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("corpus") / "corpus.txt", LINES)


def generate(corpus, output, *extra, kind="paraphrase"):
    """Run the command and return its exit code."""
    fixed = "--max-length 12 --beams 2 --device cpu --batch-size 7".split()
    return main([kind, "--corpus", str(corpus), "--output", str(output), *fixed, *map(str, extra)])


def refusal(capsys, *words, **options):
    capsys.readouterr()
    assert generate(*words, **options) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    return line.removeprefix("error: ")


@pytest.fixture(scope="module")
def written(models, corpus, tmp_path_factory):
    """Return the output file of an uninterrupted job with the T5 model."""
    output = tmp_path_factory.mktemp("written") / "paraphrases.txt"
    assert generate(corpus, output, "--model", models["t5"], "--prefix", "castle ") == 0
    return output


def test_each_sentence_gives_one_line_and_blank_lines_stay_blank(corpus, written):
    sentences, texts = (path.read_text().split("\n") for path in (corpus, written))
    assert len(texts) == len(sentences) and len(set(texts)) > LINES // 2
    assert [not text for text in texts] == [not sentence for sentence in sentences]


def test_a_stopped_job_is_continued(models, corpus, written, tmp_path, monkeypatch, capsys):
    output, record = tmp_path / "out.txt", tmp_path / "out.txt.jsonl"
    command = (corpus, output, "--model", models["t5"], "--prefix", "castle ")
    write, calls = Seq2Seq.write, []

    def counted(model, texts):
        calls.append(len(texts))
        if len(calls) == 3:
            os.kill(os.getpid(), signal.SIGTERM)
        return write(model, texts)

    monkeypatch.setattr(Seq2Seq, "write", counted)
    assert generate(*command) == 128 + signal.SIGTERM
    assert "14 lines saved: repeat the command to continue" in capsys.readouterr().err and not output.exists()
    with record.open("ab") as file:
        file.write(b'[39, "cut sh')  # as a kill leaves it
    assert generate(*command, "--batch-size", 5) == 0
    assert sum(calls[3:]) == LINES - 2 - 14 and output.read_bytes() == written.read_bytes()
    calls.clear()
    assert generate(*command) == 0 and not calls
    assert "beams was 2 when the job was started and is 5 now" in refusal(capsys, *command, "--beams", 5)
    other = write_corpus(tmp_path / "other.txt", LINES, seed=1)
    assert "corpus was" in refusal(capsys, other, *command[1:])
    with open_record(record, json.loads(record.read_text().splitlines()[0])):
        assert "another command writes it" in refusal(capsys, *command)


def test_back_translation_runs_one_model_after_the_other(models, tmp_path):
    corpus = write_corpus(tmp_path / "corpus.txt", LINES // 2)
    there, back, both = (tmp_path / f"{name}.txt" for name in ("there", "back", "both"))
    assert generate(corpus, there, "--model", models["marian"]) == 0
    assert generate(there, back, "--model", models["bart"]) == 0
    assert generate(corpus, both, "--model", models["marian"], models["bart"], kind="back-translation") == 0
    assert both.read_bytes() == back.read_bytes() != there.read_bytes()


def test_where_the_model_writes_nothing_the_sentence_is_copied(corpus, tmp_path, capsys):
    silent = save(tmp_path / "silent", "t5", ["\n"])
    assert generate(corpus, tmp_path / "same.txt", "--model", silent) == 0
    assert (tmp_path / "same.txt").read_bytes() == corpus.read_bytes()
    assert f"{LINES - 2} copied from the corpus" in capsys.readouterr().err


@given(st.lists(st.sampled_from([*"aé \t\xa0\u200b", *BREAKS]) | st.characters(codec="utf-8")).map("".join))
def test_a_text_becomes_one_line_and_keeps_its_words(text):
    line = one_line(text)
    assert len(line.splitlines()) == bool(text.strip())
    assert line.split() == text.split() and line == line.strip()


def test_bad_input_is_refused_before_anything_is_written(capsys, models, corpus, tiny_model, tmp_path):
    output, cut, empty = (tmp_path / name for name in ("out.txt", "cut.txt.gz", "empty.txt.gz"))
    cut.write_bytes(gzip.compress(corpus.read_bytes())[:-20])
    empty.write_bytes(gzip.compress(b""))
    for source, model, *more, named in (
        (corpus, tiny_model, tiny_model.name), (corpus, "pegasus", "hf download tuner007/pegasus_paraphrase"),
        (tmp_path / "no.txt", models["t5"], "no.txt"), (cut, models["t5"], "cut.txt.gz"),
        (empty, models["t5"], "empty.txt.gz"),
        (corpus, models["t5"], "--device", "abacus", "--device"),
        (corpus, models["bart"], "--max-length", POSITIONS + 1, f"--max-length {POSITIONS + 1}"),
    ):  # fmt: skip
        assert named in refusal(capsys, source, output, "--model", model, *more)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cut.txt.gz", "empty.txt.gz"]


@pytest.mark.parametrize(("ending", "said"), [("", "exists: choose"), (".jsonl", "not written by this command")])
def test_files_of_other_programs_are_not_touched(capsys, models, corpus, tmp_path, ending, said):
    path = tmp_path / f"out.txt{ending}"
    path.write_text("mine")
    assert said in refusal(capsys, corpus, tmp_path / "out.txt", "--model", models["t5"])
    assert path.read_text() == "mine" and len(list(tmp_path.iterdir())) == 1


@pytest.fixture(scope="module")
def texts():
    generator = np.random.default_rng(0)
    return [" ".join(generator.choice(WORDS, generator.integers(1, 11))) for _ in range(12)]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_sentence_has_the_same_text_in_any_batch(tmp_path, texts, family):
    model = Seq2Seq(str(save(tmp_path, family)), JOB, CPU)
    together = model.write([*texts, ""])
    assert together == [*(model.write([text])[0] for text in texts), ""]
    assert len(set(together)) > 4 and len({len(line.split()) for line in together}) > 1  # lines differ


def test_a_marian_model_with_sentencepiece_generates_text(tmp_path):
    model = Seq2Seq(str(save_marian(tmp_path)), JOB, CPU)
    lines = model.write(training_lines()[:9])
    assert len(set(lines)) > 5 and not any("<pad>" in line or "▁" in line for line in lines)


def test_a_batch_too_large_for_the_gpu_names_the_remedy(models, texts, monkeypatch):
    model = Seq2Seq(str(models["bart"]), JOB, CPU)

    def small_gpu(**_):
        raise torch.OutOfMemoryError

    monkeypatch.setattr(model._network, "generate", small_gpu)
    with pytest.raises(InputError, match="12 .* 3 beams.* --batch-size"):
        model.write(texts)


def test_sampling_settings_of_the_model_are_ignored(tmp_path, texts):
    folder = save(tmp_path, "bart")
    plain = Seq2Seq(str(folder), JOB, CPU).write(texts)
    path = folder / "generation_config.json"
    settings = {"do_sample": True, "temperature": 9.0, "num_return_sequences": 2, "max_length": 5, "num_beams": 2}
    path.write_text(json.dumps(json.loads(path.read_text()) | settings))
    assert Seq2Seq(str(folder), JOB, CPU).write(texts) == plain


def test_a_digest_depends_on_the_weights_and_not_on_the_folder(tmp_path):
    first, second = (save(tmp_path / f"{seed}", "t5", seed=seed) for seed in (0, 1))
    moved = shutil.copytree(first, tmp_path / "moved")
    digests = [Seq2Seq(str(folder), JOB, CPU).digest for folder in (first, moved, second)]
    assert digests[0] == digests[1] != digests[2]
