"""Text files: a sentence per line.

Lines end at a newline, one carriage return before it is dropped, and so is a byte order mark at the start; a carriage
return elsewhere is content. A blank line is a document without words, so rows are line numbers.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from una_fast._kernels.words.chunks import first_invalid_utf8, split_lines
from una_fast.corpus.line_reader import LineReader
from una_fast.corpus.source import Block, FileSource, line_pieces
from una_fast.errors import InputError


class TextFile(FileSource):
    """A sentence per line."""

    def _blocks(self) -> Iterator[Block]:
        """The lines, checked to be UTF-8."""
        n_bytes = n_lines = 0
        with LineReader(self.path, self.reading.max_document_bytes) as file:
            for piece in line_pieces(file):
                data = np.frombuffer(piece, dtype=np.uint8)
                starts, stops = split_lines(data)
                invalid = first_invalid_utf8(data)
                if invalid >= 0:
                    line = n_lines + int(np.searchsorted(starts, invalid, side="right"))
                    raise InputError(
                        f"{self.path}, line {line}: byte {n_bytes + invalid} of the text is not UTF-8; convert the "
                        "file, for example with iconv -f latin1 -t utf-8"
                    )
                if n_bytes == 0 and piece.startswith(b"\xef\xbb\xbf"):
                    starts[0] = 3
                n_bytes += len(piece)
                n_lines += len(starts)
                yield Block(data, starts, stops)

    def _place(self, document: int) -> str:
        return f"{self.path}, line {document + 1:,}"
