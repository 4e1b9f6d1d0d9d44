"""Write folders like those of training runs, without training."""

import json
from pathlib import Path
from typing import Any

from train.record.folder import dev_name

STS_TASKS = ("STS12", "STS13", "STS14", "STS15", "STS16", "STSBenchmark", "SICKRelatedness")


def write_run(folder: Path, score: float, n_steps: int = 20, start: float | None = None, **settings: Any) -> Path:
    """Write a finished run with dev scores after 10 and 20 steps. score: after step 20. start: at step 0."""
    folder.mkdir(parents=True)
    dev = dev_name(settings.get("dev"))
    summary = {
        "status": "finished",
        "settings": {"augment": "none", "seed": 42, "model": "m", "output": str(folder), **settings},
        "resolved": {},
        "corpus": {},
        "resume_fingerprint": {},
        "scores": {f"dev/{dev}": score, f"dev_last/{dev}": score - 0.01},
        "progress": {
            "step": n_steps, "start_score": start, "best_step": n_steps if start is None or score > start else 0,
        },
    }  # fmt: skip
    (folder / "run.json").write_text(json.dumps(summary))
    lines = [metrics_line(step) for step in range(n_steps)]
    lines += [{"step": 10, f"dev/{dev}": score - 0.02}, {"step": 20, f"dev/{dev}": score}]
    if start is not None:
        lines.insert(0, {"step": 0, f"dev/{dev}": start})
    (folder / "metrics.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    return folder


def metrics_line(step: int) -> dict[str, Any]:
    """Return a step's line in metrics.jsonl. Every fifth step has negatives and their mean cosine."""
    line = {"step": step, "loss": 1 / (step + 1), "lr": 1e-5, "negatives": step % 5 == 0}
    line |= {"sentences_per_second": 100 + step, "cosine_positive": 0.9}
    return line | ({"cosine_negative": 0.5} if line["negatives"] else {})


def write_evaluation(folder: Path, sts: float, tasks: tuple[str, ...] = ("STSBenchmark",)) -> None:
    """Write evaluation.json: a transfer task, and the score `sts` of `tasks` and STS-B. Else STS12 is undefined."""
    of_tasks = {"STS12": None, "STSBenchmark": sts, **dict.fromkeys(tasks, sts)}
    scores = {task: {"spearman": {"all": score}} for task, score in of_tasks.items()}
    evaluation = {
        "protocol": {"aggregate": "all", "split": "test"},
        "sts": scores,
        "transfer": {"CR": {"accuracy": 80.0}},
        "averages": {"sts": sts, "transfer": 80.0},
    }
    (folder / "evaluation.json").write_text(json.dumps(evaluation))
