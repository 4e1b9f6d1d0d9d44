"""Train sentence-transformers on the lines of a text file, with negatives as text."""

import argparse

from datasets import load_dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

import una_fast
from una_fast.integrations import Negatives

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", default="bert-base-uncased")
    parser.add_argument("text", nargs="?", default="sentences.txt")
    parser.add_argument("--max-steps", type=int, default=-1)
    options = parser.parse_args()
    index = una_fast.build_index(options.text)
    index.save("una-index")
    negatives = Negatives(una_fast.Augmenter(index))
    sentences = negatives.select(load_dataset("text", data_files=options.text, split="train")).with_transform(negatives)
    model = SentenceTransformer(options.model)
    loss = MultipleNegativesRankingLoss(model)
    arguments = SentenceTransformerTrainingArguments(
        "una-model",
        num_train_epochs=2,
        max_steps=options.max_steps,
        dataloader_num_workers=2,
        dataloader_persistent_workers=True,
    )
    trainer = SentenceTransformerTrainer(model, arguments, sentences, loss=loss, callbacks=[negatives.callback()])
    trainer.train()
    model.save_pretrained("una-model/final")
