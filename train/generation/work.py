"""The lines of a corpus, and the work of one rank: models write its share, sorted by length, to its part file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from train.encoder.pretrained import quiet
from train.evaluation.embed import batch_bounds
from train.generation.options import Job
from train.generation.parts import Part, Record, folder_of
from train.generation.seq2seq import Seq2Seq
from una_fast.corpus.reading import Reading
from una_fast.corpus.sources import open_sources

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
