# made from probability.pyx by tools/stubs.py
from typing import Any

import numpy as np
from numpy.typing import NDArray

FIXED: Any
ANY: Any
def replacement_probabilities(config: SamplingConfig, words: Any, unseen_groups: NDArray[np.uint8] | None = ...) -> Any: ...
def id_bits(n_terms: int) -> Any: ...
def pack_words(config: SamplingConfig, ids: NDArray[np.int32], indptr: NDArray[np.int64], first: NDArray[np.int32], p: NDArray[np.float64], out: NDArray[np.uint32]) -> Any: ...
class SamplingConfig:
    groups: NDArray[np.uint8]
    beta: float
    radius: int
    seed: int
    released: bool
    random_select: bool
    def __init__(self, idf: NDArray[np.float64], scores: NDArray[np.float64], *, n_documents: int, beta: float, radius: int, seed: int, released: bool, random_select: bool, random_replace: bool, groups: NDArray[np.uint8] | None = ...) -> None: ...
    def window(self, term: int, score: float = ..., unseen_groups: NDArray[np.uint8] | None = ...) -> Any: ...
    def candidates(self, window: Any, term: int, unseen_groups: NDArray[np.uint8] | None = ...) -> Any: ...
