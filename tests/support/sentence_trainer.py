"""A trainer of sentence-transformers with UNA's negatives, as text or by rows of the index; a fake model for losses."""

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
    """A model that returns its input plus 0.01 per call, so that passes differ as with dropout."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, features):
        self.calls += 1
        features["sentence_embedding"] = features.pop("embedding") + 0.01 * self.calls
        return features


def make_trainer(index, model, output, make_loss, by_rows, *callbacks, **settings):
    """Make the trainer. index: folder of an index; settings: training arguments in addition to COMMON."""
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
