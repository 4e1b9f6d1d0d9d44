"""Reads a model's files, from a folder or the Hugging Face hub: weights, tokenizer, and how embeddings are made.

sentence-transformers keeps the last in files of its own: modules.json lists what follows the encoder (Pooling,
Normalize), sentence_bert_config.json holds the maximum length, config_sentence_transformers.json the prompts and the
similarity. A bare encoder has none of these files.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from transformers import AutoConfig, AutoTokenizer
from transformers.utils import logging as hf_logging
from transformers.utils.hub import cached_file

from train.encoder.pooling import AUTO, DEFAULT_POOLING, OF_MODULES, POOLINGS
from una_fast.errors import InputError, first_line

HUB_NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")  # the form of a model's name on the hub
# names in the configurations of encoders: of BERT, DistilBERT, ModernBERT, GPT-2 and others
HIDDEN_DROPOUTS = ("hidden_dropout_prob", "dropout", "embedding_dropout", "mlp_dropout", "resid_pdrop", "embd_pdrop")
ATTENTION_DROPOUTS = ("attention_probs_dropout_prob", "attention_dropout", "attn_pdrop")
# kinds whose first token has the position after padding's
AFTER_PADDING = ("roberta", "camembert", "mpnet", "longformer")
LONGEST = 8192  # tokens of a text; a tokenizer saved without its limit says 10^30
LIST = "modules.json"
LENGTH = "sentence_bert_config.json"
SETTINGS = "config_sentence_transformers.json"
KINDS = ("Transformer", "Pooling", "Normalize")
PACKAGE = "sentence_transformers.models"  # where all versions of the library find the classes of modules
FLAGS = {  # keys of 1_Pooling/config.json up to version 5 of the library, which version 6 reads too
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}


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
        where = "in this folder" if is_folder else "of this name on the Hugging Face hub (is there a network?)"
        here = "" if is_folder else f", and there is no such folder (`hf download {name}` fetches a model)"
        raise InputError(f"model {name}: no {what} {where} that can be read{here}: {first_line(error)}") from error


def lacks_pooler(info: Mapping[str, Any]) -> bool:
    """Whether a checkpoint has no weights of a pooler, by what `from_pretrained` says of its loading."""
    return any(".pooler." in f".{key}" for key in info["missing_keys"])  # before transformers 5 as "bert.pooler."


def load_config(name: str, dropout: float, trust: bool = False) -> Any:
    """The encoder's configuration, with `dropout` in hidden states and attention.

    Raises:
        InputError: there is none, or it is of an encoder with a decoder, such as T5.
    """
    config = from_pretrained("configuration", AutoConfig, name, trust)
    check_encoder(name, config)
    for attribute in (*HIDDEN_DROPOUTS, *ATTENTION_DROPOUTS):
        if hasattr(config, attribute):
            setattr(config, attribute, dropout)
    return config


def check_encoder(name: str, config: Any) -> None:
    """Refuse an encoder with a decoder, such as T5."""
    if config.is_encoder_decoder:
        raise InputError(f"model {name}: {config.model_type} is an encoder with a decoder: give an encoder alone")


def positions_of(config: Any) -> int | None:
    """Most tokens of a text that an encoder has positions for; None where any number has, as in XLNet."""
    positions = getattr(config, "max_position_embeddings", None)
    if not positions or positions < 1:
        return None
    after_padding = any(kind in config.model_type for kind in AFTER_PADDING)
    return positions - (config.pad_token_id + 1) if after_padding else positions


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


@dataclass(frozen=True)
class Modules:
    """The embedding settings of a model: the steps after the backbone, and how texts are prepared."""

    pooling: str = DEFAULT_POOLING  # a name of POOLINGS
    include_prompt: bool = True  # the pooling includes the prompt's tokens
    normalize: bool = False  # embeddings are divided by their length
    max_length: int | None = None  # tokens; None if no file gives it
    lower_case: bool = False  # the library lower-cases texts before it tokenises
    settings: dict[str, Any] = field(default_factory=dict)  # of config_sentence_transformers.json: prompts, similarity
    declared: bool = False  # modules.json exists

    @property
    def prompt(self) -> str:
        """The default prompt, which sentence-transformers' encode puts before every text; "" if there is none."""
        return (self.settings.get("prompts") or {}).get(self.settings.get("default_prompt_name")) or ""

    def prepared(self, texts: Sequence[str]) -> list[str]:
        """The texts as they are tokenised: each with the prompt before it, and in lower case if `lower_case`."""
        whole = [self.prompt + text for text in texts]
        return [text.lower() for text in whole] if self.lower_case else whole

    def longest(self, tokenizer: Any, config: Any) -> int:
        """Most tokens of a text: of its folder, or else of its tokenizer, and as many as it has positions for."""
        return min(self.max_length or tokenizer.model_max_length, positions_of(config) or LONGEST, LONGEST)

    def write(self, folder: Path, config: Any, tokenizer: Any) -> None:
        """Write the files by which SentenceTransformer(folder) makes the same embeddings; config: the encoder's."""
        kinds = KINDS if self.normalize else KINDS[:2]
        paths = ["", *(f"{i}_{kind}" for i, kind in enumerate(kinds) if i)]
        listed = [
            {"idx": i, "name": str(i), "path": path, "type": f"{PACKAGE}.{kind}"}
            for i, (path, kind) in enumerate(zip(paths, kinds, strict=True))
        ]
        flags = {flag: mode == POOLINGS[self.pooling].in_modules for flag, mode in FLAGS.items()}
        pooling = {"word_embedding_dimension": config.hidden_size, **flags, "include_prompt": self.include_prompt}
        files: dict[str, Any] = {LIST: listed, f"{paths[1]}/config.json": pooling}
        files[LENGTH] = {"max_seq_length": self.longest(tokenizer, config), "do_lower_case": self.lower_case}
        if self.settings:
            files[SETTINGS] = self.settings
        (folder / paths[1]).mkdir()
        for name, content in files.items():
            (folder / name).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def read_modules(name: str, pooling: str = AUTO) -> Modules:
    """The embedding settings of a model, by its folder or hub name; raw [CLS] if it has no modules.json.

    pooling: one of POOLINGS, in place of the one that the files name, or "auto".

    Raises:
        InputError: a file that is not JSON, or "auto" for a module that is not supported here.
    """
    listed = _read(name, LIST)
    if listed is None:
        return Modules(pooling=DEFAULT_POOLING if pooling == AUTO else pooling)
    length, settings = _read(name, LENGTH) or {}, _read(name, SETTINGS) or {}
    kinds = {str(module.get("type", "")).rpartition(".")[2]: module for module in listed}
    config = {"pooling_mode": "cls"}
    if "Pooling" in kinds:
        config = _read(name, f"{kinds['Pooling'].get('path')}/config.json") or {}
    modes = config.get("pooling_mode") or [mode for flag, mode in FLAGS.items() if config.get(flag)] or "mean"
    mode = " and ".join(map(str, modes)) if isinstance(modes, list) else str(modes)
    modules = Modules(
        pooling=OF_MODULES.get(mode, DEFAULT_POOLING) if pooling == AUTO else pooling,
        include_prompt=bool(config.get("include_prompt", True)),
        normalize="Normalize" in kinds,
        max_length=length.get("max_seq_length") or None,
        lower_case=bool(length.get("do_lower_case")),
        settings=settings,
        declared=True,
    )
    unknown = [f"a module of type {kind or 'unknown'}" for kind in kinds if kind not in KINDS]
    unknown += [f"a pooling of {mode}"] if mode not in OF_MODULES else []
    if modules.prompt and not modules.include_prompt:
        unknown.append("a pooling that leaves out the tokens of the default prompt")
    if settings.get("truncate_dim"):
        unknown.append(f"a truncate_dim of {settings['truncate_dim']}")
    if pooling == AUTO and unknown:
        raise InputError(
            f"--pooling auto: {LIST} of the model lists {unknown[0]}, which is not supported here: "
            "give --pooling mean, or another one, to use the encoder without it"
        )
    return modules


def _read(name: str, file: str) -> Any:
    """The JSON value in a file of the model; None if there is no such file."""
    path = Path(name) / file
    if not Path(name).is_dir():
        names = ("gated_repo", "missing_entries", "connection_errors")
        path = Path(cached_file(name, file, **{f"_raise_exceptions_for_{reason}": False for reason in names}) or path)
    try:
        return json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"model {name}: {file} cannot be read: {error}") from None
