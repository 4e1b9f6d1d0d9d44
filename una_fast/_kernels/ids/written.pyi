# made from written.pyx by tools/stubs.py
from typing import Any

import numpy as np
from numpy.typing import NDArray

from una_fast._kernels.ids.frame import Frame
APART: Any
CASED: Any
LOWER: Any
UPPER: Any
TITLE: Any
CUT: Any
N_CHARACTERS: Any
UNKNOWN: Any
fill_rows: Any  # (written: Written, forms: Forms, numbers: NDArray[np.int32], unit_ids: NDArray[np.int32], unit_bounds: NDArray[np.int64], ids: NDArray[np.uint16] | NDArray[np.int32], id_bounds: NDArray[np.int64], rows: NDArray[np.int64], frame: Frame, input_ids: NDArray[np.int64], attention_mask: NDArray[np.int64])
class Forms:
    def __init__(self, values: Any, bounds: Any, blocks: Any, sizes: Any, first_offset: int, context_free: bool) -> None: ...
class Written:
    def __init__(self, n_rows: int, n_pieces: int, room: int) -> None: ...
    def texts(self) -> Any: ...
    def units(self) -> Any: ...
class RowWriter:
    def __init__(self, index: Any, lowered: Any, refused: Any, quotes: Any, strings: Any, kinds: Any, forms: Forms | None = ...) -> None: ...
    def write(self, rows: NDArray[np.int64], drawn: NDArray[np.int32], drawn_bounds: NDArray[np.int64], room: int = ...) -> Any: ...
