# made from csr.pyx by tools/stubs.py
from typing import Any

import numpy as np
from numpy.typing import NDArray

def document_statistics(values: NDArray[np.int32], indptr: NDArray[np.int64], counts: NDArray[np.int32], document_frequency: NDArray[np.int64], highest_ratio: NDArray[np.float64]) -> Any: ...
def relabel(values: NDArray[np.int32], labels: NDArray[np.int32], out: NDArray[np.int32]) -> Any: ...
