"""Rows of ids -> text."""

from __future__ import annotations

import numpy as np

from una_fast._kernels.ids.spell import spell_rows
from una_fast.arrays import Ragged, StringTable

NO_STRINGS = StringTable.from_strings([])


def spell(rows: Ragged, strings: StringTable, unseen: StringTable = NO_STRINGS) -> list[str]:
    """Each row's words joined by spaces; id i >= 0 is ``strings[i]``, a negative one ``unseen[-1 - i]``."""
    return list(StringTable(*spell_utf8(rows, strings, unseen)))


def spell_utf8(rows: Ragged, strings: StringTable, unseen: StringTable = NO_STRINGS) -> tuple[np.ndarray, np.ndarray]:
    """The texts of `spell` as (UTF-8 uint8 (T,), bounds int64 (N + 1,))."""
    return spell_rows(rows.values, rows.indptr, strings.utf8, strings.offsets, unseen.utf8, unseen.offsets)
