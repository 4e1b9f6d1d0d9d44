"""best/README.md: the model card of a run, as the Hugging Face hub reads it, made from what the run's folder holds."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from huggingface_hub import EvalResult, ModelCard, ModelCardData

from train.config.options import words_of
from train.config.run import defaults, options
from train.encoder.pretrained import HUB_NAME
from train.record.folder import BEST, EVALUATION, read_object, read_summary, write_file
from una_fast.errors import counted
from una_fast.version import CITATION

TEMPLATE = Path(__file__).with_name("card.md")
TAGS = ["sentence-transformers", "sentence-similarity", "feature-extraction", "una_fast"]
CACHED = re.compile(r"models--((?:[^/]+--)?[^/]+)/snapshots/[0-9a-f]{40}/?")  # a model's folder in the hub's cache
METHODS = {  # contrastive learning ...
    "": "without hard negatives",
    "una": "with UNA's hard negatives: words that matter are replaced by ones of like importance",
}


def write_card(output: Path, repository: str = "") -> None:
    """Write the card of the finished run in `output`.

    Args:
        output: the run's folder.
        repository: the model's name on the hub, if it is pushed.

    Raises:
        InputError: the folder cannot be written.
    """
    summary = read_summary(output)
    settings = {**defaults(), **summary["settings"]}  # a run from before an option existed used its default
    name, scores = repository or output.resolve().name, _scores(output, settings["dev"], summary["scores"])
    negatives = settings["augment"] if settings["augment"] not in (None, "none") and settings["alpha"] else ""
    method = METHODS.get(negatives, f"with hard negatives made by {negatives}")
    trained_on, base = summary["corpus"].get("trained_on"), hub_name(settings["model"])
    data = ModelCardData(
        library_name=TAGS[0],
        pipeline_tag=TAGS[1],
        tags=[*TAGS, f"loss:{settings['loss']}"],
        base_model=base,
        model_name=name,
        eval_results=[_result(task, score) for task, score in scores.items()] or None,
    )
    card = ModelCard.from_template(
        data,
        template_path=str(TEMPLATE),
        name=name,
        place=repository or "FOLDER OR NAME OF THIS MODEL",
        method=f"contrastive learning {method}",
        base=base,
        model=Path(settings["model"]).name,
        files=[Path(file).name for file in settings["corpus"]],
        sentences=counted(trained_on, "sentence") if trained_on else "",
        fingerprint=summary["resume_fingerprint"].get("corpus"),
        negatives=negatives,
        settings=settings,
        progress=summary["progress"],
        ranks=summary.get("ranks"),
        radius=summary["resolved"].get("radius"),
        command=_command(settings),
        scores=scores,
        citation=CITATION,
    )
    write_file(output / BEST / "README.md", f"{card}\n")


def hub_name(model: str) -> str | None:
    """The hub's name of a model that is named so, or that lies in the hub's cache; None for another folder."""
    if cached := CACHED.search(Path(model).as_posix()):
        return cached[1].replace("--", "/", 1)
    return model if HUB_NAME.fullmatch(model) and not Path(model).exists() else None


def _command(settings: Mapping[str, Any]) -> str:
    """The command that repeats the run, without options of where and how it ran; of absolute paths the last part."""
    stated = [option for option in options().values() if option.role in ("result", "source")]
    words = (word.rpartition("=") for word in words_of(stated, settings))
    kept = (flag + equals + (Path(value).name if Path(value).is_absolute() else value) for flag, equals, value in words)
    return shlex.join(["python", "-m", "train.ddp", *kept])


def _scores(output: Path, dev: str, scores: Mapping[str, Any]) -> dict[str, float]:
    """The dev score by which best/ was chosen, and Spearman correlations of STS tasks; those that are defined."""
    evaluation = read_object(output / EVALUATION)
    how = (evaluation.get("protocol") or {}).get("aggregate")
    all_scores = {f"dev ({Path(dev).name})": scores.get("stsb_dev")}
    all_scores |= {task: of["spearman"].get(how) for task, of in (evaluation.get("sts") or {}).items()}
    return {task: score for task, score in all_scores.items() if isinstance(score, float)}


def _result(task: str, score: float) -> EvalResult:
    return EvalResult(
        task_type="semantic-similarity",
        task_name="Semantic Similarity",
        dataset_type=re.sub(r"\W+", "-", task.lower()).strip("-"),
        dataset_name=task,
        metric_type="spearman_cosine",
        metric_name="Spearman Cosine",
        metric_value=score,
    )
