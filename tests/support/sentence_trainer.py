"""A trainer of sentence-transformers whose negatives are UNA's, as text or as rows of the index; a model for losses."""

from datasets import Dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from torch import nn

import una_fast
from una_fast.integrations import Negatives
from una_fast.integrations.sentence_transformers import PairsLoss, RowCollator, row_dataset

COMMON = {
    "per_device_train_batch_size": 4, "use_cpu": True, "report_to": "none", "save_strategy": "no",
    "logging_strategy": "no", "disable_tqdm": True,
}  # fmt: skip


class Given(nn.Module):
    """A model that returns its input plus 0.01 for each call so far: like dropout, each pass differs."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, features):
        self.calls += 1
        features["sentence_embedding"] = features.pop("embedding") + 0.01 * self.calls
        return features


def make_trainer(index, model, output, make_loss, by_rows, *callbacks, **settings):
    """index: the folder of one; settings: arguments of the training in addition to COMMON."""
    encoder = SentenceTransformer(str(model), device="cpu")
    una = una_fast.Augmenter(una_fast.load_index(index), tokenizer=encoder.tokenizer, n_jobs=1)
    if by_rows:
        collator = source = RowCollator(una)
        dataset = row_dataset(una)
    else:
        collator, source = None, Negatives(una)
        dataset = Dataset.from_dict({"text": list(una.index)})
        dataset = source.select(dataset).with_transform(source)
    loss = make_loss(encoder)
    return SentenceTransformerTrainer(
        encoder,
        SentenceTransformerTrainingArguments(output_dir=str(output), **COMMON, **settings),
        train_dataset=dataset,
        data_collator=collator,
        loss=loss,
        callbacks=[source.callback(), *callbacks, *([loss.callback()] if isinstance(loss, PairsLoss) else [])],
    )
