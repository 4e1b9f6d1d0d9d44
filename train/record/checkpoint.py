"""last/: all that --resume needs, written in the background as best/ is.

last/checkpoint.json names the newest state file, with its checksum, the progress of the run and its identity, under a
seal: a file with another step or another score in it is refused. It is replaced after the state file is on the disk, so
at any moment it names a complete one. The state holds no random generator: dropout is seeded from (seed, step, rank)
and the data order from (seed, epoch), so both can start at any step.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import IO, Any

import torch
import xxhash
from torch import nn

from train.config.run import defaults, options
from train.record.folder import INDEX, LAST, POINTER, SEEDS, read_mark, read_object, read_sealed, subfolder, write_json
from una_fast.errors import InputError
from una_fast.storage.files import file_checksum, sync_file, unwritable

STATE = re.compile(r"(state|weights)-\d{8}-[0-9a-f]{32}\.pt")  # only the run knows names with such random digits


def snapshot(state: Any) -> Any:
    """A copy of nested state on the CPU, which later steps do not change."""
    copy = _copied(state)
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()  # waits for the copies, which are asynchronous
    return copy


def _copied(state: Any) -> Any:
    if isinstance(state, torch.Tensor):
        return state.detach().to("cpu", non_blocking=True, copy=True)  # from a GPU into pinned memory, at full speed
    if isinstance(state, dict):
        return {key: _copied(value) for key, value in state.items()}
    if isinstance(state, (list, tuple)):
        return [_copied(value) for value in state]
    return state


class HashedFile:
    """A file for torch.save to write to, which computes the checksum of what is written."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.digest = xxhash.xxh3_64()

    def write(self, data: bytes) -> int:
        """Write `data`; torch raises its own error for one of the disk, which `unwritable` finds in the context."""
        self.digest.update(data)
        return self._file.write(data)

    def flush(self) -> None:
        """Flush to the operating system."""
        self._file.flush()


class CheckpointWriter:
    """Writes last/ and best/ in the background, one after the other: last/ never refers to an unwritten best/."""

    def __init__(self, output: Path, settings: dict[str, Any], identity: dict[str, Any]) -> None:
        self._output, self._settings, self._identity = output, settings, identity
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="checkpoint")
        self._pending: Future[None] | None = None

    def save(self, progress: Progress, state: dict[str, Any], kind: str = "state") -> None:
        """Copy `state` now and write it while training goes on. Raises the error of the previous save.

        kind: what the file's name begins with: "state", or "weights" for a finished run, which needs no optimiser.
        """
        self.wait()
        self._pending = self._pool.submit(self._write, replace(progress), snapshot(state), kind)

    def save_encoder(self, backbone: nn.Module, write: Callable[[dict[str, Any]], None]) -> None:
        """Copy the encoder's weights now and let `write` put them into a folder later. Raises as `save` does."""
        self.wait()
        self._pending = self._pool.submit(write, snapshot(backbone.state_dict()))

    def failed(self) -> bool:
        """True if the running save has ended with an error; `wait` raises it."""
        return bool(self._pending and self._pending.done() and self._pending.exception())

    def wait(self) -> None:
        """Wait until the last save is on the disk. Raises InputError if it failed."""
        pending, self._pending = self._pending, None
        if pending:
            pending.result()

    def _write(self, progress: Progress, state: dict[str, Any], kind: str) -> None:
        folder = subfolder(self._output, LAST)
        path = folder / f"{kind}-{progress.step:08d}-{uuid.uuid4().hex}.pt"
        try:
            with path.open("xb") as file:
                hashed = HashedFile(file)
                torch.save(state, hashed)  # type: ignore[arg-type]  # it needs only `write` and `flush`
                sync_file(file)
        except (OSError, RuntimeError) as error:  # torch.save reports a full disk as a RuntimeError
            path.unlink(missing_ok=True)
            raise unwritable(path, error) from error
        pointer = Pointer(path.name, hashed.digest.hexdigest(), progress, self._settings, self._identity)
        write_pointer(self._output, pointer)
        for old in folder.iterdir():  # the one before, and what killed processes left
            if STATE.fullmatch(old.name) and old != path:
                old.unlink(missing_ok=True)


def load_checkpoint(output: Path, identity: dict[str, Any]) -> tuple[Progress, dict[str, Any]]:
    """The newest complete checkpoint of the run that `identity` describes.

    Raises:
        InputError: there is none, it is cut short or altered, or it is another run's (the first difference is named).
    """
    pointer = read_pointer(output)
    check_identity(output, pointer.identity, identity)
    path = output / LAST / pointer.state
    try:
        intact = file_checksum(path) == pointer.checksum
    except OSError:
        intact = False
    if not intact:
        raise InputError(
            f"{path}: the checkpoint is cut short or altered: start again without --resume in a new --output"
        )
    return pointer.progress, torch.load(path, map_location="cpu", weights_only=True)


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
