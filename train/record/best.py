"""best/, and last/ of a finished run: encoders for use, in the layout of transformers and of sentence-transformers."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from train.encoder.encoder import SentenceEncoder
from train.record.checkpoint import AGAIN, Progress, read_pointer
from train.record.folder import BEST, LAST, read_object, write_json
from una_fast.errors import InputError
from una_fast.storage.files import sync_folder, unwritable

NOTES = {BEST: f"{BEST}/best.json", LAST: f"{LAST}/encoder.json"}  # where the encoder comes from
PARTIAL = ".encoder.partial"  # a folder in best/ or last/ for the files that are not complete


def save_encoder(
    output: Path, name: str, encoder: SentenceEncoder, tokenizer: Any, note: dict[str, Any], weights: dict[str, Any]
) -> None:
    """Put the encoder with these weights of its backbone into OUTPUT/NAME, file by file, each by a rename.

    Args:
        output: the run's folder.
        name: BEST or LAST.
        encoder: gives the configuration and the layout.
        tokenizer: is saved beside it.
        note: is written last, into the file of NOTES.
        weights: name to tensor.

    Raises:
        InputError: the folder cannot be written.
    """
    folder = output / name
    partial = folder / PARTIAL  # inside, because best/ may be a link to another disk
    try:
        partial.mkdir(parents=True, exist_ok=True)
        encoder.backbone.save_pretrained(partial, state_dict=weights)
        tokenizer.save_pretrained(partial)
        encoder.layout.write(partial, encoder.backbone.config, tokenizer)
        files = sorted(path for path in partial.rglob("*") if path.is_file())
        for path in files:
            with path.open("rb") as content:
                os.fsync(content.fileno())
        for path in files:
            target = folder / path.relative_to(partial)
            target.parent.mkdir(exist_ok=True)
            path.replace(target)
        sync_folder(folder)
    except (OSError, RuntimeError, SafetensorError) as error:  # the last two for a full disk too
        number = re.search(r"os error (\d+)", str(error))  # safetensors tells it in its message alone
        raise unwritable(folder, OSError(int(number[1]), os.strerror(int(number[1]))) if number else error) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    write_json(output / NOTES[name], note)


def with_best(output: Path, progress: Progress) -> Progress:
    """`progress` with the best step of OUTPUT/best, which a killed process may have saved after its checkpoint.

    Raises:
        InputError: the best encoder of the checkpoint is gone, or the checkpoint of the best encoder.
    """
    shutil.rmtree(output / BEST / PARTIAL, ignore_errors=True)  # a killed process left it
    if progress.best_step is not None and not (output / BEST / "config.json").is_file():
        raise InputError(
            f"{output / BEST}: holds no encoder, and step {progress.best_step} was the best: put it back, or {AGAIN}"
        )
    note = read_object(output / NOTES[BEST])
    step, score = note.get("step"), note.get("stsb_dev")
    if step:
        read_pointer(output)
    if not isinstance(step, int) or not isinstance(score, float) or step < progress.step:
        return progress
    if progress.best_score is not None and score <= progress.best_score:
        return progress
    return replace(progress, best_step=step, best_score=score)
