"""The options of paraphrase and of back-translation, the models that they name, and the job with a value for each.

The presets are models whose texts the paper trains with (appendix, "Paraphrasing" and "Back-translation"); of the
paraphrases it reports results of the first. The paper does not give its search settings. Beams and lengths of PEGASUS
are as on the model's page on the hub; its network has 60 positions. The page of the T5 model shows sampling; here it
searches with PEGASUS's beams. For back-translation the paper goes to French and back with the OPUS-MT models of
Tiedemann and Thottingal (2020), whose configurations on the hub have 4 beams.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from train.config.options import Option, option, options_of
from una_fast.errors import InputError

MAX_LENGTH = 128  # tokens of a sentence, unless a preset has another limit; a sentence of Wikipedia has 30
BEAMS = 4


@dataclass(frozen=True)
class Text:
    """Input and output."""

    corpus: tuple[str, ...] = option(
        (), "files of sentences, of the kinds that training takes, in the order of its --corpus", role="source",
        metavar="FILE",
    )  # fmt: skip
    column: str = option("text", "column of the sentences in a table", metavar="NAME")
    output: str = option(
        "", "file to write, a .txt: line i is made from sentence i of the corpus", role="running", metavar="FILE"
    )


@dataclass(frozen=True)
class Search:
    """How text is made.

    By beam search without sampling: a sentence gives the same text each time.
    """

    beams: int | None = option(None, f"beams of the search; default: the preset's, else {BEAMS}", least=1, most=100)
    max_source_length: int | None = option(
        None, f"tokens of a sentence; longer ones are cut; default: the preset's, else {MAX_LENGTH}", least=3
    )
    max_target_length: int | None = option(
        None, f"tokens that are written at most; default: the preset's, else {MAX_LENGTH}", least=3
    )
    precision: Literal["fp32", "bf16"] = option("fp32", "number format of the weights and of the arithmetic")


@dataclass(frozen=True)
class Running:
    """Running.

    Where and how the work is done. None of these changes the text.
    """

    nproc: int = option(
        1, "ranks that share the lines: one for each GPU, or processes that share the CPU's cores", least=1,
        role="running",
    )  # fmt: skip
    device: str = option("auto", "auto, cpu, cuda or cuda:N; auto: the GPUs if there are any", role="running")
    batch_tokens: int | None = option(
        None, "tokens of a batch's sentences, padding included, times beams; default 4096, on a GPU 32768", least=1,
        role="running",
    )  # fmt: skip
    resume: bool = option(False, "go on with what an earlier call left in OUTPUT.parts", role="call")


@dataclass(frozen=True)
class Preset:
    """Models by hub name, each of which reads the output of the one before, and the settings that their authors use."""

    models: tuple[str, ...]
    prefix: str = ""  # before each sentence
    beams: int = BEAMS
    max_length: int = MAX_LENGTH


PARAPHRASERS = {
    "pegasus": Preset(("tuner007/pegasus_paraphrase",), beams=10, max_length=60),
    "t5": Preset(("Vamsi/T5_Paraphrase_Paws",), prefix="paraphrase: ", beams=10),
}
TRANSLATORS = {"opus-mt-fr": Preset(("Helsinki-NLP/opus-mt-en-fr", "Helsinki-NLP/opus-mt-fr-en"))}


@dataclass(frozen=True)
class Paraphraser:
    """Model."""

    model: str = option(
        "",
        f"{' or '.join(PARAPHRASERS)} (the paper's models, as presets), or any seq2seq model: its name on the Hugging "
        "Face hub, or the folder that holds it",
        role="source",
        metavar="NAME_OR_FOLDER",
    )
    prefix: str | None = option(
        None, "text to put before each sentence, as T5 models want it; default: the preset's, else none"
    )


@dataclass(frozen=True)
class Translators:
    """Models."""

    model: str = option(
        "", f"a preset: {', '.join(TRANSLATORS)} (the paper's two models)", role="source", metavar="NAME"
    )
    forward: str = option(
        "",
        "model that translates into the other language: its name on the Hugging Face hub, or the folder that holds it",
        role="source",
        metavar="NAME_OR_FOLDER",
    )
    backward: str = option("", "model that translates back", role="source", metavar="NAME_OR_FOLDER")


def _paraphraser(values: dict[str, Any]) -> Preset:
    """The model that the option values name, as a preset."""
    if not values["model"]:
        raise InputError(
            f"--model is missing: give {', '.join(PARAPHRASERS)}, or the name or folder of a seq2seq model"
        )
    return PARAPHRASERS.get(values["model"]) or Preset((values["model"],))


def _translators(values: dict[str, Any]) -> Preset:
    """The two models that the option values name, as a preset."""
    name, pair = values["model"], (values["forward"], values["backward"])
    if name and not any(pair) and name in TRANSLATORS:
        return TRANSLATORS[name]
    if name:
        raise InputError(
            f"--model {name}: back-translation takes two models: give --forward and --backward, or --model alone as "
            f"one of the presets {', '.join(TRANSLATORS)}"
        )
    if not all(pair):
        raise InputError(f"--forward and --backward: give both, or --model with one of {', '.join(TRANSLATORS)}")
    return Preset(pair)


@dataclass(frozen=True)
class TextKind:
    """A kind of text. models: its options for models; choose: the preset that the values of these options name."""

    about: str
    models: type
    choose: Callable[[dict[str, Any]], Preset]


TEXT_KINDS = {
    "paraphrase": TextKind(
        "Write a paraphrase of every sentence of a corpus, line by line, with a seq2seq model.",
        Paraphraser,
        _paraphraser,
    ),
    "back-translation": TextKind(
        "Translate every sentence of a corpus into another language and back, line by line, with two seq2seq models.",
        Translators,
        _translators,
    ),
}


def options_for(kind: str) -> dict[str, Option]:
    """The options of a kind of text, by field name."""
    return options_of(Text) | options_of(TEXT_KINDS[kind].models) | options_of(Search) | options_of(Running)


@dataclass(frozen=True)
class Job:
    """A command with all its option values. The fields are the options of the same names."""

    command: str
    models: tuple[str, ...]
    prefix: str
    corpus: tuple[str, ...]
    column: str
    output: str
    beams: int
    max_source_length: int
    max_target_length: int
    precision: Literal["fp32", "bf16"]
    nproc: int
    device: str
    batch_tokens: int | None
    resume: bool

    def settings(self) -> dict[str, Any]:
        """The settings that change the text, which --resume must find unchanged, besides corpus and models."""
        names = [name for group in (Text, Search) for name, one in options_of(group).items() if one.role == "result"]
        return {"command": self.command, "prefix": self.prefix} | {name: getattr(self, name) for name in names}


def resolve_job(command: str, values: dict[str, Any]) -> Job:
    """The job of a command's option values, by name; an option that was not given has the preset's value.

    Raises:
        InputError: no corpus, model or output, or an output that is not a .txt.
    """
    preset = TEXT_KINDS[command].choose(values)
    for name in ("corpus", "output"):
        if not values[name]:
            raise InputError(f"--{name} is missing: give the {options_of(Text)[name].help.split(',')[0]}")
    if not values["output"].endswith(".txt"):
        raise InputError(f"--output {values['output']}: plain lines are written: give it a name that ends in .txt")
    prefix = values.get("prefix")
    return Job(
        command=command,
        models=preset.models,
        prefix=preset.prefix if prefix is None else prefix,
        beams=values["beams"] or preset.beams,
        max_source_length=values["max_source_length"] or preset.max_length,
        max_target_length=values["max_target_length"] or preset.max_length,
        corpus=tuple(values["corpus"]),
        **{name: values[name] for name in "column output precision nproc device batch_tokens resume".split()},
    )
