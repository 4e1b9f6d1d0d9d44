"""(query, product) pairs: python FILE [MODEL PAIRS], PAIRS being a .csv with the columns query, product and mined."""

import sys

from datasets import load_dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

import una_fast
from una_fast.integrations import Negatives

MODEL, PAIRS = sys.argv[1:] or ("bert-base-uncased", "pairs.csv")

if __name__ == "__main__":
    index = una_fast.build_index(PAIRS, column="product")  # negatives are made of the products
    index.save("una-index")
    una = una_fast.Augmenter(index, surface="kept", keep_punctuation=True)
    negatives = Negatives(una, column="query", positive="product", of="positive", keep=["mined"])
    pairs = negatives.select(load_dataset("csv", data_files=PAIRS, split="train")).train_test_split(0.1, seed=42)
    queries = dict(enumerate(pairs["test"]["query"]))
    products = dict(enumerate(dict.fromkeys([*pairs["test"]["product"], *pairs["train"]["product"]])))
    numbers = {product: number for number, product in products.items()}
    relevant = {row: {numbers[product]} for row, product in enumerate(pairs["test"]["product"])}
    evaluator = InformationRetrievalEvaluator(queries, products, relevant)

    model = SentenceTransformer(MODEL)
    loss = MultipleNegativesRankingLoss(model)  # or PairsLoss(model): without keep, and with loss.callback() below
    arguments = SentenceTransformerTrainingArguments("una-model", num_train_epochs=2, dataloader_num_workers=2)
    train = pairs["train"].with_transform(negatives)
    trainer = SentenceTransformerTrainer(model, arguments, train, loss=loss, callbacks=[negatives.callback()])
    before = evaluator(model)
    trainer.train()
    print(f"{evaluator.primary_metric}: {before[evaluator.primary_metric]:.3f} before, ", end="")
    print(f"{evaluator(model)[evaluator.primary_metric]:.3f} after")
    model.save_pretrained("una-model/final")
