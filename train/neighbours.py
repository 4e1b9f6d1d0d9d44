"""--neighbours: half of each step's sentences are random, and the other half are their nearest neighbours.

Training on near-misses also changes the cosines of neighbours, which a semantic search should still find. So
`una_fast.losses.neighbour_distillation` keeps the cosine of each pair of neighbours near its initial value.

P is the size of the pool, which is a random sample of the training sentences. D is the width of an embedding.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
import xxhash
from torch import Tensor
from torch.nn import functional
from tqdm import tqdm

from train.config import Run
from train.encoder.encoder import SentenceEncoder, weights_digest
from train.loop.data import Rows, cut_by_length
from train.messages import tell_user
from una_fast.errors import InputError, counted
from una_fast.storage.files import write_file
from una_fast.tokens.ids import TokenIds

FILE = "neighbours.npz"  # in the run's folder
HIGHEST = 0.98  # highest cosine of neighbours; pairs above it are duplicates, or differ only in punctuation
BATCH_ROWS = 128  # sentences per encoding batch
BLOCK_ROWS = 1024  # sentences that are compared with the pool at a time
POOL_SEED = 0x4E454947  # part of the pool's seed, which makes the pool independent of the data order


class Neighbours(NamedTuple):
    """Rows of the index: the sentences that have a neighbour, and the nearest neighbour of each."""

    rows: Rows  # int64 (n,), ascending
    nearest: Rows  # int64 (n,)

    def digest(self) -> str:
        """Return a hash of all pairs."""
        return xxhash.xxh3_128_hexdigest(np.concatenate(self).astype("<i8").tobytes())


def load_neighbours(
    run: Run, corpus_digest: str, tokens: TokenIds, rows: Rows, encoder: SentenceEncoder, device: torch.device
) -> Neighbours:
    """Load the pairs of neighbours from the run's folder. If they are missing, compute and store them.

    rows: the sentences to train on. encoder: the initial encoder.
    """
    file, weights = Path(run.output) / FILE, weights_digest(encoder.backbone)
    key = f"{weights} {corpus_digest} {run.neighbours_pool} {run.seed} {run.max_length} {len(rows)}"
    try:
        with np.load(file) as stored:
            if str(stored["key"]) == key:
                return Neighbours(stored["rows"], stored["nearest"])
    except Exception:  # numpy and zipfile raise many types for a missing or damaged file
        pass
    pool = draw_pool(rows, run.neighbours_pool, run.seed)
    tell_user(f"--neighbours: encoding {counted(len(pool), 'sentence')}")
    nearest = find_nearest(embed(encoder, tokens, pool, run.max_length, device))
    found = Neighbours(pool[nearest >= 0], pool[nearest[nearest >= 0]])
    if len(found.rows) < run.batch_size // 2:
        raise InputError(
            f"--neighbours: {counted(len(found.rows), 'sentence')} of {len(pool):,} have a neighbour with a cosine of "
            f"at most {HIGHEST}, fewer than half of --batch-size {run.batch_size}: give more text, or leave "
            "--neighbours out"
        )
    content = io.BytesIO()
    np.savez(content, key=key, **found._asdict())
    write_file(file, content.getvalue())
    return found


def draw_pool(rows: Rows, most: int, seed: int) -> Rows:
    """Return a random sample of up to `most` rows, ascending and without repeats."""
    if len(rows) <= most:
        return rows
    generator = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, POOL_SEED])))
    return np.sort(generator.choice(rows, most, replace=False))


def embed(encoder: SentenceEncoder, tokens: TokenIds, rows: Rows, max_length: int, device: torch.device) -> Tensor:
    """Embed sentences without dropout and without the training head. Return float32 (P, D), each of length 1."""
    parts, positions = cut_by_length(tokens.anchor_ids(rows, max_length), BATCH_ROWS)
    was_training = encoder.training
    encoder.to(device).eval()
    with torch.inference_mode():
        bar = tqdm(parts, desc="encoding", unit=" batches", disable=None)  # None: on a terminal only
        embeddings = [encoder.embed({name: ids.to(device) for name, ids in part.items()}).float() for part in bar]
    encoder.train(was_training)
    return functional.normalize(torch.cat(embeddings)[positions.to(device)], dim=-1)


def find_nearest(embeddings: Tensor) -> Rows:
    """Return the position of each embedding's nearest neighbour, int64 (P,), or -1 where all cosines exceed HIGHEST.

    embeddings: float (P, D), each of length 1. Pairs whose cosine exceeds HIGHEST count as duplicates, not neighbours.
    """
    found = []
    for first in range(0, len(embeddings), BLOCK_ROWS):
        cosines = embeddings[first : first + BLOCK_ROWS] @ embeddings.T  # (block, P)
        cosines.diagonal(first).fill_(-torch.inf)  # of each row with itself
        cosines[cosines > HIGHEST] = -torch.inf
        best = cosines.max(dim=1)
        found.append(torch.where(best.values.isneginf(), -1, best.indices).cpu().numpy())
    return np.concatenate(found)
