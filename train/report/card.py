"""Writes the model card of a finished run, which `card.md` lays out."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from huggingface_hub import EvalResult, ModelCard, ModelCardData

from train.config import DEFAULTS, OPTIONS
from train.evaluation.tasks.registry import suite
from train.record.folder import BEST, DEV
from train.report.runs import read_run, title
from una_fast.augment.registry import load_augmentation, training_options_of
from una_fast.command import arguments_of
from una_fast.storage.files import write_file
from una_fast.version import CITATION

HUB_NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")  # the form of a model's name on the hub
DRAWS = {"beta", "radius", "surface", "edits"}  # shown in the card if the augmentation accepts them
TEMPLATE = Path(__file__).with_name("card.md")
TAGS = ["sentence-transformers", "sentence-similarity", "feature-extraction", "una_fast"]


def write_card(output: Path) -> None:
    """Write the model card of the finished run in `output`."""
    run = read_run(output)
    settings = {**DEFAULTS, **run.settings}  # an older run may lack an option: it used the default
    of_sets = bool(settings["dev"]) and Path(settings["dev"]).is_dir()  # the dev score is nDCG@10 of retrieval sets
    results = [
        _result(title(name), score, of_sets and name.startswith(DEV))
        for name, score in run.scores.items()
        if name.startswith(DEV) or name in suite("sts")
    ]
    augment = settings["augment"] if settings["augment"] != "none" and settings["alpha"] else ""
    accepted = training_options_of(load_augmentation(augment)) if augment else ()
    resolved = {**settings, **run.summary["resolved"]}
    draws = {name: value for name, value in resolved.items() if name in accepted and name in DRAWS}
    is_on_hub = HUB_NAME.fullmatch(settings["model"]) and not Path(settings["model"]).exists()
    name, base = output.resolve().name, settings["model"] if is_on_hub else None
    data = ModelCardData(
        library_name="sentence-transformers",
        pipeline_tag="sentence-similarity",
        tags=[*TAGS, f"loss:{settings['loss']}"],
        base_model=base,
        model_name=name,
        eval_results=results or None,
    )
    card = ModelCard.from_template(
        data,
        template_path=str(TEMPLATE),
        name=name,
        base=base or _without_user(Path(settings["model"])),
        files=[Path(file).name for file in settings["corpus"]],
        negatives=augment,
        draws=draws,
        settings=settings,
        run=run.summary,
        command=_command(settings),
        scores=results,
        citation=CITATION,
    )
    write_file(output / BEST / "README.md", f"{card}\n")


def _result(task: str, score: float, is_search: bool) -> EvalResult:
    """Return the nDCG@10 of a search, or the Spearman correlation of a task, in the form of the card's metadata."""
    if is_search:
        return EvalResult("information-retrieval", task.lower(), task, "cosine_ndcg@10", score)
    return EvalResult("semantic-similarity", task.lower(), task, "spearman_cosine", score)


def _without_user(path: Path) -> str:
    """Shorten an absolute path to at most its last two parts, without /home/NAME."""
    shown = path.parts[3:][-2:] or path.parts[-1:]
    return str(Path(*shown)) if path.is_absolute() else str(path)


def _command(settings: Mapping[str, Any]) -> str:
    """Return the shell command that repeats the run, with file names instead of absolute paths."""
    stated = [option for option in OPTIONS.values() if option.role in ("result", "source")]
    words = (word.rpartition("=") for word in arguments_of(stated, settings))
    kept = (flag + equals + (Path(value).name if Path(value).is_absolute() else value) for flag, equals, value in words)
    return shlex.join(["python", "-m", "train.ddp", *kept])
