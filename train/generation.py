"""Generates a paraphrase or back-translation of each sentence of a corpus with seq2seq models of transformers.

The first line of OUTPUT.jsonl is the settings. Each further line is a finished text, so a later call can continue. The
batch size can change a text only where the scores of two beams agree to about 1e-6 in fp32, or 1e-2 in bf16.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO, Any

import torch
import xxhash
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

from train.encoder.encoder import weights_digest
from train.encoder.pretrained import DTYPES, from_pretrained, quiet
from train.evaluation.model import pick_device
from train.messages import progress_bar, tell_user
from train.signals import Stopped, raise_stopped, signals_handled
from una_fast.corpus.documents import Reading
from una_fast.corpus.sources import open_sources
from una_fast.errors import InputError, counted
from una_fast.storage.files import lock, write_file

SETTINGS = ("kind", "prefix", "beams", "max_length", "precision")  # options that change the text
CPU_BATCH, GPU_BATCH = 32, 256  # sentences


def write_output(job: Any) -> int:
    """Generate the texts of a `train.generate.Job`, write them to `job.output`, and return the exit code.

    A signal ends the job early; the next call with the same options continues it.
    """
    quiet()
    output, record, device = Path(job.output), Path(f"{job.output}.jsonl"), pick_device(job.device)
    if output.exists() and not record.exists():
        raise InputError(f"--output {output}: exists: choose another name")
    sources = open_sources([*map(Path, job.corpus)], Reading(job.column, job.quoting, job.max_sentence_bytes))
    texts = [text for source in sources for block in source.blocks() for text in block]
    if not texts:
        raise InputError(f"{', '.join(job.corpus)}: contains no sentence")
    digest = xxhash.xxh3_128_hexdigest("\n".join(texts).encode("utf-8", "surrogatepass"))
    models = [Seq2Seq(name, job, device) for name in job.model]
    settings = {name: getattr(job, name) for name in SETTINGS}
    settings |= {"corpus": digest, "models": [model.digest for model in models]}
    size = job.batch_size or (GPU_BATCH if device.type == "cuda" else CPU_BATCH)
    with open_record(record, settings) as (file, lines):
        missing = [row for row, text in enumerate(texts) if text.strip() and row not in lines]
        missing.sort(key=lambda row: len(texts[row]))
        bar = progress_bar(len(lines), len(lines) + len(missing), "line", smoothing=0)
        try:
            with closing(bar), signals_handled(raise_stopped):
                for rows in (missing[start : start + size] for start in range(0, len(missing), size)):
                    batch = [texts[row] for row in rows]
                    for model in models:
                        batch = model.write(batch)
                    lines |= zip(rows, batch, strict=True)
                    file.write("".join(f"{json.dumps([row, lines[row]])}\n" for row in rows).encode())
                    file.flush()
                    bar.update(len(rows))
        except Stopped as stopped:
            tell_user(f"stopped by {stopped}: {counted(len(lines), 'line')} saved: repeat the command to continue")
            return 128 + stopped.number
    write_file(output, "".join(f"{lines.get(row) or one_line(text)}\n" for row, text in enumerate(texts)))
    blank, empty = len(texts) - len(lines), [*lines.values()].count("")
    note = f", {empty:,} copied from the corpus because the model wrote nothing" if empty else ""
    tell_user(f"{output}: {counted(len(texts), 'line')}, {blank:,} of them blank as in the corpus{note}")
    return 0


@contextmanager
def open_record(path: Path, settings: dict[str, Any]) -> Iterator[tuple[IO[bytes], dict[int, str]]]:
    """Open and lock a job's file OUTPUT.jsonl. Yield the open file, and the finished texts by row of the corpus."""
    with path.open("a+b") as file:
        if not lock(file.fileno()):
            raise InputError(f"{path}: another command writes it: wait for it, or choose another --output")
        file.seek(0)
        content = file.read()
        complete, _, truncated = content.rpartition(b"\n")  # a kill may have truncated the last line
        try:
            saved, *rows = [json.loads(line) for line in complete.split(b"\n")] if content else [settings]
            lines = {int(row): str(line) for row, line in rows}
            different = [name for name in settings if saved[name] != settings[name]]
        except (ValueError, TypeError, KeyError) as error:
            raise InputError(f"{path}: was not written by this command: choose another --output") from error
        if different:
            name = different[0]
            raise InputError(
                f"{path}: {name} was {saved[name]} when the job was started and is {settings[name]} now: give the "
                "earlier value, or choose another --output"
            )
        file.truncate(len(content) - len(truncated))
        if not content:
            file.write(f"{json.dumps(settings)}\n".encode())
        yield file, lines


class Seq2Seq:
    """Generates texts by beam search, with a seq2seq model and its tokenizer."""

    def __init__(self, name: str, job: Any, device: torch.device) -> None:
        self._name, self._device, self._job = name, device, job
        self._tokenizer = from_pretrained("tokenizer", AutoTokenizer, name)
        self._tokenizer.padding_side = "right"  # positions count from the left
        network = from_pretrained("weights", AutoModelForSeq2SeqLM, name)
        positions = getattr(network.config, "max_position_embeddings", None)
        if positions and job.max_length > positions:
            raise InputError(
                f"--max-length {job.max_length} is above the {positions} positions of {name}: give at most {positions}"
            )
        self.digest = weights_digest(network)
        self._network = network.to(device, DTYPES[job.precision]).eval()

    def write(self, texts: list[str]) -> list[str]:
        """Return a generated text without line breaks for each of `texts`; "" for an empty text."""
        job, prefixed = self._job, [self._job.prefix + text for text in texts]
        batch = self._tokenizer(prefixed, truncation=True, max_length=job.max_length, padding=True, return_tensors="pt")
        inputs = {name: batch[name].to(self._device) for name in ("input_ids", "attention_mask")}  # (B, L)
        search = {"num_beams": job.beams, "max_new_tokens": job.max_length}
        # these override the model's generation settings, but not its start token, forbidden words and penalties
        search |= {"do_sample": False, "num_beam_groups": 1, "num_return_sequences": 1}
        search |= {"return_dict_in_generate": False, "penalty_alpha": None, "max_time": None}
        try:
            with torch.inference_mode():
                ids = self._network.generate(**inputs, **search)
        except torch.OutOfMemoryError:
            raise InputError(
                f"{self._name}: the GPU's memory is too small for {counted(len(texts), 'sentence')} with {job.beams} "
                "beams: give a smaller --batch-size, fewer --beams, or --precision bf16"
            ) from None
        lines = map(one_line, self._tokenizer.batch_decode(ids, skip_special_tokens=True))
        return [line if text else "" for text, line in zip(texts, lines, strict=True)]


def one_line(text: str) -> str:
    """Strip each line of `text`, leave out blank lines, and join the other lines with single spaces."""
    return " ".join(filter(None, map(str.strip, text.splitlines())))
