"""Writes the texts of a job: each rank writes its share of the corpus, sorted by length, to a part file of its own.

`launch` checks everything, starts the ranks, merges their parts and reports the result.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from train.encoder.pretrained import quiet
from train.evaluation.embed import batch_bounds
from train.evaluation.model import pick_device
from train.generation.options import Job
from train.generation.parts import NOTES, Part, Parts, Record, folder_of
from train.generation.seq2seq import Seq2Seq, check_model
from train.launch.ranks import MODELS, RankProcesses, start_fork_server
from train.record.screen import Screen
from train.signals import handled, tell_user
from una_fast.corpus.reading import Reading
from una_fast.corpus.sources import open_sources, source_digests
from una_fast.errors import InputError, counted
from una_fast.parallel import n_cores

Line = tuple[int, str]  # row of the corpus, sentence
# Lines are sorted by length within chunks of this many. Padding is then 2 % of the tokens of wiki_sample in batches of
# 3,276 tokens and 5 % in batches of 8,192 (chunks of 512: 8 and 18 %), and the ranks' shares differ by a chunk at most.
CHUNK = 2048
CPU_BATCH_TOKENS = 4096
GPU_BATCH_TOKENS = 32_768


def sentences(corpus: tuple[str, ...], column: str) -> Iterator[Line]:
    """Every sentence of the files, blank ones too, read as training reads them."""
    row = 0
    for source in open_sources([Path(name) for name in corpus], Reading(column)):
        for block in source.blocks():
            data = block.data.tobytes()
            for start, stop in zip(block.starts.tolist(), block.stops.tolist(), strict=True):
                yield row, data[start:stop].decode("utf-8")
                row += 1


def is_blank(sentence: str) -> bool:
    """True for a sentence without text, for which the output has an empty line."""
    return not sentence.strip()


def share_of_rank(lines: Iterator[Line], done: NDArray[np.bool_], rank: int, world: int) -> Iterator[list[Line]]:
    """The chunks of one rank among `world`: every world-th chunk of the lines that are neither blank nor done."""
    left = (line for line in lines if not done[line[0]] and not is_blank(line[1]))
    number = 0
    while chunk := list(islice(left, CHUNK)):
        if number % world == rank:
            yield chunk
        number += 1


def one_line(text: str) -> tuple[str, bool]:
    """`text` with each line break and the blanks around it replaced by one space; and whether it had a line break.

    Line breaks are what str.splitlines splits at, which is more than what ends a line of a file: so every reader of
    the output finds the same lines.
    """
    lines = text.strip().splitlines()
    return " ".join(filter(None, map(str.strip, lines))), len(lines) > 1


def write_share(
    job: Job,
    rank: int,
    device: torch.device,
    done: NDArray[np.bool_],
    stopped: Callable[[], Any],
    wrote: Callable[[int], Any],
) -> None:
    """Write the lines of a rank's share that are not done.

    done: bool (lines of the corpus,). stopped: called before the first batch and after each; the work ends if it
    returns a true value. wrote: called with the number of lines of each batch that was written.
    """
    quiet()
    writers = [Seq2Seq(name, job, device) for name in job.models]
    default = GPU_BATCH_TOKENS if device.type == "cuda" else CPU_BATCH_TOKENS
    budget = max(1, (job.batch_tokens or default) // job.beams)
    if stopped():
        return
    with Part(folder_of(Path(job.output))) as part:
        for chunk in share_of_rank(sentences(job.corpus, job.column), done, rank, job.nproc):
            for records in write_chunk(writers, chunk, budget):
                part.append(records)
                wrote(len(records))
                if stopped():
                    return


def write_chunk(writers: list[Seq2Seq], chunk: list[Line], budget: int) -> Iterator[list[Record]]:
    """Records of the lines of a chunk, a batch at a time, from short sentences to long ones.

    budget: tokens of a batch's sentences, padding included.
    """
    first, *others = writers
    rows, cut = first.encode([sentence for _, sentence in chunk])
    lengths = np.array([len(ids) for ids in rows])
    order = np.argsort(lengths, kind="stable")
    for start, stop in batch_bounds(lengths[order], budget):
        batch = order[start:stop].tolist()
        texts = first.write([rows[place] for place in batch])
        was_cut = [cut[place] for place in batch]
        for writer in others:
            texts, cut_again = rewrite(writer, texts)
            was_cut = [a or b for a, b in zip(was_cut, cut_again, strict=True)]
        yield [record(chunk[place], *made) for place, *made in zip(batch, texts, was_cut, strict=True)]


def rewrite(writer: Seq2Seq, texts: list[str]) -> tuple[list[str], list[bool]]:
    """What a model writes for the texts of another model, and which texts it had to cut. An empty text stays empty."""
    places = [place for place, text in enumerate(texts) if text.strip()]
    result, was_cut = [""] * len(texts), [False] * len(texts)
    if places:
        rows, cut = writer.encode([one_line(texts[place])[0] for place in places])
        for place, text, is_cut in zip(places, writer.write(rows), cut, strict=True):
            result[place], was_cut[place] = text, is_cut
    return result, was_cut


def record(line: Line, written: str, cut: bool) -> Record:
    """The record of a line: the text written for it, on one line, or the sentence itself if that text is empty."""
    row, sentence = line
    text, folded = one_line(written)
    empty = not text
    flags = {"cut": cut, "folded": folded, "empty": empty}
    return row, text or one_line(sentence)[0], tuple(name for name, holds in flags.items() if holds)


EXIT_DIED = 1
ONE_PRESS = 0.2  # signals within so many seconds count as one, because `timeout` sends its signal twice


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
    n_written = int(done.sum())
    # smoothing 0: mean speed over all lines, because batches go from short sentences to long ones
    screen = Screen(n_written, total, "line", smoothing=0)

    def wrote(lines: int) -> None:
        nonlocal n_written
        n_written += lines
        screen.show(n_written)

    with contextlib.closing(screen), handled(stop):
        try:
            death = run_ranks(job, devices, done, stop, wrote) if n_written < total else ""
        except InputError as error:
            raise InputError(f"{error}{_kept(parts, total)}") from error
        written = int(parts.done().sum())  # a rank that was killed may have written more than it had told
        if written == total:
            notes = parts.merge()
    if death:
        tell_user(f"error: {death}{_kept(parts, total)}")
        return EXIT_DIED
    if written < total:
        tell_user(f"stopped by {signal.Signals(stop.number).name}{_kept(parts, total)}")
        return 128 + stop.number
    tell_user(f"{job.output}: {counted(n_lines, 'line')}, {n_lines - total:,} of them blank as in the corpus")
    for name, meaning in NOTES.items():
        if notes[name]:
            tell_user(f"  {notes[name]:,} {meaning}")
    return 0


def _kept(parts: Parts, total: int) -> str:
    """The end of a message about a job that ended early: how to go on.

    If no line was written, there is nothing to go on with: the folder of parts is removed, and the text is "".
    """
    written = int(parts.done().sum())
    if not written:
        parts.remove()
        return ""
    return f": {written:,} of {total:,} lines are kept: go on with the same command and --resume"


class Stop:
    """Notes the first stop signal. A later Ctrl-C ends this process and its ranks at once; written batches are kept."""

    def __init__(self) -> None:
        self.number = 0
        self._at = 0.0

    def __call__(self, number: int) -> None:
        """Handle the signal `number`."""
        if self.number and number == signal.SIGINT and time.monotonic() > self._at + ONE_PRESS:
            os._exit(128 + number)
        if not self.number:
            self.number, self._at = number, time.monotonic()
            tell_user(f"{signal.Signals(number).name}: stops, and keeps what is written; Ctrl-C ends it at once")


def run_ranks(
    job: Job, devices: list[torch.device], done: NDArray[np.bool_], stop: Stop, wrote: Callable[[int], Any]
) -> str:
    """Write the lines that are not done, with one rank per device, until all are written or a signal comes.

    One rank works in this process and ends after its batch. Several are processes that do not communicate with each
    other; they are killed, which costs each the batch that it writes.

    done: bool (lines of the corpus,). wrote: called with the number of lines of each batch that was written. Returns a
    message about a rank that died, or "".

    Raises:
        InputError: a rank found bad input; the others are killed.
    """
    if len(devices) == 1:
        write_share(job, 0, devices[0], done, lambda: stop.number, wrote)
        return ""
    start_fork_server([write_share.__module__, MODELS])
    ranks = RankProcesses(_write_rank, [(job, rank, device, done) for rank, device in enumerate(devices)])
    wrong, death = None, ""
    while ranks.running:
        for _, message in ranks.receive():
            if isinstance(message, InputError):
                wrong = wrong or message
            else:
                wrote(message)
        if (dead := ranks.dead()) and not (stop.number or wrong or death):
            death = f"rank {dead[0]} died ({dead[1]})"
        if stop.number or wrong or death:
            ranks.kill()
    if wrong:
        raise wrong
    return death


def _write_rank(job: Job, rank: int, device: torch.device, done: NDArray[np.bool_], send: Callable[[int], Any]) -> None:
    if device.type == "cpu":
        torch.set_num_threads(max(1, n_cores(None) // job.nproc))
    write_share(job, rank, device, done, lambda: 0, send)
