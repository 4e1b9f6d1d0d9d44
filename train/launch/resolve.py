"""Resolves the options of a run: each one that depends on the machine or the model gets its value."""

from __future__ import annotations

import dataclasses
import warnings
from pathlib import Path
from typing import Any, Literal, cast

import torch

from train.config.run import WITH_SYNONYMS, Run
from train.encoder.cpu import has_bf16
from train.encoder.encoder import head_of, masking_of
from train.encoder.pooling import AUTO, OF_TRAINING, POOLINGS
from train.encoder.pretrained import Modules, load_config, load_tokenizer, quiet, read_modules
from train.evaluation.tasks.sts import load_dev
from train.launch.finish import check_evaluation, check_push
from train.objective.registry import loss_row
from train.record.folder import INDEX
from train.record.trackers import make_trackers
from una_fast.augment.eda import open_synonyms
from una_fast.augment.kept_words import read_words
from una_fast.augment.registry import load_augmentation
from una_fast.errors import InputError, InputWarning, counted

EVALUATIONS_A_SAVE = 10  # on a GPU, where an evaluation comes every second and a checkpoint of BERT-base has 1.3 GB


def resolve_options(run: Run) -> Run:
    """`run` with a value for every option that was not given or is "auto".

    Raises:
        InputError: more ranks than GPUs, a missing model, dev file, evaluation data,
            synonyms or words to keep, an unknown task, no name or token to push with.
    """
    quiet()
    device = _device(run)
    config = load_config(run.model, run.dropout, run.trust_remote_code)
    roberta = "roberta" in config.model_type  # another preset than BERT's
    positions = config.max_position_embeddings - 2 * roberta  # its first token has position 2, after padding's 1
    if run.max_length > positions:
        raise InputError(f"--max-length {run.max_length} is above the {positions} positions of the model: shorten it")
    _check_inputs(run)
    layout = read_modules(run.model, OF_TRAINING.get(run.pooling, AUTO))
    _warn_of_texts(run.model, layout)
    if run.compile == "graphs" and device == "cpu":
        raise InputError("--compile graphs needs a GPU, and none is used here: choose off or on")
    pooling = POOLINGS[layout.pooling].in_training
    return dataclasses.replace(
        run,
        device=device,
        precision=_precision(run.precision, device),
        save_every=run.save_every or run.eval_every * (EVALUATIONS_A_SAVE if device == "cuda" else 1),
        augment=run.augment or ("una" if loss_row(run.loss).negative_views else "none"),
        learning_rate=run.learning_rate or (5e-6 if roberta else 3e-5),
        pooling=pooling,
        head=head_of(pooling, run.head),
        schedule=run.schedule or ("constant" if roberta else "linear"),
        index=run.index or str(Path(run.output) / INDEX),
    )


def _device(run: Run) -> Literal["cpu", "cuda"]:
    """The device, cpu or cuda; InputError if this machine lacks the GPUs that the options ask for."""
    device: Literal["cpu", "cuda"] = "cuda" if torch.cuda.is_available() else "cpu"
    if run.device != "auto":
        device = cast(Any, run.device)
    if device == "cuda" and run.nproc > torch.cuda.device_count():
        raise InputError(
            f"--nproc {run.nproc} is above the {counted(torch.cuda.device_count(), 'GPU')} of this machine: "
            "give as many ranks as GPUs at most, or --device cpu"
        )
    return device


def _precision(precision: str, device: str) -> Literal["fp32", "bf16", "fp16"]:
    """The precision of a run: for "auto" bf16 where the device has it, which takes half the time or less, else fp32."""
    if precision == "auto":
        return "bf16" if (torch.cuda.is_bf16_supported(False) if device == "cuda" else has_bf16()) else "fp32"
    return cast(Any, precision)


def _check_inputs(run: Run) -> None:
    """Refuse files that cannot be read, and a push that would fail, before hours are spent on the corpus."""
    _check_own(run)
    make_trackers(run.report_to)
    if run.dev:
        load_dev(run.dev)
    if run.positives in WITH_SYNONYMS:
        open_synonyms(run.synonyms or None)
    read_words(run.keep_words)
    if run.evaluate:
        check_evaluation(run)
    if run.mlm_weight:
        masking_of(load_tokenizer(run.model, run.trust_remote_code), run.seed)
    if run.push_to:
        check_push(run.push_to)


def _check_own(run: Run) -> None:
    """Refuse functions and classes of the user's own that cannot be imported, or that do not fit together."""
    for flag, path, load in (
        ("--loss", run.loss, loss_row),
        ("--augment", run.augment, load_augmentation),
        ("--positives", run.positives, load_augmentation),
    ):
        if path and ":" in path:
            try:
                load(path)
            except InputError as error:
                raise InputError(f"{flag}: {error}") from error
    if run.augment not in (None, "none") and not loss_row(run.loss).negative_views:
        raise InputError(f"--loss {run.loss} has no place for negatives: choose --augment none, or another loss")


def _warn_of_texts(model: str, layout: Modules) -> None:
    """Warn of the model's changes of a text (prompt, lower case), which training, on ids of the index, leaves out."""
    for what in filter(
        None, [layout.prompt and f"default prompt {layout.prompt!r}", layout.lower_case and "lower case"]
    ):
        warnings.warn(
            f"--model {model}: its {what} is applied in dev scores and wherever best/ is used, but not in training",
            InputWarning,
            stacklevel=3,
        )
