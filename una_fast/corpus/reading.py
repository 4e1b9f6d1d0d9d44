"""How a corpus is read: the options that all sources share."""

from __future__ import annotations

from dataclasses import dataclass

# 1 MiB is about 180,000 English words, a long novel. The longest of the 1,000,000 sentences of wiki_large has a few
# kilobytes. A longer document means that a file is damaged, hostile, or has no line ends.
MAX_DOCUMENT_BYTES = 1 << 20
ROW_FACTOR = 8  # a raw row may be longer than its document: it has other columns, and escapes such as \u00e9


@dataclass(frozen=True)
class Reading:
    """How to read sources.

    Attributes:
        column: The column (key) of the text.
        quoting: Whether cells of .csv and .tsv may be in quotation marks; None for yes in .csv and no in .tsv.
        max_document_bytes: The longest document that is accepted, in bytes of UTF-8; None for any length.
    """

    column: str = "text"
    quoting: bool | None = None
    max_document_bytes: int | None = MAX_DOCUMENT_BYTES

    @property
    def max_row_bytes(self) -> int:
        """The longest row of a table in bytes, other columns included."""
        return ROW_FACTOR * (self.max_document_bytes or MAX_DOCUMENT_BYTES)
