"""Makes the retrieval sets that chose nothing (docs/search.md): ``python -m bench.held_out --to data``.

scifact           SciFact's claims with a cited abstract among 2,101 abstracts (of 9 to 25 sentences)
scifact_antonyms  queries and parts of abstracts, some with a word replaced by its opposite, which pairs.tsv names

The command downloads SOURCES by commit and checksum, and writes the folder held_out/ in BEIR's format.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from bench import script
from bench.evidence.near_sets import SOURCES_OPTION, Listed, fetch_all
from una_fast.storage.files import write_file

RAW = "https://raw.githubusercontent.com/"
ANTONYMS = RAW + "nice-hku-coder/coder_data/a8f2ddf18f5c6e2e1904e60678d381aa4ade859c/scifact_antonym/"
CLAIMS = RAW + "jedick/MLE-capstone-project/667a81990e0613998e8c3856603487269f21e91d/data/scifact/"
SOURCES = [
    Listed(address.rpartition("/")[2], checksum, address)
    for address, checksum in {
        ANTONYMS + "corpus_candidate.jsonl": "3b1452489e963e2bb77e2a8e35a3c43b834a6ec38f4e44664d0662ce53681938",
        ANTONYMS + "corpus_antonym.jsonl": "c6f4fc37b896adb390318c627fe406d78431293134146063aedfed4b4c51ce26",
        ANTONYMS + "queries_antonym.jsonl": "38164fd16dc38496b2bac1d859ee0aa11c932993d4ac519776bda05bf77d27e8",
        CLAIMS + "claims_dev.jsonl": "adc564d4db609f6e77d73608be342549423c1edd4ddb42983af1623eb48fa7aa",
        CLAIMS + "claims_train.jsonl": "2c36261f706dde4c295cb999419c884edce01774e1564970e6489e0013307d21",
    }.items()
]
Rows = Iterable[Sequence[Any]]


def write_sets(to: Path, sources: Path | None = None) -> None:
    """Download what is missing in the folder of the sources, and write both sets. sources: by default in `to`."""
    contents = fetch_all(SOURCES, sources or to / "held_out_sources")
    lines = {name: [*map(json.loads, content.decode().splitlines())] for name, content in contents.items()}
    abstracts = {row["doc_id"]: row["text"] for row in lines["corpus_candidate.jsonl"]}
    claims = [*lines["claims_dev.jsonl"], *lines["claims_train.jsonl"]]
    cited = [(row["id"], str(name), 1) for row in claims for name in row["cited_doc_ids"] if str(name) in abstracts]
    write_set(to / "held_out" / "scifact", abstracts.items(), ((row["id"], row["claim"]) for row in claims), cited)
    queries = lines["queries_antonym.jsonl"]
    gains = ((row["query_id"], name, int(gain)) for row in queries for name, gain in row["graded_relevance"].items())
    pairs = (
        (row["query_id"], right, wrong)
        for row in queries
        for right in row["constraint_satisfying_doc_ids"]
        for wrong in row["constraint_violating_doc_ids"]
    )
    texts = ((row["doc_id"], row["text"]) for row in lines["corpus_antonym.jsonl"])
    asked = ((row["query_id"], row["query"]) for row in queries)
    write_set(to / "held_out" / "scifact_antonyms", texts, asked, gains, pairs)


def write_set(folder: Path, documents: Rows, queries: Rows, gains: Rows, pairs: Rows = ()) -> None:
    """Write a set in BEIR's format; `train.evaluation.tasks.retrieval` reads it."""
    for name, texts in (("corpus", documents), ("queries", queries)):
        write_file(folder / f"{name}.jsonl", "".join(json.dumps({"_id": str(i), "text": t}) + "\n" for i, t in texts))
    for name, rows in (("qrels/test", gains), ("pairs", pairs)):
        head = ("query-id", "corpus-id", "score") if name != "pairs" else ("query", "right", "wrong")
        write_file(folder / f"{name}.tsv", "".join("\t".join(map(str, row)) + "\n" for row in (head, *rows)))
    print(folder)


if __name__ == "__main__":
    sys.exit(script.run(__doc__, write_sets, to=script.DATA, sources=SOURCES_OPTION))
