# made from emit.pyx by tools/stubs.py
from typing import Any

import numpy as np
from numpy.typing import NDArray

pad_rows: Any  # (values: NDArray[np.uint16] | NDArray[np.int32], bounds: NDArray[np.int64], rows: NDArray[np.int64], frame: Frame, input_ids: NDArray[np.int64], attention_mask: NDArray[np.int64])
class Frame:
    n_special: int
    pad_id: int
    pads_left: bool
    def __init__(self, prefix: NDArray[np.int64], suffix: NDArray[np.int64], pad_id: int, pads_left: bool = ...) -> None: ...
class TermTokens:
    frame: Frame
    def __init__(self, terms: Any, n_terms: int, frame: Frame) -> None: ...
