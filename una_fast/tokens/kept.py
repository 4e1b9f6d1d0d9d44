"""Checks of kept token ids when they are opened, so that every id is one of the tokenizer's, whoever wrote them.

The checksums say that the files are those that were written; they cannot say who wrote them.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from una_fast.arrays import ID, POINTER, Ragged
from una_fast.errors import InputError
from una_fast.storage.content import wrong_rows

if TYPE_CHECKING:
    from una_fast.index.index import Index

NEEDED, OPTIONAL = frozenset(["sentences", "terms", "irregular"]), "first_terms"
PARTS = ("values", "indptr")


def rows_of(arrays: dict[str, np.ndarray]) -> dict[str, Ragged]:
    """The ids in the arrays of a folder, by name (see `bind`)."""
    names = sorted({name.rpartition("_")[0] for name in arrays})
    return {name: Ragged(arrays[f"{name}_values"], arrays[f"{name}_indptr"]) for name in names}


def check_ids(folder: Path, arrays: dict[str, np.ndarray], index: Index, n_ids: int) -> None:
    """Check names, types, lengths and ranges of a folder's ids. O(T) time: one pass.

    n_ids: one more than the tokenizer's largest id.

    Raises:
        InputError: with the first array that is wrong.
    """
    names = {name.rpartition("_")[0] for name in arrays}
    listed = {f"{name}_{part}" for name in names for part in PARTS}
    if names - {OPTIONAL} != NEEDED or listed != arrays.keys():
        raise _damaged(folder, f"the list of its arrays is {', '.join(sorted(arrays))}")
    ids = rows_of(arrays)
    n_rows = {"sentences": index.n_documents, "irregular": 1}
    for name, rows in ids.items():
        limit = index.n_terms if name == "irregular" else n_ids
        wrong = _wrong_types(name, rows) or wrong_rows(rows, n_rows.get(name, index.n_terms), limit)
        if wrong:
            raise _damaged(folder, f"{name} {wrong}")
    irregular = ids["irregular"].values
    if (irregular[1:] <= irregular[:-1]).any():
        raise _damaged(folder, "irregular does not increase: terms stand from low to high")


def _wrong_types(name: str, rows: Ragged) -> str:
    kinds = (ID, np.uint16) if name == "sentences" else (ID,)
    if rows.values.ndim != 1 or rows.values.dtype not in kinds:
        return f"holds ids of {rows.values.dtype} and shape {rows.values.shape}"
    if rows.indptr.ndim != 1 or rows.indptr.dtype != POINTER:
        return f"holds bounds of {rows.indptr.dtype} and shape {rows.indptr.shape}"
    return ""


def _damaged(folder: Path, found: str) -> InputError:
    return InputError(f"{folder}: damaged, or not written by una_fast: {found}; delete it, it is made again")
