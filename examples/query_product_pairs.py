"""Train sentence-transformers on (query, product) pairs: a .csv or .parquet with two columns of text.

Negatives are products with important words replaced, or near-misses of the products (--near-misses). --mined adds a
column of negatives that `mine_hard_negatives` found.
"""

import argparse
from pathlib import Path

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
    parser.add_argument("--columns", nargs=2, default=["query", "product"], metavar="NAME")
    parser.add_argument("--mined", metavar="NAME", help="column of mined negatives")
    parser.add_argument("--near-misses", action="store_true", help="change one detail of a product")
    parser.add_argument("--max-steps", type=int, default=-1)
    options = parser.parse_args()
    query, product = options.columns
    index = una_fast.build_index(options.pairs, column=product)  # negatives are made from the products
    index.save("una-index")
    augmenter: una_fast.NearMisses | una_fast.Augmenter = una_fast.Augmenter(index, keep_punctuation=True)
    if options.near_misses:
        augmenter = una_fast.NearMisses(index)
    mined = [options.mined] if options.mined else []
    negatives = Negatives(augmenter, column=query, positive=product, of="positive", keep=mined)
    kind = "parquet" if Path(options.pairs).suffix == ".parquet" else "csv"
    rows = load_dataset(kind, data_files=options.pairs, split="train")
    pairs = negatives.select(rows).train_test_split(0.1, seed=42)
    queries = {str(row): text for row, text in enumerate(pairs["test"][query])}
    products = {text: text for part in ("test", "train") for text in pairs[part][product]}
    relevant = {str(row): {text} for row, text in enumerate(pairs["test"][product])}
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
