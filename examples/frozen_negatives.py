"""Write the negatives of one epoch to a JSON Lines file, for any other program: python FILE [TEXT OUTPUT]."""

import sys

from datasets import load_dataset

import una_fast
from una_fast.integrations import Negatives

TEXT, OUTPUT = sys.argv[1:] or ("sentences.txt", "negatives.jsonl")

if __name__ == "__main__":
    index = una_fast.build_index(TEXT)
    index.save("una-index")
    negatives = Negatives(una_fast.Augmenter(index), n=4)
    sentences = negatives.select(load_dataset("text", data_files=TEXT, split="train"))
    frozen = sentences.map(negatives, batched=True, remove_columns=sentences.column_names)
    frozen.to_json(OUTPUT)
