"""What a run reports at each step: metrics.jsonl, TensorBoard and the progress bar."""

from __future__ import annotations

import itertools
import json
import math
import os
import re
import socket
import sys
import time
import uuid
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
import xxhash
from torch import Tensor
from tqdm import tqdm

from train.record.checkpoint import Progress, has_checkpoint, read_pointer
from train.record.folder import METRICS, TENSORBOARD, check_inside, subfolder
from train.record.old_files import own_file
from train.signals import STDERR
from una_fast.errors import InputError
from una_fast.storage.files import checksum_of, read_bytes, unwritable

LINE_SECONDS = 60.0  # between two lines of the bar where there is no terminal
FLUSH_SECONDS = 3.0  # between two flushes of metrics.jsonl, until which other programs do not see new lines
LATE_STEPS = 8  # steps after which a GPU's loss is read: by then it is computed, so reading does not wait


NUMBER = rb"(?:NaN|[-+.e\d]+)"
LINE = re.compile(  # of metrics.jsonl, as `Recorder` writes it
    rb'\{"step": (\d{1,18}), (?:"stsb_dev": (?:null|%b)|("loss": )%b, "negatives": (?:true|false), "lr": %b, '
    rb'(?:"cosine_\w+": %b, )*"sentences_per_second": %b)\}' % ((NUMBER,) * 5)
)
BEGINNING = b'{"step": '  # a kill may cut the last line short
NOTHING: dict[str, Any] = {"bytes": 0, "xxh3_64": checksum_of([])}


def read_metrics(output: Path) -> tuple[bytes, bool]:
    """Metrics.jsonl up to the checkpoint, and whether all of it is as the run wrote it; later lines are written again.

    If it is not, the lines up to the checkpoint that can be read. Raises InputError for a file that cannot be read.
    """
    path, progress, written = output / METRICS, Progress(), NOTHING
    if has_checkpoint(output):
        pointer = read_pointer(output)
        progress, written = pointer.progress, pointer.metrics
    try:
        content = read_bytes(path)
    except FileNotFoundError:
        return b"", True
    except OSError as error:
        raise unwritable(path, error) from error
    kept = content[: written["bytes"]]
    if checksum_of([kept]) != written["xxh3_64"]:
        kept = b""  # if the earlier lines were moved away, all lines are later ones
    *lines, cut_short = content[len(kept) :].split(b"\n")
    later = [LINE.fullmatch(line) for line in lines]
    taken = itertools.accumulate((bool(line and line[2]) for line in later), initial=progress.step)
    is_own = cut_short.startswith(BEGINNING) or BEGINNING.startswith(cut_short)
    if is_own and all(line and int(line[1]) == step for line, step in zip(later, taken, strict=False)):
        return kept, True
    found = [line for line in map(LINE.fullmatch, content.split(b"\n")) if line]
    n_scored = -1 if progress.evaluated_step is None else progress.evaluated_step
    earlier = [line for line in found if int(line[1]) < (progress.step if line[2] else n_scored + 1)]
    return b"".join(line[0] + b"\n" for line in earlier), False


class Bar(tqdm):
    """A progress bar on standard error; where that is no terminal, the bar's line once a minute."""

    def __init__(self, start: int, total: int, unit: str, smoothing: float = 0.3) -> None:
        seconds = 0.5 if sys.stderr.isatty() else LINE_SECONDS
        super().__init__(
            initial=start, total=total, unit=unit, smoothing=smoothing, mininterval=seconds, maxinterval=seconds,
            dynamic_ncols=True, file=STDERR,
        )  # fmt: skip

    def say(self, message: str) -> None:
        """Show a line above the bar."""
        self.write(message, file=self.fp)


class Recorder:
    """metrics.jsonl, TensorBoard events and the bar of a run. start: where the run goes on.

    Raises:
        InputError: a file cannot be written; in `flush` also if the folder was moved away.
    """

    def __init__(self, output: Path, start: Progress, n_steps: int) -> None:
        self._output, path, changed = output, output / METRICS, output / f"metrics-{uuid.uuid4().hex[:8]}.jsonl"
        board = subfolder(output, TENSORBOARD)
        kept, is_intact = read_metrics(output)
        try:
            self._board = Events(board, start.step)
            if not is_intact:
                path.rename(changed)
            self._file = open(path, "ab", opener=own_file)
            self._file.truncate(len(kept) if is_intact else 0)
            self._file.write(b"" if is_intact else kept)
        except OSError as error:
            raise unwritable(Path(error.filename or path), error) from error
        self._bytes, self._checksum = len(kept), xxhash.xxh3_64(kept)  # no save reads the lines again
        self._bar = Bar(start.step, n_steps, "step")
        self._stepped, self._flushed = False, time.monotonic()
        if not is_intact:
            self.say(f"warning: {path} was changed: it is now {changed.name}, and the lines that can be read go on")
        elif start.step and not kept:
            self.say(f"warning: {path} was moved away: a new one begins with step {start.step:,}")

    def step(
        self, step: int, loss: float, lr: float, negatives: bool, sentences_per_second: float, **cosines: float
    ) -> None:
        """Record one optimiser step; `step` counts from 0. cosines: their means over the step."""
        curves = {"lr": lr, **cosines, "sentences_per_second": round(sentences_per_second, 2)}
        self._write({"step": step, "loss": loss, "negatives": negatives, **curves})
        self._board.add(step, {"loss/negatives" if negatives else "loss/plain": loss, **curves})
        self._bar.set_postfix({"loss": f"{loss:.4g}", "sentences/s": f"{sentences_per_second:.0f}"}, refresh=False)
        if not self._stepped:  # so that an evaluation before the first step does not count
            self._stepped = True
            self._bar.unpause()
        self._bar.update(step + 1 - self._bar.n)
        if time.monotonic() - self._flushed >= FLUSH_SECONDS:
            self.flush()

    def evaluation(self, step: int, score: float, best: bool) -> None:
        """Record a dev score after `step` steps."""
        self._write({"step": step, "stsb_dev": score if math.isfinite(score) else None})
        self._board.add(step, {"stsb_dev": score})
        self.say(f"step {step}: dev Spearman {score:.4f}{' (best so far)' if best else ''}")

    def say(self, message: str) -> None:
        """Show a line above the bar."""
        self._bar.say(message)

    def _write(self, record: dict[str, Any]) -> None:
        line = f"{json.dumps(record)}\n".encode()
        self._file.write(line)
        self._checksum.update(line)
        self._bytes += len(line)

    @property
    def written(self) -> dict[str, Any]:
        """The "bytes" of metrics.jsonl so far, and their "xxh3_64"."""
        return {"bytes": self._bytes, "xxh3_64": self._checksum.hexdigest()}

    def flush(self) -> None:
        """Flush all lines to the operating system, so that they survive a killed process."""
        self._flushed = time.monotonic()
        check_inside(self._output)
        self._file.flush()
        self._board.flush()

    def close(self) -> None:
        """Close the files and the bar."""
        self._bar.close()
        self._file.close()
        self._board.close()


class Events:
    """Figures by step for TensorBoard, in a file that is opened once; torch's writer opens its file at each event.

    folder: what is there stays; TensorBoard leaves out its figures from step `start` on. Raises OSError.
    """

    def __init__(self, folder: Path, start: int) -> None:
        from tensorboard.compat.proto import event_pb2, summary_pb2  # only rank 0 needs them
        from tensorboard.summary.writer.record_writer import RecordWriter

        self._event, self._summary = event_pb2.Event, summary_pb2.Summary
        name = f"events.out.tfevents.{time.time_ns()}.{socket.gethostname()}.{os.getpid()}"
        self._writer = RecordWriter((folder / name).open("xb"))
        self._write(file_version="brain.Event:2")
        self._write(step=start, session_log=event_pb2.SessionLog(status=event_pb2.SessionLog.START))

    def add(self, step: int, values: Mapping[str, float]) -> None:
        """Add the figures of a step."""
        figures = [self._summary.Value(tag=name, simple_value=value) for name, value in values.items()]
        self._write(step=step, summary=self._summary(value=figures))

    def _write(self, **event: Any) -> None:
        self._writer.write(self._event(wall_time=time.time(), **event).SerializeToString())

    def flush(self) -> None:
        """Flush all figures to the operating system."""
        self._writer.flush()

    def close(self) -> None:
        """Close the file."""
        self._writer.close()


class AsyncLossReader:
    """Losses of the latest steps: on a GPU read LATE_STEPS steps late, so that no step waits; on a CPU at once."""

    def __init__(self, device: torch.device) -> None:
        self._late = LATE_STEPS if device.type == "cuda" else 0
        self._pending: deque[tuple[Tensor, Any, dict[str, Any]]] = deque()

    def push(self, loss: Tensor, about: dict[str, Any], cosines: Tensor | None = None) -> None:
        """Add a step's loss, its `cosines` (1 or 2, B), and the other entries of its line of metrics."""
        read, event = loss.detach()[None], None
        if cosines is not None:
            read = torch.cat([read, cosines.mean(1)])  # one copy to the host for all
        if self._late:
            read = torch.empty_like(read, device="cpu", pin_memory=True).copy_(read, non_blocking=True)
            event = torch.cuda.Event()
            event.record()
        self._pending.append((read, event, about))

    def due(self, all_of_them: bool = False) -> Iterator[dict[str, Any]]:
        """Records of the steps whose loss is due, each with its "loss".

        Raises:
            InputError: a loss is NaN or infinite. Due steps are the same on every rank, so all stop together.
        """
        while len(self._pending) > (0 if all_of_them else self._late):
            loss, event, about = self._pending.popleft()
            if event:
                event.synchronize()
            value, *cosines = loss.tolist()
            means = dict(zip(("cosine_positive", "cosine_negative"), (round(c, 5) for c in cosines), strict=False))
            if not math.isfinite(value):
                raise InputError(
                    f"step {about['step']}: the loss is {value}: try a lower --learning-rate, a higher --temperature, "
                    "or --precision fp32 or bf16; last/ holds the weights of its latest save"
                )
            yield {**about, **means, "loss": value}
