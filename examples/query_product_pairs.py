"""Train sentence-transformers on (query, product) pairs: a .csv with the columns query, product and mined."""

import argparse

from datasets import load_dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

import una_fast
from una_fast.integrations import Negatives

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", default="bert-base-uncased")
    parser.add_argument("pairs", nargs="?", default="pairs.csv")
    parser.add_argument("--max-steps", type=int, default=-1)
    options = parser.parse_args()
    index = una_fast.build_index(options.pairs, column="product")  # negatives are made from the products
    index.save("una-index")
    una = una_fast.Augmenter(index, keep_punctuation=True)
    negatives = Negatives(una, column="query", positive="product", of="positive", keep=["mined"])
    rows = load_dataset("csv", data_files=options.pairs, split="train")
    pairs = negatives.select(rows).train_test_split(0.1, seed=42)
    queries = {str(row): query for row, query in enumerate(pairs["test"]["query"])}
    products = {product: product for part in ("test", "train") for product in pairs[part]["product"]}
    relevant = {str(row): {product} for row, product in enumerate(pairs["test"]["product"])}
    evaluator = InformationRetrievalEvaluator(queries, products, relevant)

    model = SentenceTransformer(options.model)
    loss = MultipleNegativesRankingLoss(model)  # or PairsLoss(model): without keep, and with loss.callback() below
    arguments = SentenceTransformerTrainingArguments(
        "una-model", max_steps=options.max_steps, eval_strategy="epoch", eval_on_start=True
    )
    trainer = SentenceTransformerTrainer(
        model,
        arguments,
        pairs["train"].with_transform(negatives),
        loss=loss,
        evaluator=evaluator,
        callbacks=[negatives.callback()],
    )
    trainer.train()  # shows the scores of the test queries before the first epoch and after each
    model.save_pretrained("una-model/final")
