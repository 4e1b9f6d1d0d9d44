"""Token ids from a fixed random generator, and short trainings on them."""

import numpy as np
import torch

from train.config import Run
from train.distributed import Ranks
from train.encoder.encoder import load_encoder
from train.loop.data import BatchMaker, Plan, Views, original_text
from train.loop.trainer import Trainer
from train.losses import LOSSES

CPU = torch.device("cpu")
ALONE = Ranks(0, 1, 0, CPU)
BATCH, SENTENCES, STEPS = 8, 43, 6  # the last of the 6 batches has 3 sentences: one of 4 ranks gets none
SETTINGS = {
    "loss": "pairs", "precision": "fp32", "batch_size": BATCH, "dropout": 0.0, "learning_rate": 3e-4,
    "schedule": "linear", "alpha": 3, "device": "cpu",
}  # fmt: skip


class FakeTokens:
    """Token ids by row from a fixed generator, with the methods of TokenIds and Augmenter."""

    def __init__(self, key):
        self.key = key

    def anchor_ids(self, rows, max_length=32):
        ids = torch.zeros(len(rows), max_length, dtype=torch.int64)
        for i, row in enumerate(rows):
            drawn = np.random.default_rng([self.key, int(row)]).integers(1000, 2000, 4 + int(row) % 11)
            ids[i, : len(drawn)] = torch.from_numpy(drawn)
        return {"input_ids": ids, "attention_mask": (ids > 0).long()}

    def token_ids(self, rows, epoch=0, max_length=32):
        return self.anchor_ids(rows, max_length)


class OneText(FakeTokens):
    """Gives all rows the same tokens."""

    def anchor_ids(self, rows, max_length=32):
        return super().anchor_ids(np.zeros_like(rows), max_length)


def fake_views(alpha, negative_views, negatives=True, max_length=32, kind=FakeTokens):
    """Return views of a sentence: anchor, the same ids as positive, and a negative with unrelated ids."""
    make_negatives = kind(1).token_ids if negatives else None
    return Views(original_text(kind(0)), None, make_negatives, max_length, alpha, negative_views)


def make_trainer(run, ranks=ALONE, encoder=None, sentences=SENTENCES, state=None, **parts):
    """Return the trainer of a run on fake tokens, and the maker of its rank's batches; parts: options of the maker."""
    if encoder is None:
        encoder = load_encoder(run.model, run.dropout, run.seed, run.pooling, device=run.device)
    views = fake_views(run.alpha, LOSSES[run.loss].negative_views, run.augment == "una")
    maker = BatchMaker(views, ranks.rank, ranks.world, rows_of_part=run.grad_cache, **parts)
    rows = np.arange(sentences)
    nearest = np.roll(rows, 1) if run.neighbours else None
    plan = Plan(rows, run.batch_size, run.seed, run.epochs, STEPS * run.epochs, nearest)
    return Trainer(run, ranks, encoder, plan, state), maker


def train(model, **settings):
    """Train and return the losses of all steps, the last one uneven, and the trainer; a step has `n_parts` parts."""
    n_parts = settings.pop("n_parts", 2)
    run = Run(model=str(model), augment="una", **{**SETTINGS, "dropout": 0.1, **settings})
    trainer, maker = make_trainer(run, n_parts=n_parts, multiple=8)
    return [trainer.step(maker.make(*batch)).loss.item() for batch in trainer.plan.batches()], trainer
