"""best/README.md: the model card of a run, as the Hugging Face hub reads it, made from what the run's folder holds."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from train.config.command import words_of
from train.config.run import defaults, options
from train.encoder.pretrained import HUB_NAME
from train.record.folder import BEST, EVALUATION, is_own_page, read_object, read_summary, write_page
from una_fast.citation import CITATION
from una_fast.errors import counted

CARD = f"{BEST}/README.md"
LIBRARY = "sentence-transformers"
TASK = "sentence-similarity"


def write_card(output: Path, repository: str = "") -> None:
    """Write the card of the finished run in `output`; a README.md there that is not as a run wrote it stays.

    repository: the model's name on the hub, if it is pushed.

    Raises:
        InputError: the folder cannot be written.
    """
    path = output / CARD
    if path.exists() and not is_own_page(path):
        return
    summary = read_summary(output)
    summary["settings"] = {**defaults(), **summary["settings"]}  # a run saved before an option existed had its default
    name, place = repository or output.name, repository or "FOLDER OF THIS MODEL"
    text = card(summary, read_object(output / EVALUATION), name, place)
    write_page(path, text)


def card(summary: Mapping[str, Any], evaluation: Mapping[str, Any], name: str, place: str) -> str:
    """The card of a run.

    summary: the content of run.json. evaluation: that of evaluation.json, {} if there is none. name: the title. place:
    the name or folder from which the card's example loads the model.
    """
    import yaml

    settings = summary["settings"]
    scores = [*_dev_score(summary), *_sts_scores(evaluation)]
    data: dict[str, Any] = {
        "library_name": LIBRARY,
        "pipeline_tag": TASK,
        "tags": [LIBRARY, TASK, "feature-extraction", "una_fast", f"loss:{settings['loss']}"],
    }
    if base := hub_name(settings["model"]):
        data["base_model"] = base
    if scores:
        data["model-index"] = [{"name": name, "results": [_result(*score) for score in scores]}]
    front = yaml.safe_dump(data, sort_keys=False, allow_unicode=True)
    return f"---\n{front}---\n\n{_body(summary, scores, name, place, base)}"


def hub_name(model: str) -> str | None:
    """`model` if it is a name on the hub; None if it is a folder."""
    return model if HUB_NAME.fullmatch(model) and not Path(model).exists() else None


def command(settings: Mapping[str, Any]) -> str:
    """The command that repeats the run, without the options of where and how it ran."""
    told = [option for option in options().values() if option.role in ("result", "source")]
    return shlex.join(["python", "-m", "train.ddp", *words_of(told, settings)])


def _dev_score(summary: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """The score by which best/ was chosen."""
    score = (summary.get("scores") or {}).get("stsb_dev")
    if isinstance(score, float):
        yield f"dev ({Path(summary['settings']['dev']).name})", score


def _sts_scores(evaluation: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Spearman correlations of SentEval's STS tasks."""
    how = (evaluation.get("protocol") or {}).get("aggregate")
    for task, scores in (evaluation.get("sts") or {}).items():
        score = (scores.get("spearman") or {}).get(how)
        if isinstance(score, float):
            yield task, score


def _result(task: str, score: float) -> dict[str, Any]:
    """An entry of model-index."""
    return {
        "task": {"type": "semantic-similarity", "name": "Semantic Similarity"},
        "dataset": {"type": re.sub(r"\W+", "-", task.lower()).strip("-"), "name": task},
        "metrics": [{"type": "spearman_cosine", "name": "Spearman Cosine", "value": score}],
    }


def _training_facts(summary: Mapping[str, Any], base: str | None) -> dict[str, str]:
    """The card's facts about the training, by name, as Markdown. base: the starting model's name on the hub, if any."""
    settings, corpus = summary["settings"], summary.get("corpus") or {}
    start = f"[{base}](https://huggingface.co/{base})" if base else f"`{Path(settings['model']).name}`"
    files = ", ".join(f"`{Path(file).name}`" for file in settings["corpus"]) or "a demonstration"
    identity = (summary.get("identity") or {}).get("corpus") or {}
    return {
        "started from": start,
        "data": f"{files}, {counted(corpus['trained_on'], 'sentence')}" if "trained_on" in corpus else files,
        "fingerprint of the index": f"`{identity.get('fingerprint', 'not known')}`",
        "steps": f"{(summary.get('progress') or {}).get('step', 0):,}",
    }


def _body(summary: Mapping[str, Any], scores: list[tuple[str, float]], name: str, place: str, base: str | None) -> str:
    return "\n".join(
        [
            f"# {name}",
            "",
            "A sentence encoder trained with una_fast: contrastive learning with UNA's hard negatives, in which words",
            "that matter are replaced by words of like importance.",
            "",
            "## Use",
            "",
            "```python",
            "from sentence_transformers import SentenceTransformer",
            "",
            f'model = SentenceTransformer("{place}")',
            'embeddings = model.encode(["A sentence.", "Another one."])',
            "```",
            "",
            "## Training",
            "",
            *(f"- {what}: {value}" for what, value in _training_facts(summary, base).items()),
            "",
            "```bash",
            command(summary["settings"]),
            "```",
            *_score_table(scores),
            "",
            "## Citation",
            "",
            "```bibtex",
            CITATION,
            "```",
            "",
        ]
    )


def _score_table(scores: list[tuple[str, float]]) -> list[str]:
    if not scores:
        return []
    lines = [f"| {task} | {100 * score:.2f} |" for task, score in scores]
    return ["", "## Scores", "", "| pairs | Spearman of the cosine, x 100 |", "|:--|--:|", *lines]
