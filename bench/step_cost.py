"""Measure what negatives add to a training step: python -m bench.step_cost [--model FOLDER] [--corpus FILE].

Times 64 negatives as token ids and as text, the model's tokenizer on these texts, and the forward and backward pass of
64 anchors, positives and negatives, on one thread. Writes the table of docs/integrations.md.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from transformers import AutoModel, AutoTokenizer

import una_fast
from bench import script
from bench.report import table, write_between_marks
from train.demo import packaged_encoder
from train.record.environment import machine

PAGE = script.DOCS / "integrations.md"
B, L, ROUNDS = 64, 32, 30  # sentences per batch, tokens per sentence, times that a piece of work is timed


def milliseconds(work: Callable[[int], object], rounds: int = ROUNDS) -> float:
    """Call `work` with the number of each round, and return the shortest processor time in ms, after a warm-up."""
    times = []
    for number in range(rounds + 1):
        started = time.process_time()
        work(number)
        times.append(time.process_time() - started)
    return 1000 * min(times[1:])


def measure(model: str, corpus: str | list[str]) -> list[list[str]]:
    """Return the rows of the table: each piece of work, and its time with the unit ms."""
    torch.set_num_threads(1)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    tokenizer, encoder = AutoTokenizer.from_pretrained(model), AutoModel.from_pretrained(model).train()
    una = una_fast.Augmenter(una_fast.build_index(corpus), tokenizer=tokenizer, n_jobs=1)
    rows = torch.arange(B)
    texts = una.texts(rows)

    def step(number: int) -> None:
        batch = una.token_ids(rows.repeat(3), number, L)
        encoder(**batch).last_hidden_state[:, 0].sum().backward()
        encoder.zero_grad()

    works = {
        "64 negatives as token ids, `token_ids`": (lambda number: una.token_ids(rows, number, L), ROUNDS),
        "64 negatives as text, `augment`": (lambda number: una.augment(texts, number), ROUNDS),
        "tokenizing these texts with the model's tokenizer": (
            lambda number: tokenizer(texts, truncation=True, padding="max_length", max_length=L, return_tensors="pt"),
            ROUNDS,
        ),
        "forward and backward pass of 3 x 64 sentences of 32 tokens": (step, 3),
    }
    times = {name: milliseconds(*work) for name, work in works.items()}
    return [[name, f"{time:,.0f} ms" if time >= 10 else f"{time:.1f} ms"] for name, time in times.items()]


def write_page(model: str, corpus: str) -> None:
    """Measure, write the table into the page, and print it."""
    rows = measure(model or str(packaged_encoder()), corpus or una_fast.sample_corpus())
    name = Path(model).name or "all-MiniLM-L6-v2 (6 layers)"
    note = f"Measured on one thread of {machine()['processor']} with {name}."
    write_between_marks(PAGE, [table(["work of a step", "time"], rows), note], "step")


if __name__ == "__main__":
    sys.exit(
        script.run(
            __doc__,
            write_page,
            model={"default": "", "help": "name or folder of an encoder [the packaged MiniLM]"},
            corpus={"default": "", "help": "file of sentences [the packaged sample corpus]"},
        )
    )
