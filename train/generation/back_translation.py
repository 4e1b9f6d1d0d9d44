"""Back-translation: one model translates each sentence into another language, a second one translates that back.

The preset is what the paper uses: English to French and back, with the OPUS-MT models of Tiedemann and Thottingal
(2020). The paper does not give its search settings; 4 beams are those in the OPUS-MT models' configurations on the hub.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from train.config.options import option
from train.generation.options import Preset
from una_fast.errors import InputError

ABOUT = "Translate every sentence of a corpus into another language and back, line by line, with two seq2seq models."
PRESETS = {"opus-mt-fr": Preset(("Helsinki-NLP/opus-mt-en-fr", "Helsinki-NLP/opus-mt-fr-en"))}


@dataclass(frozen=True)
class Models:
    """Models."""

    model: str = option("", f"a preset: {', '.join(PRESETS)} (the paper's two models)", role="source", metavar="NAME")
    forward: str = option(
        "",
        "model that translates into the other language: its name on the Hugging Face hub, or the folder that holds it",
        role="source",
        metavar="NAME_OR_FOLDER",
    )
    backward: str = option("", "model that translates back", role="source", metavar="NAME_OR_FOLDER")


def choose(values: dict[str, Any]) -> Preset:
    """The two models that the option values name, as a preset."""
    name, pair = values["model"], (values["forward"], values["backward"])
    if name and not any(pair) and name in PRESETS:
        return PRESETS[name]
    if name:
        raise InputError(
            f"--model {name}: back-translation takes two models: give --forward and --backward, or --model alone as "
            f"one of the presets {', '.join(PRESETS)}"
        )
    if not all(pair):
        raise InputError(f"--forward and --backward: give both, or --model with one of {', '.join(PRESETS)}")
    return Preset(pair)
