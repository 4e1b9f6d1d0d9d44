"""The training pairs of a verifier: made from the corpus, encoded once, and drawn in batches of similar length."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice, repeat
from pathlib import Path

import numpy as np
import torch
import xxhash
from numpy.typing import NDArray
from torch.nn import functional

from train.messages import progress_bar, tell_user
from train.verifier.options import VerifierOptions
from una_fast.command import settings_of
from una_fast.corpus.documents import Reading
from una_fast.corpus.sources import open_sources
from una_fast.errors import InputError, counted
from una_fast.options import Files
from una_fast.pair_scores import read_pairs
from una_fast.verify.encoder import TokenEncoder, script_of
from una_fast.verify.model import EncodedText
from una_fast.verify.pairs import PairMaker, has_roles
from una_fast.verify.templates import Pair

MAX_TOKENS = 64
WORDS = range(4, 19)  # words of a sentence that pairs are made from
READ_AHEAD = 10  # sentences that are read for each one that is used
HELD_BACK = 0.04  # share of the pairs that sets the threshold
LABELLED = "labelled"  # kind of the user's pairs
LABELLED_SHARE = 0.3  # of the user's labelled pairs, which are repeated to make up this share
N_NEIGHBOURS = 4
ENCODED_AT_ONCE = 1024
LEAST_SHARE = 0.01  # of the letters, for a script that the verifier counts as learned
BLOCK = 20  # batches that are sorted by length together


class Pairs:
    """Labelled pairs, in a random order that depends on the seed. The first ones are held back from the training.

    made: the pairs from the corpus. own: the user's distinct pairs, which the training repeats.
    """

    def __init__(self, made: Sequence[Pair], seed: int, own: Sequence[Pair] = ()):
        pairs = [*made, *own]
        order = np.random.default_rng(seed).permutation(len(pairs))
        self.pairs = [pairs[i] for i in order]
        self._n_back = max(min(50, len(pairs) // 2), round(HELD_BACK * len(pairs)))
        self._times = max(1, round(LABELLED_SHARE * len(made) / len(own))) if own else 1
        self._texts: dict[str, EncodedText] = {}

    @property
    def digest(self) -> str:
        """The xxh3-128 hash of all pairs and labels."""
        return xxhash.xxh3_128_hexdigest("\n".join("\t".join(map(str, pair)) for pair in self.pairs).encode())

    @property
    def scripts(self) -> tuple[str, ...]:
        """The scripts of at least LEAST_SHARE of the letters."""
        firsts = (pair.first for pair in self._repeated(self.pairs))
        counts = Counter(script_of(letter) for text in firsts for letter in text if letter.isalpha())
        return tuple(sorted(name for name, n in counts.items() if n >= LEAST_SHARE * counts.total()))

    def _repeated(self, pairs: Sequence[Pair]) -> Iterator[Pair]:
        for pair in pairs:
            yield from repeat(pair, self._times if pair.kind == LABELLED else 1)

    def counts(self) -> dict[str, int]:
        """Return the number of distinct pairs by label and by the first change that made them."""
        names = Counter(f"{pair.near_miss} {pair.kind.split('+')[0]}" for pair in self.pairs)
        return dict(sorted(names.items()))

    def encode(self, encoder: TokenEncoder) -> None:
        """Encode all texts, and drop pairs with a text that is too long or has no token."""
        texts = [*dict.fromkeys(text for pair in self.pairs for text in pair[:2])]
        tell_user(f"encoding {counted(len(texts), 'text')} of {counted(len(self.pairs), 'pair')}")
        with progress_bar(0, len(texts), " texts") as bar:
            for start in range(0, len(texts), ENCODED_AT_ONCE):
                part = texts[start : start + ENCODED_AT_ONCE]
                self._texts |= zip(part, encoder.encode(part, MAX_TOKENS), strict=True)
                bar.update(len(part))
        has_tokens = [all(len(self._texts[text].token_ids) for text in pair[:2]) for pair in self.pairs]
        self.pairs = [pair for pair, kept in zip(self.pairs, has_tokens, strict=True) if kept]
        self.training = [*self._repeated(self.pairs[self._n_back :])]

    def _encoded(self, pairs: Sequence[Pair]) -> tuple[list[tuple[EncodedText, EncodedText]], NDArray[np.float32]]:
        texts = [(self._texts[pair.first], self._texts[pair.second]) for pair in pairs]
        return texts, np.array([pair.near_miss for pair in pairs], np.float32)

    def held_back(self) -> tuple[list[tuple[EncodedText, EncodedText]], NDArray[np.float32]]:
        """Return the pairs that no step sees, without distant ones, and their labels, 1 for a near-miss: float32."""
        return self._encoded([pair for pair in self.pairs[: self._n_back] if not pair.kind.endswith("distant")])

    def batch(
        self, step: int, size: int, seed: int
    ) -> tuple[list[tuple[EncodedText, EncodedText]], NDArray[np.float32]]:
        """Return the pairs of a step and their labels, float32 (size,). Depends only on the arguments."""
        pairs = self.training
        steps_per_epoch = max(1, len(pairs) // size)
        epoch, number = divmod(step, steps_per_epoch)
        if getattr(self, "_epoch", None) != epoch:
            self._epoch, self._rows = epoch, self._order(pairs, size, steps_per_epoch, [seed, epoch])
        return self._encoded([pairs[i] for i in self._rows[number]])

    def _order(self, pairs: Sequence[Pair], size: int, n: int, seed: list[int]) -> list[NDArray[np.int64]]:
        """Return the rows of each batch of an epoch: pairs of similar length together, batches in a random order."""
        rng = np.random.default_rng(seed)
        lengths = np.array([sum(len(self._texts[text].token_ids) for text in pair[:2]) for pair in pairs])
        order, batches = rng.permutation(len(pairs))[: max(n * size, 1)], []
        for block in np.split(order, range(BLOCK * size, len(order), BLOCK * size)):
            block = block[np.argsort(lengths[block], kind="stable")]
            batches += np.split(block, range(size, len(block), size))
        return [batches[i] for i in rng.permutation(len(batches))]


def make_pairs(options: VerifierOptions, encoder: TokenEncoder) -> Pairs:
    """Make the pairs from --corpus, the templates, the encoder's neighbours and --pairs."""
    labelled = read_pairs(options.pairs) if options.pairs else []
    texts = read_sentences(options)
    tell_user(f"making pairs from {counted(len(texts), 'sentence')}")
    maker = PairMaker(texts, options.seed, options.wordnet or None)
    made = [*maker.near_misses(), *maker.same_meaning(), *maker.from_templates(options.templates), *maker.distant()]
    if options.neighbours <= 1:
        made += maker.from_neighbours(neighbours(maker.texts, encoder, options.neighbours))
    own = [Pair(first, second, 1 - label, LABELLED) for first, second, label, _ in labelled]
    distinct = {(frozenset(pair[:2]), pair.near_miss): pair for pair in own}  # the order of the texts does not matter
    return Pairs(made, options.seed, [*distinct.values()])


def read_sentences(options: VerifierOptions) -> list[str]:
    """Return up to --sentences sentences of the corpus. Half of them have two parts in different roles, if possible."""
    n = options.sentences
    found = [*islice(_suitable(options), READ_AHEAD * n)]
    if len(found) < 100:
        named = ", ".join(options.corpus)
        least, most = WORDS[0], WORDS[-1]
        raise InputError(
            f"--corpus {named}: {counted(len(found), 'distinct sentence')} of {least} to {most} words: give 100 or more"
        )
    order = np.random.default_rng(options.seed).permutation(len(found)).tolist()
    with_roles = {*[i for i in order if has_roles(found[i])][: n // 2]}
    others = [i for i in order if i not in with_roles][: n - len(with_roles)] if len(found) > n else order
    return [found[i] for i in sorted(with_roles.union(others))]


def _suitable(options: VerifierOptions) -> Iterator[str]:
    reading, seen = Reading(**settings_of(options, Files)), set[str]()
    for source in open_sources([*map(Path, options.corpus)], reading):
        for block in source.blocks():
            for text in block:
                if len(text.split()) in WORDS and text not in seen:
                    seen.add(text)
                    yield text


def neighbours(texts: Sequence[str], encoder: TokenEncoder, least: float) -> list[tuple[int, int]]:
    """Return the nearest neighbours whose mean token embeddings have a cosine of at least `least`, as pairs of rows."""
    tell_user("finding neighbours")
    means = np.zeros((len(texts), encoder.width), np.float32)
    for start in range(0, len(texts), ENCODED_AT_ONCE):
        for row, text in enumerate(encoder.encode(texts[start : start + ENCODED_AT_ONCE], MAX_TOKENS), start):
            if len(text.token_ids):
                means[row] = text.embeddings.astype(np.float32).mean(0)
    units = functional.normalize(torch.from_numpy(means), dim=1)
    found: dict[tuple[int, int], None] = {}
    for start in range(0, len(texts), ENCODED_AT_ONCE):
        cosines = units[start : start + ENCODED_AT_ONCE] @ units.T
        rows = torch.arange(len(cosines))
        cosines[rows, rows + start] = -1
        values, places = cosines.topk(min(N_NEIGHBOURS, len(texts) - 1))
        for row, near, at in zip(range(start, start + len(cosines)), values.tolist(), places.tolist(), strict=True):
            for cosine, other in zip(near, at, strict=True):
                if cosine >= least:
                    found[min(row, other), max(row, other)] = None
    return [*found]
