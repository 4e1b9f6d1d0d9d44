"""The options of the corpus, in groups like those of `train.config.groups`: its files, how they are read, its words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from train.config.options import option
from una_fast.corpus.reading import MAX_DOCUMENT_BYTES


@dataclass(frozen=True)
class Data:
    """Data."""

    corpus: tuple[str, ...] = option(
        (),
        "files of text to train on: .txt, .csv, .tsv, .jsonl, .json or .parquet, one sentence a line or row; folders "
        "and globs of such files",
        role="source",
        metavar="FILE",
    )
    paraphrases: str = option(
        "",
        "file whose line i is the positive of the corpus' line i, or a folder or glob of several; without it, a "
        "sentence is its own positive",
        role="source",
        metavar="FILE",
    )
    index: str = option(
        "",
        "folder of the index; it is built there unless it is there already; default OUTPUT/index",
        role="running",
        metavar="FOLDER",
    )


@dataclass(frozen=True)
class Files:
    """How files are read."""

    column: str = option(
        "text", "column of the sentences in .csv, .tsv, .jsonl, .json and .parquet files", metavar="NAME"
    )
    quoting: bool | None = option(
        None,
        "a cell of a .csv or .tsv in quotation marks may hold line ends and delimiters; by default yes in .csv, and no "
        "in .tsv, where a quotation mark is an ordinary character",
    )
    max_document_bytes: int = option(
        MAX_DOCUMENT_BYTES,
        "longest document that is accepted, in bytes of UTF-8; 0: any length",
        least=0,
        role="running",
    )

    def reading(self) -> dict[str, Any]:
        """The arguments of `build_index` that say how files are read."""
        limit = self.max_document_bytes or None
        return {"column": self.column, "quoting": self.quoting, "max_document_bytes": limit}


@dataclass(frozen=True)
class Words:
    """Words."""

    word_tokenizer: str = option(
        "treebank",
        "what splits a sentence into words: treebank, whitespace, rjieba (Chinese), janome (Japanese), pythainlp "
        "(Thai), or a function of your own by its import path, as module:function",
        metavar="NAME",
    )
    lowercase: bool = option(True, "lower-case sentences before they are split into words")
