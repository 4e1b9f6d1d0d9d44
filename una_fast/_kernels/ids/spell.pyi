# made from spell.pyx by tools/stubs.py
from typing import Any

import numpy as np
from numpy.typing import NDArray

def spell_rows(ids: NDArray[np.int32], indptr: NDArray[np.int64], utf8: NDArray[np.uint8], offsets: NDArray[np.int64], other_utf8: NDArray[np.uint8], other_offsets: NDArray[np.int64]) -> Any: ...
