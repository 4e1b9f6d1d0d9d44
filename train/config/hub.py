"""The options of a training run that concern the Hugging Face hub."""

from __future__ import annotations

from dataclasses import dataclass

from train.config.options import option


@dataclass(frozen=True)
class Hub:
    """The hub."""

    push_to: str = option(
        "",
        "repository on the hub that gets best/ and its model card at the end, made where it is not there; with --seeds "
        "NAME-seed-N",
        role="running",
        metavar="NAME",
    )
    push_private: bool = option(False, "make the repository of --push-to a private one", role="running")
