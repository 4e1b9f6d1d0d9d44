# made from rewrite.pyx by tools/stubs.py
from typing import Any

import numpy as np
from numpy.typing import NDArray

from una_fast._kernels.ids.emit import Frame
APART: Any
CASED: Any
LOWER: Any
UPPER: Any
TITLE: Any
UNKNOWN: Any
fill_rows: Any  # (written: WrittenRows, subwords: Subwords, numbers: NDArray[np.int32], fragment_ids: NDArray[np.int32], fragment_bounds: NDArray[np.int64], ids: NDArray[np.uint16] | NDArray[np.int32], id_bounds: NDArray[np.int64], rows: NDArray[np.int64], frame: Frame, input_ids: NDArray[np.int64], attention_mask: NDArray[np.int64])
class Subwords:
    def __init__(self, terms: Any, sizes: Any, cuts: Any, alike: Any) -> None: ...
class WrittenRows:
    def __init__(self, n_rows: int, n_pieces: int, room: int, longest: int, most_words: int) -> None: ...
    def texts(self) -> Any: ...
    def fragments(self) -> Any: ...
class RowWriter:
    def __init__(self, chunks: Any, sentences: Any, words: Any, unseen: Any, terms: Any, forms: Any, characters: Any, lowered: bool, subwords: Subwords | None = ...) -> None: ...
    def write(self, rows: NDArray[np.int64], drawn: NDArray[np.int32], drawn_bounds: NDArray[np.int64], room: int = ...) -> Any: ...
    def edit(self, rows: NDArray[np.int64], starts: NDArray[np.int32], stops: NDArray[np.int32], options: NDArray[np.int64], option_utf8: NDArray[np.uint8], option_bounds: NDArray[np.int64], room: int = ...) -> Any: ...
