"""The messages about unknown options, each with the option that was probably meant."""

from __future__ import annotations

from collections.abc import Sequence

# option names of SimCSE, transformers and sentence-transformers -> the option of this command that does the same
ELSEWHERE = {
    "base-model": "--model",
    "bf16": "--precision bf16",
    "cpu": "--device cpu",
    "cuda": "--device cuda",
    "data": "--corpus",
    "dataset": "--corpus",
    "dataset-name": "--corpus",
    "dataloader-num-workers": "nothing: batches are made beside the training step",
    "do-mlm": "--mlm-weight 0.1",
    "eval-file": "--dev",
    "eval-steps": "--eval-every",
    "evaluation-steps": "--eval-every",
    "fp16": "--precision fp16",
    "gradient-accumulation-steps": "--grad-cache, which fits a large batch into memory",
    "hidden-dropout-prob": "--dropout",
    "logging-steps": "nothing: metrics.jsonl holds every step",
    "lr": "--learning-rate",
    "lr-scheduler-type": "--schedule",
    "max-len": "--max-length",
    "max-seq-length": "--max-length",
    "max-train-steps": "--max-steps",
    "mini-batch-size": "--grad-cache",
    "model-name": "--model",
    "model-name-or-path": "--model",
    "no-cuda": "--device cpu",
    "nproc-per-node": "--nproc",
    "num-beams": "--beams",
    "num-epochs": "--epochs",
    "num-train-epochs": "--epochs",
    "output-dir": "--output",
    "per-device-train-batch-size": "--batch-size, which counts the sentences of all ranks together",
    "per-gpu-train-batch-size": "--batch-size, which counts the sentences of all ranks together",
    "pooler-type": "--pooling",
    "pooling-mode": "--pooling",
    "random-seed": "--seed",
    "resume-from-checkpoint": "--resume",
    "save-steps": "--save-every",
    "scale": "--temperature, which is 1 / scale",
    "scheduler": "--schedule",
    "tau": "--temperature",
    "temp": "--temperature",
    "train-batch-size": "--batch-size, which counts the sentences of all ranks together",
    "train-file": "--corpus",
    "validation-file": "--dev",
}


def unknown_option(flag: str, known: Sequence[str]) -> str:
    """The message about an argument that no option takes. known: flags, with their dashes."""
    if not flag.startswith("-"):
        return f"unexpected argument {flag!r}: options start with --"
    return f"unknown option {flag}{_hint(flag, known)}"


def unknown_key(key: str, known: Sequence[str]) -> str:
    """The message about a key of a config file that is not an option. known: flags, with their dashes."""
    hint = _hint("--" + key, known).replace("did you mean --", "did you mean ")
    return f"unknown key {key}{hint.replace('-', '_') if '_' in key else hint}"


def _hint(flag: str, known: Sequence[str]) -> str:
    import difflib  # takes 5 ms, and only a mistake needs it

    written = flag.lstrip("-").replace("_", "-").lower()
    meant = ELSEWHERE.get(written, "")
    if meant and (not meant.startswith("--") or meant.split()[0].rstrip(",") in known):
        return f": did you mean {meant}?" if meant.startswith("--") else f": it needs {meant}"
    close = difflib.get_close_matches(f"--{written}", known, n=1)
    return f": did you mean {close[0]}?" if close else ": see --help for all options"
