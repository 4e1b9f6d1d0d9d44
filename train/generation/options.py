"""The options of `python -m train.generate`, the models that they name, and the job of a command line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from train.config.command import option, options_of
from una_fast.errors import InputError

MAX_LENGTH = 128  # tokens of a sentence, unless a preset has another limit; a sentence of Wikipedia has 30
BEAMS = 4
USUAL: dict[str, Any] = {"prefix": "", "beams": BEAMS, "max_source_length": MAX_LENGTH, "max_target_length": MAX_LENGTH}
# The models whose texts the paper trains with (appendix, "Paraphrasing" and "Back-translation"), each of which reads
# the output of the one before, with the settings of their authors where these are not the usual ones. The paper does
# not give its search settings: beams and lengths of PEGASUS are as on its page on the hub, where its network has 60
# positions; the page of the T5 model shows sampling, and here it searches with PEGASUS's beams; the configurations of
# OPUS-MT (Tiedemann and Thottingal 2020) have 4 beams.
PRESETS: dict[str, dict[str, Any]] = {
    "pegasus": {
        "model": ("tuner007/pegasus_paraphrase",),
        "beams": 10,
        "max_source_length": 60,
        "max_target_length": 60,
    },
    "t5": {"model": ("Vamsi/T5_Paraphrase_Paws",), "prefix": "paraphrase: ", "beams": 10},
    "opus-mt-fr": {"model": ("Helsinki-NLP/opus-mt-en-fr", "Helsinki-NLP/opus-mt-fr-en")},
}
N_MODELS = {"paraphrase": 1, "back-translation": 2}  # kinds of text, and how many models each takes
MODELS = {"paraphrase": "a seq2seq model", "back-translation": "two seq2seq models, there and back,"}


@dataclass(frozen=True)
class Job:
    """The options of `python -m train.generate`."""

    kind: str = option(
        None,
        "Input and output",
        choices={"paraphrase": "by one model", "back-translation": "into another language and back, by two"},
        required=True,
        positional=True,
        metavar="KIND",
    )
    """kind of text that is written for every sentence"""
    corpus: tuple[str, ...] = option((), role="source", required=True, metavar="FILE")
    """files of sentences, of the kinds that training takes, in the order of its --corpus"""
    column: str = option("text", metavar="NAME")
    """column of the sentences in a table"""
    output: str = option("", role="running", required=True, metavar="FILE")
    """file to write, a .txt: line i is made from sentence i of the corpus"""
    model: tuple[str, ...] = option((), role="source", metavar="NAME_OR_FOLDER")
    """pegasus or t5 for paraphrases, opus-mt-fr for back-translations, which are the paper's models; or seq2seq models
    by name on the Hugging Face hub or by folder: for back-translations two, there and back"""
    prefix: str | None = option(None, "How text is made (by beam search: a sentence gives the same text each time)")
    """text to put before each sentence, as T5 models want it; default: the preset's, else none"""
    beams: int | None = option(None, least=1, most=100)
    """beams of the search; default: the preset's, else 4"""
    max_source_length: int | None = option(None, least=3)
    """tokens of a sentence; longer ones are cut; default: the preset's, else 128"""
    max_target_length: int | None = option(None, least=3)
    """tokens that are written at most; default: the preset's, else 128"""
    precision: Literal["fp32", "bf16"] = option("fp32")
    """number format of the weights and of the arithmetic"""
    device: str = option("auto", "Running (none of these changes the text)", role="running")
    """auto, cpu, cuda or cuda:N; auto: the first GPU if there is one"""
    batch_tokens: int | None = option(None, least=1, role="running")
    """tokens of a batch's sentences, padding included, times beams; default 4096, on a GPU 32768"""
    resume: bool = option(False, role="call")
    """go on with what an earlier call left in OUTPUT.part"""

    def settings(self) -> dict[str, Any]:
        """The settings that change the text, which --resume must find unchanged, besides corpus and models."""
        return {name: getattr(self, name) for name, row in OPTIONS.items() if row.role == "result"}


OPTIONS = options_of(Job)


def read_job(values: dict[str, Any]) -> Job:
    """The job of a command line, from a value for every option, where None stands for the preset's.

    Raises:
        InputError: too few or too many models, or an output that is no .txt.
    """
    kind, names = values["kind"], values["model"]
    preset = PRESETS.get(names[0]) if len(names) == 1 else None
    preset = preset or {"model": names}
    if len(preset["model"]) != N_MODELS[kind]:
        known = ", ".join(name for name, row in PRESETS.items() if len(row["model"]) == N_MODELS[kind])
        given = f"--model {' '.join(names)}" if names else "--model is missing"
        raise InputError(f"{given}: a {kind} takes {known}, or {MODELS[kind]} by name or folder")
    if not values["output"].endswith(".txt"):
        raise InputError(f"--output {values['output']}: plain lines are written: give it a name that ends in .txt")
    given_values = {name: value for name, value in values.items() if value is not None}
    return Job(**USUAL | preset | given_values | {"model": preset["model"]})
