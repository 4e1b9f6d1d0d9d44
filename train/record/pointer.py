"""last/checkpoint.json: the newest state file, the progress of the run at that time, and the run's identity.

A checksum over its content seals it: a file with another step or another score in it is refused.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from train.config.run import defaults, options
from train.record.folder import INDEX, LAST, POINTER, SEEDS, read_mark, read_object, read_sealed, write_json
from una_fast.errors import InputError

VERSION = 3
AGAIN = "start again without --resume in a new --output"


@dataclass
class Progress:
    """Where a run stands: optimiser steps done; the dev score of the start, the best and the last, with their steps."""

    step: int = 0
    start_score: float | None = None
    best_score: float | None = None
    best_step: int | None = None
    last_score: float | None = None
    evaluated_step: int | None = None


@dataclass(frozen=True)
class Pointer:
    """The content of last/checkpoint.json. state: name of the state file in last/; checksum: its xxh3_128.

    settings: every option of the run; identity: what --resume must find unchanged.
    """

    state: str
    checksum: str
    progress: Progress
    settings: dict[str, Any]
    identity: dict[str, Any]


def has_checkpoint(output: Path) -> bool:
    """True if `output` holds last/checkpoint.json; its content is not checked."""
    return (output / POINTER).is_file()


def write_pointer(output: Path, pointer: Pointer) -> None:
    """Replace last/checkpoint.json, whole or not at all."""
    write_json(output / POINTER, {"version": VERSION, **asdict(pointer)})


def read_pointer(output: Path) -> Pointer:
    """last/checkpoint.json.

    Raises:
        InputError: there is none, it is damaged, or another version of the program wrote it.
    """
    path = output / POINTER
    if not has_checkpoint(output):
        raise InputError(f"--resume: {output} holds no checkpoint ({POINTER}): {AGAIN}")
    if (version := read_object(path).get("version", VERSION)) != VERSION:
        raise InputError(
            f"{path}: its layout is number {version}, and this version of the program reads number {VERSION}: go on "
            f"with the version that wrote it, or {AGAIN}"
        )
    if not (content := read_sealed(path)):
        raise InputError(f"{path}: cannot be read, or was changed since it was written: {AGAIN}")
    try:
        return _checked(content)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: damaged ({error}): {AGAIN}") from error


def _checked(content: dict[str, Any]) -> Pointer:
    """The content as a Pointer; ValueError, KeyError or TypeError names what has the wrong type."""
    progress = Progress(**content["progress"])
    for field in fields(Progress):
        value = getattr(progress, field.name)
        whole = field.name.endswith("step")
        fits = isinstance(value, int if whole else (int, float)) and not isinstance(value, bool)
        if not (fits or (value is None and field.name != "step")):
            raise ValueError(f"{field.name} is {value!r}")
    for name, kind in (("state", str), ("checksum", str), ("settings", dict), ("identity", dict)):
        if not isinstance(content[name], kind):
            raise ValueError(f"{name} is {content[name]!r}")
    if Path(content["state"]).name != content["state"]:
        raise ValueError(f"state is {content['state']!r}, which is not a file in {LAST}/")
    return Pointer(content["state"], content["checksum"], progress, content["settings"], content["identity"])


def check_identity(output: Path, saved: dict[str, Any], given: dict[str, Any]) -> None:
    """Refuse to go on with another corpus, model or setting, naming the first that differs.

    A setting that `saved` lacks is an option that was added later: the run used its default.
    """
    earlier = json.loads(json.dumps({**saved, "settings": {**defaults(), **saved.get("settings", {})}}))
    for group in given:
        for name, value in given[group].items():
            before = earlier.get(group, {}).get(name)
            if before != json.loads(json.dumps(value)):
                what = {"settings": f"--{name.replace('_', '-')}"}.get(group, f"{group} ({name})")
                raise InputError(
                    f"--resume: {what} was {before} when {output} was started and is {value} now: "
                    "give what was given then, or start a new --output"
                )


def saved_options(output: Path) -> dict[str, Any]:
    """The option values that the run or runs in `output` were started with; {} if none are saved.

    --output and --trust-remote-code are not among them.

    Raises:
        InputError: the checkpoint is damaged.
    """
    settings: Any = read_pointer(output).settings if has_checkpoint(output) else read_mark(output).get("settings", {})
    kept = {name for name, option in options().items() if option.role != "call"} & settings.keys()
    kept -= {"output", "trust_remote_code"}  # no folder, perhaps of somebody else, may ask to run a model's code
    if settings.get("index") == str(Path(settings.get("output", "")) / INDEX):
        kept -= {"index"}  # it moves with the folder
    values = {name: settings[name] for name in kept}
    if settings.get("seeds"):  # and those that were added later
        added = map(int, read_sealed(output / SEEDS).get("seeds", ()))
        values["seeds"] = list(dict.fromkeys([*settings["seeds"], *added]))
        del values["seed"]
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
