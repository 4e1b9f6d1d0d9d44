"""Compare our scores with those of upstream SentEval on the same model and files.

    python -m bench.parity.compare_senteval --senteval SIMCSE/SentEval --model NAME_OR_FOLDER --data FOLDER
        [--tasks sts|transfer|NAME,...] [--pooling cls_before_pooler,avg] [--mode test] [--json FILE]

`--senteval` is a checkout of facebookresearch/SentEval or of princeton-nlp/SimCSE's copy; its files are not changed.
SentEval calls some functions that newer Python versions or this machine lack. They are replaced while it runs.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections import namedtuple
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from bench import script
from bench.report import described, save_tables
from train.evaluation.model import EvaluatedModel, load_model
from train.evaluation.scoring import evaluate, read_tasks
from train.evaluation.tasks.registry import EvaluationProtocol, downstream_folder, task_names
from una_fast.errors import InputError
from una_fast.text_table import aligned


class Batcher:
    """Encodes sentences for SentEval: lists of words become embeddings, float32 (n_sentences, dimension)."""

    def __init__(self, model: EvaluatedModel) -> None:
        self.model = model

    def __call__(self, params: Any, batch: Sequence[Sequence[str | bytes]]) -> NDArray[np.float32]:
        """Encode one batch, padded to its longest sentence and not truncated, as SimCSE's batcher does."""
        texts = [" ".join(_text(word) for word in words) for words in batch]
        tokens = self.model.tokenizer(texts, padding=True, truncation=False, return_tensors="pt")
        with torch.inference_mode():
            embeddings = self.model.encode({name: ids.to(self.model.device) for name, ids in tokens.items()})
        return embeddings.float().cpu().numpy()


def _text(word: str | bytes) -> str:
    return word.decode() if isinstance(word, bytes) else word


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


def run_theirs(senteval, model: EvaluatedModel, task: str, data: Path, mode: str) -> dict:
    """Return SentEval's result of one task with SimCSE's parameters."""
    fit = EvaluationProtocol(mode=mode).fit
    params = {"task_path": str(data), "usepytorch": True, "kfold": fit.folds}
    params["classifier"] = {
        "nhid": 0, "optim": fit.optimiser, "batch_size": fit.batch_size, "tenacity": fit.tenacity,
        "epoch_size": fit.passes,
    }  # fmt: skip
    return senteval.engine.SE(params, Batcher(model), lambda *_: None).eval(task)


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


def compare(senteval: Path, model: str, data: str, tasks: str, pooling: str, mode: str, json: Path | None) -> None:
    """Print the scores of each pooling and task, and save them as a table for bench/report.py."""
    downstream, names = downstream_folder(data or None), task_names(tasks, mode)
    package, rows, lines = load_senteval(senteval), [], []
    for name in pooling.split(","):
        protocol = EvaluationProtocol(mode=mode, pooling=name)
        encoder = load_model(model, name, device="cpu")
        found, notes = read_tasks(downstream, names, protocol.split)
        results = evaluate(encoder, found, protocol)
        print(*notes, sep="\n", file=sys.stderr)
        for task in found:
            their_results = run_theirs(package, encoder, task.name, downstream.parent, mode)
            theirs, n_theirs = their_score(their_results, task.name, protocol.split)
            ours, n = our_score(results, task.name, protocol.split)
            about = {"pooling": name, "task": task.name, "n_senteval": n_theirs, "n": n}
            rows.append({**about, "senteval": theirs, "ours": ours})
            print(name, task.name, f"{n_theirs} and {n} examples, {ours - theirs:+.5f}", file=sys.stderr)
        of_pooling = rows[-len(found) :]
        for whose, key in (("SentEval", "senteval"), ("una_fast", "ours")):
            lines.append([f"{whose}, {name}", *(f"{row[key]:.3f}" for row in of_pooling)])
    columns = ["", *(row["task"] for row in of_pooling)]
    print(*aligned([columns, *lines], left=(0,)), sep="\n")
    if json:
        title = f"Scores of una_fast and SentEval on the {mode} sets"
        note = "Both use the same model and files."
        table = {"title": title, "columns": columns, "rows": lines, "machine": described(), "note": note}
        save_tables(json, [table], {"mode": mode, "rows": rows})


if __name__ == "__main__":
    sys.exit(
        script.run(
            __doc__,
            compare,
            senteval=script.FOLDER | {"help": "checkout of SentEval"},
            model={"help": "name or folder of an encoder"},
            data={"default": "", "help": "folder that contains senteval/, or senteval/ itself [UNA_FAST_DATA]"},
            tasks={"default": "sts", "help": "sts, transfer, or names of tasks, comma-separated [sts]"},
            pooling={"default": "cls_before_pooler,avg", "help": "poolings, comma-separated [%(default)s]"},
            mode={"choices": ("dev", "test", "fasttest"), "default": "test", "help": "[test]"},
            json={"type": Path, "required": False, "help": "file for the table and the figures"},
        )
    )
