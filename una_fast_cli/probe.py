"""`una-fast probe --model M --corpus FILE`: how near an encoder puts near-misses of one's own text."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from train.config.command import Parser
from train.config.options import option, options_of
from train.config.run import FILES, WORDS, Run, reading_arguments
from una_fast.errors import InputError, counted


@dataclass(frozen=True)
class Asked:
    """Encoder and text."""

    model: str = option("", "encoder that sentence-transformers loads", required=True, metavar="NAME_OR_FOLDER")
    corpus: str = option("", "file of your text, one sentence a line or row", required=True, metavar="FILE")
    n: int = option(2000, "sentences of the sample", least=2)
    share: float = option(0.05, "share of near-misses that the printed threshold may let pass", above=0, below=1)
    seed: int = option(42, "seed of the sample and of the near-misses", least=0)
    json: str = option("", "file for all figures", metavar="FILE")


def main(arguments: Sequence[str] | None = None, prog: str = "una-fast probe") -> int:
    """Print how near the encoder puts near-misses of the text; the exit code."""
    about = "Show how near an encoder puts sentences of your text and the same with one important word replaced."
    values = Parser(prog, about, options_of(Asked) | options_of(Run, FILES, WORDS)).checked(arguments)
    from train.record.folder import PROBED, check_json, write_json

    about = "\n".join((PROBED, values["model"], values["corpus"]))  # figures of other text are not replaced
    if values["json"]:
        check_json(Path(values["json"]), about)
    import una_fast  # here, so that --help and errors of the command line do not wait for torch

    index = una_fast.build_index(
        Path(values["corpus"]),
        word_tokenizer=values["word_tokenizer"],
        lowercase=values["lowercase"],
        **reading_arguments(values),
    )
    found = una_fast.probe(load_encode(values["model"]), index, values["n"], values["share"], values["seed"])
    sys.stdout.write(f"{values['model']}, {counted(len(found.usual), 'sentence')} of {values['corpus']}\n{found}\n")
    if values["json"]:
        source = {"model": values["model"], "corpus": values["corpus"]}
        write_json(Path(values["json"]), source | found.to_dict(), about)
    return 0


def load_encode(name: str) -> Callable[[list[str]], Any]:
    """The function from texts to embeddings of an encoder that sentence-transformers loads.

    Raises:
        InputError: sentence-transformers is not installed, or cannot load the encoder.
    """
    from una_fast.imports import import_extra

    kind = import_extra("sentence_transformers").SentenceTransformer
    try:
        return kind(name).encode
    except Exception as error:  # it raises exceptions of many types for files that are missing or damaged
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise InputError(f"model {name}: sentence-transformers cannot load it: {reason}") from error
