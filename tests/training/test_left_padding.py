"""A step is cut into parts when rows are padded on the left: only padding is cut off."""

import numpy as np
import torch

from support.fake_tokens import FakeTokens, fake_views
from train.loop.data import BatchMaker


class PaddedLeft(FakeTokens):
    """The same ids, after their padding instead of before it."""

    def anchor_ids(self, rows, max_length=32):
        batch = super().anchor_ids(rows, max_length)
        lengths = batch["attention_mask"].sum(1).tolist()
        return {
            name: torch.stack([row.roll(-n) for row, n in zip(ids, lengths, strict=True)])
            for name, ids in batch.items()
        }


def test_parts_hold_the_same_sub_words_on_either_side():
    rows = np.arange(16)
    for multiple in (1, 12):  # 12 makes the columns wider than the batch
        right, left = (
            BatchMaker(fake_views(1, 1, max_length=16, kind=kind), 0, 1, n_parts=3, multiple=multiple).make(0, 0, rows)
            for kind in (FakeTokens, PaddedLeft)
        )
        assert torch.equal(right.place, left.place)
        for one, other in zip(right.parts, left.parts, strict=True):
            assert one["input_ids"].shape == other["input_ids"].shape
            masks = one["attention_mask"].bool(), other["attention_mask"].bool()
            assert torch.equal(one["input_ids"][masks[0]], other["input_ids"][masks[1]])
            assert masks[1][:, -1].all() and torch.equal(masks[0].sum(1), masks[1].sum(1))


def test_rows_of_one_token_are_cut_on_their_side():
    """A decoder's tokenizer adds no special tokens, so a word can be a whole row."""
    mask = torch.tensor([[0, 0, 1], [0, 0, 1]])
    parts, _ = BatchMaker(fake_views(1, 1), 0, 1, n_parts=1)._cut({"input_ids": 7 * mask, "attention_mask": mask})
    assert [part["input_ids"].tolist() for part in parts] == [[[7], [7]]]
