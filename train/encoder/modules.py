"""Reads and writes sentence-transformers' files in a model's folder, which say how its embeddings are made.

modules.json lists what follows the encoder (Pooling, Normalize), sentence_bert_config.json holds the maximum length,
config_sentence_transformers.json the prompts and the similarity. A bare encoder has none of these files.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from transformers.utils.hub import cached_file

from train.encoder.pooling import AUTO, DEFAULT_POOLING, OF_MODULES, POOLINGS
from una_fast.errors import InputError

LIST = "modules.json"
LENGTH = "sentence_bert_config.json"
SETTINGS = "config_sentence_transformers.json"
PACKAGE = "sentence_transformers.models"  # where all versions of the library find the classes of modules
FLAGS = {  # keys of 1_Pooling/config.json up to version 5 of the library, which version 6 reads too
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}


@dataclass(frozen=True)
class Modules:
    """The embedding settings of a model: the steps after the backbone, and how texts are prepared.

    pooling: a name of POOLINGS. include_prompt: the pooling includes the prompt's tokens. normalize: embeddings are
    divided by their length. max_length: tokens; None if no file gives it. lower_case: the library lower-cases texts
    before it tokenises. settings: the content of config_sentence_transformers.json (prompts, similarity_fn_name).
    declared: modules.json exists.
    """

    pooling: str = DEFAULT_POOLING
    include_prompt: bool = True
    normalize: bool = False
    max_length: int | None = None
    lower_case: bool = False
    settings: dict[str, Any] = field(default_factory=dict)
    declared: bool = False

    @property
    def prompt(self) -> str:
        """The default prompt, which sentence-transformers' encode puts before every text; "" if there is none."""
        prompts, name = self.settings.get("prompts"), self.settings.get("default_prompt_name")
        prompt = prompts.get(name) if isinstance(prompts, dict) and isinstance(name, str) else None
        return prompt if isinstance(prompt, str) else ""

    def prepared(self, texts: Sequence[str]) -> list[str]:
        """The texts as they are tokenised: each with the prompt before it, and in lower case if `lower_case`."""
        whole = [self.prompt + text for text in texts]
        return [text.lower() for text in whole] if self.lower_case else whole

    def write(self, folder: Path, config: Any, tokenizer: Any) -> None:
        """Write the files by which SentenceTransformer(folder) makes the same embeddings; config: the encoder's."""
        types = ["Transformer", "Pooling", *(["Normalize"] if self.normalize else [])]
        listed: list[dict[str, Any]] = [
            {"idx": i, "name": str(i), "path": f"{i}_{kind}" if i else "", "type": f"{PACKAGE}.{kind}"}
            for i, kind in enumerate(types)
        ]
        positions = getattr(config, "max_position_embeddings", tokenizer.model_max_length)
        longest = self.max_length or min(tokenizer.model_max_length, positions)
        flags = {flag: mode == POOLINGS[self.pooling].in_modules for flag, mode in FLAGS.items()}
        pooling = {"word_embedding_dimension": config.hidden_size, **flags, "include_prompt": self.include_prompt}
        (folder / listed[1]["path"]).mkdir()
        _write(folder / LIST, listed)
        _write(folder / LENGTH, {"max_seq_length": longest, "do_lower_case": self.lower_case})
        _write(folder / listed[1]["path"] / "config.json", pooling)
        if self.settings:
            _write(folder / SETTINGS, self.settings)


def read_modules(name: str, pooling: str = AUTO) -> Modules:
    """The embedding settings of a model, by its folder or hub name; raw [CLS] if it has no modules.json.

    pooling: one of POOLINGS, in place of the one that the files name, or "auto".

    Raises:
        InputError: a file that is not JSON of the right form, or "auto" for a module that is not supported here.
    """
    listed, found, unknown = _read(name, LIST, list), Modules(), ""
    if listed is not None:
        length, settings = _read(name, LENGTH, dict) or {}, _read(name, SETTINGS, dict) or {}
        lower_case, longest = bool(length.get("do_lower_case")), _max_length(name, length)
        found = Modules(max_length=longest, lower_case=lower_case, settings=settings, declared=True)
    for module in listed or ():
        kind = str(module.get("type", "")).rpartition(".")[2]
        if kind == "Pooling":
            config = _read(name, f"{module.get('path')}/config.json", dict) or {}
            own = [mode for flag, mode in FLAGS.items() if config.get(flag)]
            modes = config.get("pooling_mode") or own or "mean"  # the library's own default
            modes = [*map(str, modes)] if isinstance(modes, list) else [str(modes)]
            if len(modes) > 1 or modes[0] not in OF_MODULES:
                unknown = f"a pooling of {' and '.join(modes)}"
                continue
            with_prompt = bool(config.get("include_prompt", True))
            found = replace(found, pooling=OF_MODULES[modes[0]], include_prompt=with_prompt)
        elif kind == "Normalize":
            found = replace(found, normalize=True)
        elif kind != "Transformer":
            unknown = f"a module of type {kind or 'unknown'}"
    if pooling != AUTO:
        return replace(found, pooling=pooling)
    if found.prompt and not found.include_prompt:
        unknown = unknown or "a pooling that leaves out the tokens of the default prompt"
    if unknown:
        raise InputError(
            f"--pooling auto: {LIST} of the model lists {unknown}, which is not supported here: "
            "give --pooling cls or --pooling mean to use the encoder without it"
        )
    return found


def _max_length(name: str, content: dict[str, Any]) -> int | None:
    """The maximum length in the content of sentence_bert_config.json. Raises InputError for what can be none."""
    longest = content.get("max_seq_length") or None
    if longest is None or (isinstance(longest, int) and longest > 0):
        return longest
    raise InputError(f"model {name}: {LENGTH}: max_seq_length is {longest!r}: write a whole number, or null")


def _read(name: str, file: str, kind: Any) -> Any:
    """The JSON value, of type `kind`, in a file of the model; None if there is no such file."""
    path = Path(name) / file
    if not Path(name).is_dir():
        cached = cached_file(
            name,
            file,
            _raise_exceptions_for_gated_repo=False,
            _raise_exceptions_for_missing_entries=False,
            _raise_exceptions_for_connection_errors=False,
        )
        path = Path(cached) if cached else path
    try:
        value = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"model {name}: {file} cannot be read: {error}") from None
    if not isinstance(value, kind) or (kind is list and not all(isinstance(item, dict) for item in value)):
        raise InputError(f"model {name}: {file} does not hold what sentence-transformers writes there")
    return value


def _write(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
