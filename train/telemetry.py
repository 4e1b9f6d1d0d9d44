"""What a run tells: metrics.jsonl, TensorBoard, the progress bar, run.json, and where the time goes."""

from __future__ import annotations

import importlib.metadata
import json
import math
import os
import platform
import sys
import time
from collections import defaultdict, deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from tqdm import tqdm

from train.distributed import usable_cores
from una_fast.errors import InputError

METRICS = "metrics.jsonl"
LATE_STEPS = 8  # steps after which a GPU's loss is read: by then it is there, so reading waits for nothing
PACKAGES = ("una_fast", "torch", "transformers", "tokenizers", "numpy")


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that decide a result."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def machine() -> dict[str, Any]:
    """The machine a run was on."""
    processor = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        names = [line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if "model name" in line]
        processor = names[0] if names else processor
    gpus = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    return {"system": platform.platform(), "processor": processor, "cores": usable_cores(), "gpus": gpus}


def keep_metrics_until(path: Path, step: int) -> None:
    """Drop lines of metrics.jsonl that a run resumed after `step` steps will write again, and a line cut short."""
    if not path.is_file():
        return
    kept = []
    for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
        try:
            record = json.loads(line)
        except ValueError:
            break
        if record["step"] < step or (record["step"] == step and "loss" not in record):
            kept.append(line)
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text("".join(kept), encoding="utf-8")
    partial.replace(path)


class Recorder:
    """metrics.jsonl, TensorBoard events and the bar of one run; on ranks other than the first it does nothing."""

    def __init__(self, output: Path, active: bool, start: int, n_steps: int) -> None:
        self.active = active
        if not active:
            return
        from torch.utils.tensorboard import SummaryWriter  # 1 s to import, and rank 0 alone needs it

        keep_metrics_until(output / METRICS, start)
        self._file = (output / METRICS).open("a", encoding="utf-8")
        self._board = SummaryWriter(str(output / "tensorboard"), purge_step=start)
        self._bar = tqdm(total=n_steps, initial=start, unit="step", dynamic_ncols=True, mininterval=0.5, disable=None)

    def step(self, step: int, loss: float, lr: float, negatives: bool, sentences_per_second: float) -> None:
        """One optimiser step; `step` counts from 0."""
        if not self.active:
            return
        record = {"step": step, "loss": loss, "lr": lr, "negatives": negatives}
        self._write({**record, "sentences_per_second": round(sentences_per_second, 2)})
        self._board.add_scalar("loss/negatives" if negatives else "loss/plain", loss, step)
        self._board.add_scalar("lr", lr, step)
        self._board.add_scalar("sentences_per_second", sentences_per_second, step)
        self._bar.set_postfix(loss=f"{loss:.4f}", sentences_s=f"{sentences_per_second:.0f}", refresh=False)
        self._bar.update(step + 1 - self._bar.n)

    def evaluation(self, step: int, score: float, best: bool) -> None:
        """A dev score after `step` steps."""
        if not self.active:
            return
        self._write({"step": step, "stsb_dev": score if math.isfinite(score) else None})
        self._board.add_scalar("stsb_dev", score, step)
        self.say(f"step {step}: dev Spearman {score:.4f}{' (best so far)' if best else ''}")

    def say(self, message: str) -> None:
        """A line above the bar."""
        if self.active:
            tqdm.write(message, file=sys.stderr)
            sys.stderr.flush()

    def _write(self, record: dict[str, Any]) -> None:
        self._file.write(json.dumps(record) + "\n")

    def flush(self) -> None:
        """Hand all lines to the system: they outlive a killed process."""
        if self.active:
            self._file.flush()

    def close(self) -> None:
        """Close the files and the bar."""
        if self.active:
            self._bar.close()
            self._file.close()
            self._board.close()


class LateLosses:
    """Losses on their way from the device: read some steps late on a GPU, so no step waits; at once on the CPU."""

    def __init__(self, device: torch.device) -> None:
        self._late = LATE_STEPS if device.type == "cuda" else 0
        self._pending: deque[tuple[Tensor, Any, dict[str, Any]]] = deque()

    def push(self, loss: Tensor, about: dict[str, Any]) -> None:
        """A step's loss, and what else its line of metrics says."""
        if not self._late:
            self._pending.append((loss.detach(), None, about))
            return
        host = torch.empty((), dtype=loss.dtype, pin_memory=True)
        host.copy_(loss.detach(), non_blocking=True)
        event = torch.cuda.Event()
        event.record()
        self._pending.append((host, event, about))

    def due(self, all_of_them: bool = False) -> Iterator[dict[str, Any]]:
        """Records of steps whose loss is due, with "loss" in them.

        Raises:
            InputError: a loss is NaN or infinite. Due steps are the same on every rank, so all stop together.
        """
        while len(self._pending) > (0 if all_of_them else self._late):
            loss, event, about = self._pending.popleft()
            if event:
                event.synchronize()
            value = loss.item()
            if not math.isfinite(value):
                raise InputError(
                    f"step {about['step']}: the loss is {value}: try a lower --learning-rate, a higher --temperature, "
                    "or --precision fp32 or bf16; best/ and last/ hold the weights from before"
                )
            yield {**about, "loss": value}


class Stopwatch:
    """Seconds by phase: of this process on the CPU, of the device's own time on a GPU.

    On a GPU a phase lasts from the event at its beginning to the one at its end, so waiting of the device counts and
    no step waits for the reading; the sum of all phases is known after `finish`.
    """

    def __init__(self, device: torch.device) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._on_gpu = device.type == "cuda"
        self._running: deque[tuple[str, torch.cuda.Event, torch.cuda.Event]] = deque()

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time the block as `name`."""
        if not self._on_gpu:
            begun = time.perf_counter()
            yield
            self.seconds[name] += time.perf_counter() - begun
            return
        begins, ends = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begins.record()
        yield
        ends.record()
        self._running.append((name, begins, ends))
        while self._running and self._running[0][-1].query():
            self._read()

    def finish(self) -> None:
        """Wait for the device, and add up what it still did."""
        while self._running:
            self._running[0][-1].synchronize()
            self._read()

    def _read(self) -> None:
        name, begins, ends = self._running.popleft()
        self.seconds[name] += begins.elapsed_time(ends) / 1000


def peak_memory() -> dict[str, int]:
    """Highest resident memory of this process, and of the GPU what was in use and what was held for it; bytes."""
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    peak = {"resident_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit}
    if torch.cuda.is_available():
        peak["gpu_bytes"] = torch.cuda.max_memory_allocated()
        peak["gpu_reserved_bytes"] = torch.cuda.max_memory_reserved()  # graphs' memory included
    return peak


def profile_table(seconds: dict[str, float], total: float, steps: int, batches_busy: float) -> str:
    """The share of each phase in the time of the loop; and what the background thread did beside it."""
    rows = [("phase", "seconds", "ms/step", "share")]
    rest = {**seconds, "other": total - sum(seconds.values())}
    for name, spent in rest.items():
        rows.append((name, f"{spent:.2f}", f"{1000 * spent / max(1, steps):.2f}", f"{100 * spent / total:.2f} %"))
    rows.append(("(batches, beside)", f"{batches_busy:.2f}", f"{1000 * batches_busy / max(1, steps):.2f}",
                 f"{100 * batches_busy / total:.2f} %"))  # fmt: skip
    return os.linesep.join(f"{a:<18}{b:>10}{c:>10}{d:>10}" for a, b, c, d in rows)
