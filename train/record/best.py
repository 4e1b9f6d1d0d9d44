"""best/: an encoder for use, in the layout of transformers and of sentence-transformers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from train.encoder.encoder import SentenceEncoder
from train.record.files import sync, unwritable


def save_best(
    output: Path, encoder: SentenceEncoder, tokenizer: Any, note: dict[str, Any], weights: dict[str, Any]
) -> None:
    """Put the encoder with these weights of its backbone into OUTPUT/best, file by file, each by a rename.

    Raises:
        InputError: the folder cannot be written.
    """
    partial, folder = output / ".best.partial", output / "best"
    shutil.rmtree(partial, ignore_errors=True)
    try:
        encoder.backbone.save_pretrained(partial, state_dict=weights)  # type: ignore[operator]
        tokenizer.save_pretrained(partial)
        encoder.layout.write(partial, encoder.backbone.config, tokenizer)
        (partial / "best.json").write_text(json.dumps(note, indent=2) + "\n", encoding="utf-8")
        for path in [path for path in partial.rglob("*") if path.is_file()]:
            sync(path)
            target = folder / path.relative_to(partial)
            target.parent.mkdir(parents=True, exist_ok=True)
            path.replace(target)
        sync(folder)
    except (OSError, RuntimeError) as error:
        raise unwritable(folder, error) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
