"""Retrieval: scores compared with plain loops, files in BEIR's format, the command, and MiniLM's scores."""

import gzip
import json
import math
import re
from pathlib import Path

import numpy as np
import pytest

from support.small_runs import train_here
from train.evaluate import main
from train.evaluation.tasks.reading import read_dev
from train.evaluation.tasks.registry import EvaluationProtocol, downstream_folder, read_task
from train.evaluation.tasks.retrieval import RetrievalSet, read_set, score_rankings
from una_fast.errors import InputError, InputWarning


def write_set(folder: Path, documents, queries, gains, pairs=(), split="test") -> Path:
    """Write a set in BEIR's format. gains: (query, document, gain)."""
    (folder / "qrels").mkdir(parents=True)
    for name, texts in (("corpus", documents), ("queries", queries)):
        lines = [json.dumps({"_id": key, "text": text}) for key, text in texts.items()]
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    rows = ["query-id\tcorpus-id\tscore", *("\t".join(map(str, row)) for row in gains)]
    (folder / "qrels" / f"{split}.tsv").write_text("\n".join(rows) + "\n")
    if pairs:
        (folder / "pairs.tsv").write_text("\n".join(["query\tright\twrong", *map("\t".join, pairs)]))
    return folder


@pytest.fixture
def data(tmp_path):
    rng = np.random.default_rng(0)
    documents = {f"d{i}": f"document {i}" for i in range(150)}
    queries = {f"q{i}": f"{'is not' if i % 3 == 0 else 'is'} query {'7' * (i % 2)}x{i // 2 * 'y'}" for i in range(30)}
    queries |= {"d5": "the same as document 5", "q99": "no relevant document"}
    gains = {(q, f"d{d}"): int(g) for q in [*queries][:-1] for d, g in rng.integers(0, 3, (4, 2)) * [50, 1]}
    gains |= {("q0", "d3"): 2, ("d5", "d5"): 1, ("d5", "d6"): 1}
    rows = [(*key, gain) for key, gain in gains.items()]
    write_set(tmp_path / "data" / "small", documents, queries, rows, [("q0", "d3", "d4"), ("d5", "d6", "d7")])
    return tmp_path / "data"


def plain_scores(queries, documents, gains):
    """Compute the measures of trec_eval query by query. queries, documents: text -> embedding."""
    found = {}
    for query, of_query in gains.items():
        cosines = {
            name: float(u @ queries[query] / np.linalg.norm(u) / np.linalg.norm(queries[query]))
            for name, u in documents.items()
            if name != query
        }
        order = sorted(cosines, key=cosines.get, reverse=True)
        relevant = [of_query.get(name, 0) for name in order]
        best = sorted(of_query.values(), reverse=True)
        dcg, ideal = (sum(gain / math.log2(rank + 2) for rank, gain in enumerate(of[:10])) for of in (relevant, best))
        hits = [rank for rank, gain in enumerate(relevant) if gain]
        found[query] = {
            "ndcg@10": dcg / ideal,
            "recall@10": sum(rank < 10 for rank in hits) / len(of_query),
            "recall@100": sum(rank < 100 for rank in hits) / len(of_query),
            "mrr@10": 1 / (hits[0] + 1) if hits and hits[0] < 10 else 0.0,
        }
    return found


def test_scores_equal_plain_loops(data):
    task = read_task(data / "senteval" / "downstream", "retrieval")
    (one,), rng = task.sets, np.random.default_rng(1)
    sides = [rng.normal(size=(len(texts), 5)) for texts in task.texts]
    scores = task.score(sides, EvaluationProtocol())["small"]
    queries, documents = (dict(zip(names, side, strict=True)) for names, side in
                          zip((one.queries, one.documents), sides, strict=True))  # fmt: skip
    plain = plain_scores(queries, documents, one.gains)
    for name in ("ndcg@10", "recall@10", "recall@100", "mrr@10"):
        assert scores[name] == pytest.approx(np.mean([of[name] for of in plain.values()]))
    assert scores["per_query"] == pytest.approx({query: of["ndcg@10"] for query, of in plain.items()})
    assert "q99" not in plain and (scores["queries"], scores["documents"]) == (len(plain), 150)
    negated = [of["ndcg@10"] for query, of in plain.items() if query[0] == "q" and int(query[1:]) % 3 == 0]
    assert scores["groups"]["negation"] == {"queries": len(negated), "ndcg@10": pytest.approx(np.mean(negated))}
    has_digit = [any(map(str.isdecimal, text)) for text in one.texts]
    numbered = [of["ndcg@10"] for of, digit in zip(plain.values(), has_digit, strict=True) if digit]
    assert scores["groups"]["number"] == {"queries": len(numbered), "ndcg@10": pytest.approx(np.mean(numbered))}
    pairs = (("q0", "d3", "d4"), ("d5", "d6", "d7"))
    assert scores["right"] == np.mean([queries[q] @ (unit(documents[a]) - unit(documents[b])) > 0 for q, a, b in pairs])


@pytest.mark.parametrize("rank", [1, 10, 11, 100, 101])
@pytest.mark.parametrize("order", [1, -1])
def test_documents_of_equal_score_rank_by_id_whatever_the_order_of_the_corpus(rank, order):
    names = [f"d{i:03}" for i in range(150)]
    one = RetrievalSet("tied", names[::order], ["q"], ["query"], {"q": {names[-rank]: 1}}, {})
    scores = score_rankings(one, [np.ones(150, np.float32)])
    assert scores["mrr@10"] == pytest.approx(1 / rank if rank <= 10 else 0)
    assert scores["ndcg@10"] == pytest.approx(1 / math.log2(rank + 1) if rank <= 10 else 0)
    assert (scores["recall@10"], scores["recall@100"]) == (rank <= 10, rank <= 100)
    close = np.where(np.arange(150) % 2, 0.5, 0.5 + 1e-12)  # equal in single precision, in which trec_eval compares
    assert score_rankings(one, [close]) == scores


def unit(row):
    return row / np.linalg.norm(row)


def test_a_title_precedes_its_text_and_gains_of_zero_are_ignored(tmp_path):
    rows = [("q", "1", 1), ("r", "2", 0)]
    folder = write_set(tmp_path / "a", {"1": "text", "2": "other"}, {"q": "text", "r": "x"}, rows)
    first, second = (folder / "corpus.jsonl").read_text().splitlines()
    (folder / "corpus.jsonl").write_text(
        f'{first[:-1]}, "title": "Title"}}\n\n{second}\n \n'
    )  # blank lines do not count
    one, documents = read_set(folder)
    assert documents == ["Title text", "other"] and one.queries == ["q"] and one.gains == {"q": {"1": 1}}


@pytest.mark.parametrize(("file", "content", "named"), [
    ("corpus.jsonl", "{}\n", "line 1"),
    ("corpus.jsonl", "", ""), ("queries.jsonl", "[1]\n", "line 1"), ("qrels/test.tsv", "h\nq\t1\tx\n", "line 2"),
    ("qrels/test.tsv", "h\nz\t1\t1\n", "'z'"), ("qrels/test.tsv", "h\nq\t9\t1\n", ""), ("qrels/test.tsv", "h\n", ""),
    ("pairs.tsv", "h\nq\t1\t9\n", "line 2: '9'.* the columns are the _id"),
    ("corpus.jsonl", '{"_id": 3, "text": "a"}\n', "line 1: _id is 3: must be a text"),
    ("corpus.jsonl", '{"_id": "1", "text": null}\n', "line 1: text is null"),
    ("corpus.jsonl", '{"_id": "1", "text": "a"}\n\n{"_id": "1", "text": "b"}\n', "line 3: .*_id '1'"),
    ("qrels/test.tsv", "q\t1\t1\nq\t1\t1\n", "line 1: .*heading"), ("pairs.tsv", "q\t1\t1\n", "line 1: .*heading"),
])  # fmt: skip
def test_bad_files_are_named(tmp_path, file, content, named):
    folder = write_set(tmp_path / "a", {"1": "text"}, {"q": "text"}, [("q", "1", 1)])
    (folder / file).write_text(content)
    with pytest.raises(InputError, match=f"{file}.*{named}"):
        read_set(folder)


def test_the_command_scores_each_subfolder(data, tmp_path, tiny_model, capsys):
    write_set(data / "retrieval" / "other", {"1": "a b", "2": "c d"}, {"q": "a b"}, [("q", "1", 1)])
    kept = tmp_path / "scores.json"
    assert main(["--model", str(tiny_model), "--data", str(data), "--tasks", "retrieval", "--json", str(kept)]) == 0
    scores = json.loads(kept.read_text())["retrieval"]["retrieval"]
    assert scores["other"]["ndcg@10"] == 1.0 and 0 < scores["small"]["recall@100"] <= 1
    out = capsys.readouterr().out
    assert "nDCG@10 x 100, test" in out and "other" in out and "100.00" in out
    assert main(["--model", str(tiny_model), "--data", str(tmp_path), "--tasks", "retrieval"]) == 2


def test_a_set_that_cannot_be_read_is_left_out_and_named(data, tmp_path, tiny_model, capsys):
    """But not of --dev, where the best step would be that of other sets."""
    bad = write_set(data / "bad", {"1": "a b"}, {"q": "a b"}, [("q", "1", 1)])
    (bad / "qrels" / "test.tsv").unlink()
    missing = r"set bad cannot be read: .*bad/qrels/test\.tsv: no such file"
    with pytest.warns(InputWarning, match=f"{missing}: left out"):
        assert [one.name for one in read_task(data / "senteval" / "downstream", "retrieval").sets] == ["small"]
    with pytest.raises(InputError, match=missing):
        read_dev(data)
    assert main(["--model", str(tiny_model), "--data", str(bad), "--tasks", "retrieval"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert re.search(missing, line)


def test_data_may_name_a_set(data):
    assert [one.name for one in read_task(downstream_folder(data / "small"), "retrieval").sets] == ["small"]


def test_dev_folders_choose_the_best_step(data, tmp_path, tiny_model, capsys):
    one, all_sets = (read_dev(folder) for folder in (data / "small", data))
    assert [task.sets[0].name for task in (one, all_sets)] == ["small", "small"]
    embeddings = [np.random.default_rng(1).normal(size=(len(texts), 5)) for texts in one.texts]
    assert one.dev_score(embeddings) == one.score(embeddings, EvaluationProtocol())["small"]["ndcg@10"]
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("\n".join(f"sentence {i} of {i % 7} words" for i in range(40)))
    values = {"corpus": [str(corpus)], "model": str(tiny_model), "dev": str(data / "small"), "max_steps": 2}
    values |= {"output": str(tmp_path / "run"), "eval_every": 1, "batch_size": 8}
    train_here(values)
    assert "step 2: dev nDCG@10 0." in capsys.readouterr().err
    assert {"dev/small", "dev_last/small"} <= {*json.loads((tmp_path / "run" / "run.json").read_text())["scores"]}
    (data / "small" / "qrels" / "test.tsv").write_text("h\nq0\td3\t1\nd5\td6\t1\n")
    with pytest.raises(InputError, match="--resume: dev texts was"):
        train_here({**values, "resume": True})


@pytest.mark.slow
def test_minilm_finds_the_evidence_of_fever_symmetric(tmp_path, data_dir, minilm):
    if not (data_dir / "retrieval").is_dir():
        pytest.skip("needs retrieval/ in UNA_FAST_DATA")
    with gzip.open(data_dir / "retrieval" / "fever_symmetric.json.gz", "rt") as file:
        content = json.load(file)
    rows = [(query, document, gain) for query, of in content["qrels"].items() for document, gain in of.items()]
    pairs = [pair[:3] for pair in content["pairs"]]
    write_set(tmp_path / "fever_symmetric", content["docs"], content["queries"], rows, pairs)
    words = ["--model", str(minilm), "--data", str(tmp_path), "--tasks", "retrieval", "--max-length", "128"]
    assert main([*words, "--json", str(tmp_path / "scores.json")]) == 0
    scores = json.loads((tmp_path / "scores.json").read_text())["retrieval"]["retrieval"]["fever_symmetric"]
    assert scores["ndcg@10"] == pytest.approx(0.8447, abs=0.0005)
