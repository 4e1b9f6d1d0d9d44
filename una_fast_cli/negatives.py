"""`una-fast negatives` writes hard negatives to a file. `una-fast explain` shows how they are made."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from una_fast.augment.registry import HARD, check_edit_options, make_augmentation
from una_fast.command import Command, option, settings_of
from una_fast.errors import InputError
from una_fast.options import Draws, Edits, Files
from una_fast.storage.files import new_file, unwritable

if TYPE_CHECKING:
    from una_fast.augment.base import TextAugmentation

STANDARD_OUTPUT = "-"
BATCH_ROWS = 8192  # sentences per batch: a few megabytes, and enough work for all threads


@dataclass(frozen=True)
class InputOptions:
    """The options that `una-fast negatives` and `una-fast explain` share."""

    index: str = option("folder of an index that `una-fast index` built", "", "Input", required=True, metavar="FOLDER")
    word_tokenizer: str = option(
        "import path of the word tokenizer, if the index was built with a function", "", metavar="NAME"
    )
    seed: int = option("seed of the draws", 42, least=0)
    epoch: int = option("number of the epoch: negatives differ from epoch to epoch", 0, least=0)
    augment: str = option("method that makes the negatives", "una", choices=HARD)


@dataclass(frozen=True)
class NegativesOptions(InputOptions, Files, Draws, Edits):
    """The options of `una-fast negatives`."""

    corpus: str = option("file of sentences; by default the sentences of the index", "", "Text", metavar="FILE")
    rows: int | None = option("only the first N sentences; by default all", None, least=1)
    output: str = option(
        "NAME.jsonl to write; each line is an object with the keys row, text and negative; -: standard output",
        STANDARD_OUTPUT, "Output", metavar="FILE",
    )  # fmt: skip
    n: int = option("negatives per sentence; if above 1, their keys are negative_1 to negative_N", 1, least=1)


@dataclass(frozen=True)
class ExplainOptions(InputOptions, Draws, Edits):
    """The options of `una-fast explain`."""

    sentences: tuple[str, ...] = option("sentences to explain", (), "Sentences and output", required=True,
                                        positional=True, metavar="SENTENCE")  # fmt: skip
    json: bool = option("write one JSON object per line instead of a table", False)


def _negatives(options: NegativesOptions) -> None:
    name = options.output
    if name != STANDARD_OUTPUT and Path(name).suffix != ".jsonl":
        raise InputError(f"--output {name}: must be a NAME.jsonl, because JSON lines are written")
    if name != STANDARD_OUTPUT and os.path.lexists(name):
        raise InputError(f"--output {name}: exists: choose another name, or delete it")
    augmenter = _augmenter(options)
    total = options.rows if options.corpus else min(len(augmenter.index), options.rows or len(augmenter.index))
    with tqdm(_lines(augmenter, options), total=total, unit=" sentences", unit_scale=True, disable=None) as lines:
        if name == STANDARD_OUTPUT:
            sys.stdout.buffer.writelines(lines)
            return
        try:
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            with new_file(Path(name)) as file:
                file.writelines(lines)
        except OSError as error:
            raise unwritable(Path(name), error) from error
    sys.stdout.write(f"{name}: written\n")


def _lines(augmenter: TextAugmentation, options: NegativesOptions) -> Iterator[bytes]:
    """Yield one JSON line per sentence of --corpus or, without --corpus, of the index."""
    from una_fast.corpus.documents import Reading
    from una_fast.corpus.sources import open_sources
    from una_fast.integrations.datasets import negative_names

    texts: Iterable[str] = augmenter.index
    if options.corpus:
        sources = open_sources(Path(options.corpus), Reading(**settings_of(options, Files)))
        texts = (text for source in sources for block in source.blocks() for text in block)
    texts = islice(texts, options.rows)
    for start in count(0, BATCH_ROWS):
        if not (batch := list(islice(texts, BATCH_ROWS))):
            if start == 0:
                raise InputError(f"{options.corpus}: contains no sentence")
            return
        rows = range(start, start + len(batch))
        columns: dict[str, Sequence[Any]] = {"row": rows, "text": batch}
        for number, name in enumerate(negative_names(options.n)):
            draws = {"epoch": options.epoch, "sample_index": number}
            made = augmenter.augment(batch, **draws) if options.corpus else augmenter.texts(rows, **draws)
            columns[name] = made
        for record in zip(*columns.values(), strict=True):
            yield json.dumps(dict(zip(columns, record, strict=True)), ensure_ascii=False).encode() + b"\n"


def _explain(options: ExplainOptions) -> None:
    augmenter = _augmenter(options)
    for sentence in options.sentences:
        explanation = augmenter.explain(sentence, options.epoch)
        text = json.dumps(asdict(explanation), ensure_ascii=False) if options.json else f"{explanation}\n"
        sys.stdout.buffer.write(f"{text}\n".encode())  # UTF-8 in every locale, like `negatives`


def _augmenter(options: NegativesOptions | ExplainOptions) -> TextAugmentation:
    """Make the augmentation that --augment names, for the index in --index."""
    import una_fast  # imported here, so that --help and command-line errors do not wait for it

    check_edit_options(options.augment, options)
    index = una_fast.load_index(Path(options.index), word_tokenizer=options.word_tokenizer or None)
    return make_augmentation(options.augment, index, vars(options), seed=options.seed)


main = Command(
    "una-fast negatives",
    "Make hard negatives of every sentence of an index, or of a file. A blank sentence gets an empty negative.",
    NegativesOptions,
    _negatives,
    page="how-una-works",
)
explain = Command(
    "una-fast explain",
    "Show how the negative of a sentence is made: which words are replaced, and why.",
    ExplainOptions,
    _explain,
    page="how-una-works",
)
