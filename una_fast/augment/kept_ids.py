"""Which texts of surface="kept" have the token ids of their words joined by spaces, so that the kernel can write them.

That is so for an uncased tokenizer that drops white space and splits at every punctuation mark (BERT's): it sees
neither the case nor the spaces that "kept" keeps. Where two words stand without a space between, one of the two
characters there is punctuation: the word tokenizer splits nowhere else but inside words such as "don't" and "cannot",
and where a replacement would run together with its neighbour, "kept" puts a space. What remains is found here:
documents whose ids are not those of their words one by one, and terms that are another text after a change of case, or
are part of an added token ("mask" may be drawn between brackets).
"""

from __future__ import annotations

import re

import numpy as np

from una_fast._kernels.ids.encode import join_chunks
from una_fast.arrays import Ragged, StringTable
from una_fast.index.index import Index
from una_fast.tokens.ids import TokenIds

ROWS_A_BLOCK = 2**18
DELETED = tuple(c.encode() for c in "\v\f\x1c\x1d\x1e\x1f\x85")  # white space between words that BERT deletes
MOST_WORDS = 50  # of added tokens, that are searched for one by one


def are_by_words(tokens: TokenIds) -> bool:
    """Whether a tokenizer is of that kind."""
    return tokens.by_word and tokens.splits_punctuation and not tokens.cased


def rows_apart(index: Index, tokens: TokenIds, terms: Ragged) -> np.ndarray:
    """int64, ascending: the documents whose ids are not those of their words, or may not be with other words.

    terms: `Ragged` (V rows), the ids of each word.
    """
    words, sentences = index.word_ids, tokens.sentences
    found = [index.sentences.rows_with(index.chunks.rows_with(*DELETED))]
    values = sentences.values
    join = join_chunks[f"{values.dtype}_t"]
    lengths = terms.lengths()
    for start in range(0, len(words), ROWS_A_BLOCK):
        bounds = words.indptr[start : start + ROWS_A_BLOCK + 1]
        room = sentences.indptr[start : start + ROWS_A_BLOCK + 1]
        inside = room - room[0]
        joined = np.zeros(inside[-1], dtype=values.dtype)
        join(words.values, bounds, terms.values, terms.indptr, 0, joined, inside, 0, len(bounds) - 1)
        differ = np.flatnonzero(joined != values[room[0] : room[-1]])
        n_ids = np.concatenate([[0], np.cumsum(lengths[words.values[bounds[0] : bounds[-1]]])])[bounds - bounds[0]]
        rows = [np.searchsorted(inside, differ, side="right") - 1, np.flatnonzero(np.diff(n_ids) != np.diff(room))]
        found.append(start + np.unique(np.concatenate(rows)))
    return np.unique(np.concatenate(found))


def terms_apart(terms: StringTable, added: list[str]) -> np.ndarray:
    """int64: the terms that a change to capitals and back changes, such as "ß" and "σ", and words of `added` tokens."""
    at = np.flatnonzero(terms.utf8 >= 0x80)
    beyond_ascii = np.unique(np.searchsorted(terms.offsets, at, side="right") - 1).tolist()
    words = {word for token in added for word in re.findall(r"\w+", token.lower())}
    near = (
        terms.rows_with(*(word.encode() for word in words)).tolist() if len(words) < MOST_WORDS else range(len(terms))
    )
    found = [i for i in beyond_ascii if not _returns(terms[i])] + [i for i in near if terms[i] in words]
    return np.array(found, dtype=np.int64)


def _returns(term: str) -> bool:
    lower = "".join(map(str.lower, term.upper())), "".join(map(str.lower, term[:1].upper() + term[1:]))
    return lower == (term, term)
