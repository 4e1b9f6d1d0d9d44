"""What a run reports at each step: metrics.jsonl, TensorBoard and the progress bar."""

from __future__ import annotations

import contextlib
import json
import math
import sys
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from tqdm import tqdm

from train.record.checkpoint import Progress
from train.record.folder import METRICS, TENSORBOARD, subfolder, write_file
from una_fast.errors import InputError, counted
from una_fast.storage.files import own_file, read_bytes, unwritable

LINE_SECONDS = 60.0  # between two lines of the bar where there is no terminal
FLUSH_SECONDS = 3.0  # between two flushes of metrics.jsonl, until which other programs do not see new lines
LATE_STEPS = 8  # steps after which a GPU's loss is read: by then it is computed, so reading does not wait


def keep_metrics_until(path: Path, step: int, evaluated: bool = True) -> int:
    """Drop lines of metrics.jsonl that a run resumed after `step` steps will write again, and damaged lines.

    The line of an evaluation after `step` steps stays if the run has its score (`evaluated`) and does not repeat it.
    Returns the number of damaged lines; a last line that a kill cut short does not count.
    """
    try:
        lines = read_bytes(path).splitlines(keepends=True)
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise unwritable(path, error) from error
    kept, damaged = [], 0
    for line in lines:
        try:
            record = json.loads(line)
            if record["step"] < step or (evaluated and record["step"] == step and "loss" not in record):
                kept.append(line)
        except (ValueError, KeyError, TypeError, RecursionError):
            damaged += line.endswith(b"\n")
    write_file(path, b"".join(kept))
    return damaged


class _StandardError:
    """Standard error for a bar. A terminal that is gone, or a `tee` that Ctrl-C ended, stops no run."""

    def write(self, text: str) -> None:
        with contextlib.suppress(OSError):
            sys.stderr.write(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            sys.stderr.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.stderr, name)


class Bar(tqdm):
    """A progress bar on standard error; where that is no terminal, the bar's line once a minute."""

    def __init__(self, start: int, total: int, unit: str, smoothing: float = 0.3) -> None:
        seconds = 0.5 if sys.stderr.isatty() else LINE_SECONDS
        super().__init__(
            initial=start, total=total, unit=unit, smoothing=smoothing, mininterval=seconds, maxinterval=seconds,
            dynamic_ncols=True, file=_StandardError(),
        )  # fmt: skip

    def say(self, message: str) -> None:
        """Show a line above the bar."""
        self.write(message, file=self.fp)


class Recorder:
    """metrics.jsonl, TensorBoard events and the bar of a run. start: where the run goes on."""

    def __init__(self, output: Path, start: Progress, n_steps: int) -> None:
        from torch.utils.tensorboard import SummaryWriter  # takes 1 s to import, and only rank 0 needs it

        path = output / METRICS
        damaged = keep_metrics_until(path, start.step, start.evaluated_step == start.step)
        try:
            self._file = open(path, "a", encoding="utf-8", opener=own_file)
        except OSError as error:
            raise unwritable(path, error) from error
        self._board = SummaryWriter(str(subfolder(output, TENSORBOARD)), purge_step=start.step)
        self._bar = Bar(start.step, n_steps, "step")
        self._stepped, self._flushed = False, time.monotonic()
        if damaged:
            self.say(f"warning: {path}: {counted(damaged, 'damaged line')} dropped")

    def step(
        self, step: int, loss: float, lr: float, negatives: bool, sentences_per_second: float, **cosines: float
    ) -> None:
        """Record one optimiser step; `step` counts from 0. cosines: their means over the step."""
        curves = {"lr": lr, **cosines, "sentences_per_second": round(sentences_per_second, 2)}
        self._write({"step": step, "loss": loss, "negatives": negatives, **curves})
        for name, value in {"loss/negatives" if negatives else "loss/plain": loss, **curves}.items():
            self._board.add_scalar(name, value, step)
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
        self._board.add_scalar("stsb_dev", score, step)
        self.say(f"step {step}: dev Spearman {score:.4f}{' (best so far)' if best else ''}")

    def say(self, message: str) -> None:
        """Show a line above the bar."""
        self._bar.say(message)

    def _write(self, record: dict[str, Any]) -> None:
        self._file.write(json.dumps(record) + "\n")

    def flush(self) -> None:
        """Flush all lines to the operating system, so that they survive a killed process."""
        self._flushed = time.monotonic()
        self._file.flush()
        self._board.flush()

    def close(self) -> None:
        """Close the files and the bar."""
        self._bar.close()
        self._file.close()
        self._board.close()


class LateLosses:
    """Losses of the latest steps: on a GPU read LATE_STEPS steps late, so that no step waits; on a CPU at once."""

    def __init__(self, device: torch.device) -> None:
        self._late = LATE_STEPS if device.type == "cuda" else 0
        self._pending: deque[tuple[Tensor, Any, dict[str, Any]]] = deque()

    def push(self, loss: Tensor, about: dict[str, Any], cosines: Tensor | None = None) -> None:
        """Add a step's loss, its `cosines` (1 or 2, B), and the other entries of its line of metrics."""
        read = loss.detach()[None]
        if cosines is not None:
            read = torch.cat([read, cosines.mean(1)])  # one copy to the host for all
        if not self._late:
            self._pending.append((read, None, about))
            return
        host = torch.empty(read.shape, dtype=read.dtype, pin_memory=True)
        host.copy_(read, non_blocking=True)
        event = torch.cuda.Event()
        event.record()
        self._pending.append((host, event, about))

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
