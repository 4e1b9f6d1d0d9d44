"""The Trainer of transformers with your own model and loss: python FILE [MODEL TEXT]."""

import sys

import torch
from transformers import AutoModel, AutoTokenizer, Trainer, TrainingArguments

import una_fast
from una_fast.integrations.sentence_transformers import row_dataset
from una_fast.integrations.transformers import RowCollator
from una_fast.losses import triplet

MODEL, TEXT = sys.argv[1:] or ("bert-base-uncased", "sentences.txt")


class Contrastive(torch.nn.Module):
    """Embeds by [CLS] of the last layer; the loss compares anchors with all positives and negatives of the batch."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.encoder = AutoModel.from_pretrained(name)

    def forward(self, **views: torch.Tensor) -> dict[str, torch.Tensor]:
        """views: int64 (B, V, L), V being anchor, positive and negative."""
        shape = views["input_ids"].shape[:2]
        rows = {name: ids.flatten(0, 1) for name, ids in views.items()}  # (B V, L)
        cls = self.encoder(**rows).last_hidden_state[:, 0]  # (B V, D)
        return {"loss": triplet(cls.unflatten(0, shape).transpose(0, 1), temperature=0.05)}


if __name__ == "__main__":
    index = una_fast.build_index(TEXT)
    index.save("una-index")
    una = una_fast.Augmenter(index, tokenizer=AutoTokenizer.from_pretrained(MODEL))
    collator = RowCollator(una, max_length=32)
    trainer = Trainer(
        Contrastive(MODEL),
        TrainingArguments(
            "una-model", num_train_epochs=2, dataloader_num_workers=2, remove_unused_columns=False, save_strategy="no"
        ),
        data_collator=collator,
        train_dataset=row_dataset(una),
        callbacks=[collator.callback()],
    )
    trainer.train()
    trainer.model.encoder.save_pretrained("una-model/final")
