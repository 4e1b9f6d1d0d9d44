"""How large must a corpus be for reliable scores? python -m bench.corpus_size FILE.txt.gz.

Builds indexes of the first 100 to 30,000 sentences, and compares the scores in each with those in an index of 100,000
sentences. The comparison is the rank correlation of idf, and of the highest tf-idf, over the words of the first 100
sentences. Prints the table of docs/choosing.md; takes a minute.
"""

from __future__ import annotations

import sys
from pathlib import Path

from scipy.stats import spearmanr

import una_fast
from bench import script
from bench.report import table

SIZES, LARGEST, ASKED = (100, 500, 1000, 2000, 5000, 10_000, 30_000), 100_000, 100


def compare(corpus: Path) -> None:
    lines = script.read_lines(corpus, LARGEST)
    large, rows = una_fast.build_index(lines), []
    words = {word for row in range(ASKED) for word in large.words(row) if any(map(str.isalpha, word))}
    theirs = [large.term_ids[word] for word in words]
    for size in SIZES:
        index = una_fast.build_index(lines[:size])
        ours = [index.term_ids[word] for word in words]
        idf = spearmanr(index.idf[ours], large.idf[theirs])[0]
        tfidf = spearmanr(index.max_tfidf[ours], large.max_tfidf[theirs])[0]
        candidates = 2 * una_fast.Augmenter(index).radius
        rows.append([f"{size:,}", f"{index.n_terms:,}", f"{candidates:,}", f"{idf:.2f}", f"{tfidf:.2f}"])
    print(table(["sentences", "terms", "candidates per word", "idf", "highest tf-idf"], rows))


if __name__ == "__main__":
    sys.exit(script.run(__doc__, compare, corpus=script.CORPUS))
