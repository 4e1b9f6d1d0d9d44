"""Write a paraphrase or a back-translation of each sentence of a corpus, for `train.ddp --paraphrases`.

``python -m train.generate paraphrase --model pegasus --corpus FILE --output FILE``
``python -m train.generate back-translation --model opus-mt-fr --corpus FILE --output FILE``
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from una_fast.command import Command, make_options, option
from una_fast.errors import InputError
from una_fast.options import Files

# The models of the paper's appendix. The paper does not give its search settings: PEGASUS's come from its page on the
# hub; T5's page samples instead, so T5 gets PEGASUS's beams.
PRESETS: dict[str, dict[str, Any]] = {
    "pegasus": {"model": ("tuner007/pegasus_paraphrase",), "beams": 10, "max_length": 60},
    "t5": {"model": ("Vamsi/T5_Paraphrase_Paws",), "prefix": "paraphrase: ", "beams": 10},
    "opus-mt-fr": {"model": ("Helsinki-NLP/opus-mt-en-fr", "Helsinki-NLP/opus-mt-fr-en")},
}
MODELS = {"paraphrase": "a seq2seq model", "back-translation": "two seq2seq models, there and back,"}
N_MODELS = {"paraphrase": 1, "back-translation": 2}


@dataclass(frozen=True)
class Job(Files):
    """The options of `python -m train.generate`."""

    kind: str = option(
        "kind of text to write for every sentence", None,
        choices={"paraphrase": "by one model", "back-translation": "into another language and back, by two models"},
        required=True, positional=True, metavar="KIND",
    )  # fmt: skip
    corpus: tuple[str, ...] = option(
        "files of sentences, in any format of train.ddp", (), required=True, metavar="FILE"
    )
    output: str = option("file to write, a .txt with one line per sentence", "", required=True, metavar="FILE")
    model: tuple[str, ...] = option(
        "one of the paper's models, pegasus, t5 or opus-mt-fr; or a seq2seq model by hub name or folder, and for "
        "back-translations a second one for the way back", (), metavar="NAME_OR_FOLDER",
    )  # fmt: skip
    prefix: str = option("text to put before each sentence, as T5 models need; t5 sets it", "")
    beams: int = option("number of beams in beam search; pegasus and t5 set 10", 4, least=1, most=100)
    max_length: int = option(
        "maximum tokens of a sentence, and of the text written for it; pegasus sets 60", 128, least=3
    )
    precision: Literal["fp32", "bf16"] = option("number format of the weights", "fp32")
    device: str = option("auto, cpu, cuda or cuda:N", "auto")
    batch_size: int | None = option("sentences per batch; default 32, on a GPU 256", None, least=1)


def read_job(given: Mapping[str, Any]) -> Job:
    """Make a job from the given option values. A preset of --model, then defaults, fill the missing ones."""
    names = given.get("model", ())
    preset = PRESETS.get(" ".join(names), {"model": names})
    job = make_options(Job, {**preset, **given, "model": preset["model"]})
    if len(job.model) != N_MODELS[job.kind]:
        known = ", ".join(name for name, row in PRESETS.items() if len(row["model"]) == N_MODELS[job.kind])
        wrong = f"--model {' '.join(names)}" if names else "--model is missing"
        raise InputError(f"{wrong}: a {job.kind} needs {known}, or {MODELS[job.kind]} by name or folder")
    if not job.output.endswith(".txt"):
        raise InputError(f"--output {job.output}: give it a name that ends in .txt, because the file has plain lines")
    return job


def _run(job: Job) -> int:
    from train.generation import write_output  # imported late: --help and errors should not wait for torch

    return write_output(job)


ABOUT = "Write a paraphrase or a back-translation of every sentence of a corpus, one per line."
main = Command("python -m train.generate", ABOUT, Job, _run, make=read_job, extra="generate", page="augmentations")

if __name__ == "__main__":
    sys.exit(main())
