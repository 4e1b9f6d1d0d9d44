"""Names that a user types and that are not today's: of earlier versions, and of other trainers."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from una_fast.errors import InputWarning

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
    "--device cpu": "cpu no-cuda use-cpu",
    "--device cuda": "cuda use-cuda",
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
    "--precision": "amp dtype fp32 torch-dtype",
    "--precision bf16": "bf16",
    "--precision fp16": "fp16",
    "--push-to NAME": "hub-model-id push-to-hub",
    "--report-to": "log-with logger tracker trackers",
    "--report-to mlflow": "mlflow",
    "--report-to tensorboard": "logging-dir tensorboard",
    "--report-to wandb": "use-wandb wandb wandb-project",
    "--resume": "checkpoint resume-from-checkpoint",
    "--save-every": "save-steps",
    "--temperature": "tau temp",
    "--temperature, which is 1 / scale": "scale",
    "--warmup-steps 0.1, a share of all steps": "warmup warmup-proportion warmup-ratio",
    "accumulated gradients of small batches are those of another loss, because a sentence's negatives are the other "
    "sentences of its batch: --grad-cache N fits a large batch into memory": "accumulate-grad-batches "
    "gradient-accumulation gradient-accumulation-steps",
    "each rank has the whole encoder: --nproc N": "deepspeed fsdp",
    "hard negatives weigh as all others": "hard-negative-weight",
    "it needs nothing: AdamW with PyTorch's defaults is the optimiser": "adam-beta1 adam-beta2 adam-epsilon optim",
    "it needs nothing: batches are made beside the training step": "dataloader-num-workers num-workers",
    "it needs nothing: best/ is the encoder that --dev scores best": "load-best-model-at-end metric-for-best-model",
    "it needs nothing: best/ and last/ are all that is kept": "save-total-limit",
    "it needs nothing: metrics.jsonl holds every step": "log-every logging-steps",
    "it needs nothing: the command trains; --dev and --evaluate score": "do-eval do-train",
    "it needs nothing: --eval-every and --save-every count steps": "eval-strategy evaluation-strategy save-strategy",
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


def hint(flag: str, known: Iterable[str]) -> str:
    """What to write instead of a flag that is no option. known: the flags that are, with their dashes."""
    name, flags = flag.lstrip("-").replace("_", "-").lower(), list(known)
    answer = ANSWERS.get(name, "")
    if answer and not answer.startswith("--"):
        return answer
    if answer.split(" ")[0].rstrip(",") in flags:
        return f"did you mean {answer}?"
    return nearest(f"--{name}", flags) or "see --help for all options"


def nearest(name: str, names: Iterable[str]) -> str:
    """The question whether the nearest of the names was meant; "" if none is near."""
    import difflib  # takes 5 ms, and only a mistake needs it

    close = difflib.get_close_matches(name, list(names), n=1)
    return f"did you mean {close[0]}?" if close else ""
