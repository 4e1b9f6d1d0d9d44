"""Positives by a text augmentation depend on row and epoch alone."""

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer

import una_fast
from support.small_runs import options, train_here
from train.config.run import POSITIVES, make_run
from train.launch.prepare import TrainingRows, batch_maker
from train.loop.distributed import Ranks
from una_fast.augment.registry import AUGMENTATIONS
from una_fast.errors import InputError

NEEDED = {"corpus": "text.txt", "model": "encoder", "output": "run"}


@pytest.fixture(scope="module")
def synonyms(tmp_path_factory):
    path = tmp_path_factory.mktemp("synonyms") / "synonyms.tsv"
    path.write_text("river\tstream\tbrook\nmountain\thill\nthe\ta\n", encoding="utf-8")
    return str(path)


@pytest.fixture(scope="module")
def index():
    words = "the river ran below a mountain while two birds sang".split()
    orders = np.random.default_rng(0).permuted(np.tile(np.arange(len(words)), (30, 1)), axis=1)
    return una_fast.build_index([" ".join(words[i] for i in order) for order in orders])


def maker_of(index, tiny_model, **settings):
    run = make_run({**NEEDED, "augment": "none", "max_length": 16, "device": "cpu", "batch_size": 5, **settings})
    ranks, tokenizer = Ranks(0, 1, 0, torch.device("cpu")), AutoTokenizer.from_pretrained(tiny_model)
    return batch_maker(run, ranks, index, tokenizer, TrainingRows(np.arange(len(index)), None, {}))


@pytest.mark.parametrize("name", sorted(POSITIVES))
def test_positives_are_the_augmentation_of_that_name(index, tiny_model, synonyms, name):
    with_synonyms = {"synonyms": synonyms} if name in ("eda-synonym", "eda-insert") else {}
    maker = maker_of(index, tiny_model, positives=name, positives_strength=0.3, seed=7, **with_synonyms)
    rows = np.array([4, 0, 17])
    anchors, positives = maker.views.of(1, 2, rows)
    texts = AUGMENTATIONS[name].load()(index, strength=0.3, seed=7, **with_synonyms).texts(rows, 2)
    tokenizer = AutoTokenizer.from_pretrained(tiny_model)
    expected = tokenizer(texts, max_length=16, padding="max_length", truncation=True, return_tensors="pt")
    assert torch.equal(positives["input_ids"], expected["input_ids"])
    assert not torch.equal(positives["input_ids"], anchors["input_ids"])


def test_synonyms_that_are_not_there_are_said_before_an_index_is_built(tmp_path, tiny_model):
    values = options(tmp_path, tiny_model, positives="eda-synonym", synonyms=str(tmp_path / "none.tsv"))
    with pytest.raises(InputError, match="none.tsv"):
        train_here(values)
    assert not (tmp_path / "index").exists()
