"""A small semantic cache of answers: find the nearest stored question, and let a verifier reject a near-miss.

    python examples/answer_cache.py --model NAME_OR_FOLDER [--verifier FOLDER] [--questions FILE] [--pairs FILE]

Without files, it stores and asks a few questions of its own. --questions: a file of questions to store, one per line.
--pairs: labelled pairs, as for `una-fast probe`: the first question of a pair is stored, the second one is asked, and
the table shows hits, false hits, and the time of a look-up after encoding.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from sentence_transformers import SentenceTransformer

import una_fast
from una_fast.command import run_command
from una_fast.pair_scores import read_pairs
from una_fast.text_table import aligned
from una_fast.verify.model import EncodedText

STORED = {
    "How do I turn on dark mode?": "Settings, Display, Dark mode: on.",
    "Is there a train from Oslo to Bergen?": "Yes, four a day.",
    "Can I cancel my order after it has been shipped?": "No, but you can send it back.",
}
ASKED = [
    "How can I switch on dark mode?",
    "How do I turn off dark mode?",
    "Is there a train from Bergen to Oslo?",
    "Can I cancel my order before it has been shipped?",
]


class AnswerCache:
    """Stores answers by question. A look-up returns the answer of the nearest question that means the same.

    threshold: the smallest cosine of a hit. candidates: how many of the nearest questions the verifier reads.
    """

    def __init__(
        self,
        encoder: SentenceTransformer,
        verifier: una_fast.Verifier | None,
        threshold: float = 0.8,
        candidates: int = 5,
    ):
        self.encoder, self.verifier, self.threshold, self.candidates = encoder, verifier, threshold, candidates
        self.units = np.empty((0, encoder.get_embedding_dimension() or 0), np.float32)
        self.answers: list[str] = []
        self.tokens: list[EncodedText] = []

    def add(self, questions: list[str], answers: list[str]) -> None:
        """Store answers by question."""
        self.units = np.concatenate([self.units, self.encoder.encode(questions, normalize_embeddings=True)])
        self.answers += answers
        if self.verifier:
            self.tokens += self.verifier.encode(questions)

    def find(self, question: str) -> int:
        """Return the position of the stored question whose answer fits, or -1."""
        return self.look_up(self.encoder.encode([question], normalize_embeddings=True)[0], question)

    def look_up(self, unit: np.ndarray, question: str) -> int:
        """Return the same as `find`, for a question whose embedding `unit` (width,) is known."""
        cosines = self.units @ unit
        near = np.argpartition(-cosines, min(self.candidates, len(cosines) - 1))[: self.candidates]
        near = near[np.argsort(-cosines[near])]
        near = near[cosines[near] > self.threshold]
        if self.verifier and len(near):
            asked = self.verifier.encode([question])[0]
            near = near[self.verifier.accepts([(asked, self.tokens[i]) for i in near.tolist()])]
        return int(near[0]) if len(near) else -1


def measure(cache: AnswerCache, pairs: list[tuple[str, str, int, str]]) -> list[str]:
    """Store the first question of each pair, ask the second, and return the figures as cells."""
    first, second, labels, _ = zip(*pairs, strict=True)
    start = len(cache.answers)
    cache.add([*first], [*first])
    units = cache.encoder.encode([*second], normalize_embeddings=True)
    begun = time.perf_counter()
    found = np.array([cache.look_up(unit, text) for unit, text in zip(units, second, strict=True)])
    milliseconds = 1000 * (time.perf_counter() - begun) / len(pairs)
    is_hit = found == start + np.arange(len(pairs))
    same = np.array(labels, bool)
    return [f"{is_hit[same].mean():.1%}", f"{is_hit[~same].mean():.1%}", f"{milliseconds:.2f} ms"]


def main() -> None:
    """Ask the example questions, or measure the pairs of --pairs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", required=True, help="the encoder, which sentence-transformers loads")
    parser.add_argument("--verifier", help="folder of a verifier for it; default: the packaged one, for MiniLM")
    parser.add_argument("--questions", type=Path, help="file of questions to store")
    parser.add_argument("--pairs", type=Path, help="file of labelled pairs to measure")
    parser.add_argument("--threshold", type=float, default=0.8, help="smallest cosine of a hit [0.8]")
    options = parser.parse_args()
    encoder = SentenceTransformer(options.model)
    verifier = una_fast.Verifier(options.verifier, encoder=encoder)
    if options.pairs:
        pairs = read_pairs(options.pairs)
        stored = options.questions.read_text(encoding="utf-8").splitlines() if options.questions else []
        rows = [["", "right hits", "false hits", "look-up"]]
        for name, used in (("cosine", None), ("cosine and verifier", verifier)):
            cache = AnswerCache(encoder, used, options.threshold)
            if stored:
                cache.add(stored, stored)
            rows.append([name, *measure(cache, pairs)])
        print(*aligned(rows, left=(0,)), sep="\n")
        return
    cache = AnswerCache(encoder, verifier, options.threshold)
    cache.add([*STORED], [*STORED.values()])
    for question in ASKED:
        found = cache.find(question)
        print(f"{question}\n  {cache.answers[found] if found >= 0 else 'not in the cache'}")


if __name__ == "__main__":
    raise SystemExit(run_command(main))
