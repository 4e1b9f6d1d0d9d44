"""Writes the texts of a job: batch after batch, short sentences before long ones, each kept as soon as it is made.

While a job runs, OUTPUT.parts has a sealed file for each batch that is done, so a job that ends for any reason, kill -9
included, loses one batch; a file that was changed is refused. At the end OUTPUT gets a line for each sentence, and
OUTPUT.manifest says from what and how it was made, and holds the checksum of OUTPUT.
"""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import xxhash
from numpy.typing import NDArray

from train.encoder.pretrained import quiet
from train.evaluation.embed import batch_bounds
from train.evaluation.model import pick_device
from train.generation.options import Job
from train.generation.seq2seq import Seq2Seq, check_model
from train.record.checkpoint import check_identity, checksum_at
from train.record.folder import (
    GENERATION,
    OutputFolder,
    check_json,
    is_own,
    read_json,
    read_mark,
    read_sealed,
    write_json,
    write_once,
)
from train.record.metrics import Bar
from train.signals import Stopped, handled, raise_stopped, tell_user
from una_fast.corpus.reading import Reading
from una_fast.corpus.sources import open_sources
from una_fast.errors import InputError, counted
from una_fast.storage.files import checksum_of

# Sentences are sorted by length within chunks of this many. Padding is then 2 % of the tokens of wiki_sample in batches
# of 3,276 tokens and 5 % in batches of 8,192 (chunks of 512: 8 and 18 %).
CHUNK = 2048
CPU_BATCH_TOKENS = 4096
GPU_BATCH_TOKENS = 32_768
NOTES = {
    "cut": "longer than --max-source-length and cut",
    "empty": "with an empty text, so the sentence itself stands there",
}


class Record(NamedTuple):
    """The text that is made of a sentence, given by its row in the corpus. notes: names of NOTES."""

    row: int
    text: str
    notes: tuple[str, ...]


def write_output(job: Job) -> int:
    """Write the output of a job, or a part of it if a signal comes; returns the exit code.

    Raises:
        InputError: bad input. The sentences that are done by then are kept.
    """
    quiet()
    device = pick_device(job.device)
    models = {str(number): check_model(name, job) for number, name in enumerate(job.model, start=1)}
    texts = list(sentences(job.corpus, job.column))
    digest = xxhash.xxh3_128_hexdigest("\n".join(texts).encode("utf-8", "surrogatepass"))
    identity = {"settings": job.settings(), "corpus": {"xxh3_128": digest}, "models": models}
    output = Path(job.output)
    folder, manifest = folder_of(output), manifest_of(output)
    if job.resume and check_json(manifest) and not is_own(folder, GENERATION) and output.exists():
        _check_finished(output, read_sealed(manifest), identity)
        tell_user(f"{output}: already finished")
        return 0
    for path in (output, manifest):  # a job that was killed at its end has left both files, or the manifest alone
        if os.path.lexists(path) and not (job.resume and manifest.exists()):
            raise InputError(f"--output {output}: {path} exists: choose another name, or move it away")
    if folder.is_symlink():
        raise InputError(f"--output {output}: {folder} is a link: move it away")
    with OutputFolder(folder, GENERATION, job.resume, identity) as own:
        if job.resume:
            check_identity(output, read_mark(folder)["settings"], identity)
        made = read_parts(folder)
        code = _write(job, texts, device, folder, made)
        if code == 0:
            _finish(output, identity, texts, made)
            for path in _parts(folder):
                path.unlink()
        if code == 0 or not made:
            own.remove()
    return code


def _check_finished(output: Path, saved: dict[str, Any], identity: dict[str, Any]) -> None:
    """Refuse an output that another job wrote, or that was changed since. saved: its manifest."""
    check_identity(output, saved, identity)
    if checksum_at(output) != saved.get("xxh3_64"):
        raise InputError(f"--output {output}: was changed since it was written, and stays: choose another name")


def read_parts(folder: Path) -> dict[int, Record]:
    """The records that a job has made so far, by row. InputError for a file that is not as it wrote it."""
    records = (one for path in _parts(folder) for one in read_json(path)["records"])
    return {row: Record(row, text, tuple(notes)) for row, text, notes in records}


def _parts(folder: Path) -> list[Path]:
    return [path for path in folder.glob("[0-9]*.json") if check_json(path)]


def write_part(folder: Path, batch: list[Record], made: dict[int, Record]) -> None:
    """Write the records of a batch, and add them to `made`. InputError if the disk is full."""
    write_json(folder / f"{batch[0].row}.json", {"records": batch})
    made |= {one.row: one for one in batch}


def _write(job: Job, texts: list[str], device: torch.device, folder: Path, made: dict[int, Record]) -> int:
    """Make what is left, add it to `made`, and return 0, or the code of the signal that came."""
    total = sum(bool(text.strip()) for text in texts)
    writers = [Seq2Seq(name, job, device) for name in job.model]
    default = GPU_BATCH_TOKENS if device.type == "cuda" else CPU_BATCH_TOKENS
    budget = max(1, (job.batch_tokens or default) // (job.beams or 1))
    # smoothing 0: mean speed over all sentences, because batches go from short ones to long ones
    bar = Bar(len(made), total, "line", smoothing=0)
    try:
        with contextlib.closing(bar), handled(raise_stopped):
            for batch in make_records(writers, texts, {*made}, budget):
                write_part(folder, batch, made)
                bar.update(len(batch))
    except (InputError, Stopped) as end:
        kept = f": {len(made):,} of {total:,} lines are kept: go on with the same command and --resume" if made else ""
        if isinstance(end, InputError):
            raise InputError(f"{end}{kept}") from end
        tell_user(f"stopped by {end}{kept}")
        return 128 + end.number
    return 0


def make_records(writers: list[Seq2Seq], texts: list[str], done: set[int], budget: int) -> Iterator[list[Record]]:
    """The records of all sentences that are neither blank nor done, a batch at a time, in chunks short ones first.

    budget: tokens of a batch's sentences, padding included.
    """
    first, *others = writers
    left = [row for row, text in enumerate(texts) if text.strip() and row not in done]
    for start in range(0, len(left), CHUNK):
        rows = np.array(left[start : start + CHUNK])
        ids, cut = first.encode([texts[row] for row in rows])
        lengths = np.array([len(row) for row in ids])
        order = np.argsort(lengths, kind="stable")
        for begin, end in batch_bounds(lengths[order], budget):
            batch = order[begin:end]
            made, was_cut = first.write([ids[place] for place in batch]), cut[batch]
            for writer in others:
                made, cut_again = rewrite(writer, made)
                was_cut |= cut_again
            yield [
                record(row, texts[row], *rest) for row, *rest in zip(rows[batch].tolist(), made, was_cut, strict=True)
            ]


def rewrite(writer: Seq2Seq, texts: list[str]) -> tuple[list[str], NDArray[np.bool_]]:
    """What a model makes of the texts of another model, and which texts it had to cut. An empty text stays empty."""
    result, was_cut = [""] * len(texts), np.zeros(len(texts), bool)
    if places := [place for place, text in enumerate(texts) if text.strip()]:
        rows, was_cut[places] = writer.encode([one_line(texts[place]) for place in places])
        for place, text in zip(places, writer.write(rows), strict=True):
            result[place] = text
    return result, was_cut


def record(row: int, sentence: str, written: str, cut: bool) -> Record:
    """The record of a sentence: the text written for it, on one line, or the sentence itself if that text is empty."""
    text = one_line(written)
    flags = {"cut": cut, "empty": not text}
    return Record(row, text or one_line(sentence), tuple(name for name, holds in flags.items() if holds))


def one_line(text: str) -> str:
    """`text` with each line break and the blanks around it replaced by one space.

    Line breaks are what str.splitlines splits at, which is more than what ends a line of a file: so every reader of
    the output finds the same lines.
    """
    return " ".join(filter(None, map(str.strip, text.splitlines())))


def sentences(corpus: tuple[str, ...], column: str) -> Iterator[str]:
    """Every sentence of the files, blank ones too, read as training reads them."""
    for source in open_sources([Path(name) for name in corpus], Reading(column)):
        for block in source.blocks():
            yield from block.texts()


def _finish(output: Path, identity: dict[str, Any], texts: list[str], made: dict[int, Record]) -> None:
    """Write OUTPUT, with a blank line for a blank sentence, and before it its manifest; tell the user."""
    notes = Counter(note for one in made.values() for note in one.notes)
    blank = len(texts) - len(made)
    counts = {"lines": len(texts), "blank": blank, "notes": {name: notes[name] for name in NOTES}}
    lines = (made[row].text if row in made else "" for row in range(len(texts)))
    content = "".join(f"{line}\n" for line in lines).encode()
    write_json(manifest_of(output), identity | counts | {"xxh3_64": checksum_of([content])})
    write_once(output, content)  # a kill before the parts were removed has left it
    tell_user(f"{output}: {counted(len(texts), 'line')}, {blank:,} of them blank as in the corpus")
    for name, meaning in NOTES.items():
        if notes[name]:
            tell_user(f"  {notes[name]:,} {meaning}")


def folder_of(output: Path) -> Path:
    """The folder of what is done of an unfinished output."""
    return output.with_name(f"{output.name}.parts")


def manifest_of(output: Path) -> Path:
    """The file that says what a finished output was made from and how."""
    return output.with_name(f"{output.name}.manifest")
