"""Runs a job: checks everything, writes on all ranks, merges the parts and reports the result."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from train.encoder.pretrained import quiet
from train.evaluation.model import pick_device
from train.generation.lines import is_blank, sentences
from train.generation.options import Job
from train.generation.parts import NOTES, Parts
from train.generation.ranks import Stop, run_ranks
from train.generation.seq2seq import check_model
from train.signals import handled, tell_user
from una_fast.corpus.sources import source_digests
from una_fast.errors import InputError, counted

EXIT_DIED = 1
LOG_SECONDS = 60  # between two lines of progress where there is no terminal


def launch(job: Job) -> int:
    """Write the output of a job, or a part of it if a signal comes; returns the exit code.

    Raises:
        InputError: bad input. The lines that are written by then are kept.
    """
    quiet()
    devices = devices_of(job)
    models = [check_model(name, job) for name in job.models]
    blank = [is_blank(sentence) for _, sentence in sentences(job.corpus, job.column)]
    digests = [digest["xxh3_128"] for digest in source_digests([Path(name) for name in job.corpus], job.column)]
    identity = {"settings": job.settings(), "corpus": digests, "models": models, "names": job.models}
    parts = Parts(Path(job.output), identity | {"lines": len(blank), "blank": sum(blank)}, len(blank))
    if not parts.begin(job.resume):
        tell_user(f"{job.output}: already finished")
        return 0
    try:
        return _write(job, devices, parts, len(blank) - sum(blank), len(blank))
    finally:
        parts.release()


def devices_of(job: Job) -> list[torch.device]:
    """A device for each rank: consecutive GPUs, beginning with --device, or the CPU for all.

    Raises:
        InputError: no such device, or fewer GPUs than ranks.
    """
    first = pick_device(job.device)
    if first.type != "cuda":
        return [first] * job.nproc
    last, n_gpus = first.index + job.nproc - 1, torch.cuda.device_count()
    if last >= n_gpus:
        raise InputError(
            f"--device {job.device} --nproc {job.nproc}: PyTorch sees {counted(n_gpus, 'GPU')} here: give fewer ranks"
        )
    return [torch.device("cuda", index) for index in range(first.index, last + 1)]


def _write(job: Job, devices: list[torch.device], parts: Parts, total: int, n_lines: int) -> int:
    done, stop = parts.done(), Stop()
    with Progress(int(done.sum()), total) as progress, handled(stop):
        try:
            death = run_ranks(job, devices, done, stop, progress.add) if progress.done < total else ""
        except InputError as error:
            raise InputError(f"{error}{_kept(parts, progress)}") from error
        if progress.done == total:
            notes = parts.merge()
    if death:
        tell_user(f"error: {death}{_kept(parts, progress)}")
        return EXIT_DIED
    if progress.done < total:
        tell_user(f"stopped by {signal.Signals(stop.number).name}{_kept(parts, progress)}")
        return 128 + stop.number
    tell_user(f"{job.output}: {counted(n_lines, 'line')}, {n_lines - total:,} of them blank as in the corpus")
    for name, meaning in NOTES.items():
        if notes[name]:
            tell_user(f"  {notes[name]:,} {meaning}")
    return 0


def _kept(parts: Parts, progress: Progress) -> str:
    """The end of a message about a job that ended early: how to go on.

    If no line was written, there is nothing to go on with: the folder of parts is removed, and the text is "".
    """
    if not progress.done:
        parts.remove()
        return ""
    return f": {progress.done:,} of {progress.total:,} lines are kept: go on with the same command and --resume"


class Progress:
    """Lines written and the time left: a bar on a terminal, else a line each minute."""

    def __init__(self, done: int, total: int) -> None:
        self.done, self.total = done, total
        self._start = self._said = time.monotonic()
        self._before = 0  # lines that were there when the clock started
        # smoothing 0: mean speed over all lines, because batches go from short sentences to long ones
        self._bar: Any = tqdm(total=total, initial=done, unit=" lines", smoothing=0, disable=None)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.close()

    def add(self, lines: int) -> None:
        """Count `lines` more as written. The clock starts at the first call, because models are loaded before it."""
        if not self._before:
            self._start, self._before = time.monotonic(), self.done + lines
            self._bar.unpause()
        self.done += lines
        self._bar.update(lines)
        now = time.monotonic()
        if self._bar.disable and self.done > self._before and now > self._said + LOG_SECONDS:
            self._said = now
            minutes = (self.total - self.done) * (now - self._start) / (self.done - self._before) / 60
            tell_user(f"{self.done:,} of {self.total:,} lines, {minutes:,.0f} minutes left")
