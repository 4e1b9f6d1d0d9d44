"""Splitting a text file into words, the first pass of an index: una_fast on all cores, compared with NLTK."""

from pathlib import Path

from bench import peers
from una_fast.corpus.words import parse_corpus

OPERATION = "words"
PEER_SENTENCES = 2_000


def test_una_fast(note, size: int, corpus: Path) -> None:
    parsed, _ = note(OPERATION, size, "una_fast", size, lambda: parse_corpus(corpus))
    assert len(parsed.words) == size


def test_nltk(note, size: int, lines: list[str]) -> None:
    sample = lines[:PEER_SENTENCES]
    words = note(OPERATION, size, "NLTK word_tokenize", len(sample), lambda: peers.nltk_words(sample))
    assert len(words) == len(sample)
