"""Retrieval: does a query find its relevant documents among all documents of a set, by cosine?

A set is a folder in BEIR's format (Thakur et al. 2021, arXiv:2104.08663): corpus.jsonl with {"_id", "title", "text"},
queries.jsonl with {"_id", "text"}, and qrels/SPLIT.tsv with a heading and the columns query, document and gain. It may
also contain pairs.tsv, with a heading and the columns query, right document and wrong document.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from train.evaluation.tasks.reading import read_lines, read_rows
from train.evaluation.tasks.registry import DevTask, EvaluationProtocol, Scores, retrieval_folders
from una_fast.errors import InputError, warn_user
from una_fast.imports import import_extra

DEPTH = 100  # documents that are ranked for each query
MEASURES = {"ndcg@10": "ndcg_cut_10", "recall@10": "recall_10", "recall@100": "recall_100"}  # -> names in trec_eval
BLOCK = 256  # queries that are compared with all documents at a time
NEGATION = re.compile(r"\b(?:no|not|never|nor|neither|none|nobody|nothing|without|cannot|\w+n['’]t)\b", re.IGNORECASE)
NUMBER = re.compile(r"\d")
GROUPS = {"negation": NEGATION, "number": NUMBER}  # queries whose mean nDCG is reported separately


@dataclass(frozen=True)
class RetrievalSet:
    """The queries and documents of a set, by their place in the texts of a `RetrievalTask`."""

    name: str
    documents: list[str]  # ids
    queries: list[str]  # ids of the queries that have a relevant document
    texts: list[str]  # of the queries
    gains: dict[str, dict[str, int]]  # query -> document -> gain
    pairs: dict[str, list[tuple[int, int]]]  # query -> right and wrong documents, by position


@dataclass(frozen=True)
class RetrievalTask(DevTask):
    """All retrieval sets of a folder. `texts` has two lists per set: its queries, then its documents."""

    kind, measure = "retrieval", "nDCG@10"
    sets: list[RetrievalSet]

    def score(self, embeddings: Sequence[NDArray], protocol: EvaluationProtocol) -> Scores:
        """Return the scores of each set by name (see `score_set`)."""
        sides = zip(embeddings[::2], embeddings[1::2], strict=True)
        return {one.name: score_set(one, *side) for one, side in zip(self.sets, sides, strict=True)}

    def dev_score(self, embeddings: Sequence[NDArray]) -> float:
        """Return the mean nDCG@10 of the sets."""
        return _mean(one["ndcg@10"] for one in self.score(embeddings, EvaluationProtocol()).values())


def score_set(one: RetrievalSet, queries: NDArray, documents: NDArray) -> dict[str, Any]:
    """Rank the documents for each query by cosine, and score the rankings (see `score_rankings`).

    Args:
        one: the set.
        queries: float (n_queries, D).
        documents: float (n_documents, D).
    """
    left, right = units(queries), units(documents).T
    blocks = (left[start : start + BLOCK] @ right for start in range(0, len(left), BLOCK))  # (block, n_documents) each
    return score_rankings(one, (row for block in blocks for row in block))


def score_rankings(one: RetrievalSet, rows: Iterable[NDArray]) -> dict[str, Any]:
    """Score the rankings of a set with trec_eval's measures.

    Args:
        one: the set.
        rows: for each query, a score of every document, float (n_documents,).

    Returns:
        The means of nDCG@10, recall@10, recall@100 and MRR@10 over the queries; "groups" with the mean nDCG@10 of the
        queries with a negation and with a number; "right", the share of `pairs` whose right document has the higher
        score; and "per_query", the nDCG@10 of each query, from which paired intervals are computed.
    """
    runs, is_right = {}, []
    for query, row in zip(one.queries, rows, strict=True):
        is_right += [row[right] > row[wrong] for right, wrong in one.pairs.get(query, ())]
        runs[query] = _nearest(one, query, row)
    measures = import_extra("pytrec_eval")
    found = measures.RelevanceEvaluator(one.gains, {"ndcg_cut.10", "recall.10,100", "recip_rank"}).evaluate(runs)
    reciprocal = [found[query]["recip_rank"] for query in one.queries]
    per_query = {query: found[query]["ndcg_cut_10"] for query in one.queries}
    groups = {
        name: [score for text, score in zip(one.texts, per_query.values(), strict=True) if pattern.search(text)]
        for name, pattern in GROUPS.items()
    }
    return {
        **{name: _mean(found[query][of] for query in one.queries) for name, of in MEASURES.items()},
        "mrr@10": _mean(value if value >= 1 / 10 else 0.0 for value in reciprocal),
        "queries": len(one.queries),
        "documents": len(one.documents),
        "groups": {name: {"queries": len(of), "ndcg@10": _mean(of)} for name, of in groups.items()},
        **({"right": _mean(map(float, is_right))} if is_right else {}),
        "per_query": per_query,
    }


def _nearest(one: RetrievalSet, query: str, row: NDArray) -> dict[str, float]:
    """Return the scores of the DEPTH best documents of a query.

    Like BEIR, leave out the document that has the query's id, which is the query itself. Like trec_eval, compare
    scores in single precision, and put the higher id first among documents with the same score.
    """
    row = row.astype(np.float32, copy=False)
    n = min(DEPTH + 1, len(row))
    best = np.flatnonzero(row >= np.partition(row, len(row) - n)[len(row) - n]).tolist()
    named = sorted(((float(row[i]), one.documents[i]) for i in best if one.documents[i] != query), reverse=True)
    return {name: score for score, name in named[:DEPTH]}


def units(rows: NDArray) -> NDArray[np.floating]:
    """Scale each row to length 1, except zero rows."""
    rows = np.nan_to_num(rows)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1)


def _mean(values: Iterable[float]) -> float:
    values = [*values]
    return sum(values) / len(values) if values else math.nan


def read(downstream: Path, name: str, split: str = "test") -> RetrievalTask:
    """Read all retrieval sets next to SentEval, in ``downstream/../..`` or its subfolder retrieval/.

    Warns about a set that cannot be read, and leaves it out. Raises InputError if no set can be read.
    """
    return read_folder(downstream.parent.parent, name, split)


def read_folder(root: Path, name: str = "retrieval", split: str = "") -> RetrievalTask:
    """Read `root`, if it is a set in BEIR's format, or all sets in it.

    split: the name of the qrels; by default "dev" if a set has them, else "test". If it is given, a set that cannot be
    read is left out with a warning, unless no set can be read.
    """
    folders = retrieval_folders(root)
    if not folders:
        advice = f"`python -m train.download --only retrieval --to {root}` fetches some"
        raise InputError(f"{root}: no folder in it has a corpus.jsonl: {advice}")
    sets, texts, unreadable = [], [], []
    for folder in folders:
        part = split or ("dev" if (folder / "qrels" / "dev.tsv").is_file() else "test")
        try:
            one, documents = read_set(folder, part)
        except InputError as error:
            unreadable.append(f"retrieval set {folder.name} cannot be read: {error}")
            continue
        sets.append(one)
        texts += [one.texts, documents]
    if unreadable and not (sets and split):
        raise InputError("; ".join(unreadable))
    for reason in unreadable:
        warn_user(f"{reason}: left out")
    return RetrievalTask(name, texts, {split or "dev": sum(len(one.queries) for one in sets)}, sets)


def read_set(folder: Path, split: str = "test") -> tuple[RetrievalSet, list[str]]:
    """Read a folder in BEIR's format. Return the set, and the texts of its documents, title first."""
    documents, queries = _read_texts(folder / "corpus.jsonl"), _read_texts(folder / "queries.jsonl")
    file, gains = folder / "qrels" / f"{split}.tsv", dict[str, dict[str, int]]()
    for gain, query, document in _rows_below_heading(file, (2, 0, 1), int, queries):
        if query not in queries:
            raise InputError(f"{file}: query {query!r} is not in {folder}")
        if gain > 0:  # of a document that the corpus lacks too, as in trec_eval: no ranking finds it
            gains.setdefault(query, {})[document] = gain
    if not any(document in documents for of_query in gains.values() for document in of_query):
        raise InputError(f"{file}: no query has a relevant document in {folder}")
    texts = [queries[query] for query in gains]
    pairs = _read_pairs(folder / "pairs.tsv", [*gains], documents)
    return RetrievalSet(folder.name, [*documents], [*gains], texts, gains, pairs), [*documents.values()]


def _read_texts(path: Path) -> dict[str, str]:
    """Read a .jsonl of texts by id. The title of a document precedes its text."""
    texts: dict[str, str] = {}
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            row = json.loads(line)
            fields = {"_id": row["_id"], "text": row["text"], "title": row.get("title") or ""}
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise InputError(f"{where}: must be an object with _id and text ({error!r})") from None
        for field, value in fields.items():
            if not isinstance(value, str):
                raise InputError(f"{where}: {field} is {json.dumps(value):.40}: must be a text, in quotation marks")
        if fields["_id"] in texts:
            raise InputError(f"{where}: an earlier line has the _id {fields['_id']!r} too: give each line its own _id")
        texts[fields["_id"]] = " ".join(filter(None, [fields["title"], fields["text"]]))
    if not texts:
        raise InputError(f"{path}: contains no texts")
    return texts


def _rows_below_heading(
    path: Path, columns: Sequence[int], first: Callable[[str], Any], queries: Iterable[str]
) -> list[tuple[Any, ...]]:
    """Read rows as `read_rows` does, and raise InputError if the first line is not a heading but a row of a query."""
    rows = read_rows(path, columns, first, skip=1)
    start = "".join(read_lines(path)[:1]).split("\t")[0]
    if start in queries:
        raise InputError(f"{path}, line 1: begins with the query {start!r}: write a heading above it, as BEIR does")
    return rows


def _read_pairs(path: Path, queries: Iterable[str], documents: Iterable[str]) -> dict[str, list[tuple[int, int]]]:
    """Read the pairs of a right and a wrong document of each query."""
    if not path.is_file():
        return {}
    places = {name: i for i, name in enumerate(documents)}
    pairs: dict[str, list[tuple[int, int]]] = {query: [] for query in queries}
    for number, (query, right, wrong) in enumerate(_rows_below_heading(path, (0, 1, 2), str, pairs), 2):
        try:
            pairs[query].append((places[right], places[wrong]))
        except KeyError as error:
            raise InputError(
                f"{path}, line {number}: {error} is not the _id of a query with a relevant document, or not the _id of "
                "a document: the columns are the _id of a query, of its right document and of a wrong one"
            ) from None
    return pairs
