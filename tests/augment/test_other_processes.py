"""An index and an augmenter that are saved, sent to another process, or inherited by a forked process."""

from __future__ import annotations

import multiprocessing
import pickle

import pytest

import una_fast
from support.short_corpus import CORPUS
from una_fast import InputError


def test_an_augmenter_travels_to_another_process(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    una_fast.build_index(CORPUS * 50).save("index")
    una = una_fast.Augmenter(una_fast.load_index("index"), beta=0.7, variant="released", seed=9)
    sent = pickle.dumps(una)
    assert len(sent) < 1000  # the path is pickled, not the arrays
    monkeypatch.chdir("/")
    again = pickle.loads(sent)
    assert again.negatives(range(7)) == una.negatives(range(7))
    assert pickle.loads(pickle.dumps(una_fast.build_index(CORPUS))).words(3) == una.index.words(3)  # never saved
    una_fast.build_index(CORPUS).save(tmp_path / "index")
    with pytest.raises(InputError, match="another index was saved there"):
        pickle.loads(sent)


def test_a_forked_process_has_threads_of_its_own(minilm):
    from transformers import AutoTokenizer

    index = una_fast.build_index([f"{text} {i}" for i, text in enumerate(CORPUS * 100)])
    una = una_fast.Augmenter(index, tokenizer=AutoTokenizer.from_pretrained(minilm), n_jobs=2)
    rows = list(range(2048))
    for _ in range(2):  # starts both threads of the pool; a forked child has neither
        expected = una.negative_ids(rows)["input_ids"].tolist()
    context = multiprocessing.get_context("fork")
    equal = context.Value("b", False)

    def compare():
        equal.value = una.negative_ids(rows)["input_ids"].tolist() == expected

    child = context.Process(target=compare)
    child.start()
    child.join(60)
    child.kill()
    assert equal.value
