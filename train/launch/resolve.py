"""Chooses values for missing options, and checks that options suit the model, the machine and the files they name."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import torch

from train.config import SAME, ResolvedRun, Run
from train.encoder.cpu import has_bf16
from train.encoder.encoder import head_of
from train.encoder.pooling import POOLINGS
from train.encoder.pretrained import HIDDEN_DROPOUTS, Modules, positions_of
from train.evaluation.scoring import read_tasks
from train.evaluation.tasks.registry import downstream_folder, task_names
from train.losses import loss_spec
from train.record.folder import INDEX
from una_fast.augment.eda import open_synonyms
from una_fast.augment.near_misses import check_edits
from una_fast.augment.registry import WITH_SYNONYMS, check_edit_options, load_augmentation
from una_fast.augment.word_lists import read_word_lists
from una_fast.errors import InputError, counted, warn_user
from una_fast.options import parse_edits

EVALUATIONS_PER_SAVE = 10  # on a GPU: an evaluation takes a second, and a checkpoint of BERT-base has 1.3 GB


def device_of(run: Run) -> Literal["cpu", "cuda"]:
    """Return the type of the device of a run."""
    device = ("cuda" if torch.cuda.is_available() else "cpu") if run.device == "auto" else run.device
    if device == "cuda" and run.nproc > torch.cuda.device_count():
        raise InputError(
            f"--nproc {run.nproc} is above the {counted(torch.cuda.device_count(), 'GPU')} of this machine: "
            "give at most one rank per GPU, or --device cpu"
        )
    return device


def resolve_options(run: Run, config: Any, pooling: str) -> ResolvedRun:
    """Choose a value for every option that is missing or "auto".

    config: the encoder's configuration. pooling: the encoder's pooling, a key of POOLINGS.
    """
    device, roberta = device_of(run), "roberta" in config.model_type  # its defaults differ from BERT's
    positions = positions_of(config)
    if positions and run.max_length > positions:
        raise InputError(
            f"--max-length {run.max_length} is above the {positions} positions of the model: give at most {positions}"
        )
    if run.compile == "graphs" and device == "cpu":
        raise InputError("--compile graphs needs a GPU, but this run uses the CPU: choose off or on")
    if run.precision == "fp16" and device == "cpu":
        raise InputError("--precision fp16 needs a GPU, but this run uses the CPU: choose bf16, fp32 or auto")
    negative_views = loss_spec(run.loss).negative_views
    if not negative_views and run.augment not in (None, "none"):
        raise InputError(f"--loss {run.loss} uses no negatives: choose --augment none, or another loss")
    # a graph replay repeats the captured step's Python numbers, but a custom loss may change them at every step
    is_eager = device == "cpu" or ":" in run.loss or run.grad_cache
    has_half = torch.cuda.is_bf16_supported(False) if device == "cuda" else has_bf16()
    in_training = POOLINGS[pooling].in_training
    resolved = {
        "device": device,
        "compile": run.compile or ("off" if is_eager else "graphs"),
        "precision": ("bf16" if has_half else "fp32") if run.precision == "auto" else run.precision,
        "save_every": run.save_every or run.eval_every * (EVALUATIONS_PER_SAVE if device == "cuda" else 1),
        "surface": run.surface or ("paper" if run.variant == "released" else "kept"),
        "augment": run.augment or ("una" if negative_views else "none"),
        "learning_rate": run.learning_rate or (5e-6 if roberta else 3e-5),
        "pooling": in_training,
        "head": head_of(in_training, run.head),
        "schedule": run.schedule or ("constant" if roberta else "linear"),
        "index": run.index or str(Path(run.output) / INDEX),
    }
    return ResolvedRun(**{**vars(run), **resolved})


def warn_of_ignored(run: ResolvedRun, config: Any, layout: Modules) -> None:
    """Warn about settings of the model that training ignores, and about a model without dropout."""
    applied = "is applied in dev scores and where best/ is used, but not in training"
    same_text = run.positives == SAME and not run.paraphrases
    remarks = {
        f"its default prompt {layout.prompt!r} {applied}": layout.prompt,
        f"its lower-casing {applied}": layout.lower_case,
        f"{config.model_type} has no dropout in its hidden states, so a sentence and its positive are nearly the same "
        "vector: give --positives or --paraphrases": (
            same_text and run.dropout and not any(hasattr(config, name) for name in HIDDEN_DROPOUTS)
        ),
    }
    for remark, applies in remarks.items():
        if applies:
            warn_user(f"--model {run.model}: {remark}")


def check_late_inputs(run: ResolvedRun) -> None:
    """Check inputs before the index is built, although the run uses them later: building can take hours."""
    for name in (run.augment, run.positives):
        if ":" in name:
            load_augmentation(name)
    if run.positives in WITH_SYNONYMS:
        open_synonyms(run.synonyms or None)
    check_edit_options(run.augment, run)
    if run.augment == "near-misses":
        check_edits(parse_edits(run.edits))
        read_word_lists(run.word_lists)
    if run.evaluate:
        read_tasks(downstream_folder(run.evaluate), task_names(run.tasks), "test")
