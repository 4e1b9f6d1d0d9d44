"""Paraphrases: one model rewrites each sentence.

Both presets are models whose paraphrases the paper trains with (appendix, "Paraphrasing"); it reports results of the
first. The paper does not give its search settings. Beams and lengths of PEGASUS are those of the model's page on the
hub; its network has 60 positions. The page of the T5 model shows sampling; here it searches with PEGASUS's beams.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from train.config.options import option
from train.generation.options import Preset
from una_fast.errors import InputError

ABOUT = "Write a paraphrase of every sentence of a corpus, line by line, with a seq2seq model."
PRESETS = {
    "pegasus": Preset(("tuner007/pegasus_paraphrase",), beams=10, max_length=60),
    "t5": Preset(("Vamsi/T5_Paraphrase_Paws",), prefix="paraphrase: ", beams=10),
}


@dataclass(frozen=True)
class Models:
    """Model."""

    model: str = option(
        "",
        f"{' or '.join(PRESETS)} (the paper's models, as presets), or any seq2seq model: its name on the Hugging Face "
        "hub, or the folder that holds it",
        role="source",
        metavar="NAME_OR_FOLDER",
    )
    prefix: str | None = option(
        None, "text to put before each sentence, as T5 models want it; default: the preset's, else none"
    )


def choose(values: dict[str, Any]) -> Preset:
    """The model that the option values name, as a preset."""
    if not values["model"]:
        raise InputError(f"--model is missing: give {', '.join(PRESETS)}, or the name or folder of a seq2seq model")
    return PRESETS.get(values["model"]) or Preset((values["model"],))
