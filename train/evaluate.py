"""Score a model on SentEval's tasks, with their protocol: ``python -m train.evaluate --model M --data FOLDER``."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from train.evaluation.tasks.registry import CHOICES, KINDS, EvaluationProtocol, downstream_folder, task_names
from train.record.folder import BEST, EVALUATION
from una_fast.command import Command, option, settings_of
from una_fast.errors import InputError
from una_fast.storage.files import read_object, write_json


@dataclass(frozen=True)
class EvaluateOptions(EvaluationProtocol):
    """The options of `python -m train.evaluate`."""

    model: str = option("encoder to score: hub name or folder", "", "Model and tasks", required=True, metavar="NAME")
    data: str | None = option(
        "folder with senteval/, near_miss/ or sets in BEIR's format, or senteval/ itself; default UNA_FAST_DATA",
        None, metavar="FOLDER",
    )  # fmt: skip
    tasks: str = option(f"tasks to score: {CHOICES}", "sts", metavar="NAME,NAME")
    device: str = option("auto, cpu, cuda or cuda:N", "auto")
    trust_remote_code: bool = option("run Python code that comes with the model", False)
    json: str | None = option("file for all scores and the protocol", None, metavar="FILE")


def _run(options: EvaluateOptions) -> None:
    protocol = EvaluationProtocol(**settings_of(options, EvaluationProtocol))
    if protocol.held_out and protocol.split == "dev":
        raise InputError("--held-out leaves out the images that --mode dev scores: give only one of the two")
    names, downstream = task_names(options.tasks, protocol.mode), downstream_folder(options.data)
    # imported late: --help and errors of the command line should not wait for torch
    import torch

    from train.encoder.pretrained import best_of_run
    from train.evaluation.scoring import format_results, score_model

    model, file = options.model, options.json and Path(options.json)
    if best := best_of_run(model):
        print(f"note: {model} is the folder of a training run: its best/ is evaluated", file=sys.stderr)
        model = best
    if file and file.exists() and not has_scores_of(file, model):
        raise InputError(f"--json {file}: contains no scores of {model}: choose another name")
    results = score_model(model, downstream, names, protocol, options.device, options.trust_remote_code)
    print(format_results(results))
    n_tasks = sum(len(results[kind]) for kind in KINDS)
    print(f"\n{n_tasks} of {len(names)} tasks in {results['seconds']:.1f} s on {torch.get_num_threads()} threads")
    if file:
        write_json(file, results)


def has_scores_of(file: Path, model: str) -> bool:
    """Return whether the scores in `file` are of `model`. A run may have been moved since its best/ was scored."""
    saved, folder = read_object(file).get("model"), Path(model).resolve()
    if not isinstance(saved, str):
        return False
    return folder == Path(saved).resolve() or (file.name == EVALUATION and folder == file.with_name(BEST).resolve())


ABOUT = "Score a model on SentEval's tasks, with their protocol."
main = Command("python -m train.evaluate", ABOUT, EvaluateOptions, _run, extra="evaluate", page="recipes")

if __name__ == "__main__":
    sys.exit(main())
