"""Reads a model's files, from a folder or the Hugging Face hub, with one sentence about files that cannot be read."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

from transformers import AutoConfig, AutoTokenizer
from transformers.utils import logging as hf_logging

from una_fast.errors import InputError

HUB_NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")  # the form of a model's name on the hub
# names of the two dropouts in the configurations of encoders
DROPOUT_NAMES = ("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout", "attention_dropout")


def quiet() -> None:
    """Silence transformers' progress bars and its notes on weights that are not used here."""
    hf_logging.disable_progress_bar()
    hf_logging.set_verbosity_error()
    logging.getLogger("transformers").setLevel(logging.ERROR)


def from_pretrained(what: str, kind: Any, name: str, trust: bool = False, **kwargs: Any) -> Any:
    """kind.from_pretrained(name), with an InputError for files that are missing or cannot be read.

    what: the name of these files in the message. trust: run Python code that comes with the model; without it, a model
    that needs such code is refused.
    """
    is_folder = Path(name).is_dir()
    try:
        return kind.from_pretrained(name, trust_remote_code=trust, **kwargs)
    except Exception as error:  # transformers raises a dozen types for files that are missing, cut short or wrong
        if "trust_remote_code" in str(error):
            raise InputError(
                f"model {name}: its {what} can be read only by Python code that comes with the model: read that code, "
                "and if it may run here, give --trust-remote-code where the command takes it (in Python: trust=True)"
            ) from error
        first_line = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        where = "in this folder" if is_folder else "of this name on the Hugging Face hub (is there a network?)"
        here = "" if is_folder else f", and there is no such folder (`hf download {name}` fetches a model)"
        raise InputError(f"model {name}: no {what} {where} that can be read{here}: {first_line}") from error


def load_config(name: str, dropout: float, trust: bool = False) -> Any:
    """The encoder's configuration, with `dropout` in hidden states and attention."""
    config = from_pretrained("configuration", AutoConfig, name, trust)
    for attribute in DROPOUT_NAMES:
        if hasattr(config, attribute):
            setattr(config, attribute, dropout)
    return config


def load_tokenizer(name: str, trust: bool = False) -> Any:
    """The fast tokenizer of an encoder; InputError where there is none that can pad."""
    folder = Path(name)
    files = ("tokenizer.json", "vocab.txt", "vocab.json", "sentencepiece.bpe.model", "spiece.model")
    if folder.is_dir() and not any((folder / file).is_file() for file in files):
        raise InputError(f"model {name}: the folder has no tokenizer: copy tokenizer.json of the model into it")
    tokenizer = from_pretrained("tokenizer", AutoTokenizer, name, trust)
    if tokenizer.pad_token_id is None or not isinstance(tokenizer.model_max_length, (int, float)):
        raise InputError(
            f"model {name}: its tokenizer has no padding token, or a model_max_length that is no number: "
            "mend its tokenizer_config.json"
        )
    return tokenizer


def check_embeddings(name: str, tokenizer: Any, trust: bool = False) -> None:
    """Refuse a tokenizer with more entries than the model has token embeddings."""
    entries, embeddings = len(tokenizer), from_pretrained("configuration", AutoConfig, name, trust).vocab_size
    if entries > embeddings:
        raise InputError(
            f"model {name}: its tokenizer has {entries:,} entries, and the model embeddings of {embeddings:,} tokens: "
            f"take the model's own tokenizer, or call model.resize_token_embeddings({entries}) and save the model"
        )
