"""Train sentence-transformers with token ids from the kernels and the loss of the paper's code."""

import argparse

from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments

import una_fast
from una_fast.integrations.sentence_transformers import PairsLoss, RowCollator, row_dataset

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", default="bert-base-uncased")
    parser.add_argument("text", nargs="?", default="sentences.txt")
    parser.add_argument("--max-steps", type=int, default=-1)
    options = parser.parse_args()
    index = una_fast.build_index(options.text)
    index.save("una-index")
    model = SentenceTransformer(options.model)
    una = una_fast.Augmenter(index, tokenizer=model.tokenizer)
    collator = RowCollator(una, max_length=32)
    loss = PairsLoss(model, temperature=0.05, alpha=5)
    trainer = SentenceTransformerTrainer(
        model,
        SentenceTransformerTrainingArguments(
            "una-model",
            num_train_epochs=2,
            max_steps=options.max_steps,
            dataloader_num_workers=2,
            dataloader_persistent_workers=True,
        ),
        row_dataset(una),
        loss=loss,
        data_collator=collator,  # type: ignore[arg-type]  # any callable works, but the annotation names one class
        callbacks=[collator.callback(), loss.callback()],
    )
    trainer.train()
    model.save_pretrained("una-model/final")
