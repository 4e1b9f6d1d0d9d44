"""`una-fast probe --model M --corpus FILE`: how near an encoder puts near-misses of one's own text."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from train.config.command import Command, option, options_of
from train.config.run import FILES, WORDS, Run, reading_arguments
from una_fast.errors import InputError, counted, first_line
from una_fast.imports import import_extra


@dataclass(frozen=True)
class Probe:
    """Encoder and text."""

    model: str = option("", required=True, metavar="NAME_OR_FOLDER")
    """encoder that sentence-transformers loads"""
    corpus: str = option("", required=True, metavar="FILE")
    """file of your text, one sentence a line or row"""
    n: int = option(2000, least=2)
    """sentences of the sample"""
    share: float = option(0.05, above=0, below=1)
    """share of near-misses that the printed threshold may let pass"""
    seed: int = option(42, least=0)
    """seed of the sample and of the near-misses"""
    json: str = option("", metavar="FILE")
    """file for all figures"""


def _probe(values: dict[str, Any]) -> None:
    import una_fast  # here, so that --help and errors of the command line do not wait for torch
    from train.record.folder import read_object, write_json

    model, corpus, file = values["model"], values["corpus"], values["json"] and Path(values["json"])
    source = {"model": model, "corpus": corpus}
    if file and file.exists() and not source.items() <= read_object(file).items():
        raise InputError(f"--json {file}: holds something else than figures of this text: choose another name")
    words = {"word_tokenizer": values["word_tokenizer"], "lowercase": values["lowercase"]}
    index = una_fast.build_index(Path(corpus), **words, **reading_arguments(values))
    probe = una_fast.probe(load_encode(model), index, values["n"], values["share"], values["seed"])
    sys.stdout.write(f"{model}, {counted(len(probe.usual), 'sentence')} of {corpus}\n{probe}\n")
    if file:
        write_json(file, source | probe.to_dict())


def load_encode(name: str) -> Callable[[list[str]], Any]:
    """The function from texts to embeddings of an encoder that sentence-transformers loads.

    Raises:
        InputError: sentence-transformers is not installed, or cannot load the encoder.
    """
    kind = import_extra("sentence_transformers").SentenceTransformer
    from transformers import PreTrainedModel

    from train.encoder.pretrained import load_pretrained, quiet

    quiet()
    try:
        model = kind(name)
        network = next((module for module in model.modules() if isinstance(module, PreTrainedModel)), None)
        if network and Path(name).is_dir() and not network.config.is_encoder_decoder:
            # sentence-transformers fills in random weights where a checkpoint has other names
            network.load_state_dict(load_pretrained(str(network.name_or_path)).network.state_dict(), strict=False)
        return model.encode
    except InputError:
        raise
    except Exception as error:  # it raises exceptions of many types for files that are missing or damaged
        raise InputError(f"model {name}: sentence-transformers cannot load it: {first_line(error)}") from error


main = Command(
    "una-fast probe",
    "Show how near an encoder puts sentences of your text and the same with one important word replaced.",
    options_of(Probe) | options_of(Run, FILES, WORDS),
    _probe,
)
