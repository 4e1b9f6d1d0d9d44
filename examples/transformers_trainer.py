"""Train your own model and loss with the Trainer of transformers."""

import argparse

import torch
from transformers import AutoModel, AutoTokenizer, Trainer, TrainingArguments

import una_fast
from una_fast.integrations.sentence_transformers import row_dataset
from una_fast.integrations.transformers import RowCollator
from una_fast.losses import triplet


class Contrastive(torch.nn.Module):
    """An encoder with [CLS] pooling; its loss compares each anchor with all positives and negatives of the batch."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.encoder = AutoModel.from_pretrained(name)

    def forward(self, **views: torch.Tensor) -> dict[str, torch.Tensor]:
        """Return the loss of a batch. views: "input_ids" and so on, int64 (B sentences, V views, L tokens)."""
        shape = views["input_ids"].shape[:2]
        rows = {name: ids.flatten(0, 1) for name, ids in views.items()}  # (B V, L)
        cls = self.encoder(**rows).last_hidden_state[:, 0]  # (B V, width)
        return {"loss": triplet(cls.unflatten(0, shape).transpose(0, 1), temperature=0.05)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", default="bert-base-uncased")
    parser.add_argument("text", nargs="?", default="sentences.txt")
    parser.add_argument("--max-steps", type=int, default=-1)
    options = parser.parse_args()
    index = una_fast.build_index(options.text)
    index.save("una-index")
    una = una_fast.Augmenter(index, tokenizer=AutoTokenizer.from_pretrained(options.model))
    collator = RowCollator(una, max_length=32)
    model = Contrastive(options.model)
    trainer = Trainer(
        model,
        TrainingArguments(
            "una-model",
            num_train_epochs=2,
            max_steps=options.max_steps,
            dataloader_num_workers=2,
            dataloader_persistent_workers=True,
            remove_unused_columns=False,
            save_strategy="no",
        ),
        data_collator=collator,
        train_dataset=row_dataset(una),
        callbacks=[collator.callback()],
    )
    trainer.train()
    model.encoder.save_pretrained("una-model/final")
