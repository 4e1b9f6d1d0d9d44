"""The options of paraphrase and of back-translation, the models that they name, and the job that they make.

The presets are models whose texts the paper trains with (appendix, "Paraphrasing" and "Back-translation"); of the
paraphrases it reports results of the first. The paper does not give its search settings. Beams and lengths of PEGASUS
are as on the model's page on the hub; its network has 60 positions. The page of the T5 model shows sampling; here it
searches with PEGASUS's beams. For back-translation the paper goes to French and back with the OPUS-MT models of
Tiedemann and Thottingal (2020), whose configurations on the hub have 4 beams.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from train.config.options import Group, Option, options_of
from una_fast.errors import InputError

MAX_LENGTH = 128  # tokens of a sentence, unless a preset has another limit; a sentence of Wikipedia has 30
BEAMS = 4


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

FILES = Group("Input and output")
MODEL = Group("Model")
PREFIX, PAIR = Group("Prefix"), Group("Models of your own")
SEARCH = Group("How text is made", "By beam search without sampling: a sentence gives the same text each time.")
RUNNING = Group("Running", "Where and how the work is done. None of these changes the text.")


@dataclass(frozen=True)
class Options:
    """The options of `python -m train.generate`; a kind of text has some of their groups."""

    corpus: tuple[str, ...] = FILES.option(
        (),
        "files of sentences, of the kinds that training takes, in the order of its --corpus",
        role="source",
        metavar="FILE",
    )
    column: str = FILES.option("text", "column of the sentences in a table", metavar="NAME")
    output: str = FILES.option(
        "", "file to write, a .txt: line i is made from sentence i of the corpus", role="running", metavar="FILE"
    )
    model: str = MODEL.option(
        "",
        f"a preset of the paper's models: {' or '.join(PARAPHRASERS)} for paraphrases, {' or '.join(TRANSLATORS)} for "
        "back-translations; for paraphrases also any seq2seq model: its name on the Hugging Face hub, or its folder",
        role="source",
        metavar="NAME_OR_FOLDER",
    )
    prefix: str | None = PREFIX.option(
        None, "text to put before each sentence, as T5 models want it; default: the preset's, else none"
    )
    forward: str = PAIR.option(
        "",
        "model that translates into the other language: its name on the Hugging Face hub, or the folder that holds it",
        role="source",
        metavar="NAME_OR_FOLDER",
    )
    backward: str = PAIR.option("", "model that translates back", role="source", metavar="NAME_OR_FOLDER")
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
    nproc: int = RUNNING.option(
        1,
        "ranks that share the lines: one for each GPU, or processes that share the CPU's cores",
        least=1,
        role="running",
    )
    device: str = RUNNING.option("auto", "auto, cpu, cuda or cuda:N; auto: the GPUs if there are any", role="running")
    batch_tokens: int | None = RUNNING.option(
        None,
        "tokens of a batch's sentences, padding included, times beams; default 4096, on a GPU 32768",
        least=1,
        role="running",
    )
    resume: bool = RUNNING.option(False, "go on with what an earlier call left in OUTPUT.parts", role="call")


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


class TextKind(NamedTuple):
    """A kind of text. own: its options that no other kind has; choose: the preset that its option values name."""

    about: str
    own: Group
    choose: Callable[[dict[str, Any]], Preset]


TEXT_KINDS = {
    "paraphrase": TextKind(
        "Write a paraphrase of every sentence of a corpus, line by line, with a seq2seq model.", PREFIX, _paraphraser
    ),
    "back-translation": TextKind(
        "Translate every sentence of a corpus into another language and back, line by line, with two seq2seq models.",
        PAIR,
        _translators,
    ),
}


def options_for(kind: str) -> dict[str, Option]:
    """The options of a kind of text, by field name."""
    return options_of(Options, FILES, MODEL, TEXT_KINDS[kind].own, SEARCH, RUNNING)


@dataclass(frozen=True)
class Job(Options):
    """A command with a value for every option, and the models that it names."""

    command: str = ""
    models: tuple[str, ...] = ()
    prefix: str = ""
    beams: int = BEAMS
    max_source_length: int = MAX_LENGTH
    max_target_length: int = MAX_LENGTH

    def settings(self) -> dict[str, Any]:
        """The settings that change the text, which --resume must find unchanged, besides corpus and models."""
        names = [name for name, one in options_of(Options).items() if one.role == "result"]
        return {"command": self.command} | {name: getattr(self, name) for name in names}


def resolve_job(command: str, values: dict[str, Any]) -> Job:
    """The job of a command's option values, by name; an option that was not given has the preset's value.

    Raises:
        InputError: no corpus, model or output, or an output that is not a .txt.
    """
    preset = TEXT_KINDS[command].choose(values)
    for name in ("corpus", "output"):
        if not values[name]:
            raise InputError(f"--{name} is missing: give the {options_of(Options)[name].help.split(',')[0]}")
    if not values["output"].endswith(".txt"):
        raise InputError(f"--output {values['output']}: plain lines are written: give it a name that ends in .txt")
    usual: dict[str, Any] = {"prefix": preset.prefix, "beams": preset.beams}
    usual |= dict.fromkeys(("max_source_length", "max_target_length"), preset.max_length)
    given = {name: value for name, value in values.items() if value is not None}
    return Job(**usual | given | {"corpus": tuple(values["corpus"])}, command=command, models=preset.models)
