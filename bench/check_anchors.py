"""Every sentence of a corpus as token ids, made by the index and by the tokenizer itself: the times, any difference.

    python bench/check_anchors.py ../shared/data/corpora/wiki_large.txt.gz [--tokenizer minilm roberta xlm_roberta]
        [--lines-a-call 100000] [--rounds 3]

The tokenizer is called as its users call it, on a list of sentences; the list is cut, because a million of its results
take 8 GB. Both take the same cores in the same run. "minilm" is the packaged one; "roberta" and "xlm_roberta" are
trained on the corpus' first lines, to 50,265 and up to 32,000 sub-words; any other is a folder or a name on the hub.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from transformers import AutoTokenizer

import una_fast
from una_fast.binding import encode_sentences, encode_terms
from una_fast.parallel import n_cores
from una_fast.subwords import SubwordEncoder

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
import tokenizer_families

TRAINING_LINES = 50_000


def load_tokenizer(name: str, index: Any) -> Any:
    if name == "minilm":
        return tokenizer_families.bert_uncased()
    if name not in ("roberta", "xlm_roberta"):
        return AutoTokenizer.from_pretrained(name)
    tokenizer_families.training_lines = lambda: list(sentences(index, 0, min(TRAINING_LINES, index.n_documents)))
    tokenizer_families.VOCABULARY = 50_265 if name == "roberta" else 32_000
    return getattr(tokenizer_families, name)()


def sentences(index: Any, start: int, stop: int) -> Iterator[str]:
    return map(index.sentence, range(start, stop))


def timed(function: Any, *args: Any) -> tuple[Any, float]:
    started = time.perf_counter()
    result = function(*args)
    return result, time.perf_counter() - started


def encode(index: Any, tokenizer: Any) -> Any:
    return encode_sentences(index, SubwordEncoder(tokenizer), n_cores(None))


def count_differences(tokenizer: Any, texts: list[str], expected: np.ndarray, bounds: np.ndarray) -> tuple[int, float]:
    """How many of `texts` the tokenizer gives other ids than `expected` has, and the time of its call."""
    result, seconds = timed(lambda: tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"])
    different = sum(
        ids != expected[start:stop].tolist()
        for ids, start, stop in zip(result, bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
    )
    return different, seconds


def compare(index: Any, name: str, lines_a_call: int, rounds: int) -> int:
    """Print a line for the tokenizer; the number of sentences with other ids."""
    tokenizer = load_tokenizer(name, index)
    times = []
    for _ in range(rounds):
        ids, seconds = timed(encode, index, tokenizer)
        times.append(seconds)
    _, term_seconds = timed(encode_terms, index, SubwordEncoder(tokenizer), n_cores(None))
    different, tokenizer_seconds = 0, 0.0
    for start in range(0, index.n_documents, lines_a_call):
        stop = min(start + lines_a_call, index.n_documents)
        texts = list(sentences(index, start, stop))
        n, seconds = count_differences(tokenizer, texts, ids.values, ids.indptr[start : stop + 1])
        different, tokenizer_seconds = different + n, tokenizer_seconds + seconds
    times.append(timed(encode, index, tokenizer)[1])  # once more at the end, as the machine may have become slower
    ours = statistics.median(times)
    print(
        f"{name}: {index.n_documents:,} sentences, {different} differ; una_fast {ours:.2f} s ({min(times):.2f} to"
        f" {max(times):.2f}; {1e6 * ours / index.n_documents:.2f} us a sentence), terms {term_seconds:.2f} s; tokenizer"
        f" {tokenizer_seconds:.1f} s ({1e6 * tokenizer_seconds / index.n_documents:.1f} us); ratio"
        f" {tokenizer_seconds / ours:.1f}, with the terms {tokenizer_seconds / (ours + term_seconds):.1f}",
        flush=True,
    )
    return different


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--tokenizer", nargs="+", default=["minilm", "roberta", "xlm_roberta"])
    parser.add_argument("--lines-a-call", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    index, seconds = timed(una_fast.build_index, options.corpus)
    print(f"{index}, {len(index.chunks):,} distinct chunks, built in {seconds:.1f} s", flush=True)
    different = [compare(index, name, options.lines_a_call, options.rounds) for name in options.tokenizer]
    return int(any(different))


if __name__ == "__main__":
    sys.exit(main())
