"""Text files: a sentence per line.

A line ends at a newline. A carriage return right before it is dropped, and so is a byte order mark at the start of the
file; a carriage return elsewhere is content. A blank line is a document without words, so row i is line i + 1.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from una_fast._kernels.words.chunks import first_invalid_utf8, split_lines
from una_fast.corpus.line_reader import LineReader, count_lines
from una_fast.corpus.reading import Reading
from una_fast.corpus.remote import RemoteFile
from una_fast.corpus.source import BLOCK_BYTES, Block, FileSource, whole_lines
from una_fast.errors import InputError


class TextFile(FileSource):
    """A sentence per line. part: (start, stop) of the bytes that are read, whole lines; None for all."""

    def __init__(self, path: Path | RemoteFile, reading: Reading, part: tuple[int, int] | None = None):
        super().__init__(path, reading)
        self.part = part

    def split(self, n_bytes: int) -> list[FileSource] | None:
        """Parts of about `n_bytes`, whole lines each; None for a compressed file."""
        if self.path.suffix.lower() != ".txt":
            return None
        with self.path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            cuts = {0, size}
            for target in range(n_bytes, size, n_bytes):
                file.seek(target)
                while (piece := file.readline(BLOCK_BYTES)) and not piece.endswith(b"\n"):
                    pass
                cuts.add(file.tell())
        return [TextFile(self.path, self.reading, part) for part in itertools.pairwise(sorted(cuts))]

    def _blocks(self) -> Iterator[Block]:
        """The lines, checked to be UTF-8."""
        n_bytes, n_lines = (self.part or (0, 0))[0], 0
        with LineReader(self.path, self.reading.max_document_bytes, self.part) as file:
            for lines in whole_lines(file):
                data = np.frombuffer(lines, dtype=np.uint8)
                starts, stops = split_lines(data)
                invalid = first_invalid_utf8(data)
                if invalid >= 0:
                    line = file.lines_before() + n_lines + int(np.searchsorted(starts, invalid, side="right"))
                    raise InputError(
                        f"{self.path}, line {line}: byte {n_bytes + invalid} of the text is not UTF-8; convert the "
                        "file, for example with iconv -f latin1 -t utf-8"
                    )
                if n_bytes == 0 and lines.startswith(b"\xef\xbb\xbf"):
                    starts[0] = 3
                n_bytes += len(lines)
                n_lines += len(starts)
                yield Block(data, starts, stops)

    def _place(self, document: int) -> str:
        before = count_lines(self.path, self.part[0]) if self.part else 0
        return f"{self.path}, line {before + document + 1:,}"
