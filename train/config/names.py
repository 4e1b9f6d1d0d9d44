"""Names that a user types and that are not today's: of earlier versions, and of other trainers."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable

from una_fast.errors import InputError, InputWarning

OLD = {  # of version 0.2 -> today's, for one version
    "--tie-weight": "--similarity-distillation",
    "--blend": "--wise-ft",
    "--guard-sigma": "--gate-sigma",
    "--loss guarded": "--loss gated",
    "--compile auto": "--compile off",
    "--surface lower": "--surface kept",
}
# an answer -> the names of SimCSE, transformers, sentence-transformers, Accelerate and Lightning that it answers, but
# for those to which it is the nearest name
FOREIGN = {
    "--batch-size, which counts the sentences of all ranks together": "per-device-train-batch-size "
    "per-gpu-train-batch-size train-batch-size",
    "--compile on": "torch-compile",
    "--corpus": "data dataset dataset-name train-data train-file",
    "--dev": "eval-file eval-dataset validation-file",
    "--device": "cpu cuda no-cuda use-cpu use-cuda",
    "--early-stopping-patience": "patience",
    "--eval-every": "eval-steps evaluation-steps",
    "--grad-cache, which fits a large batch into memory": "gradient-checkpointing mini-batch-size",
    "--head mlp, which best/ leaves out": "mlp-only-train",
    "--learning-rate": "lr max-lr",
    "--max-grad-norm": "grad-clip gradient-clip-val gradient-clipping",
    "--mlm-weight 0.1": "do-mlm",
    "--model": "model-name-or-path",
    "--nproc": "devices gpus n-gpu nproc-per-node num-gpus world-size",
    "--output": "save-dir",
    "--pooling": "pooler-type",
    "--precision": "amp bf16 dtype fp16 fp32 torch-dtype",
    "--push-to NAME": "hub-model-id push-to-hub",
    "--report-to": "log-with logger logging-dir mlflow tensorboard tracker trackers use-wandb wandb wandb-project",
    "--resume": "checkpoint resume-from-checkpoint",
    "--save-every": "save-steps",
    "--temperature, which is 1 / scale": "scale tau temp",
    "--warmup-steps 0.1, a share of all steps": "warmup warmup-proportion warmup-ratio",
    "accumulated gradients of small batches are those of another loss, because a sentence's negatives are the other "
    "sentences of its batch: --grad-cache N fits a large batch into memory": "accumulate-grad-batches "
    "gradient-accumulation gradient-accumulation-steps",
    "each rank has the whole encoder: --nproc N": "deepspeed fsdp",
    "hard negatives weigh as all others": "hard-negative-weight",
    "it needs nothing: AdamW with PyTorch's defaults is the optimiser": "adam-beta1 adam-beta2 adam-epsilon optim",
    "it needs nothing: batches are made beside the training step": "dataloader-num-workers num-workers",
    "it needs nothing: best/, which --dev scores best, and last/ are kept": "load-best-model-at-end "
    "metric-for-best-model save-total-limit",
    "it needs nothing: metrics.jsonl holds every step": "log-every logging-steps",
    "it needs nothing: the command trains, and --eval-every and --save-every count steps": "do-eval do-train "
    "eval-strategy evaluation-strategy save-strategy",
    "it needs nothing: torchrun gives ranks their numbers": "local-rank",
    "training runs on NVIDIA's cards and on the CPU: give --device cpu (an AMD card with PyTorch for ROCm is --device "
    "cuda, which is not tested)": "device-mps device-xpu mps use-mps-device xpu",
    "what a folder holds is never overwritten: give a new --output, or --resume": "overwrite-output-dir",
}
ANSWERS = {name: answer for answer, names in FOREIGN.items() for name in names.split()}


def today(flag: str, value: str = "") -> str:
    """Today's name of a flag, or of a value of a flag; warns of an old one."""
    written = f"{flag} {value}" if value else flag
    if written not in OLD:
        return value or flag
    warnings.warn(f"{written} is an old name: write {OLD[written]}", InputWarning, stacklevel=2)
    return OLD[written].split()[-1]


def why_not(flag: str, value: str) -> str:
    """What to do instead of a value that an option does not take; "" if there is nothing to say."""
    return ANSWERS.get(f"{flag.lstrip('-')}-{value}", "")


def known_flag(flag: str, known: Collection[str]) -> str:
    """Today's name of a flag. known: the flags that are, with their dashes.

    Raises:
        InputError: it is no option; the message says what to write instead.
    """
    if flag in known or (new := today(flag)) in known:
        return flag if flag in known else new
    answer = ANSWERS.get(flag.lstrip("-").replace("_", "-").lower(), "")
    if answer.split(" ")[0].rstrip(",") in known:
        answer = f"did you mean {answer}?"
    elif not answer or answer.startswith("--"):
        answer = nearest(flag, known) or "see --help for all options"
    raise InputError(f"unknown option {flag}: {answer}")


def nearest(name: str, names: Iterable[str]) -> str:
    """The question whether the nearest of the names was meant; "" if none is near."""
    import difflib  # takes 5 ms, and only a mistake needs it

    close = difflib.get_close_matches(name, list(names), n=1)
    return f"did you mean {close[0]}?" if close else ""
