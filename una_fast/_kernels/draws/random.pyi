# made from random.pyx by tools/stubs.py
from typing import Any

import numpy as np
from numpy.typing import NDArray

def fill_bits(seed: int, epoch: int, sample_index: int, rows: NDArray[np.uint64], number: int, out: NDArray[np.uint64]) -> Any: ...
