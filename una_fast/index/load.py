"""Opens a saved index and, if a corpus is given, checks that the index was made from it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from una_fast.corpus.sources import check_sources, source_digests
from una_fast.corpus.word_tokenizers import Split
from una_fast.index.index import Index


def load_index(
    path: str | Path,
    corpus: Any = None,
    column: str = "text",
    word_tokenizer: str | Split | None = None,
    *,
    quoting: bool | None = None,
    verify: bool = False,
) -> Index:
    """Open a saved index: memory-mapped, so that all processes of a machine share one copy.

    Every byte is read and checked when this user opens a folder for the first time on this machine, and again after a
    file of it has changed; otherwise the files are only mapped. A folder below 64 MiB is read each time.

    Args:
        path: the folder given to `Index.save`.
        corpus: if given, the corpus that the index must have been made from.
        column: as for `build_index`.
        word_tokenizer: the function (or its import path) that the index was built with, if it was not a named one.
        quoting: as for `build_index`.
        verify: read and check every byte in any case, to detect what a failing disk has changed.

    Raises:
        InputError: not an index, another version, damaged, or made from another corpus or with another word tokenizer.

    """
    index = Index.open(path, word_tokenizer, verify)
    if corpus is not None:
        check_sources(Path(path), index.sources, source_digests(corpus, column, quoting))
    return index
