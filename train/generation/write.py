"""Writes the texts of a job: batch after batch, short sentences before long ones, each kept as soon as it is made.

While a job runs, OUTPUT.part is an SQLite database of the sentences that are done, so a job that ends for any reason,
kill -9 included, loses one batch. At the end OUTPUT gets a line for each sentence, and then OUTPUT.manifest says from
what and how it was made.

The text of a sentence does not depend on its batch: padding is on the right and masked, the limits of length are the
same for all batches, nothing is sampled, and a finished beam search does not change while others of the batch go on.
Only rounding depends on it: products of other shapes add in another order, so a score may differ in its last bits. In
fp32 that changes a text only where the scores of two beams agree to about 1e-6; in bf16, to about 1e-2.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import torch
import xxhash
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

from train.encoder.encoder import weights_digest
from train.encoder.pretrained import from_pretrained, quiet
from train.evaluation.model import DTYPES, batches_by_length, pick_device
from train.generation.options import Job
from train.record.checkpoint import check_resumed
from train.record.folder import read_object, write_file, write_json
from train.record.metrics import Bar
from train.signals import Stopped, handled, raise_stopped, tell_user
from una_fast.corpus.source import Reading
from una_fast.corpus.sources import open_sources
from una_fast.errors import InputError, counted
from una_fast.storage.files import one_line

# Sentences are sorted by length within chunks of this many. Padding is then 2 % of the tokens of wiki_sample in batches
# of 3,276 tokens and 5 % in batches of 8,192 (chunks of 512: 8 and 18 %).
CHUNK = 2048
CPU_BATCH_TOKENS = 4096
GPU_BATCH_TOKENS = 32_768
# a row of the corpus, the line that is made of it ("" if the models write nothing), and whether a source was cut
Record = tuple[int, str, bool]


def write_output(job: Job) -> int:
    """Write the output of a job, or a part of it if a signal comes; returns the exit code.

    Raises:
        InputError: bad input. The sentences that are done by then are kept.
    """
    quiet()
    output, manifest, part = places = [Path(job.output + ending) for ending in ("", ".manifest", ".part")]
    if job.resume and not part.exists() and not manifest.exists():
        raise InputError(f"--resume: there is no {part} to go on with: leave --resume out")
    if not job.resume and (present := next((path for path in places if path.exists()), None)):
        advice = ", or give --resume to go on with it" if part.exists() else ""
        raise InputError(f"--output {output}: {present} exists: choose another name{advice}")
    device = pick_device(job.device)
    sources = open_sources([Path(name) for name in job.corpus], Reading(job.column))
    texts = [text for source in sources for block in source.blocks() for text in block]
    if not texts:
        raise InputError(f"{', '.join(job.corpus)}: it holds no sentence")
    digest = xxhash.xxh3_128_hexdigest("\n".join(texts).encode("utf-8", "surrogatepass"))
    writers = [Seq2Seq(name, job, device) for name in job.model]
    models = {f"model {number}": writer.digest for number, writer in enumerate(writers, start=1)}
    fingerprint = job.settings() | {"corpus": digest} | models
    if manifest.exists():
        check_resumed(output, read_object(manifest), fingerprint)
        part.unlink(missing_ok=True)
        tell_user(f"{output}: already finished")
        return 0
    default = GPU_BATCH_TOKENS if device.type == "cuda" else CPU_BATCH_TOKENS
    budget = max(1, (job.batch_tokens or default) // (job.beams or 1))
    with opened_part(part, fingerprint) as records:
        try:
            _write(writers, texts, budget, records)
            _finish(output, manifest, fingerprint, texts, records)
            part.unlink()
        except (InputError, Stopped, sqlite3.Error) as end:
            n = len(rows_in(records))
            kept = f": {counted(n, 'line')} kept: go on with the same command and --resume" if n else ""
            if not n:
                part.unlink()
            if isinstance(end, Stopped):
                tell_user(f"stopped by {end}{kept}")
                return 128 + end.number
            raise InputError(f"{end}{kept}") from end
    return 0


@contextmanager
def opened_part(path: Path, fingerprint: dict[str, Any]) -> Iterator[sqlite3.Connection]:
    """The records of what is made, locked for other commands; SQLite undoes what a kill left half written.

    Raises:
        InputError: another command writes it, it cannot be written, or another job began it.
    """
    try:
        with closing(sqlite3.connect(path, timeout=0)) as records:
            records.execute("PRAGMA locking_mode = EXCLUSIVE")
            records.execute("BEGIN EXCLUSIVE")  # the lock stays until the connection is closed
            records.execute("CREATE TABLE IF NOT EXISTS job (fingerprint TEXT)")
            records.execute("CREATE TABLE IF NOT EXISTS lines (place INTEGER PRIMARY KEY, line, cut)")
            if saved := records.execute("SELECT fingerprint FROM job").fetchone():
                check_resumed(path, json.loads(saved[0]), fingerprint)
            else:
                records.execute("INSERT INTO job VALUES (?)", [json.dumps(fingerprint)])
            records.commit()
            yield records
    except sqlite3.Error as error:
        raise InputError(f"{path}: cannot be written ({error}); does another command write it?") from error


def rows_in(records: sqlite3.Connection) -> set[int]:
    """The rows of the corpus that are done."""
    return {row for (row,) in records.execute("SELECT place FROM lines")}


def keep(records: sqlite3.Connection, batch: list[Record]) -> None:
    """Keep the records of a batch, all or none."""
    with records:
        records.executemany("INSERT INTO lines VALUES (?, ?, ?)", batch)


def _write(writers: list[Seq2Seq], texts: list[str], budget: int, records: sqlite3.Connection) -> None:
    """Make and keep what is left."""
    done, total = rows_in(records), sum(bool(text.strip()) for text in texts)
    # smoothing 0: mean speed over all sentences, because batches go from short ones to long ones
    with closing(Bar(len(done), total, "line", smoothing=0)) as bar, handled(raise_stopped):
        for batch in make_records(writers, texts, done, budget):
            keep(records, batch)
            bar.update(len(batch))


def make_records(writers: list[Seq2Seq], texts: list[str], done: set[int], budget: int) -> Iterator[list[Record]]:
    """The records of all sentences that are neither blank nor done, a batch at a time, in chunks short ones first.

    budget: tokens of a batch's sentences, padding included.
    """
    left = [row for row, text in enumerate(texts) if text.strip() and row not in done]
    for start in range(0, len(left), CHUNK):
        rows = left[start : start + CHUNK]
        for places in batches_by_length(writers[0].lengths([texts[row] for row in rows]), budget):
            batch = [rows[place] for place in places]
            lines, cut = [texts[row] for row in batch], [False] * len(batch)
            for writer in writers:
                lines, cut = writer.write(lines, cut)
            yield [*zip(batch, lines, cut, strict=True)]


def _finish(
    output: Path, manifest: Path, fingerprint: dict[str, Any], texts: list[str], records: sqlite3.Connection
) -> None:
    """Write OUTPUT, with a blank line for a blank sentence, then its manifest; tell the user."""
    lines, cut, empty = [""] * len(texts), 0, 0
    for row, line, was_cut in records.execute("SELECT * FROM lines"):
        lines[row], cut, empty = line or one_line(texts[row]), cut + was_cut, empty + (not line)
    blank = lines.count("")
    write_file(output, "".join(f"{line}\n" for line in lines))
    counts = {"lines": len(lines), "blank": blank, "notes": {"cut": cut, "empty": empty}}
    write_json(manifest, fingerprint | counts)
    tell_user(f"{output}: {counted(len(lines), 'line')}, {blank:,} of them blank as in the corpus")
    if cut:
        tell_user(f"  {cut:,} longer than --max-source-length and cut")
    if empty:
        tell_user(f"  {empty:,} with an empty text, so the sentence itself stands there")


class Seq2Seq:
    """A seq2seq model with its tokenizer, on its device. digest: of its weights."""

    def __init__(self, name: str, job: Job, device: torch.device) -> None:
        """Raises InputError: there is no such model, or it has fewer positions than the job's lengths."""
        self._name, self._device, self._job = name, device, job
        self._tokenizer = from_pretrained("tokenizer", AutoTokenizer, name)
        self._tokenizer.padding_side = "right"  # positions count from the left
        network = from_pretrained("weights", AutoModelForSeq2SeqLM, name)
        positions = getattr(network.config, "max_position_embeddings", None) or math.inf
        for end, length in (("source", job.max_source_length), ("target", job.max_target_length)):
            if (length or 0) > positions:
                raise InputError(
                    f"--max-{end}-length {length} is above the {positions} positions of {name}: shorten it"
                )
        self.digest = weights_digest(network)
        self._network = network.to(device, DTYPES[job.precision]).eval()
        self._search = {  # besides, the model's own start token, forbidden words and length penalty hold
            "num_beams": job.beams,
            "max_new_tokens": job.max_target_length,
            "do_sample": False,
            "num_beam_groups": 1,
            "num_return_sequences": 1,
            "return_dict_in_generate": False,
            "penalty_alpha": None,
            "max_time": None,
        }

    def lengths(self, texts: list[str]) -> list[int]:
        """Tokens of each text with the prefix before it, cut or not."""
        return [len(ids) for ids in self._tokenizer([(self._job.prefix or "") + text for text in texts])["input_ids"]]

    def write(self, texts: list[str], cut: list[bool]) -> tuple[list[str], list[bool]]:
        """The line that the model writes for each text, "" for an empty text; `cut` with True for those it has to cut.

        Raises:
            InputError: the GPU's memory is too small.
        """
        limit, lines, cut = self._job.max_source_length or 0, [""] * len(texts), [*cut]
        if not (places := [place for place, text in enumerate(texts) if text]):
            return lines, cut
        sources = [texts[place] for place in places]
        for place, length in zip(places, self.lengths(sources), strict=True):
            cut[place] |= length > limit
        batch = self._tokenizer(  # ids and mask (B, L)
            [(self._job.prefix or "") + text for text in sources],
            truncation=True, max_length=limit, padding=True, return_tensors="pt",
        )  # fmt: skip
        inputs = {name: batch[name].to(self._device) for name in ("input_ids", "attention_mask")}
        try:
            with torch.inference_mode():
                ids = self._network.generate(**inputs, **self._search)
        except torch.OutOfMemoryError:
            raise InputError(
                f"{self._name}: the GPU's memory does not hold {counted(len(sources), 'sentence')} with "
                f"{self._job.beams} beams: give smaller --batch-tokens, fewer --beams, or --precision bf16"
            ) from None
        for place, text in zip(places, self._tokenizer.batch_decode(ids, skip_special_tokens=True), strict=True):
            lines[place] = one_line(text)
        return lines, cut
