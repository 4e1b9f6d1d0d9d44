"""A training loop of your own with a DataLoader: python FILE [MODEL TEXT]."""

import sys

import torch
from torch.utils.data import DataLoader
from transformers import AutoModel, AutoTokenizer

import una_fast
from una_fast.integrations.sentence_transformers import row_dataset
from una_fast.integrations.transformers import RowCollator
from una_fast.losses import triplet

MODEL, TEXT = sys.argv[1:] or ("bert-base-uncased", "sentences.txt")

if __name__ == "__main__":
    index = una_fast.build_index(TEXT)
    index.save("una-index")
    una = una_fast.Augmenter(index, tokenizer=AutoTokenizer.from_pretrained(MODEL))
    collator = RowCollator(una, max_length=32)
    loader = DataLoader(
        row_dataset(una), batch_size=8, shuffle=True, collate_fn=collator, num_workers=2, persistent_workers=True
    )
    encoder = AutoModel.from_pretrained(MODEL).train()
    optimizer = torch.optim.AdamW(encoder.parameters(), lr=3e-5)
    for epoch in range(2):
        collator.set_epoch(epoch)  # before the loader is asked for the epoch's first batch
        for batch in loader:
            rows = {name: ids.flatten(0, 1) for name, ids in batch.items()}  # (B V, L)
            cls = encoder(**rows).last_hidden_state[:, 0].unflatten(0, batch["input_ids"].shape[:2])  # (B, V, D)
            loss = triplet(cls.transpose(0, 1), temperature=0.05)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    encoder.save_pretrained("una-model/final")
