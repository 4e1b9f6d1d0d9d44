# made from logarithm.pyx by tools/stubs.py
from typing import Any

import numpy as np
from numpy.typing import NDArray

def exact_log(numerator: int, denominator: int) -> float: ...
def fill_log(values: NDArray[np.float64], out: NDArray[np.float64], plus: int = ...) -> Any: ...
