# made from edits.pyx by tools/stubs.py
from typing import Any

import numpy as np
from numpy.typing import NDArray

NO_KIND: Any
def draw_edits(rows: NDArray[np.int64], bits: NDArray[np.uint64], is_possible: NDArray[np.uint8], weights: NDArray[np.float64], listed: NDArray[np.int64], n_listed: int, bounds: NDArray[np.int64], option_lists: NDArray[np.int32], list_bounds: NDArray[np.int64]) -> Any: ...
