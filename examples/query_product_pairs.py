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
    una = una_fast.Augmenter(index, keep_punctuation=True)
    negatives = Negatives(una, column="query", positive="product", of="positive", keep=["mined"])
    pairs = negatives.select(load_dataset("csv", data_files=PAIRS, split="train")).train_test_split(0.1, seed=42)
    queries = dict(enumerate(pairs["test"]["query"]))
    products = dict(enumerate(dict.fromkeys([*pairs["test"]["product"], *pairs["train"]["product"]])))
    numbers = {product: number for number, product in products.items()}
    relevant = {row: {numbers[product]} for row, product in enumerate(pairs["test"]["product"])}
    evaluator = InformationRetrievalEvaluator(queries, products, relevant)

    model = SentenceTransformer(MODEL)
    loss = MultipleNegativesRankingLoss(model)  # or PairsLoss(model): without keep, and with loss.callback() below
    arguments = SentenceTransformerTrainingArguments("una-model", eval_strategy="epoch", eval_on_start=True)
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
