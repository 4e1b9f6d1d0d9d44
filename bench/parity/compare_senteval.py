"""Compare our scores and times with those of upstream SentEval on the same model and files.

    python -m bench.parity.compare_senteval --senteval SIMCSE/SentEval --model NAME_OR_FOLDER --data FOLDER
        [--tasks sts|transfer|NAME,...] [--pooling cls_before_pooler,avg] [--mode test] [--threads 2] [--json FILE]

`--senteval` is a checkout of facebookresearch/SentEval or of princeton-nlp/SimCSE's copy; its files are not changed.
SentEval calls some functions that newer Python versions or this machine lack. They are replaced while it runs.
"""

import argparse
import importlib
import inspect
import logging
import sys
import time
from collections import namedtuple
from pathlib import Path

import torch

from bench.parity.senteval import Batcher, prepare
from bench.training.step_table import described, save
from train.evaluation.model import load_model
from train.evaluation.scoring import evaluate, read_tasks
from train.evaluation.tasks.registry import TASKS, EvaluationProtocol, downstream_folder, task_names
from una_fast.errors import InputError


class Clock:
    """Adds up the wall-clock and processor seconds of with blocks. Processor time depends less on other load."""

    wall = cpu = 0.0

    def __enter__(self) -> "Clock":
        self._begun = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.wall += time.perf_counter() - self._begun[0]
        self.cpu += time.process_time() - self._begun[1]


def load_senteval(folder: Path):
    """Import the `senteval` package of a checkout, and replace functions that this Python or this machine lacks."""
    if not (folder / "senteval" / "engine.py").is_file():
        raise InputError(f"--senteval {folder}: contains no senteval/engine.py: give a checkout of SentEval")
    sys.path.insert(0, str(folder))
    if not hasattr(inspect, "getargspec"):
        fields = namedtuple("ArgSpec", "args varargs keywords defaults")
        inspect.getargspec = lambda function: fields(*inspect.getfullargspec(function)[:4])  # type: ignore[attr-defined]
    senteval = importlib.import_module("senteval")
    if not torch.cuda.is_available():
        torch.Tensor.cuda = torch.nn.Module.cuda = lambda self, *_: self
        classifier = importlib.import_module("senteval.tools.classifier").MLP
        original = classifier.__init__
        # without a GPU, the classifier runs only with its option for data in host memory
        classifier.__init__ = lambda self, *args, **kwargs: original(self, *args, **{**kwargs, "cudaEfficient": True})
    return senteval


def run_theirs(senteval, model, task: str, data: Path, mode: str) -> tuple[dict, "Clock"]:
    """Return SentEval's result of one task with SimCSE's parameters, and its time."""
    settings = EvaluationProtocol(mode=mode).fit
    params = {"task_path": str(data), "usepytorch": True, "kfold": settings.folds}
    params["classifier"] = {
        "nhid": 0,
        "optim": settings.optimiser,
        "batch_size": settings.batch_size,
        "tenacity": settings.tenacity,
        "epoch_size": settings.passes,
    }
    engine = senteval.engine.SE(params, Batcher(model), prepare)
    with Clock() as clock:
        result = engine.eval(task)
    return result, clock


def their_score(result: dict, task: str, split: str) -> tuple[float, int]:
    """Return SentEval's score x 100 as SimCSE reports it, and how many pairs or examples were scored."""
    if task in ("STSBenchmark", "SICKRelatedness"):
        return 100 * float(result[split]["spearman"][0]), result[split]["nsamples"]
    if "all" in result:
        pairs = sum(part["nsamples"] for name, part in result.items() if name != "all")
        return 100 * float(result["all"]["spearman"]["all"]), pairs
    return float(result["devacc" if split == "dev" else "acc"]), result["ndev" if split == "dev" else "ntest"]


def our_score(results, task: str, split: str) -> tuple[float, int]:
    """Return our score x 100, and how many pairs or examples were scored."""
    if pairs := results["sts"].get(task):
        return 100 * pairs["spearman"]["all"], pairs["pairs"]
    scores = results["transfer"][task]
    examples = scores["examples"]
    return scores["dev_accuracy" if split == "dev" else "accuracy"], examples.get(split, examples["train"])


def compare(options: argparse.Namespace) -> list[dict]:
    """Return one row of results per pooling and task, and one row of times per pooling."""
    downstream = downstream_folder(options.data)
    names = task_names(options.tasks, options.mode)
    senteval = load_senteval(options.senteval)
    rows = []
    for pooling in options.pooling.split(","):
        protocol = EvaluationProtocol(mode=options.mode, pooling=pooling)
        model = load_model(options.model, pooling, device="cpu")
        with Clock() as clock:
            tasks, notes = read_tasks(downstream, names, protocol.split)
            results = evaluate(model, tasks, protocol)
        print(f"{pooling}: ours {clock.wall:.1f} s", *notes, sep="\n", file=sys.stderr)
        total = Clock()
        for task in tasks:
            result, their_clock = run_theirs(senteval, model, task.name, downstream.parent, options.mode)
            total.wall, total.cpu = total.wall + their_clock.wall, total.cpu + their_clock.cpu
            theirs, n_theirs = their_score(result, task.name, protocol.split)
            ours, n_ours = our_score(results, task.name, protocol.split)
            rows.append(
                {
                    "pooling": pooling,
                    "task": task.name,
                    "n_senteval": n_theirs,
                    "n": n_ours,
                    "n_expected": expected_size(task.name, protocol.split),
                    "senteval": theirs,
                    "ours": ours,
                    "seconds_senteval": their_clock.wall,
                }
            )
            print(format_row(rows[-1]), file=sys.stderr)
        times = {"seconds_senteval": total.wall, "seconds": clock.wall}
        times |= {"cpu_seconds_senteval": total.cpu, "cpu_seconds": clock.cpu}
        rows.append({"pooling": pooling, "task": "all", **times})
    return rows


def expected_size(task: str, split: str) -> int | None:
    """Return the expected number of pairs (by the paper's table of test sizes) or examples (by SentEval's docs)."""
    sizes = TASKS[task].sizes
    return sizes.get(split, sizes.get("train"))


def format_row(row: dict) -> str:
    """Return one line of the printed table."""
    if row["task"] == "all":
        kinds = {"wall-clock time": "seconds", "processor time": "cpu_seconds"}
        times = [
            f"{row[f'{key}_senteval']:.1f} s and {row[key]:.1f} s {kind}, {row[f'{key}_senteval'] / row[key]:.1f} times"
            for kind, key in kinds.items()
        ]
        return f"{row['pooling']:<18}SentEval and ours: {'; '.join(times)}"
    return (
        f"{row['pooling']:<18}{row['task']:<17}{row['n_senteval']:>6}{row['n']:>7}{row['n_expected'] or '-':>7}"
        f"{row['senteval']:>11.5f}{row['ours']:>11.5f}{row['ours'] - row['senteval']:>+11.5f}"
    )


def as_table(rows: list[dict], options: argparse.Namespace) -> dict:
    """Return the scores as a table for bench/report.py: tasks are columns; SentEval and una_fast are rows."""
    tasks = list(dict.fromkeys(row["task"] for row in rows if row["task"] != "all"))
    lines, ratios = [], []
    for pooling in dict.fromkeys(row["pooling"] for row in rows):
        found = {row["task"]: row for row in rows if row["pooling"] == pooling}
        total = found["all"]
        for name, score, seconds in (
            ("SentEval", "senteval", total["seconds_senteval"]),
            ("una_fast", "ours", total["seconds"]),
        ):
            scores = [f"{found[task][score]:.3f}" for task in tasks]
            lines.append([f"{name}, {pooling}", *scores, f"{seconds:.1f}"])
        ratios.append(f"{pooling} {total['seconds_senteval'] / total['seconds']:.1f} times")
    return {
        "title": f"Scores of una_fast and SentEval on the {options.mode} sets",
        "columns": ["", *tasks, "seconds"],
        "rows": lines,
        "machine": described(),
        "note": f"Both use the same model, files and {options.threads} threads. Speed of una_fast relative to SimCSE's "
        f"copy of SentEval: {', '.join(ratios)}.",
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--senteval", type=Path, required=True, help="checkout of SentEval")
    parser.add_argument("--model", required=True, help="name or folder of an encoder")
    parser.add_argument("--data", help="folder that contains senteval/, or senteval/ itself [UNA_FAST_DATA]")
    parser.add_argument("--tasks", default="sts", help="sts, transfer, or names of tasks, comma-separated [sts]")
    parser.add_argument("--pooling", default="cls_before_pooler,avg", help="poolings, comma-separated [%(default)s]")
    parser.add_argument("--mode", choices=("dev", "test", "fasttest"), default="test", help="[test]")
    parser.add_argument("--threads", type=int, default=2, help="threads of torch [2]")
    parser.add_argument("--json", type=Path, help="file for the table and the figures")
    options = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    torch.set_num_threads(options.threads)
    try:
        rows = compare(options)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    heads = f"{'n theirs':>6}{'n':>5}{'paper':>7}{'SentEval':>11}{'ours':>11}{'difference':>11}"
    print(f"{'pooling':<18}{'task':<15}{heads}")
    print(*map(format_row, rows), sep="\n")
    if options.json:
        save(options.json, [as_table(rows, options)], {"mode": options.mode, "threads": options.threads, "rows": rows})
    return 0


if __name__ == "__main__":
    sys.exit(main())
