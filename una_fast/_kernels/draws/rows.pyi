# made from rows.pyx by tools/stubs.py
from typing import Any

import numpy as np
from numpy.typing import NDArray

from una_fast._kernels.ids.emit import TermTokens
class Workspace:
    def __init__(self, longest_row: int, growth: int, n_ids: int) -> None: ...
class RowKernel:
    seed: int
    def __init__(self, words: Any, seed: int, streams: Any = ..., growth: int = ..., n_ids: int = ..., prefetch_source: Any = ...) -> None: ...
    def token_ids(self, rows: NDArray[np.int64], epoch: int, sample_index: int, tokens: TermTokens, input_ids: NDArray[np.int64], attention_mask: NDArray[np.int64]) -> Any: ...
    def terms(self, rows: NDArray[np.int64], epoch: int, sample_index: int = ...) -> Any: ...
