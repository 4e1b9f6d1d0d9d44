"""The options that paraphrase and back-translation share, and the job, in which every option has its value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from train.config.options import option, options_of
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


def resolve_job(command: str, preset: Preset, values: dict[str, Any]) -> Job:
    """The job of a command's option values, by name; an option that was not given has the preset's value.

    Raises:
        InputError: no corpus, no output, or an output that is not a .txt.
    """
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
        **{name: values[name] for name in "corpus column output precision nproc device batch_tokens resume".split()},
    )
