"""Workers of a DataLoader, for each way to start processes. They import this file, so it imports little."""

import multiprocessing

import pytest
from torch.utils.data import DataLoader

import una_fast
from una_fast.integrations import Negatives
from una_fast.integrations.transformers import RowCollator

pytestmark = pytest.mark.slow

TEXTS = ["The river flows north", "A market opens in the garden", "Music fills the quiet hall", "An old treaty"] * 2


class Both:
    """Negatives of rows in both ways: as text, by a dataset with a transform, and as ids, by a collator."""

    def __init__(self, dataset, collator):
        self.dataset, self.collator = dataset, collator

    def __call__(self, rows):
        return self.dataset[rows]["negative"], self.collator(rows)["input_ids"].tolist()


@pytest.fixture(scope="module")
def una(tmp_path_factory, minilm):
    from transformers import AutoTokenizer

    index = una_fast.build_index(TEXTS)
    index.save(tmp_path_factory.mktemp("methods") / "index")
    return una_fast.Augmenter(index, tokenizer=AutoTokenizer.from_pretrained(minilm), n_jobs=1)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_see_the_epoch_move(una, method):
    from datasets import Dataset

    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system cannot {method}")
    negatives, collator = Negatives(una), RowCollator(una)
    both = Both(Dataset.from_dict({"text": TEXTS}).with_transform(negatives), collator)
    batches = DataLoader(
        range(len(TEXTS)), 4, collate_fn=both, num_workers=1, multiprocessing_context=method, persistent_workers=True
    )
    for epoch in range(2):
        negatives.set_epoch(epoch)
        collator.set_epoch(epoch)
        found = list(batches)
        assert [text for texts, _ in found for text in texts] == una.augment(TEXTS, epoch)
        negative_ids = [views[2] for _, ids in found for views in ids]  # the views are anchor, positive, negative
        assert negative_ids == una.token_ids(range(len(TEXTS)), epoch)["input_ids"].tolist()
