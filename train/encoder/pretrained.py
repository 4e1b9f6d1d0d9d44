"""Loads a model from a folder or the Hugging Face hub: weights, configuration, tokenizer and embedding settings."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from inspect import signature
from pathlib import Path
from typing import Any, cast

import torch
from transformers import AutoConfig, AutoModel, AutoTokenizer
from transformers.modeling_utils import load_state_dict
from transformers.utils import logging as hf_logging
from transformers.utils.hub import cached_file

from train.encoder.pooling import AUTO, DEFAULT_POOLING, OF_MODULES, POOLINGS
from una_fast.errors import InputError, first_line, warn_user

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}  # by --precision
WRAPPED = re.compile(r"(?:(?:module|_orig_mod)\.)+")  # prefixes that DDP and torch.compile add to the names of weights
# attributes that set dropouts in the configurations of BERT, DistilBERT, ModernBERT, GPT-2 and others
HIDDEN_DROPOUTS = ("hidden_dropout_prob", "dropout", "embedding_dropout", "mlp_dropout", "resid_pdrop", "embd_pdrop")
DROPOUTS = (*HIDDEN_DROPOUTS, "attention_probs_dropout_prob", "attention_dropout", "attn_pdrop")
AFTER_PADDING = ("roberta", "camembert", "mpnet", "longformer")  # model types whose positions start at pad_token_id + 1
TOKENIZERS = ("tokenizer.json", "vocab.txt", "vocab.json", "sentencepiece.bpe.model", "spiece.model")
LEAST = 3  # the smallest valid token limit: one token and two special ones
LONGEST = 8192  # the largest token limit, because a tokenizer without a limit reports 10^30
ABSENT = ("gated_repo", "missing_entries", "connection_errors")  # reasons for which a file counts as absent
# files of sentence-transformers
LIST = "modules.json"  # what follows the encoder: Pooling, Normalize
LENGTH = "sentence_bert_config.json"
SETTINGS = "config_sentence_transformers.json"  # prompts and similarity
FOLDERS = {"Transformer": "", "Pooling": "1_Pooling", "Normalize": "2_Normalize"}  # type of a module -> its folder
ROUTER = "router_config.json"
TRUSTED = "sentence_transformers.", "torch.nn."  # packages whose classes these files may name
IMPORT_PATH = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)+")
PACKAGE = "sentence_transformers.models"  # every version of the library can import the module types from here
TYPES: dict[str, Any] = {  # valid types of the values in these files
    "type": str, "path": str, "max_seq_length": int, "do_lower_case": (bool, int), "prompts": dict,
    "default_prompt_name": str, "truncate_dim": int, "include_prompt": (bool, int),
}  # fmt: skip
FLAGS = {  # old keys of 1_Pooling/config.json, which version 6 of the library still reads -> values of pooling_mode
    "pooling_mode_cls_token": "cls", "pooling_mode_mean_tokens": "mean", "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens", "pooling_mode_lasttoken": "lasttoken",
    "pooling_mode_weightedmean_tokens": "weightedmean",
}  # fmt: skip


def quiet() -> None:
    """Silence transformers' progress bars and its warnings about unused weights."""
    hf_logging.disable_progress_bar()
    hf_logging.set_verbosity_error()


def from_pretrained(what: str, kind: Any, name: str, trust: bool = False, **kwargs: Any) -> Any:
    """Call kind.from_pretrained(name), and turn any exception into an InputError that says what to do.

    what: what the message calls the files, such as "weights". trust: run Python code that comes with the model.
    """
    try:
        return kind.from_pretrained(None if "state_dict" in kwargs else name, trust_remote_code=trust, **kwargs)
    except Exception as error:  # transformers raises a dozen types for files that are missing, truncated or wrong
        if "trust_remote_code" in str(error):
            said = (
                f"its {what} can be read only by Python code that comes with the model: read that code, and if it may "
                "run here, give --trust-remote-code if the command has this option (in Python: trust=True)"
            )
        elif Path(name).is_dir():
            said = f"this folder contains no readable {what}: {first_line(error)}"
        else:
            said = (
                f"no readable {what} of this name on the Hugging Face hub (is there a network connection?), and no "
                f"such folder (`hf download {name}` fetches a model): {first_line(error)}"
            )
        raise InputError(f"model {name}: {said}") from error


def best_of_run(name: str) -> str:
    """Return `name`/best if `name` is the folder of a training run, else ""."""
    folder = Path(name)
    is_run = (folder / "best/config.json").is_file() and not (folder / "config.json").exists()
    return str(folder / "best") if is_run else ""


def refuse_run(name: str) -> None:
    """Raise InputError if `name` is the folder of a training run, whose encoder is in best/."""
    if best := best_of_run(name):
        raise InputError(f"model {name}: is the folder of a training run, not of an encoder: give {best}")


def load_pretrained(name: str, config: Any = None, trust: bool = False) -> tuple[Any, bool]:
    """Load a model. Remove its pooler if the checkpoint has none. Return the model, and whether it has a pooler.

    Prefixes that torch.compile and DDP add to the names of weights are removed, with a warning. Raises InputError if
    encoder weights are missing, unexpected or have wrong shapes.
    """
    config = config or load_config(name, None, trust)
    options = {"config": config, "output_loading_info": True, "ignore_mismatched_sizes": True}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)  # for weights that the checkpoint lacks
        network, info = from_pretrained("weights", AutoModel, name, trust, **options)
        if prefixes := {found[0] for found in map(WRAPPED.match, info["unexpected_keys"]) if found}:
            named = " and ".join(sorted(prefixes))
            warn_user(f"model {name}: removed {named}, which torch.compile or DDP added, from the names of its weights")
            folder = Path(cast(str, cached_file(name, "config.json"))).parent
            files = [*folder.glob("model*.safetensors")] or folder.glob("pytorch_model*.bin")
            weights = {WRAPPED.sub("", key): value for file in files for key, value in load_state_dict(file).items()}
            network, info = from_pretrained("weights", type(network), name, state_dict=weights, **options)
    prefix = f"{network.base_model_prefix}."
    parts = {key.partition(".")[0] for key in network.state_dict()} - {"pooler"}
    for what, keys in (
        ("lacks", info["missing_keys"]),
        ("has other shapes than its config.json for", [key for key, *_ in info["mismatched_keys"]]),
        ("has weights that the model of its config.json lacks:", info["unexpected_keys"]),
    ):
        if keys := [key for key in sorted(keys) if key.removeprefix(prefix).partition(".")[0] in parts]:
            named = ", ".join(keys[:3]) + f" and {len(keys) - 3:,} more" * (len(keys) > 3)
            raise InputError(f"model {name}: the checkpoint {what} {named}: save the model again with its config")
    has_pooler = getattr(network, "pooler", None) is not None
    has_pooler &= not any(".pooler." in f".{key}" for key in info["missing_keys"])
    if not has_pooler and "add_pooling_layer" in signature(type(network)).parameters:
        network.pooler = None  # in best/, a random pooler would look like a trained one
    return network, has_pooler


def load_config(name: str, dropout: float | None, trust: bool = False) -> Any:
    """Load an encoder's configuration. Set all its dropout probabilities to `dropout`, unless that is None."""
    refuse_run(name)
    config = from_pretrained("configuration", AutoConfig, name, trust)
    if config.is_encoder_decoder:
        raise InputError(f"model {name}: {config.model_type} is an encoder with a decoder: give an encoder-only model")
    config.return_dict, config.chunk_size_feed_forward = True, 0  # read outputs by name; accept texts of any length
    for attribute in DROPOUTS:
        if dropout is not None and hasattr(config, attribute):
            setattr(config, attribute, dropout)
    return config


def positions_of(config: Any) -> int | None:
    """Return the largest number of tokens that an encoder accepts; None if it has no limit, as in XLNet."""
    positions = getattr(config, "max_position_embeddings", None)
    if not positions or positions < 1:
        return None
    if not any(kind in config.model_type for kind in AFTER_PADDING):
        return positions
    if config.pad_token_id is None:
        raise InputError(f"model of type {config.model_type}: its config.json has no pad_token_id: add it")
    return positions - (config.pad_token_id + 1)


def load_tokenizer(name: str, trust: bool = False, config: Any = None) -> Any:
    """Load a tokenizer. Raises InputError if it cannot pad, or has more tokens than the encoder has embeddings."""
    if Path(name).is_dir() and not any((Path(name) / file).is_file() for file in TOKENIZERS):
        raise InputError(f"model {name}: the folder has no tokenizer: copy tokenizer.json of the model into it")
    tokenizer = from_pretrained("tokenizer", AutoTokenizer, name, trust, **({"config": config} if config else {}))
    limit, inputs = tokenizer.model_max_length, tokenizer.model_input_names
    is_number = isinstance(limit, (int, float)) and limit >= LEAST and limit % 1 == 0  # 1e30 is the default
    if not is_number or tokenizer.pad_token_id is None or not {"input_ids", "attention_mask"} <= {*inputs}:
        raise InputError(
            f"model {name}: its tokenizer has no padding token or attention mask, or a model_max_length of {limit!r}: "
            "fix its tokenizer_config.json"
        )
    entries = len(tokenizer)
    if entries > (embeddings := getattr(config, "vocab_size", entries)):
        raise InputError(
            f"model {name}: its tokenizer has {entries:,} entries, but the model has embeddings for only "
            f"{embeddings:,} tokens: use the model's own tokenizer, or call model.resize_token_embeddings({entries}) "
            "and save the model"
        )
    return tokenizer


@dataclass(frozen=True)
class Modules:
    """The embedding settings of a model, in files that sentence-transformers defines."""

    pooling: str = DEFAULT_POOLING  # a key of POOLINGS
    include_prompt: bool = True  # whether the pooling includes the prompt's tokens
    normalize: bool = False  # whether embeddings are scaled to length 1
    max_length: int | None = None  # maximum number of tokens of a text; None if no file gives it
    lower_case: bool = False  # whether texts are lower-cased before tokenization
    settings: dict[str, Any] = field(default_factory=dict)  # prompts, similarity and others, stored as they were read
    declared: bool = False  # whether the model has a modules.json

    @property
    def prompt(self) -> str:
        """The default prompt, which goes before every text; "" if there is none."""
        return str((self.settings.get("prompts") or {}).get(self.settings.get("default_prompt_name")) or "")

    def prepare(self, texts: Sequence[str]) -> list[str]:
        """Put the default prompt before each text, and lower-case both if `lower_case` is true."""
        prompted = [self.prompt + text for text in texts]
        return [text.lower() for text in prompted] if self.lower_case else prompted

    def longest(self, tokenizer: Any, config: Any) -> int:
        """Return the maximum number of tokens of a text, considering the limits of the tokenizer and the encoder."""
        return int(min(self.max_length or tokenizer.model_max_length, positions_of(config) or LONGEST, LONGEST))

    def write(self, folder: Path, config: Any, tokenizer: Any) -> None:
        """Write the files that SentenceTransformer(folder) needs to reproduce this encoder's embeddings."""
        paths = {kind: path for kind, path in FOLDERS.items() if self.normalize or kind != "Normalize"}
        listed = [
            {"idx": i, "name": str(i), "path": path, "type": f"{PACKAGE}.{kind}"}
            for i, (kind, path) in enumerate(paths.items())
        ]
        flags = {flag: mode == POOLINGS[self.pooling].in_modules for flag, mode in FLAGS.items()}
        pooling = {"word_embedding_dimension": config.hidden_size, **flags, "include_prompt": self.include_prompt}
        files: dict[str, Any] = {LIST: listed, f"{paths['Pooling']}/config.json": pooling}
        files[LENGTH] = {"max_seq_length": self.longest(tokenizer, config), "do_lower_case": self.lower_case}
        if self.settings:
            files[SETTINGS] = self.settings
        (folder / paths["Pooling"]).mkdir()
        for name, content in files.items():
            (folder / name).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def read_modules(name: str, pooling: str = AUTO) -> Modules:
    """Read the embedding settings of a model. Without a modules.json, its pooling is "cls_before_pooler".

    pooling: "auto", or a key of POOLINGS that overrides the files. With "auto", a setting that is not supported raises
    InputError.
    """
    listed = _read(name, LIST, list)
    if not listed:
        return Modules(pooling=DEFAULT_POOLING if pooling == AUTO else pooling)
    length, settings = _read(name, LENGTH), _read(name, SETTINGS)
    folders = {str(module.get("type")).rpartition(".")[2]: module.get("path") for module in listed}
    config = {"pooling_mode": "cls"} if "Pooling" not in folders else _read(name, f"{folders['Pooling']}/config.json")
    modes = config.get("pooling_mode") or [mode for flag, mode in FLAGS.items() if config.get(flag)] or "mean"
    mode = " and ".join(map(str, modes)) if isinstance(modes, list) else str(modes)
    modules = Modules(
        pooling=OF_MODULES.get(mode, DEFAULT_POOLING) if pooling == AUTO else pooling,
        include_prompt=bool(config.get("include_prompt", True)),
        normalize="Normalize" in folders,
        max_length=length.get("max_seq_length") or None,
        lower_case=bool(length.get("do_lower_case")),
        settings=settings,
        declared=True,
    )
    reasons = {
        **{f"a module of type {kind}": kind not in FOLDERS for kind in folders},
        f"a pooling of {mode}": mode not in OF_MODULES,
        "a pooling that excludes the prompt's tokens": modules.prompt and not modules.include_prompt,
        f"a truncate_dim of {settings.get('truncate_dim')}": settings.get("truncate_dim"),
    }
    unsupported = [reason for reason, applies in reasons.items() if applies]
    if pooling == AUTO and unsupported:
        raise InputError(
            f"--pooling auto: the model's files ask for {unsupported[0]}, which is not supported here: "
            "give --pooling mean, or another pooling, to use the encoder without it"
        )
    return modules


def refuse_code(name: str) -> None:
    """Raise InputError if the files of sentence-transformers in a model name Python code of another package.

    sentence-transformers before 6 imports any class that they name.
    """
    listed = _read(name, LIST, list)
    named = [module.get("type") for module in listed]
    for folder in filter(None, (module.get("path") for module in listed)):
        for file in ("config.json", ROUTER):
            values = list(_read(name, f"{folder}/{file}").values())
            named += [*values, *(part for value in values if isinstance(value, dict) for part in value.values())]
    for path in named:
        if isinstance(path, str) and IMPORT_PATH.fullmatch(path) and not path.startswith(TRUSTED):
            raise InputError(
                f"model {name}: its files name the Python code {path}, which is not run: remove this module"
            )


def _read(name: str, file: str, kind: Any = dict) -> Any:
    """Read one of a model's JSON files, and check the types of its values. A missing file counts as empty.

    kind: dict if the file contains an object, list if it contains a list of objects.
    """
    absent = {f"_raise_exceptions_for_{reason}": False for reason in ABSENT}
    if (path := cached_file(name, file, **absent)) is None:
        return kind()
    try:
        content = json.loads(Path(path).read_bytes())
        for part in content if kind is list else [content]:
            for key, allowed in TYPES.items():
                value = part.get(key)
                if value is not None and (not isinstance(value, allowed) or (allowed is int and value < LEAST)):
                    raise ValueError(f"{key} is {value!r}")
    except (OSError, ValueError, RecursionError, AttributeError, TypeError) as error:
        raise InputError(f"model {name}: {file} cannot be read: {error}") from None
    return content
