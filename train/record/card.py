"""best/README.md: the model card of a run, as the Hugging Face hub reads it, made from what the run's folder holds."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from huggingface_hub import EvalResult, ModelCardData

from train.config.options import words_of
from train.config.run import defaults, options
from train.encoder.pretrained import HUB_NAME
from train.record.folder import BEST, EVALUATION, SCORES, is_own_page, read_object, read_summary, write_page
from una_fast.errors import counted
from una_fast.version import CITATION

CARD = f"{BEST}/README.md"
LIBRARY = "sentence-transformers"
TASK = "sentence-similarity"
CACHED = re.compile(r"models--((?:[^/]+--)?[^/]+)/snapshots/[0-9a-f]{40}/?")  # a model's folder in the hub's cache
BODY = """\
# {name}

{about}

## Use

```python
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("{place}")
embeddings = model.encode(["A sentence.", "Another one."])
```

## Training

{facts}

```bash
{command}
```

{scores}## Citation

```bibtex
{citation}
```
"""


def write_card(output: Path, repository: str = "") -> None:
    """Write the card of the finished run in `output`.

    A README.md there that is not as a run wrote it stays, and nothing is written through a link.

    repository: the model's name on the hub, if it is pushed.

    Raises:
        InputError: the folder cannot be written.
    """
    path = output / CARD
    if path.parent.is_symlink() or (os.path.lexists(path) and not is_own_page(path)):
        return
    summary, evaluation = read_summary(output), read_object(output / EVALUATION, SCORES)
    settings = summary["settings"] = {**defaults(), **summary["settings"]}  # of a run from before an option existed
    name, scores = repository or output.resolve().name, _scores(summary, evaluation)
    data = ModelCardData(
        library_name=LIBRARY,
        pipeline_tag=TASK,
        tags=[LIBRARY, TASK, "feature-extraction", "una_fast", f"loss:{settings['loss']}"],
        base_model=hub_name(settings["model"]),
        model_name=name,
        eval_results=[_result(task, score) for task, score in scores.items()] or None,
    )
    table = "".join(f"| {task} | {100 * score:.2f} |\n" for task, score in scores.items())
    body = BODY.format(
        name=name,
        place=repository or "FOLDER OR NAME OF THIS MODEL",
        about=_about(summary),
        facts="\n".join(f"- {what}: {value}" for what, value in _facts(summary).items()),
        command=_command(settings),
        scores=f"## Scores\n\n| pairs | Spearman of the cosine, x 100 |\n|:--|--:|\n{table}\n" if table else "",
        citation=CITATION,
    )
    write_page(path, f"---\n{data.to_yaml()}\n---\n\n{body}")


def hub_name(model: str) -> str | None:
    """The hub's name of a model that is named so, or that lies in the hub's cache; None for another folder."""
    if cached := CACHED.search(Path(model).as_posix()):
        return cached[1].replace("--", "/", 1)
    return model if HUB_NAME.fullmatch(model) and not Path(model).exists() else None


def _command(settings: Mapping[str, Any]) -> str:
    """The command that repeats the run, without options of where and how it ran; of absolute paths the last part."""
    told = [option for option in options().values() if option.role in ("result", "source")]
    words = (word.rpartition("=") for word in words_of(told, settings))
    kept = (flag + equals + (Path(value).name if Path(value).is_absolute() else value) for flag, equals, value in words)
    return shlex.join(["python", "-m", "train.ddp", *kept])


def _scores(summary: Mapping[str, Any], evaluation: Mapping[str, Any]) -> dict[str, float]:
    """The dev score by which best/ was chosen, and Spearman correlations of STS tasks; those that are defined."""
    dev, how = summary["settings"]["dev"], (evaluation.get("protocol") or {}).get("aggregate")
    scores = {f"dev ({Path(dev).name})": summary["scores"].get("stsb_dev")}
    scores |= {task: one["spearman"].get(how) for task, one in (evaluation.get("sts") or {}).items()}
    return {task: score for task, score in scores.items() if isinstance(score, float)}


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


def _negatives(settings: Mapping[str, Any]) -> str:
    """What makes the hard negatives, and how often; "none" without them."""
    if settings["augment"] in (None, "none") or not settings["alpha"]:
        return "none"
    steps = "in every step" if settings["alpha"] == 1 else f"in the first of every {settings['alpha']} steps (alpha)"
    return f"{settings['augment']}, {steps}"


def _about(summary: Mapping[str, Any]) -> str:
    """What the encoder is, in a sentence."""
    negatives = _negatives(summary["settings"])
    method = f"contrastive learning with hard negatives made by {summary['settings']['augment']}"
    if negatives == "none":
        method = "contrastive learning without hard negatives"
    elif negatives.startswith("una,"):
        method = (
            "contrastive learning with UNA's hard negatives: words that matter are replaced by ones of like importance"
        )
    if summary["progress"].get("best_step") != 0:
        return f"A sentence encoder trained with una_fast: {method}."
    unchanged = "The model from which a training began, unchanged: no step of the training"
    return f"{unchanged} ({method}, with una_fast) had a higher dev score."


def _facts(summary: Mapping[str, Any]) -> dict[str, str]:
    """The card's facts about the training, by name, as Markdown."""
    settings, corpus, progress = (summary[part] for part in ("settings", "corpus", "progress"))
    base, taken, best = hub_name(settings["model"]), progress.get("step", 0), progress.get("best_step")
    files = ", ".join(f"`{Path(file).name}`" for file in settings["corpus"]) or "a demonstration"
    identity = summary["identity"].get("corpus") or {}
    steps = f"{taken:,}" if best in (None, taken) else f"{best:,} of {taken:,}, after which the dev score was best"
    facts = {
        "started from": f"[{base}](https://huggingface.co/{base})" if base else f"`{Path(settings['model']).name}`",
        "data": f"{files}, {counted(corpus['trained_on'], 'sentence')}" if "trained_on" in corpus else files,
        "fingerprint of the index": f"`{identity.get('fingerprint', 'not known')}`",
        "steps": f"0 of {taken:,}, because the start had the best dev score" if best == 0 else steps,
        "seed": str(settings["seed"]),
        "ranks": str(summary.get("ranks", "not known")),
    }
    for name, key in (("before training", "start_score"), ("after the last step", "last_score")):
        if isinstance(score := progress.get(key), float):
            facts[f"dev score {name}"] = f"{100 * score:.2f}"
    facts["hard negatives"] = _negatives(settings)
    if facts["hard negatives"].startswith("una,"):
        radius = summary["resolved"].get("radius", settings["radius"])
        facts |= {"beta": str(settings["beta"]), "radius": str(radius), "surface": settings["surface"]}
    return facts
