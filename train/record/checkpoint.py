"""last/: all that --resume needs, written in the background as best/ is.

last/checkpoint.json names the newest state file, with its checksum and the run's identity. It is replaced after the
state file is on the disk, so at any moment it names a complete one. The state holds no random generator: dropout is
seeded from (seed, step, rank) and the data order from (seed, epoch), so both can start at any step.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import torch
import xxhash
from torch import nn

from train.record.folder import LAST, subfolder
from train.record.pointer import Pointer, Progress, check_identity, read_pointer, write_pointer
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
