"""Words of scripts without spaces, which are replaced by words of their script alone."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from una_fast._kernels.draws.sampling_config import ANY
from una_fast.arrays import StringTable
from una_fast.corpus.word_tokenizers import PUNCTUATION, SCRIPTS

EAST_ASIAN = ("Chinese", "Japanese")  # a Japanese word may be of Chinese characters
GROUPS = ["".join(SCRIPTS[name] for name in EAST_ASIAN) + PUNCTUATION]
GROUPS += [letters for name, letters in SCRIPTS.items() if name not in EAST_ASIAN]
LETTERS = re.compile("|".join(f"([{letters}])" for letters in GROUPS))
FIRST_BYTE = 0xE0  # in UTF-8 every character of SCRIPTS begins with this byte or a higher one


def scripts_of(words: Sequence[str]) -> np.ndarray:
    """uint8 (n,): 0 for a word of letters with spaces between words, else the number of the script in which it is."""
    matches = (LETTERS.search(word) for word in words)
    return np.array([match.lastindex if match else 0 for match in matches], dtype=np.uint8)


def term_scripts(terms: StringTable, fixed: np.ndarray | None) -> np.ndarray | None:
    """As `scripts_of` for each term, uint8 (V,); None if all are 0.

    ANY for terms that no other of their script can replace. fixed: bool (V,), the terms that are not drawn.
    """
    beyond = terms.rows_from(FIRST_BYTE)
    scripts = np.zeros(len(terms), dtype=np.uint8)
    scripts[beyond] = scripts_of([terms[i] for i in beyond.tolist()])
    if not scripts.any():
        return None
    drawn = scripts if fixed is None else scripts[~fixed]
    few = np.flatnonzero(np.bincount(drawn, minlength=len(GROUPS) + 1) < 2)
    return np.where(np.isin(scripts, few), np.uint8(ANY), scripts)
