"""sentence-transformers with token ids from the kernels and the loss of the paper's code: python FILE [MODEL TEXT]."""

import sys

from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments

import una_fast
from una_fast.integrations.sentence_transformers import PairsLoss, RowCollator, row_dataset

MODEL, TEXT = sys.argv[1:] or ("bert-base-uncased", "sentences.txt")

if __name__ == "__main__":
    index = una_fast.build_index(TEXT)
    index.save("una-index")
    model = SentenceTransformer(MODEL)
    una = una_fast.Augmenter(index, tokenizer=model.tokenizer)
    collator = RowCollator(una, max_length=32)
    loss = PairsLoss(model, temperature=0.05, alpha=5)
    trainer = SentenceTransformerTrainer(
        model,
        SentenceTransformerTrainingArguments("una-model", num_train_epochs=2, dataloader_num_workers=2),
        row_dataset(una),
        loss=loss,
        data_collator=collator,
        callbacks=[collator.callback(), loss.callback()],
    )
    trainer.train()
    model.save_pretrained("una-model/final")
