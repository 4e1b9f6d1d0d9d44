"""Train with a DataLoader in your own loop."""

import argparse
import itertools
from collections.abc import Iterator

import torch
from torch.utils.data import DataLoader
from transformers import AutoModel, AutoTokenizer

import una_fast
from una_fast.integrations.sentence_transformers import row_dataset
from una_fast.integrations.transformers import RowCollator
from una_fast.losses import triplet


def batches(
    loader: DataLoader[dict[str, torch.Tensor]], collator: RowCollator, epochs: int
) -> Iterator[dict[str, torch.Tensor]]:
    """Yield the batches of all epochs, with new negatives in each epoch."""
    for epoch in range(epochs):
        collator.set_epoch(epoch)  # before the loader makes the epoch's first batch
        yield from loader


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", default="bert-base-uncased")
    parser.add_argument("text", nargs="?", default="sentences.txt")
    parser.add_argument("--max-steps", type=int, default=None)
    options = parser.parse_args()
    index = una_fast.build_index(options.text)
    index.save("una-index")
    una = una_fast.Augmenter(index, tokenizer=AutoTokenizer.from_pretrained(options.model))
    collator = RowCollator(una, max_length=32)
    loader = DataLoader(
        row_dataset(una), batch_size=8, shuffle=True, collate_fn=collator, num_workers=2, persistent_workers=True
    )
    encoder = AutoModel.from_pretrained(options.model).train()
    optimizer = torch.optim.AdamW(encoder.parameters(), lr=3e-5)
    for batch in itertools.islice(batches(loader, collator, epochs=2), options.max_steps):
        rows = {name: ids.flatten(0, 1) for name, ids in batch.items()}  # (B V, L): B sentences, V views, L tokens
        cls = encoder(**rows).last_hidden_state[:, 0].unflatten(0, batch["input_ids"].shape[:2])  # (B, V, width)
        loss = triplet(cls.transpose(0, 1), temperature=0.05)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    encoder.save_pretrained("una-model/final")
