"""The options of `python -m train.generate`, the models that they name, and the job of a command line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from train.config.command import Parser, first_word
from train.config.options import Group, options_of
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
KINDS = {  # what each kind of text is, and how many models it takes
    "paraphrase": ("Write a paraphrase of every sentence of a corpus, line by line, with a seq2seq model.", 1),
    "back-translation": ("Translate every sentence of a corpus into another language and back, line by line.", 2),
}
FILES = Group("Input and output")
SEARCH = Group("How text is made", "By beam search without sampling: a sentence gives the same text each time.")
RUNNING = Group("Running", "Where and how the work is done. None of these changes the text.", "running")


@dataclass(frozen=True)
class Job:
    """The options of `python -m train.generate`."""

    corpus: tuple[str, ...] = FILES.option(
        (),
        "files of sentences, of the kinds that training takes, in the order of its --corpus",
        required=True,
        metavar="FILE",
    )
    column: str = FILES.option("text", "column of the sentences in a table", metavar="NAME")
    output: str = FILES.option(
        "",
        "file to write, a .txt: line i is made from sentence i of the corpus",
        role="running",
        required=True,
        metavar="FILE",
    )
    model: tuple[str, ...] = FILES.option(
        (),
        "pegasus or t5 for paraphrases, opus-mt-fr for back-translations, which are the paper's models; or seq2seq "
        "models by name on the Hugging Face hub or by folder: for back-translations two, there and back",
        metavar="NAME_OR_FOLDER",
    )
    prefix: str | None = SEARCH.option(
        None, "text to put before each sentence, as T5 models want it; default: the preset's, else none"
    )
    beams: int | None = SEARCH.option(
        None, f"beams of the search; default: the preset's, else {BEAMS}", least=1, most=100
    )
    max_source_length: int | None = SEARCH.option(
        None, f"tokens of a sentence; longer ones are cut; default: the preset's, else {MAX_LENGTH}", least=3
    )
    max_target_length: int | None = SEARCH.option(
        None, f"tokens that are written at most; default: the preset's, else {MAX_LENGTH}", least=3
    )
    precision: Literal["fp32", "bf16"] = SEARCH.option("fp32", "number format of the weights and of the arithmetic")
    device: str = RUNNING.option("auto", "auto, cpu, cuda or cuda:N; auto: the first GPU if there is one")
    batch_tokens: int | None = RUNNING.option(
        None, "tokens of a batch's sentences, padding included, times beams; default 4096, on a GPU 32768", least=1
    )
    resume: bool = RUNNING.option(False, "go on with what an earlier call left in OUTPUT.part", role="call")

    def settings(self) -> dict[str, Any]:
        """The settings that change the text, which --resume must find unchanged, besides corpus and models."""
        names = [name for name, one in OPTIONS.items() if one.role == "result" and name not in ("corpus", "model")]
        return {name: getattr(self, name) for name in names}


OPTIONS = options_of(Job)


def read_job(words: list[str], prog: str) -> Job:
    """The job of a command line, with a value for every option.

    Raises:
        InputError: no such kind of text, an unknown option, a value that is missing or out of range.
    """
    kind = first_word(words, prog, "kind", {name: about for name, (about, _) in KINDS.items()})
    about, n_models = KINDS[kind]
    values = Parser(f"{prog} {kind}", about, OPTIONS).checked(words[1:])
    names = tuple(values["model"])
    preset = PRESETS.get(names[0]) if len(names) == 1 else None
    preset = preset or {"model": names}
    if len(preset["model"]) != n_models:
        known = ", ".join(name for name, one in PRESETS.items() if len(one["model"]) == n_models)
        given = f"--model {' '.join(names)}" if names else "--model is missing"
        wanted = "the name or folder of a seq2seq model" if n_models == 1 else "two seq2seq models, there and back"
        raise InputError(f"{given}: a {kind} takes {known}, or {wanted}")
    if not values["output"].endswith(".txt"):
        raise InputError(f"--output {values['output']}: plain lines are written: give it a name that ends in .txt")
    given_values = {name: value for name, value in values.items() if value is not None}
    return Job(**USUAL | preset | given_values | {"corpus": tuple(values["corpus"]), "model": preset["model"]})
