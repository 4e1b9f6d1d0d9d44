"""The network of the verifier. It reads the token embeddings of both texts of a pair.

Letters in shapes: P pairs, L tokens of both texts of a pair with padding, T tokens of all texts, W width of the
encoder, D width of the network. A token's "partner" is its best match in the other text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

SCALE = 8.0  # unit vectors have small entries: this brings them near 1
FAR = 16  # offsets beyond this count as equal
N_MAPS, N_MATCHES = 9, 6


class EncodedText(NamedTuple):
    """The tokens of a text, without special tokens. A text that the verifier cannot judge has no token.

    token_ids: int32 (n_tokens,). embeddings: float16 (n_tokens, W), the encoder's last layer, scaled to length 1.
    """

    token_ids: NDArray[np.int32]
    embeddings: NDArray[np.float16]


class PairBatch(NamedTuple):
    """The tokens of P pairs of texts."""

    embeddings: Tensor  # float32 (T, W)
    words: Tensor  # float32 (T, W), the encoder's word embeddings, scaled to length 1
    token_ids: Tensor  # int64 (T,)
    place: Tensor  # int64 (P, L), rows of the above; 0 for padding
    side: Tensor  # int64 (P, L), 0 for the first text, 1 for the second
    position: Tensor  # int64 (P, L), position in its text
    mask: Tensor  # bool (P, L), False for padding

    def to(self, device: torch.device) -> PairBatch:
        """Return the batch on a device."""
        return PairBatch(*(tensor.to(device, non_blocking=True) for tensor in self))


def make_batch(pairs: Sequence[tuple[EncodedText, EncodedText]], words: Tensor) -> PairBatch:
    """Make a batch of pairs of texts, each with at least one token. words: float32 (vocabulary, W).

    A text object that occurs in several pairs is stored once, so its tokens are read once.
    """
    texts = {id(text): text for pair in pairs for text in pair}
    lengths = {key: len(text.token_ids) for key, text in texts.items()}
    starts = dict(zip(texts, np.cumsum([0, *lengths.values()]).tolist(), strict=False))
    n = max(lengths[id(a)] + lengths[id(b)] for a, b in pairs)
    index, side, position = (np.zeros((len(pairs), n), np.int64) for _ in range(3))
    mask = np.zeros((len(pairs), n), bool)
    for row, (a, b) in enumerate(pairs):
        middle = lengths[id(a)]
        end = middle + lengths[id(b)]
        position[row, :middle], position[row, middle:end] = np.arange(middle), np.arange(end - middle)
        index[row, :middle], index[row, middle:end] = starts[id(a)], starts[id(b)]
        side[row, middle:end], mask[row, :end] = 1, True
    index += position
    token_ids = torch.from_numpy(np.concatenate([text.token_ids for text in texts.values()]).astype(np.int64))
    embeddings = torch.from_numpy(np.concatenate([text.embeddings for text in texts.values()])).float()
    arrays = map(torch.from_numpy, (index, side, position, mask))
    return PairBatch(embeddings, words[token_ids], token_ids, *arrays)


class Block(nn.Module):
    """A transformer layer whose attention is biased by maps of the pair: float (P, L, L, N_MAPS)."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads, self.bias = heads, nn.Linear(N_MAPS, heads)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: Tensor, maps: Tensor, mask: Tensor, dropout: float) -> Tensor:
        """Return the new state of each token, (P, L, D)."""
        n, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(n, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        bias = self.bias(maps).permute(0, 3, 1, 2).masked_fill(~mask[:, None, None], -1e4)  # (P, heads, L, L)
        y = functional.scaled_dot_product_attention(q, k, v, attn_mask=bias.to(q.dtype))
        x = x + functional.dropout(self.out(y.transpose(1, 2).reshape(n, length, width)), dropout, self.training)
        return x + functional.dropout(self.down(functional.gelu(self.up(self.norm2(x)))), dropout, self.training)


class PairModel(nn.Module):
    """Computes how probably each pair is a near-miss, as a logit (P,). The order of the two texts makes no difference.

    encoder_width: W. max_tokens: the largest number of tokens of a text.
    """

    def __init__(self, encoder_width: int, width: int = 128, heads: int = 4, layers: int = 3, max_tokens: int = 64):
        super().__init__()
        self.dropout = 0.0
        self.read = nn.Linear(2 * encoder_width, width)
        self.change = nn.Linear(2 * encoder_width, width, bias=False)  # of the difference from the partner
        self.position = nn.Embedding(max_tokens, width)
        self.partner_position = nn.Linear(width, width, bias=False)
        self.match = nn.Linear(N_MATCHES, width)
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.decide = nn.Sequential(nn.Linear(2 * width, width), nn.GELU(), nn.Linear(width, 1))

    def forward(self, batch: PairBatch) -> Tensor:
        """Return a logit for each pair, (P,); above 0 the pair is more probably a near-miss."""
        place, position, mask = batch.place, batch.position, batch.mask
        content = torch.cat([batch.embeddings, batch.words], 1) * SCALE  # (T, 2 W)
        read, change = self.read(content), self.change(content)  # (T, D)
        maps, match, partner = compare(batch)
        x = read[place] + change[place] - change[place.gather(1, partner)]  # (P, L, D)
        x = x + self.match(match) + self.position(position)
        x = x + self.partner_position(self.position(position.gather(1, partner)))
        for block in self.blocks:
            x = block(x, maps, mask, self.dropout)
        x = self.norm(x)
        mean = (x * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
        highest = x.masked_fill(~mask[..., None], -1e4).amax(1)
        logits: Tensor = self.decide(torch.cat([mean, highest], 1))  # (B, 1)
        return logits[:, 0]


def compare(batch: PairBatch) -> tuple[Tensor, Tensor, Tensor]:
    """Compare all tokens of each pair.

    Returns:
        Maps (P, L, L, N_MAPS) of cosines, equality and offsets; how each token matches the other text
        (P, L, N_MATCHES); and the place of its partner in the row, int64 (P, L).
    """
    last, words = batch.embeddings[batch.place], batch.words[batch.place]  # (P, L, W)
    near, near_words = last @ last.transpose(1, 2), words @ words.transpose(1, 2)  # (P, L, L)
    ids = batch.token_ids[batch.place]
    across = batch.side[:, :, None] != batch.side[:, None]
    equal = ((ids[:, :, None] == ids[:, None]) & across).float()
    offset = (batch.position[:, None] - batch.position[:, :, None]).float()
    other, own = across.float(), (~across).float()
    maps = torch.stack(
        [
            near * other, near * own, near_words * other, equal, other, (offset == 1) * own, (offset == -1) * own,
            (offset == 0) * other, offset.abs().clamp(max=FAR) / FAR,
        ],
        -1,
    )  # fmt: skip
    allowed = across & batch.mask[:, None]
    best, where = near.masked_fill(~allowed, -1).max(2)
    best_word, where_word = near_words.masked_fill(~allowed, -1).max(2)
    partner = (near + near_words).masked_fill(~allowed, -9).argmax(2)
    moved, moved_word = (offset.gather(2, place[..., None])[..., 0] / 8 for place in (where, where_word))
    found = (equal * batch.mask[:, None]).amax(2)
    match = torch.stack([best, best_word, found, moved, moved_word, (where == where_word).float()], -1)
    return maps, match, partner
