"""Write paraphrases or back-translations of a corpus, for `--paraphrases` of training.

``python -m train.generate paraphrase --model pegasus --corpus FILE --output FILE``
``python -m train.generate back-translation --model opus-mt-fr --corpus FILE --output FILE``
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, Literal

from una_fast.command import Command, option, options_of
from una_fast.errors import InputError

USUAL: dict[str, Any] = {"prefix": "", "beams": 4, "max_length": 128}
# The models whose texts the paper trains with (appendix, "Paraphrasing" and "Back-translation"), with their authors'
# settings where these are not the usual ones. The paper does not give its search settings: PEGASUS has those of its
# page on the hub, and T5, whose page samples, searches with PEGASUS's beams.
PRESETS: dict[str, dict[str, Any]] = {
    "pegasus": {"model": ("tuner007/pegasus_paraphrase",), "beams": 10, "max_length": 60},
    "t5": {"model": ("Vamsi/T5_Paraphrase_Paws",), "prefix": "paraphrase: ", "beams": 10},
    "opus-mt-fr": {"model": ("Helsinki-NLP/opus-mt-en-fr", "Helsinki-NLP/opus-mt-fr-en")},
}
MODELS = {"paraphrase": "a seq2seq model", "back-translation": "two seq2seq models, there and back,"}
N_MODELS = {"paraphrase": 1, "back-translation": 2}


@dataclass(frozen=True)
class Job:
    """What is written."""

    kind: str = option(
        "kind of text to write for every sentence",
        None,
        choices={"paraphrase": "by one model", "back-translation": "into another language and back, by two models"},
        required=True,
        positional=True,
        metavar="KIND",
    )
    corpus: tuple[str, ...] = option("files of sentences, as training reads them", (), required=True, metavar="FILE")
    column: str = option("column of the sentences in a table", "text", metavar="NAME")
    output: str = option("file to write, a .txt with a line per sentence", "", required=True, metavar="FILE")
    model: tuple[str, ...] = option(
        "pegasus, t5 or opus-mt-fr, the paper's models; or a seq2seq model by hub name or folder, for "
        "back-translations two, there and back", (), metavar="NAME_OR_FOLDER",
    )  # fmt: skip
    prefix: str | None = option("text before each sentence, as T5 needs it; default: the preset's, else none", None)
    beams: int | None = option("beams of the search; default: the preset's, else 4", None, least=1, most=100)
    max_length: int | None = option("tokens of a sentence and its text; default: the preset's or 128", None, least=3)
    precision: Literal["fp32", "bf16"] = option("number format of the weights", "fp32")
    device: str = option("auto, cpu, cuda or cuda:N", "auto")
    batch_size: int | None = option("sentences per batch; default 32, on a GPU 256", None, least=1)


def read_job(values: dict[str, Any]) -> Job:
    """The job of a command line, from a value for every option, where None stands for the preset's.

    Raises:
        InputError: too few or too many models, or an output that is not a .txt.
    """
    kind, names = values["kind"], values["model"]
    preset = (PRESETS.get(names[0]) if len(names) == 1 else None) or {"model": names}
    if len(preset["model"]) != N_MODELS[kind]:
        known = ", ".join(name for name, row in PRESETS.items() if len(row["model"]) == N_MODELS[kind])
        given = f"--model {' '.join(names)}" if names else "--model is missing"
        raise InputError(f"{given}: a {kind} takes {known}, or {MODELS[kind]} by name or folder")
    if not values["output"].endswith(".txt"):
        raise InputError(f"--output {values['output']}: plain lines are written: give it a name that ends in .txt")
    given_values = {name: value for name, value in values.items() if value is not None}
    return Job(**USUAL | preset | given_values | {"model": preset["model"]})


def _run(values: dict[str, Any]) -> int:
    job = read_job(values)
    # imported late: --help and errors of the command line should not wait for torch
    from train.generation import write_output

    return write_output(job)


ABOUT = "Write a paraphrase or a back-translation of every sentence of a corpus, line by line."
main = Command("python -m train.generate", ABOUT, options_of(Job), _run, "generate", page="augmentations")

if __name__ == "__main__":
    sys.exit(main())
