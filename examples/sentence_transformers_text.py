"""sentence-transformers on the lines of a text file, negatives as text: python FILE [MODEL TEXT]."""

import sys

from datasets import load_dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

import una_fast
from una_fast.integrations import Negatives

MODEL, TEXT = sys.argv[1:] or ("bert-base-uncased", "sentences.txt")

if __name__ == "__main__":
    index = una_fast.build_index(TEXT)
    index.save("una-index")
    negatives = Negatives(una_fast.Augmenter(index))
    sentences = negatives.select(load_dataset("text", data_files=TEXT, split="train")).with_transform(negatives)
    model = SentenceTransformer(MODEL)
    loss = MultipleNegativesRankingLoss(model)
    arguments = SentenceTransformerTrainingArguments("una-model", num_train_epochs=2, dataloader_num_workers=2)
    trainer = SentenceTransformerTrainer(model, arguments, sentences, loss=loss, callbacks=[negatives.callback()])
    trainer.train()
    model.save_pretrained("una-model/final")
